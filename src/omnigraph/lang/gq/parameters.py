"""Owns the values of parameters: JSON and Python values become values of the declared types, or all
errors are reported."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from math import isnan
from numbers import Integral, Real
from typing import Any, Final

from omnigraph.lang.gq.checked import CheckedQuery, Parameter
from omnigraph.lang.suggestions import near
from omnigraph.lang.values import MisfitError, fit_float
from omnigraph.model.temporal import EPOCH, millisecond_of, parse_date, parse_instant
from omnigraph.model.types import (
    INTEGER_RANGES,
    Base,
    EnumType,
    ListType,
    PropertyType,
    ScalarType,
    VectorType,
    type_text,
)

_SURELY: Final = 3e38
"""Numbers below this fit into single precision."""
_DECIMAL: Final = re.compile(r"-?[0-9]{1,40}", re.ASCII)


class ParameterError(ValueError):
    """`problems` names each parameter that is wrong, and why."""

    def __init__(self, problems: tuple[tuple[str, str], ...]) -> None:
        super().__init__("; ".join(f"${name}: {reason}" for name, reason in problems))
        self.problems = problems


def bind_parameters(query: CheckedQuery, values: Mapping[str, Any] | None) -> dict[str, Any]:
    """A value for every parameter. Raises a ParameterError with every error. Dates become `date`,
    DateTimes `datetime` in UTC, blobs `bytes`, lists and vectors tuples."""
    given = dict(values or {})
    bound: dict[str, Any] = {}
    problems: list[tuple[str, str]] = []
    for parameter in query.parameters:
        try:
            bound[parameter.name] = _bind(parameter, given)
        except ValueError as error:
            problems.append((parameter.name, str(error)))
    names = {parameter.name: None for parameter in query.parameters}
    problems += [(str(name), _unknown(name, list(names))) for name in given if name not in names]
    if problems:
        raise ParameterError(tuple(problems))
    return bound


def _unknown(name: object, names: list[str]) -> str:
    meant = near(str(name).removeprefix("$"), [*names])
    if isinstance(name, str) and name.removeprefix("$") in names:
        meant = name.removeprefix("$")
    return "is no parameter of this query" + (f" (did you mean `${meant}`?)" if meant else "")


def _bind(parameter: Parameter, given: Mapping[str, Any]) -> Any:
    if parameter.name not in given:
        if parameter.has_default:
            return parameter.default
        if parameter.nullable:
            return None
        raise ValueError(f"is missing, and it must be a {type_text(parameter.kind)}")
    value = given[parameter.name]
    if value is None:
        if parameter.nullable:
            return None
        if parameter.has_default:
            return parameter.default
        raise ValueError(f"is null, and it must be a {type_text(parameter.kind)}")
    return convert(value, parameter.kind)


def convert(value: Any, kind: PropertyType) -> Any:
    """The value as one of the kind. Raises a ValueError that says what is wrong."""
    match kind:
        case ScalarType(base=base):
            return _scalar(value, base)
        case ListType(item=item):
            return tuple(_scalar(part, item) for part in _items(value, kind))
        case VectorType(dimension=dimension):
            given = _items(value, kind)
            if not _are_floats(given):
                given = [_scalar(part, Base.F32) for part in given]
            parts = tuple(given)
            if len(parts) != dimension:
                raise ValueError(f"has {len(parts)} numbers, and a vector of {dimension} is needed")
            return parts
        case EnumType():
            return _scalar(value, Base.STRING)


def _are_floats(parts: Sequence[Any]) -> bool:
    """Whether all are plain numbers that surely fit: looking at each by itself takes longer than a
    search."""
    if not parts or set(map(type, parts)) != {float}:
        return False
    return min(parts) > -_SURELY and max(parts) < _SURELY and not any(map(isnan, parts))


def _items(value: Any, kind: PropertyType) -> list[Any]:
    """The items of lists, tuples, and arrays that can become lists."""
    if not isinstance(value, list | tuple):
        listed = getattr(value, "tolist", None)
        value = listed() if callable(listed) else value
    if not isinstance(value, list | tuple):
        raise _misfit(value, type_text(kind))
    if any(part is None for part in value):
        raise ValueError("holds null, and lists never do")
    return list(value)


def _scalar(value: Any, base: Base) -> Any:
    if base in INTEGER_RANGES:
        return _integer(value, base)
    match base:
        case Base.F32 | Base.F64:
            return _float(value, base)
        case Base.STRING:
            return _text(_checked(value, str, base))
        case Base.BOOL:
            return _checked(value, bool, base)
        case Base.DATE:
            return _date(value)
        case Base.DATETIME:
            return _datetime(value)
        case Base.BLOB:
            return _blob(value)
        case _:
            raise _misfit(value, base.value)


def _checked(value: Any, kind: type, base: Base) -> Any:
    if not isinstance(value, kind):
        raise _misfit(value, base.value)
    return value


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError:
        raise ValueError("holds half of a surrogate pair, which is not Unicode text") from None
    return value


def _misfit(value: Any, wanted: str) -> ValueError:
    return ValueError(f"is {type(value).__name__} where {wanted} is needed")


def _integer(value: Any, base: Base) -> int:
    if isinstance(value, str) and _DECIMAL.fullmatch(value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, Integral):
        raise _misfit(value, base.value)
    low, high = INTEGER_RANGES[base]
    number = int(value)
    if not low <= number <= high:
        raise ValueError(f"is {number}, and {base.value} goes from {low} to {high}")
    return number


def _float(value: Any, base: Base) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise _misfit(value, base.value)
    try:
        number = float(value)
        return fit_float(number, base) if abs(number) < float("inf") else number
    except (MisfitError, OverflowError):
        raise ValueError(f"is too large for {base.value}") from None


def _date(value: Any) -> date:
    if isinstance(value, str):
        return parse_date(value)
    if isinstance(value, datetime) or not isinstance(value, date):
        raise _misfit(value, "Date")
    return value


def _datetime(value: Any) -> datetime:
    if isinstance(value, str):
        milliseconds = parse_instant(value)
    elif isinstance(value, datetime):
        milliseconds = millisecond_of(value)
    else:
        raise _misfit(value, "DateTime")
    return EPOCH.astimezone(UTC) + timedelta(milliseconds=milliseconds)


def _blob(value: Any) -> bytes:
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    if not isinstance(value, str) or not value.startswith("base64:"):
        raise _misfit(value, 'Blob (bytes, or text "base64:…")')
    try:
        return base64.b64decode(value.removeprefix("base64:"), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("is not written in base64") from None
