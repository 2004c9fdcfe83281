"""Owns the text and number forms of Date and DateTime. It reads no clock and knows no columns."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EPOCH_DATE = date(1970, 1, 1)
MIN_DAY = (date.min - EPOCH_DATE).days
MAX_DAY = (date.max - EPOCH_DATE).days
_DAY_MS = 86_400_000
MIN_MS = MIN_DAY * _DAY_MS
MAX_MS = MAX_DAY * _DAY_MS + _DAY_MS - 1

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_INSTANT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]+))?"
    r"(?:[Zz]|([+-])([0-9]{2}):([0-9]{2}))?"
)


def parse_date(text: str) -> date:
    """`YYYY-MM-DD` and nothing else. Raises a ValueError that says what is wrong."""
    if not _DATE.fullmatch(text):
        raise ValueError("is not written as YYYY-MM-DD")
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise ValueError("is not a day of the calendar") from None


def parse_instant(text: str) -> int:
    """Epoch milliseconds of an RFC 3339 text, in UTC if it has no offset. Raises a ValueError that
    says what is wrong. Digits below a millisecond must be zeros, because a DateTime cannot keep
    them."""
    found = _INSTANT.fullmatch(text)
    if found is None:
        raise ValueError("is not written as in RFC 3339 (2024-05-31T12:00:00Z)")
    day, clock, fraction, sign, hours, minutes = found.groups()
    fraction = fraction or ""
    if fraction[3:].strip("0"):
        raise ValueError("has digits below a millisecond, which would be lost")
    try:
        instant = datetime.fromisoformat(f"{day}T{clock}").replace(tzinfo=UTC)
    except ValueError:
        raise ValueError("is not a moment of the calendar") from None
    if sign and not (int(hours) < 24 and int(minutes) < 60):
        raise ValueError("has an offset that is not a time of day")
    offset = timedelta(hours=int(hours or 0), minutes=int(minutes or 0))
    milliseconds = millisecond_of(instant) + int(fraction[:3].ljust(3, "0"))
    return checked_ms(
        milliseconds - (-1 if sign == "-" else 1) * (offset // timedelta(milliseconds=1))
    )


def millisecond_of(value: datetime) -> int:
    """Epoch milliseconds. A naive value is in UTC. Raises a ValueError for anything finer."""
    aware = value if value.utcoffset() is not None else value.replace(tzinfo=UTC)
    delta = aware - EPOCH
    if delta.microseconds % 1000 or getattr(value, "nanosecond", 0):
        raise ValueError("has digits below a millisecond, which would be lost")
    return checked_ms((delta.days * 86_400 + delta.seconds) * 1000 + delta.microseconds // 1000)


def checked_ms(milliseconds: int) -> int:
    """Only years 1 to 9999 can be written as RFC 3339 and read back by every surface."""
    if not MIN_MS <= milliseconds <= MAX_MS:
        raise ValueError("lies outside the years 0001 to 9999")
    return milliseconds


def checked_day(day: int) -> int:
    if not MIN_DAY <= day <= MAX_DAY:
        raise ValueError("lies outside the years 0001 to 9999")
    return day
