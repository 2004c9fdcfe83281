"""Frames against lists of rows: merging keeps how often each row stands there."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.engine.query.frame import Frame, concat, merge_alike
from omnigraph.errors import ValueOutOfRange

NUMBERS = st.sampled_from([-1, 0, 1, 2, 2**20, 2**31, 2**40])
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS, st.integers(1, 5)), max_size=20)

Rows = list[tuple[int, int, int, int]]


def frame_of(rows: Rows, *, counted: bool = True) -> Frame:
    columns = {key: np.array([row[key] for row in rows], np.int64) for key in range(3)}
    counts = np.array([row[3] for row in rows], np.int64) if counted else None
    return Frame(columns, len(rows), counts)


def tally(frame: Frame, keys: list[int]) -> Counter[tuple[int, ...]]:
    """How often each combination stands there."""
    found: Counter[tuple[int, ...]] = Counter()
    for place in range(frame.rows):
        row = tuple(int(frame.columns[key][place]) for key in keys)
        found[row] += int(frame.multiplicity[place])
    return found


@given(ROWS, st.sets(st.integers(0, 2)), st.booleans())
def test_merging_keeps_the_counts_of_what_is_kept(
    rows: Rows, kept: set[int], counted: bool
) -> None:
    frame = frame_of(rows, counted=counted)
    merged = merge_alike(frame, frozenset(kept))
    keys = sorted(kept)
    assert tally(merged, keys) == tally(frame, keys)
    assert set(merged.columns) == kept
    assert merged.total == frame.total
    if all(max(map(abs, row[:3]), default=0) < 2**31 for row in rows):  # one code holds a row
        assert merged.rows == len(tally(frame, keys))


@given(st.lists(ROWS, min_size=1, max_size=4))
def test_frames_one_after_the_other_hold_the_rows_of_all(parts: list[Rows]) -> None:
    whole = concat([frame_of(rows, counted=n % 2 == 0) for n, rows in enumerate(parts)])
    wanted: Counter[tuple[int, ...]] = Counter()
    for n, rows in enumerate(parts):
        for *row, often in rows:
            wanted[tuple(row)] += often if n % 2 == 0 else 1
    assert tally(whole, [0, 1, 2]) == wanted
    written_out = whole.expanded()
    assert written_out.rows == whole.total
    assert tally(written_out, [0, 1, 2]) == wanted


@pytest.mark.parametrize("kept", [set(), {0}])
def test_more_rows_than_can_be_counted_are_an_error(kept: set[int]) -> None:
    """Never a number that has wrapped around."""
    half = np.array([2**62, 2**62], np.int64)
    frame = Frame({0: np.zeros(2, np.int64)}, 2, half)
    with pytest.raises(ValueOutOfRange, match="64 bits"):
        merge_alike(frame, frozenset(kept))
    with pytest.raises(ValueOutOfRange, match="64 bits"):
        frame.times(np.array([2, 2], np.int64))
