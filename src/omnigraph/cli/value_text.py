"""Owns how single values are written for people: in a cell of a table, in a cell of a CSV file."""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from typing import Any

from omnigraph.wire.values import json_text, moment_text, plain


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


def shown_text(text: str) -> list[str]:
    """The lines of a text that somebody wrote, for a terminal: tabs stay, nothing else does that
    would move the cursor."""
    lines = text.rstrip("\n").split("\n")
    return ["\t".join(one_line(part) for part in line.split("\t")) for line in lines]


def printable_json(text: str) -> str:
    """The same JSON, with escapes for what would move the cursor."""
    if text.isprintable():
        return text
    shown = (c if c.isprintable() or c == "\n" else json.dumps(c)[1:-1] for c in text)
    return "".join(shown)


def csv_text(value: Any) -> str:
    """As load files expect it: null is empty."""
    if value is None:
        return ""
    if isinstance(value, str):
        return str(value)
    shown = plain(value)
    return shown if isinstance(shown, str) else json.dumps(shown, ensure_ascii=False)


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
