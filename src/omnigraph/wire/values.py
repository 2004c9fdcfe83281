"""Owns how values are written in JSON, the same on the command line and over HTTP."""

from __future__ import annotations

import base64
import json
import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from datetime import UTC, date, datetime, time
from typing import Any

import msgspec


def plain(value: Any) -> Any:
    """The value as JSON knows it: times in RFC 3339, blobs as load files write them."""
    match value:
        case None | bool() | int() | str():
            return str(value) if isinstance(value, str) else value
        case float():
            return value if math.isfinite(value) else _unwritable(value)
        case datetime():
            return moment_text(value)
        case date() | time():
            return value.isoformat()
        case bytes() | bytearray() | memoryview():
            return f"base64:{base64.b64encode(value).decode()}"
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | set() | frozenset():
            return [plain(item) for item in value]
        case msgspec.Struct():
            return plain(msgspec.to_builtins(value))
    if is_dataclass(value) and not isinstance(value, type):
        return plain(asdict(value))
    if hasattr(value, "item"):
        return plain(value.item())
    return str(value)


def json_text(value: Any) -> str:
    """One line of JSON."""
    return json.dumps(plain(value), ensure_ascii=False)


def moment_text(moment: datetime) -> str:
    if moment.tzinfo is None:
        return moment.isoformat()
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def _unwritable(value: float) -> str:
    """JSON has no such numbers; a text keeps what would be lost as null."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
