"""Owns functions on dates and instants."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValueOutOfRange
from omnigraph.model.temporal import parse_date, parse_instant
from omnigraph.plan.values.kinds import Value, broadcast, cast, is_array

DAY = pa.date32()
INSTANT = pa.timestamp("ms", tz="UTC")
EPOCH_DAY = date(1970, 1, 1).toordinal()
_DAY_MILLISECONDS = 86_400_000
_DAYS = (date.min.toordinal() - EPOCH_DAY, date.max.toordinal() - EPOCH_DAY)
_INSTANTS = (_DAYS[0] * _DAY_MILLISECONDS, (_DAYS[1] + 1) * _DAY_MILLISECONDS - 1)
_PARTS: dict[str, Callable[[Value], Value]] = {"year": pc.year, "month": pc.month, "day": pc.day}


def part_of(function: str, value: Value) -> Value:
    """`year`, `month` or `day`, in UTC."""
    return cast(_PARTS[function](value), pa.int64())


def to_date(value: Value) -> Value:
    """A text by its digits, or an instant by its day in UTC."""
    if pa.types.is_date(value.type):
        return value
    if pa.types.is_timestamp(value.type):
        return pc.cast(pc.floor_temporal(value, unit="day"), DAY)
    return _parsed(value, DAY, parse_date, "Date")


def to_instant(value: Value) -> Value:
    """A text in RFC 3339, or a Date by its first instant in UTC."""
    if pa.types.is_timestamp(value.type):
        return value
    if pa.types.is_date(value.type):
        return pc.cast(pc.cast(value, pa.timestamp("ms")), INSTANT)
    return _parsed(value, INSTANT, parse_instant, "DateTime")


def move(moment: Value, by: Value, unit: str) -> Value:
    """A Date by days, or a DateTime by days or milliseconds; beyond the years 1 to 9999 there is
    nothing."""
    if pa.types.is_null(moment.type) or pa.types.is_null(by.type):
        return pa.scalar(None, DAY if pa.types.is_date(moment.type) else INSTANT)
    kind = moment.type
    days = pa.types.is_date(kind)
    counted = cast(pc.cast(moment, pa.int32() if days else pa.int64()), pa.int64())
    try:
        step = by if days or unit == "millisecond" else pc.multiply_checked(by, _DAY_MILLISECONDS)
        moved = pc.add_checked(counted, step)
    except pa.ArrowInvalid:
        raise _beyond(kind) from None
    low, high = _DAYS if days else _INSTANTS
    inside = pc.and_(pc.greater_equal(moved, low), pc.less_equal(moved, high))
    if pc.all(inside if is_array(inside) else broadcast(inside, 1)).as_py() is False:
        raise _beyond(kind)
    return pc.cast(cast(moved, pa.int32()) if days else moved, kind)


def _beyond(kind: pa.DataType) -> ValueOutOfRange:
    name = "Date" if pa.types.is_date(kind) else "DateTime"
    return ValueOutOfRange(f"A {name} that is moved leaves the years 1 to 9999.")


def _parsed(value: Value, kind: pa.DataType, parse: Callable[[str], object], name: str) -> Value:
    if not is_array(value):
        return _parsed(broadcast(value, 1), kind, parse, name)[0]
    known: dict[str, object] = {}
    for text in pc.unique(value).to_pylist():
        if text is None:
            continue
        try:
            known[text] = parse(text)
        except ValueError as error:
            raise ValueOutOfRange(f'"{text}" is no {name}: it {error}.') from None
    found = [None if text is None else known[text] for text in value.to_pylist()]
    return pa.array(found, kind)
