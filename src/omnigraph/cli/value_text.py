"""Owns how a single value is written: in JSON, in a cell of a table, in a cell of a CSV file."""

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
    """The value in JSON types: times in RFC 3339, blobs as load files write them."""
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


def cell_text(value: Any) -> str:
    """The value for a person: strings without quotes, everything else as JSON."""
    match value:
        case None:
            return "null"
        case str():
            return one_line(str(value))
        case bytes():
            return f"<{len(value)} bytes>"
        case datetime():
            return moment_text(value)
        case date():
            return value.isoformat()
        case list() if len(value) > 8 and all(isinstance(item, float) for item in value):
            return f"[{', '.join(f'{item:g}' for item in value[:3])}, … {len(value)} numbers]"
    return one_line(json_text(value))


def literal_text(value: Any) -> str:
    """Like a cell, with quotes around strings, so that `null` and "null" differ."""
    if isinstance(value, str):
        return one_line(json.dumps(value, ensure_ascii=False))
    return cell_text(value)


def one_line(text: str) -> str:
    """Escapes characters that would move the cursor or reverse the line."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def csv_text(value: Any) -> str:
    """As load files expect it: null is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return str(value)
    shown = plain(value)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


def moment_text(moment: datetime) -> str:
    if moment.tzinfo is None:
        return moment.isoformat()
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def time_text(microseconds: int) -> str:
    """The time of a commit, in UTC, to the second."""
    moment = datetime.fromtimestamp(microseconds // 1_000_000, UTC)
    return moment.strftime("%Y-%m-%d %H:%M:%S")


def count_text(count: int, noun: str, plural: str | None = None) -> str:
    return f"{count:,} {noun if count == 1 else plural or noun + 's'}"


def duration_text(seconds: float) -> str:
    """In the largest unit that fits at least twice."""
    for unit, length in (("days", 86400), ("hours", 3600), ("minutes", 60)):
        if seconds >= 2 * length:
            return f"{seconds / length:.0f} {unit}"
    return count_text(round(seconds), "second")


def size_text(count: int) -> str:
    size = float(count)
    for unit in ("bytes", "KB", "MB", "GB"):
        if size < 1000 or unit == "GB":
            return f"{count} bytes" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    raise AssertionError


def _unwritable(value: float) -> str:
    """JSON cannot write such numbers. As a text they are kept; as null they would be lost."""
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
