"""Owns which literals fit which property types, and the value that each of them stands for."""

from __future__ import annotations

import math
import re
from datetime import date, datetime
from functools import lru_cache
from typing import Final, assert_never

from omnigraph.model import types
from omnigraph.model.schema import Atom, Literal

_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)
_DATETIME = re.compile(
    r"\d{4}-\d{2}-\d{2}[Tt ]\d{2}:\d{2}:\d{2}(?:\.\d+)?(?:[Zz]|[+-]\d{2}:\d{2})?", re.ASCII
)
_BEYOND_F32 = (2 - 2**-24) * 2.0**127
"""The smallest number that F32 rounds to infinity."""


class MisfitError(ValueError):
    """A literal does not fit. The text says what would."""


def fit_value(value: Literal, kind: types.PropertyType) -> Literal:
    """The value in the form in which a property of this type holds it: 1 for an F64 is 1.0, and so
    on."""
    match kind:
        case types.ScalarType(base=base):
            return _fit_atom(value, base)
        case types.ListType(item=item):
            if not isinstance(value, tuple):
                raise MisfitError(f"a list of {item.value} is written `[…]`")
            return tuple(_fit_atom(atom, item) for atom in value)
        case types.EnumType(values=values):
            if value not in values:
                raise MisfitError(f"it must be one of {', '.join(values)}")
            return value
        case types.VectorType():
            raise MisfitError("vectors have no literals")
        case _:
            assert_never(kind)


def _fit_atom(value: Literal, base: types.Base) -> Atom:
    if base in types.INTEGER_RANGES:
        return fit_integer(value, base)
    if base in types.FLOATS:
        return fit_float(value, base)
    if base is types.Base.BOOL and isinstance(value, bool):
        return value
    if base is types.Base.STRING and isinstance(value, str):
        return value
    if base is types.Base.DATE and isinstance(value, str) and _is_date(value):
        return value
    if base is types.Base.DATETIME and isinstance(value, str) and _is_datetime(value):
        return value
    raise MisfitError(_WANTED[base])


_WANTED = {
    types.Base.BOOL: "a Bool is `true` or `false`",
    types.Base.STRING: "a String is written in double quotes",
    types.Base.DATE: 'a Date is written "2024-12-31"',
    types.Base.DATETIME: 'a DateTime is written "2024-12-31T23:59:59Z"',
    types.Base.BLOB: "blobs have no literals",
}


def fit_integer(value: Literal, base: types.Base) -> int:
    low, high = types.INTEGER_RANGES[base]
    if isinstance(value, bool) or not isinstance(value, int):
        raise MisfitError(f"{base.value} takes whole numbers")
    if not low <= value <= high:
        raise MisfitError(f"{base.value} goes from {low} to {high}")
    return value


def fit_float(value: Literal, base: types.Base) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise MisfitError(f"{base.value} takes numbers")
    number = float(value)
    if not math.isfinite(number) or (base is types.Base.F32 and abs(number) >= _BEYOND_F32):
        raise MisfitError(f"the number is too large for {base.value}")
    return number


def _is_date(text: str) -> bool:
    if not _DATE.fullmatch(text):
        return False
    try:
        date.fromisoformat(text)
    except ValueError:
        return False
    return True


def _is_datetime(text: str) -> bool:
    if not _DATETIME.fullmatch(text):
        return False
    try:
        datetime.fromisoformat(text.upper())
    except ValueError:
        return False
    return True


@lru_cache(maxsize=1024)
def pattern_error(pattern: str) -> str | None:
    """Why a `@check` pattern cannot be used, or None if it can. Arrow evaluates patterns, so Arrow
    is asked: its dialect (RE2) has neither look-around nor back-references and always runs in
    linear time."""
    try:
        pattern_matches(pattern, "")
    except ValueError as error:
        text = str(error).removeprefix("Invalid regular expression: ")
        return text.splitlines()[0] if text else "it cannot be compiled"
    return None


PATTERN_HELP: Final = "patterns are those of RE2: no look-around, no back-references"


def pattern_matches(pattern: str, value: str) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    return bool(pc.match_substring_regex(pa.array([value], pa.string()), pattern)[0].as_py())
