"""Owns values in JSON without loss: what JSON has no form for carries its kind. A client that asks
for them (`values=typed` in `Accept`) gets back the very values that the engine gave."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping
from datetime import date, datetime, time
from typing import Any

from omnigraph.wire.values import plain

KIND = "@kind"
"""No property can have this name."""


def typed(value: Any) -> Any:
    """The value as JSON, with `{"@kind": ..., "value": ...}` for what JSON does not know."""
    match value:
        case None | bool() | int():
            return value
        case str():
            return str(value)
        case float():
            return value if math.isfinite(value) else _of("float", plain(value))
        case datetime():
            return _of("datetime", value.isoformat())
        case date():
            return _of("date", value.isoformat())
        case time():
            return _of("time", value.isoformat())
        case bytes() | bytearray() | memoryview():
            return _of("bytes", base64.b64encode(value).decode())
        case Mapping():
            return {str(key): typed(item) for key, item in value.items()}
        case list() | tuple():
            return [typed(item) for item in value]
    return plain(value)


def untyped(value: Any) -> Any:
    """The value that `typed` was given; a tuple comes back as a list."""
    if isinstance(value, list):
        return [untyped(item) for item in value]
    if not isinstance(value, dict):
        return value
    if KIND in value:
        return _READ[value[KIND]](value["value"])
    return {key: untyped(item) for key, item in value.items()}


def _of(kind: str, value: str) -> dict[str, str]:
    return {KIND: kind, "value": value}


_READ: dict[str, Callable[[str], Any]] = {
    "float": float,
    "datetime": datetime.fromisoformat,
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "bytes": base64.b64decode,
}
