"""Owns the values of `.gq` for the oracle: null logic, order, numbers, texts and dates, one value
at a time, written from the language page. Nothing here is shared with the engine."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from typing import Any, Final, TypeVar

from omnigraph.model.temporal import parse_date, parse_instant
from omnigraph.model.types import FLOATS, INTEGER_RANGES, Base, PropertyType, ScalarType

T = TypeVar("T")
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class EvaluationError(Exception):
    """A value that the language has none for: integer overflow, a text that is no date."""


@dataclass(frozen=True)
class Entity:
    """A node or an edge; the same one is the same id in the same type."""

    type: str
    id: str
    properties: dict[str, Any] = field(compare=False)
    src: str | None = field(default=None, compare=False)
    dst: str | None = field(default=None, compare=False)
    is_edge: bool = False


# Three-valued logic: True, False, and None for null.


def negation(value: bool | None) -> bool | None:
    return None if value is None else not value


def is_nan(value: Any) -> bool:
    return isinstance(value, float) and math.isnan(value)


def ordering(left: Any, right: Any) -> int:
    """-1, 0 or 1 of two values that are not null. Integers compare exactly, a float with anything
    in F64; NaN equals NaN and is above all numbers; texts compare by code point."""
    if isinstance(left, float) or isinstance(right, float):
        left, right = float(left), float(right)
        if is_nan(left) or is_nan(right):
            return int(is_nan(left)) - int(is_nan(right))
    return int(left > right) - int(left < right)


def comparison(operator: str, left: Any, right: Any) -> bool | None:
    if left is None or right is None:
        return None
    found = ordering(left, right)
    return {
        "=": found == 0,
        "!=": found != 0,
        "<": found < 0,
        "<=": found <= 0,
        ">": found > 0,
        ">=": found >= 0,
    }[operator]


def membership(item: Any, items: Sequence[Any] | None) -> bool | None:
    """`item in items`, which is `item = i1 or item = i2 or …`: of an empty list false."""
    if items is None:
        return None
    verdicts = [comparison("=", item, other) for other in items]
    if True in verdicts:
        return True
    return None if None in verdicts else False


def text_test(operator: str, text: str | None, part: str | None) -> bool | None:
    if text is None or part is None:
        return None
    if operator == "contains":
        return part in text
    return text.startswith(part) if operator == "starts_with" else text.endswith(part)


def order_key(value: Any) -> tuple[Any, ...]:
    """Sorts and groups values of one type: null below all, NaN above all numbers, -0 is 0."""
    if value is None:
        return (0,)
    if is_nan(value):
        return (2,)
    if isinstance(value, Entity):
        return (1, value.id, value.type)
    if isinstance(value, tuple | list):
        return (1, tuple(order_key(item) for item in value))
    return (1, value + 0.0) if isinstance(value, float) else (1, value)


def distinct_by(values: Iterable[T], key: Callable[[T], Any]) -> list[T]:
    """The first of each that are the same by the key."""
    found: dict[Any, T] = {}
    for value in values:
        found.setdefault(key(value), value)
    return list(found.values())


# Numbers.


def narrowed(value: float) -> float:
    """The nearest F32, as a Python float."""
    if math.isnan(value) or math.isinf(value):
        return value
    try:
        return float(struct.unpack("<f", struct.pack("<f", value))[0])
    except OverflowError:
        return math.copysign(math.inf, value)


def fitting(value: int, base: Base) -> int:
    low, high = INTEGER_RANGES[base]
    if not low <= value <= high:
        raise EvaluationError(f"{value} is no {base.value}")
    return value


def base_of(kind: Any) -> Base | None:
    return kind.base if isinstance(kind, ScalarType) else None


def converted(value: Any, kind: Any) -> Any:
    """A number as one of another numeric type; anything else as it is."""
    base = base_of(kind)
    if value is None or isinstance(value, bool):
        return value
    if base in FLOATS and isinstance(value, int | float):
        return float(value)
    if base in INTEGER_RANGES and isinstance(value, int):
        return fitting(value, base)
    return value


def arithmetic(operator: str, left: Any, right: Any, kind: PropertyType) -> Any:
    if left is None or right is None:
        return None
    base = base_of(kind)
    assert base is not None
    if base in FLOATS:
        return _float_arithmetic(operator, float(left), float(right))
    return _integer_arithmetic(operator, left, right, base)


def _float_arithmetic(operator: str, left: float, right: float) -> float | None:
    match operator:
        case "+":
            return left + right
        case "-":
            return left - right
        case "*":
            return left * right
        case "/":
            return left / right if right != 0 else None
        case _:
            if right == 0:
                return None
            if math.isnan(left) or math.isnan(right) or math.isinf(left):
                return math.nan
            return math.fmod(left, right)


def _integer_arithmetic(operator: str, left: int, right: int, base: Base) -> int | None:
    match operator:
        case "+":
            return fitting(left + right, base)
        case "-":
            return fitting(left - right, base)
        case "*":
            return fitting(left * right, base)
        case _:
            if right == 0:
                return None
            rest = abs(left) % abs(right)
            return fitting(-rest if left < 0 else rest, base)


def negative(value: Any, kind: PropertyType) -> Any:
    if value is None:
        return None
    return -float(value) if base_of(kind) in FLOATS else fitting(-value, Base.I64)


def _whole(value: float, step: str) -> float:
    if math.isnan(value) or math.isinf(value):
        return value
    if step == "floor":
        return float(math.floor(value))
    if step == "ceil":
        return float(math.ceil(value))
    if abs(value) >= 2**52:
        return value  # it has no fraction
    # Decimal's "half up" is half away from zero, and it is exact.
    return float(Decimal(value).quantize(Decimal(1), rounding=ROUND_HALF_UP))


# Functions of one value, which is not null.


def _simple_case(text: str, *, upper: bool) -> str:
    """Each character by itself, where its counterpart is one character."""
    changed = [(c, c.upper() if upper else c.lower()) for c in text]
    return "".join(new if len(new) == 1 else old for old, new in changed)


def number_text(value: float | int, base: Base | None) -> str:
    """As ECMAScript writes numbers: the shortest digits that read back as the same number."""
    if isinstance(value, int):
        return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if value == 0:
        return "0"
    digits, exponent = _shortest(abs(value), is_single=base is Base.F32)
    sign = "-" if value < 0 else ""
    if len(digits) <= exponent <= 21:
        return sign + digits + "0" * (exponent - len(digits))
    if 0 < exponent <= 21:
        return f"{sign}{digits[:exponent]}.{digits[exponent:]}"
    if -6 < exponent <= 0:
        return f"{sign}0.{'0' * -exponent}{digits}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'+' if exponent > 0 else '-'}{abs(exponent - 1)}"


def _shortest(value: float, *, is_single: bool) -> tuple[str, int]:
    """Digits d1d2… and n with value = 0.d1d2… × 10^n, as few digits as read back the same."""
    for places in range(17):
        text = f"{value:.{places}e}"
        back = float(text)
        if (narrowed(back) if is_single else back) == value:
            mantissa, exponent = text.split("e")
            return mantissa.replace(".", "").rstrip("0") or "0", int(exponent) + 1
    raise AssertionError(value)


def instant_text(value: datetime) -> str:
    whole = value.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S").rjust(19, "0")
    thousandths = value.microsecond // 1000
    return f"{whole}.{thousandths:03d}Z" if thousandths else f"{whole}Z"


def as_text(value: Any, kind: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return number_text(value, base_of(kind))
    if isinstance(value, datetime):
        return instant_text(value)
    return value.isoformat() if isinstance(value, date) else str(value)


def as_date(value: Any) -> date:
    if isinstance(value, datetime):
        return value.astimezone(UTC).date()
    if isinstance(value, date):
        return value
    try:
        return parse_date(value)
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def as_datetime(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    try:
        return EPOCH + timedelta(milliseconds=parse_instant(value))
    except ValueError as error:
        raise EvaluationError(str(error)) from None


def function(name: str, values: Sequence[Any], argument: Any, result: Any) -> Any:
    """The function of values; `argument` (of the first) and `result` are the types."""
    if None in values:
        return None
    value, *rest = values
    match name:
        case "date":
            return as_date(value)
        case "datetime":
            return as_datetime(value)
        case "toString":
            return as_text(value, argument)
        case "year" | "month" | "day":
            return getattr(as_date(value), name)
        case "abs":
            return converted(abs(value), result)
        case "round" | "floor" | "ceil":
            return _whole(value, name) if isinstance(value, float) else converted(value, result)
        case "weeks" | "days" | "hours" | "minutes" | "seconds":
            return fitting(value * _LENGTHS[name], Base.I64)
        case _:
            return _TEXTS[name](value, *rest)


_LENGTHS: Final = {"weeks": 7, "days": 1, "hours": 3_600_000, "minutes": 60_000, "seconds": 1000}
"""In days, the others in milliseconds."""


def moved(operator: str, moment: Any, length: int | None, unit: str) -> Any:
    """A date or a datetime, later or earlier by a length of time."""
    if moment is None or length is None:
        return None
    step = length if operator == "+" else -length
    try:
        return moment + (timedelta(days=step) if unit == "day" else timedelta(milliseconds=step))
    except OverflowError:
        raise EvaluationError(f"{moment} moved by {step} {unit}s") from None


def _split(text: str, mark: str) -> tuple[str, ...]:
    if not mark:
        return (text,)
    found, rest = [], text
    while (at := rest.find(mark)) >= 0:
        found.append(rest[:at])
        rest = rest[at + len(mark) :]
    return (*found, rest)


def _window(text: str, start: int, length: int | None = None) -> str:
    """Characters by their places, each asked for by itself."""
    places = range(len(text))
    return "".join(text[i] for i in places if i >= start and (length is None or i < start + length))


def _with_parts_replaced(text: str, part: str, by: str) -> str:
    found, at = "", 0
    while at < len(text):
        here = bool(part) and text[at : at + len(part)] == part
        found += by if here else text[at]
        at += len(part) if here else 1
    return found


_TEXTS: Final[dict[str, Callable[..., Any]]] = {
    "lower": lambda text: _simple_case(text, upper=False),
    "upper": lambda text: _simple_case(text, upper=True),
    "trim": str.strip,
    "length": len,
    "size": len,
    "replace": _with_parts_replaced,
    "split": _split,
    "substring": _window,
    "matches": lambda text, pattern: re.search(pattern, text) is not None,
}


# Aggregates: nulls are left out.


def aggregate(name: str, values: Iterable[Any], result: Any) -> Any:
    held = [value for value in values if value is not None]
    if name == "count":
        return len(held)
    if name == "collect":
        return tuple(held)
    if not held:
        return None
    if name == "sum":
        return float_sum(held) if base_of(result) in FLOATS else fitting(sum(held), Base.I64)
    if name == "avg":
        if all(isinstance(value, int) for value in held):
            return sum(held) / len(held)
        return float_sum(held) / len(held)
    return (min if name == "min" else max)(held, key=order_key)


def float_sum(values: Sequence[float]) -> float:
    total = 0.0
    for value in values:
        total += value
    return total
