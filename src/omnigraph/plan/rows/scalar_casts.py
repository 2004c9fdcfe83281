"""Owns how an Arrow array of scalars takes a property's type: only where nothing is lost."""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.arrow import arrow_type
from omnigraph.model.temporal import MAX_DAY, MAX_MS, MIN_DAY, MIN_MS
from omnigraph.model.types import FLOATS, INTEGER_RANGES, Base, PropertyType, ScalarType
from omnigraph.model.violation import show_value
from omnigraph.plan.arrow_checks import value_at
from omnigraph.plan.rows.nested import Booleans
from omnigraph.plan.rows.scalars import (
    DESCRIBED,
    SCALAR_ARROW,
    Converted,
    Misfit,
    convert_scalars,
    overflows_f32,
)

_EXACT_INTEGERS = 2**53  # up to here a float64 holds every integer
_DAY_MS = 86_400_000
_PER_MS = {"ms": 1, "us": 1_000, "ns": 1_000_000}
_STORAGE = {Base.DATE: pa.int32(), Base.DATETIME: pa.int64()}
_OUT_OF_RANGE = "is out of range"
_U64_OF_SPARK = pa.decimal128(20, 0)
_YEARS = "lies outside the years 0001 to 9999"


def cast_scalars(array: pa.Array, base: Base, *, whole_floats: bool = False) -> Converted:
    """One array of scalars in the type of `base`."""
    if array.null_count == len(array):
        return Converted(pa.nulls(len(array), SCALAR_ARROW[base]))
    cast: Callable[[pa.Array, Base], Converted | None]
    if base in INTEGER_RANGES:
        cast = _cast_whole_floats if whole_floats and _is_float(array.type) else _cast_integers
    elif base in FLOATS:
        cast = _cast_floats
    else:
        cast = _CASTS[base]
    return cast(array, base) or wrong_type(array, ScalarType(base))


def _is_float(given: pa.DataType) -> bool:
    return bool(pa.types.is_floating(given))


def _is_text(given: pa.DataType) -> bool:
    return bool(
        pa.types.is_string(given)
        or pa.types.is_large_string(given)
        or pa.types.is_string_view(given)
    )


def _cast_text(array: pa.Array, base: Base) -> Converted | None:
    """Text as text, or read as what the type is: a Date or a DateTime."""
    if not _is_text(array.type):
        return None
    text = array.cast(pa.string())

    def read(valid: pa.Array) -> Converted:
        return Converted(valid) if base is Base.STRING else _parse_text(valid, base)

    try:
        text.validate(full=True)
    except pa.ArrowInvalid:
        return _blame(text, _not_unicode(text), "is not valid UTF-8", read)
    return read(text)


def _not_unicode(array: pa.Array) -> Booleans:
    wrong = np.zeros(len(array), dtype=np.bool_)
    for index, value in enumerate(array.cast(pa.binary()).to_pylist()):
        try:
            (value or b"").decode()
        except UnicodeDecodeError:
            wrong[index] = True
    return wrong


def _cast_bools(array: pa.Array, _: Base) -> Converted | None:
    return Converted(array) if pa.types.is_boolean(array.type) else None


def _cast_bytes(array: pa.Array, base: Base) -> Converted | None:
    given = array.type
    binary = (
        pa.types.is_binary(given)
        or pa.types.is_large_binary(given)
        or pa.types.is_binary_view(given)
        or pa.types.is_fixed_size_binary(given)
    )
    return Converted(array.cast(SCALAR_ARROW[base])) if binary else None


def _cast_integers(array: pa.Array, base: Base) -> Converted | None:
    low, high = INTEGER_RANGES[base]
    if base is Base.U64 and array.type == _U64_OF_SPARK:
        return _cast_whole_decimals(array, low, high, base)
    if not pa.types.is_integer(array.type):
        return None
    return _within(array, low, high, _OUT_OF_RANGE, base)


def _cast_whole_decimals(array: pa.Array, low: int, high: int, base: Base) -> Converted:
    """Integers of Spark, which has no unsigned ones."""
    bounds = [pa.scalar(Decimal(bound), pa.decimal128(38)) for bound in (low, high)]
    wrong = pc.or_(pc.less(array, bounds[0]), pc.greater(array, bounds[1])).fill_null(False)
    return _blame(
        array,
        wrong.to_numpy(zero_copy_only=False),
        _OUT_OF_RANGE,
        lambda rest: Converted(rest.cast(SCALAR_ARROW[base])),
        shown=array.cast(pa.string()),
    )


def _cast_whole_floats(array: pa.Array, base: Base) -> Converted | None:
    """Integers that pandas made floats; beyond 2^53 it may have made them others, too."""
    numbers = array.cast(pa.float64()).fill_null(0).to_numpy(zero_copy_only=False)
    bounds = (*INTEGER_RANGES[base], _OUT_OF_RANGE, base)
    with np.errstate(invalid="ignore"):
        return _blame(
            array,
            ~(np.isfinite(numbers) & (np.floor(numbers) == numbers)),
            "is not a whole number",
            lambda whole: _blame(
                whole,
                np.isfinite(numbers) & (np.abs(numbers) > _EXACT_INTEGERS),
                "is too large to be exact",
                lambda exact: _within(exact.cast(pa.int64()), *bounds),
            ),
        )


def _cast_floats(array: pa.Array, base: Base) -> Converted | None:
    if pa.types.is_integer(array.type):
        magnitude = _magnitude(array)
        lowest = np.maximum(magnitude & (~magnitude + np.uint64(1)), np.uint64(1))
        wrong = magnitude // lowest > np.uint64(_EXACT_INTEGERS)
        return _blame(array, wrong, "has no exact floating-point form", _to_float(base))
    if not _is_float(array.type):
        return None
    if base is Base.F32 and pa.types.is_float64(array.type):
        return _blame(array, overflows_f32(array), _OUT_OF_RANGE, _to_float(base))
    return _to_float(base)(array)


def _to_float(base: Base) -> Callable[[pa.Array], Converted]:
    return lambda rest: Converted(rest.cast(SCALAR_ARROW[base], safe=False))


def _magnitude(array: pa.Array) -> np.ndarray[Any, np.dtype[np.uint64]]:
    if pa.types.is_unsigned_integer(array.type):
        unsigned = array.cast(pa.uint64()).fill_null(0).to_numpy(zero_copy_only=False)
        return np.asarray(unsigned, dtype=np.uint64)
    signed = array.cast(pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
    bits = signed.astype(np.uint64)  # two's complement, so -2^63 has a magnitude too
    return np.asarray(np.where(signed < 0, ~bits + np.uint64(1), bits), dtype=np.uint64)


def _cast_days(array: pa.Array, base: Base) -> Converted | None:
    if pa.types.is_date32(array.type):
        return _within(array.cast(pa.int32()), MIN_DAY, MAX_DAY, _YEARS, base, shown=array)
    if pa.types.is_integer(array.type):
        return _within(array, MIN_DAY, MAX_DAY, _YEARS, base)
    if not pa.types.is_date64(array.type):
        return _cast_text(array, base)
    counts = array.cast(pa.int64())
    return _blame(
        counts,
        counts.fill_null(0).to_numpy(zero_copy_only=False) % _DAY_MS != 0,
        "is not the start of a day",
        lambda rest: _within(pc.divide(rest, _DAY_MS), MIN_DAY, MAX_DAY, _YEARS, base),
    )


def _cast_instants(array: pa.Array, base: Base) -> Converted | None:
    if pa.types.is_integer(array.type):
        return _within(array, MIN_MS, MAX_MS, _YEARS, base)
    if not pa.types.is_timestamp(array.type):
        return _cast_text(array, base)
    counts, unit = array.cast(pa.int64()), array.type.unit
    if unit == "s":
        done = _within(counts, MIN_MS // 1000, MAX_MS // 1000, _YEARS, base)
        seconds = done.array.cast(pa.int64())
        return done._replace(array=pc.multiply(seconds, 1000).cast(SCALAR_ARROW[base]))
    per_ms = _PER_MS[unit]
    return _blame(
        array,
        counts.fill_null(0).to_numpy(zero_copy_only=False) % per_ms != 0,
        "has digits below a millisecond, which would be lost",
        lambda rest: _within(
            pc.divide(rest.cast(pa.int64()), per_ms), MIN_MS, MAX_MS, _YEARS, base, shown=array
        ),
    )


def _parse_text(array: pa.Array, base: Base) -> Converted:
    """Dates written as text: each distinct text is read once."""
    encoded = array.dictionary_encode()
    parsed = convert_scalars(encoded.dictionary.to_pylist(), base)
    result = parsed.array.take(encoded.indices)
    if not parsed.misfits:
        return Converted(result)
    wrong = np.flatnonzero(pc.and_(result.is_null(), array.is_valid()))
    problems = {m.value: m.problem for m in parsed.misfits}
    misfits = []
    for index in wrong[:DESCRIBED].tolist():
        value = array[index].as_py()
        misfits.append(Misfit(index, problems.get(value, "it is not one"), value))
    return Converted(result, misfits, wrong)


_CASTS: dict[Base, Callable[[pa.Array, Base], Converted | None]] = {
    Base.STRING: _cast_text,
    Base.BOOL: _cast_bools,
    Base.BLOB: _cast_bytes,
    Base.DATE: _cast_days,
    Base.DATETIME: _cast_instants,
}


def _within(
    array: pa.Array, low: int, high: int, problem: str, base: Base, *, shown: pa.Array = None
) -> Converted:
    """Integers between two bounds as the type of `base`; the others are misfits."""
    unsigned = pa.types.is_unsigned_integer(array.type)
    wide = array.cast(pa.uint64() if unsigned else pa.int64())
    low = max(low, 0) if unsigned else low
    high = high if unsigned else min(high, 2**63 - 1)
    target = SCALAR_ARROW[base]
    numbers = wide.fill_null(low).to_numpy(zero_copy_only=False)
    return _blame(
        wide,
        (numbers < low) | (numbers > high),
        problem,
        lambda rest: Converted(rest.cast(_STORAGE.get(base, SCALAR_ARROW[base])).cast(target)),
        shown=shown,
    )


def _blame(
    array: pa.Array,
    wrong: Booleans,
    problem: str,
    cast: Callable[[pa.Array], Converted],
    *,
    shown: pa.Array = None,
) -> Converted:
    """`cast` of what is not wrong; in place of what is wrong there is null and a misfit."""
    bad = np.flatnonzero(wrong)
    if not len(bad):
        return cast(array)
    done = cast(pc.if_else(pa.array(wrong), pa.scalar(None, array.type), array))
    source = array if shown is None else shown
    misfits = [_misfit(source, index, problem) for index in bad[:DESCRIBED].tolist()]
    both = sorted((*misfits, *done.misfits), key=lambda m: m.at)
    return Converted(done.array, both, np.union1d(bad, done.bad))


def _misfit(array: pa.Array, index: int, problem: str) -> Misfit:
    value = value_at(array, index)
    return Misfit(index, f"{show_value(value)} {problem}", value)


def wrong_type(array: pa.Array, kind: PropertyType) -> Converted:
    """The first value stands for all, because it is the column that has the wrong type."""
    bad = np.flatnonzero(array.is_valid().to_numpy(zero_copy_only=False))
    first = int(bad[0]) if len(bad) else 0
    misfit = Misfit(first, f"the column holds {array.type}", value_at(array, first))
    return Converted(pa.nulls(len(array), arrow_type(kind)), [misfit], bad, whole=True)
