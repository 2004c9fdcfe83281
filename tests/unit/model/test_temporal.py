"""The text forms of Date and DateTime: exactly those of the language, nothing more."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.model.temporal import (
    EPOCH,
    MAX_MS,
    MIN_MS,
    checked_ms,
    millisecond_of,
    parse_date,
    parse_instant,
)

offsets = st.integers(-23 * 60 - 59, 23 * 60 + 59).map(lambda m: timezone(timedelta(minutes=m)))
moments = st.datetimes(
    min_value=datetime(2, 1, 1),  # noqa: DTZ001
    max_value=datetime(9998, 12, 31),  # noqa: DTZ001
    timezones=offsets,
).map(lambda d: d.replace(microsecond=d.microsecond // 1000 * 1000))


@given(moments)
def test_rfc_3339_text_is_read_as_the_moment_that_it_writes(moment: datetime) -> None:
    expected = (moment - EPOCH) // timedelta(milliseconds=1)
    assert parse_instant(moment.isoformat()) == expected
    assert parse_instant(moment.isoformat(" ", "milliseconds") + "") == expected
    assert millisecond_of(moment) == expected
    assert millisecond_of(moment.astimezone(UTC).replace(tzinfo=None)) == expected
    assert parse_instant(moment.astimezone(UTC).isoformat().replace("+00:00", "z")) == expected


@given(st.dates())
def test_a_day_is_read_as_it_is_written(day: datetime) -> None:
    assert parse_date(day.isoformat()) == day


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-1-01",
        "20240101",
        "2024-W01-1",
        "2024-01-01 ",
        "2024-01-01\n",
        "+2024-01-01",
        "２０２４-01-01",
        "2024-02-30",
        "0000-01-01",
        "2024-01-01T00:00:00",
    ],
)
def test_other_texts_are_no_day(text: str) -> None:
    with pytest.raises(ValueError, match=r"^is not "):
        parse_date(text)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "2024-01-01",
        "2024-01-01T00:00Z",
        "2024-01-01T00:00:00,5Z",
        "2024-01-01T00:00:00.Z",
        "2024-01-01T24:00:00Z",
        "2024-01-01T00:00:60Z",
        "2024-01-01T00:00:00+0100",
        "2024-01-01T00:00:00+01",
        "2024-01-01T00:00:00+00:60",
        "2024-01-01T00:00:00Z\n",
        "2024-01-01T00:00:00 Z",
        "2024-01-01T00:00:00.0005Z",
        "9999-12-31T23:59:59-01:00",
        "٢٠٢٤-01-01T00:00:00Z",
    ],
)
def test_other_texts_are_no_moment(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(is not|has|lies) "):
        parse_instant(text)


def test_the_first_and_the_last_millisecond_are_moments() -> None:
    assert parse_instant("0001-01-01T00:00:00Z") == MIN_MS
    assert parse_instant("9999-12-31T23:59:59.999000000Z") == MAX_MS
    for beyond in (MIN_MS - 1, MAX_MS + 1):
        with pytest.raises(ValueError, match="years 0001 to 9999"):
            checked_ms(beyond)
