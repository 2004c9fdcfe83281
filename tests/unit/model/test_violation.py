"""Offending values are shown short, on one line and without asking foreign code."""

from __future__ import annotations

from datetime import UTC, date, datetime
from decimal import Decimal

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.model.violation import SHOWN_CHARACTERS, Violation, show_text, show_value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        ("a", '"a"'),
        ("\x1b[31m\n\u202e\ud800", '"\\x1b[31m\\n\\u202e\\ud800"'),
        (True, "True"),
        (-7, "-7"),
        (1.5, "1.5"),
        (10**60, "an integer of 200 bits"),
        (b"\x00", "b'\\x00'"),
        (date(2024, 1, 1), "2024-01-01"),
        (datetime(2024, 1, 1, tzinfo=UTC), "2024-01-01T00:00:00+00:00"),
        (Decimal("1.0"), "Decimal('1.0')"),
        (np.float32(0.5), "0.5"),
        ([1, "a", [2], None, 5], '[1, "a", a list, null, … 5 items]'),
        ((), "[]"),
        ({"a": 1}, "a dict"),
        (object(), "an object"),
    ],
)
def test_a_value_is_shown_as_its_kind_is_written(value: object, shown: str) -> None:
    assert show_value(value) == shown


@given(st.text(st.characters()) | st.binary() | st.integers() | st.lists(st.text()))
def test_what_is_shown_is_short_and_printable(value: object) -> None:
    assert show_value(value).isprintable()
    assert len(show_value(value)) <= 10 * SHOWN_CHARACTERS + 3


def test_long_text_is_cut() -> None:
    assert show_text("x" * 81) == "x" * 80 + "…"
    assert show_text("x" * 80) == "x" * 80
    assert len(show_value("x" * 10**6)) < 90
    assert len(show_value(["x" * 10**6] * 4)) < 90
    assert len(show_value(b"x" * 10**6)) < 90


def test_a_violation_is_written_without_what_it_does_not_have() -> None:
    violation = Violation(type="Person", rule="row", message="No.", row=0)
    assert (
        msgspec.json.encode(violation) == b'{"type":"Person","rule":"row","message":"No.","row":0}'
    )
