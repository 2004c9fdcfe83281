"""Owns functions on texts and the text of values. Unicode is as in Python, on every engine."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValueOutOfRange
from omnigraph.lang.values import PATTERN_HELP
from omnigraph.model.identity import float_text
from omnigraph.model.temporal import EPOCH
from omnigraph.plan.values.kinds import NULL_BOOL, TEXT, Value, broadcast, is_array

_ASCII: dict[str, Callable[[Value], Value]] = {
    "lower": pc.ascii_lower,
    "upper": pc.ascii_upper,
    "trim": lambda value: pc.ascii_trim(value, " \t\n\r\v\f\x1c\x1d\x1e\x1f"),
}
_UNICODE: dict[str, Callable[[str], str]] = {
    "lower": lambda text: "".join(map(_lower, text)),
    "upper": lambda text: "".join(map(_upper, text)),
    "trim": str.strip,
}
_TESTS: dict[str, tuple[Callable[..., Value], Callable[[str, str], bool]]] = {
    "contains": (pc.match_substring, lambda text, part: part in text),
    "starts_with": (pc.starts_with, str.startswith),
    "ends_with": (pc.ends_with, str.endswith),
}


def _lower(character: str) -> str:
    """Maps one character to one, by the simple mapping of Unicode, so lengths never change."""
    changed = character.lower()
    return changed if len(changed) == 1 else character


def _upper(character: str) -> str:
    changed = character.upper()
    return changed if len(changed) == 1 else character


def change_text(function: str, value: Value) -> Value:
    """`lower`, `upper` or `trim`."""
    if not is_array(value):
        return change_text(function, broadcast(value, 1))[0]
    if pc.all(pc.string_is_ascii(value)).as_py() is not False:
        return _ASCII[function](value)
    change = _UNICODE[function]
    return pa.array([None if v is None else change(v) for v in value.to_pylist()], TEXT)


def replace_text(text: Value, part: Value, by: Value) -> Value:
    """Replaces every occurrence of the part, from the left. An empty part occurs nowhere."""
    if not is_array(part) and not is_array(by):
        if not (part.is_valid and by.is_valid):
            return pa.scalar(None, TEXT)
        if not part.as_py():
            return pc.if_else(pc.is_valid(text), text, pa.scalar(None, TEXT))
        return pc.replace_substring(text, part.as_py(), by.as_py())
    rows = next(len(value) for value in (part, by) if is_array(value))
    columns = [broadcast(value, rows).to_pylist() for value in (text, part, by)]
    return pa.array(
        [
            None if None in row else row[0].replace(row[1], row[2]) if row[1] else row[0]
            for row in zip(*columns, strict=True)
        ],
        TEXT,
    )


def split_text(text: Value, mark: Value) -> Value:
    """The parts between the marks. A text without the mark, and any text by an empty mark, is one
    part."""
    if not is_array(text) and not is_array(mark):
        return split_text(broadcast(text, 1), mark)[0]
    rows = len(text) if is_array(text) else len(mark)
    pairs = zip(broadcast(text, rows).to_pylist(), broadcast(mark, rows).to_pylist(), strict=True)
    return pa.array(
        [
            None if None in pair else pair[0].split(pair[1]) if pair[1] else [pair[0]]
            for pair in pairs
        ],
        pa.list_(TEXT),
    )


def part_of_text(text: Value, start: Value, length: Value | None = None) -> Value:
    """So many characters from a place on, which counts from 0; without a length all of the rest.
    What lies outside of the text is empty."""
    given = [value for value in (text, start, length) if value is not None]
    if not any(map(is_array, given)):
        return part_of_text(broadcast(text, 1), start, length)[0]
    rows = next(len(value) for value in given if is_array(value))
    columns = [broadcast(value, rows).to_pylist() for value in given]
    return pa.array(
        [None if None in row else _window(*row) for row in zip(*columns, strict=True)], TEXT
    )


def _window(text: str, start: int, length: int | None = None) -> str:
    end = len(text) if length is None else max(0, start + length)
    return text[max(0, start) : end]


def match_pattern(text: Value, pattern: Value) -> Value:
    """Whether a regular expression of RE2 is found anywhere in the text."""
    if not is_array(pattern):
        if not pattern.is_valid:
            return NULL_BOOL
        return _searched(text, pattern.as_py())
    texts = broadcast(text, len(pattern))
    found: list[bool | None] = [None] * len(pattern)
    for known in pc.unique(pattern).drop_null().to_pylist():
        here = pc.fill_null(pc.equal(pattern, known), False)
        places = pc.indices_nonzero(here).to_pylist()
        verdicts = _searched(texts.filter(here), known).to_pylist()
        for place, verdict in zip(places, verdicts, strict=True):
            found[place] = verdict
    return pa.array(found, pa.bool_())


def _searched(text: Value, pattern: str) -> Value:
    try:
        return pc.match_substring_regex(text, pattern)
    except pa.ArrowInvalid as error:
        reason = str(error).splitlines()[0].removeprefix("Invalid regular expression: ")
        raise ValueOutOfRange(
            f"{pattern!r} is not a regular expression: {reason}.", help=f"The {PATTERN_HELP}."
        ) from None


def test_text(operator: str, text: Value, part: Value) -> Value:
    """`contains`, `starts_with`, `ends_with`, by code points and with no wildcards."""
    if pa.types.is_null(text.type) or pa.types.is_null(part.type):
        return NULL_BOOL
    by_arrow, by_python = _TESTS[operator]
    if not is_array(part):
        return by_arrow(text, part.as_py()) if part.is_valid else NULL_BOOL
    texts = broadcast(text, len(part)).to_pylist()
    parts = part.to_pylist()
    pairs = zip(texts, parts, strict=True)
    return pa.array([None if None in pair else by_python(*pair) for pair in pairs], pa.bool_())


def text_of(value: Value) -> Value:
    """`toString`: as a load file would write it, DateTimes as RFC 3339 in UTC."""
    kind = value.type
    if pa.types.is_string(kind):
        return value
    if pa.types.is_integer(kind) or pa.types.is_boolean(kind) or pa.types.is_null(kind):
        return pc.cast(value, TEXT)
    if not is_array(value):
        return text_of(broadcast(value, 1))[0]
    if pa.types.is_timestamp(kind):
        instants = pc.cast(value, pa.int64()).to_pylist()
        return pa.array([None if v is None else instant_text(v) for v in instants], TEXT)
    make: Callable[[Any], str] = _day_text
    if pa.types.is_floating(kind):
        narrow = pa.types.is_float32(kind)

        def make(number: float) -> str:
            return float_text(number, narrow=narrow)

    return pa.array([None if v is None else make(v) for v in value.to_pylist()], TEXT)


def _day_text(day: date) -> str:
    return day.isoformat()


def instant_text(milliseconds: int) -> str:
    moment = EPOCH + timedelta(milliseconds=milliseconds)
    return (
        moment.replace(tzinfo=None).isoformat(
            timespec="milliseconds" if milliseconds % 1000 else "seconds"
        )
        + "Z"
    )
