"""Owns functions on dates and instants."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValueOutOfRange
from omnigraph.model.temporal import parse_date, parse_instant
from omnigraph.plan.values.kinds import Value, broadcast, cast, is_array

DAY = pa.date32()
INSTANT = pa.timestamp("ms", tz="UTC")
_PARTS: dict[str, Callable[[Value], Value]] = {"year": pc.year, "month": pc.month, "day": pc.day}


def part_of(function: str, value: Value) -> Value:
    """`year`, `month` or `day`, in UTC."""
    return cast(_PARTS[function](value), pa.int64())


def to_date(value: Value) -> Value:
    """A text by its digits, an instant by its day in UTC."""
    if pa.types.is_date(value.type):
        return value
    if pa.types.is_timestamp(value.type):
        return pc.cast(pc.floor_temporal(value, unit="day"), DAY)
    return _parsed(value, DAY, parse_date, "Date")


def to_instant(value: Value) -> Value:
    """A text as in RFC 3339, a Date by its first instant in UTC."""
    if pa.types.is_timestamp(value.type):
        return value
    if pa.types.is_date(value.type):
        return pc.cast(pc.cast(value, pa.timestamp("ms")), INSTANT)
    return _parsed(value, INSTANT, parse_instant, "DateTime")


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
