"""Owns identity: the id that a key gives an entity, for one row and for Arrow batches alike.

An id, once stored, must come out the same for ever and on every machine, so no text here is left
to a library's taste. Floats are laid out as ECMAScript does (the form of RFC 8785: `5`, `0.1`,
`1e+21`, -0 is `0`), from the shortest digits that read back as the same number at the property's
width. NaN and infinities are refused: a load file could not name such an entity. Dates outside
the years 1 to 9999 have no ISO form and are refused too. Composite keys escape only what JSON
requires (`"`, `\\`, control characters). Entities without a key get a ULID from the caller.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from numbers import Integral, Real

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.arrow import arrow_type
from omnigraph.model.catalog import GraphType, system_columns
from omnigraph.model.types import FLOATS, INTEGER_RANGES, Base, EnumType, PropertyType, ScalarType

_STRING = ScalarType(Base.STRING)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECOND = timedelta(milliseconds=1)
_FIRST_DAY = (date.min - _EPOCH.date()).days
_LAST_DAY = (date.max - _EPOCH.date()).days
_NEEDS_ESCAPE = '["\\\\\x00-\x1f]'


LONGEST_ID = 64 * 1024
"""The limit in bytes for ids of nodes and for given ids, which appear in every edge and every
index."""
LONGEST_EDGE_ID = 4 * LONGEST_ID
"""The limit for ids derived for edges, which may contain the ids of both ends."""


class InvalidKeyError(ValueError):
    """A value that cannot be part of a key. `row` is its position in the batch, if it came in
    one."""

    def __init__(self, property_name: str, problem: str, row: int | None = None) -> None:
        self.property = property_name
        self.problem = problem
        self.row = row
        where = "" if row is None else f" (row {row})"
        super().__init__(f"key property {property_name!r}{where}: {problem}")


def derive_id(kind: GraphType, row: Mapping[str, object]) -> str:
    """The id of one entity from its key properties (and `src`, `dst`), by name."""
    texts = [_value_text(t, name, row.get(name)) for name, t in key_types(kind)]
    if len(texts) == 1:
        return texts[0]
    return json.dumps(texts, ensure_ascii=False, separators=(",", ":"))


def derive_ids(kind: GraphType, rows: pa.RecordBatch | pa.Table) -> pa.Array | pa.ChunkedArray:
    """The ids of many entities: an Array for a batch, a ChunkedArray for a table."""
    if isinstance(rows, pa.Table):
        ids = []
        offset = 0
        for batch in rows.to_batches():
            ids.append(_batch_ids(kind, batch, offset))
            offset += batch.num_rows
        return pa.chunked_array(ids, pa.string())
    return _batch_ids(kind, rows, 0)


def key_types(kind: GraphType) -> list[tuple[str, PropertyType]]:
    """The key in declaration order, each name with the type that determines its text."""
    if not kind.key:
        raise ValueError(f"{kind.name} has no key: its ids are not derived")
    types: dict[str, PropertyType] = dict.fromkeys(system_columns(kind), _STRING)
    types |= {p.name: p.type for p in kind.properties}
    return [(name, types[name]) for name in kind.key]


# One value


def _value_text(kind: PropertyType, name: str, value: object) -> str:
    if value is None:
        raise InvalidKeyError(name, "is null or missing")
    base = _base(kind)
    text = _TEXTS[base](base, value)
    if text is None:
        raise InvalidKeyError(name, f"{value!r} has no canonical text as {base.value}")
    return text


def _base(kind: PropertyType) -> Base:
    match kind:
        case ScalarType(base=base) if base in _TEXTS:
            return base
        case EnumType():
            return Base.STRING
        case _:
            raise ValueError(f"{kind} cannot be part of a key")


def _string_text(_: Base, value: object) -> str | None:
    if not isinstance(value, str):
        return None
    try:
        value.encode()
    except UnicodeEncodeError:
        return None
    return value


def _bool_text(_: Base, value: object) -> str | None:
    if not isinstance(value, bool | np.bool_):
        return None
    return "true" if value else "false"


def _integer_text(base: Base, value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, Integral):
        return None
    low, high = INTEGER_RANGES[base]
    return str(int(value)) if low <= int(value) <= high else None


def _float_text(base: Base, value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    with np.errstate(over="ignore"):
        number = np.float32(value) if base is Base.F32 else np.float64(value)
    return _layout(str(number)) if math.isfinite(number) else None


def float_text(value: float, *, narrow: bool) -> str:
    """The text of any float at its width (F32 if narrow), including those that no key may
    contain."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return _float_text(Base.F32 if narrow else Base.F64, value) or ""


def _date_text(_: Base, value: object) -> str | None:
    return value.isoformat() if type(value) is date else None


def _datetime_text(_: Base, value: object) -> str | None:
    """A time without a zone is in UTC. Anything finer than a millisecond is refused, never
    rounded."""
    if not isinstance(value, datetime):
        return None
    moment = value if value.tzinfo is not None else value.replace(tzinfo=UTC)
    milliseconds, rest = divmod(moment - _EPOCH, _MILLISECOND)
    return None if rest else str(milliseconds)


_TEXTS: dict[Base, Callable[[Base, object], str | None]] = {
    Base.STRING: _string_text,
    Base.BOOL: _bool_text,
    **dict.fromkeys(INTEGER_RANGES, _integer_text),
    **dict.fromkeys(FLOATS, _float_text),
    Base.DATE: _date_text,
    Base.DATETIME: _datetime_text,
}


def _layout(shortest: str) -> str:
    """The digits of a finite number, laid out as ECMAScript's Number::toString does. Without an
    exponent, which is most numbers, the two layouts differ only in a trailing `.0`."""
    if "e" not in shortest:
        return shortest.removesuffix(".0") if shortest != "-0.0" else "0"
    negative, numerals, exponent = Decimal(shortest).as_tuple()
    assert isinstance(exponent, int)
    digits = "".join(map(str, numerals)).rstrip("0")
    point = len(numerals) + exponent
    sign = "-" if negative else ""
    if len(digits) <= point <= 21:
        return f"{sign}{digits}{'0' * (point - len(digits))}"
    if 0 < point <= 21:
        return f"{sign}{digits[:point]}.{digits[point:]}"
    if -6 < point <= 0:
        return f"{sign}0.{'0' * -point}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{point - 1:+d}"


# Many values


def _batch_ids(kind: GraphType, batch: pa.RecordBatch, offset: int) -> pa.Array:
    texts = [_column_texts(t, name, batch, offset) for name, t in key_types(kind)]
    if len(texts) == 1:
        return texts[0]
    parts: list[pa.Array | str] = ['["']
    for i, text in enumerate(texts):
        parts += ['","', _escaped(text)] if i else [_escaped(text)]
    return pc.binary_join_element_wise(*parts, '"]', "")


def _column_texts(kind: PropertyType, name: str, batch: pa.RecordBatch, offset: int) -> pa.Array:
    base = _base(kind)
    at = batch.schema.get_field_index(name)
    if at < 0:
        raise InvalidKeyError(name, "is null or missing", offset if batch.num_rows else None)
    column = batch.column(at)
    _refuse(name, "is null or missing", pc.is_null(column), offset)
    if column.type != arrow_type(kind):
        column = column.cast(arrow_type(kind))
    if base in FLOATS:
        _refuse(name, f"has no canonical text as {base.value}", _not_finite(column), offset)
        numbers = column.to_numpy(zero_copy_only=False)
        return pa.array([_layout(x) for x in numbers.astype(str).tolist()], pa.string())
    if base is Base.DATE:
        days = column.cast(pa.int32())
        outside = pc.or_(pc.less(days, _FIRST_DAY), pc.greater(days, _LAST_DAY))
        _refuse(name, "is outside the years 1 to 9999", outside, offset)
    if base is Base.DATETIME:
        column = column.cast(pa.int64())
    return column.cast(pa.string())


def _not_finite(column: pa.Array) -> pa.Array:
    return pc.invert(pc.is_finite(column))


def _refuse(name: str, problem: str, wrong: pa.Array, offset: int) -> None:
    row = pc.index(wrong, True).as_py()
    if row >= 0:
        raise InvalidKeyError(name, problem, offset + row)


def _escaped(texts: pa.Array) -> pa.Array:
    """The inside of JSON strings. Only the few keys that need escapes leave Arrow."""
    wanted = pc.match_substring_regex(texts, _NEEDS_ESCAPE)
    if pc.index(wanted, True).as_py() < 0:
        return texts
    escaped = pa.array(_json_insides(texts.filter(wanted).to_pylist()), pa.string())
    return pc.replace_with_mask(texts, wanted, escaped)


def _json_insides(texts: Iterable[str]) -> list[str]:
    return [json.dumps(text, ensure_ascii=False)[1:-1] for text in texts]
