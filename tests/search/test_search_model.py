"""Search against the oracle: drawn histories over several branches, with questions after each step.

Small vocabularies and few vectors, so that ties, phrases and repeated words happen.
"""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.search.world import live


@pytest.mark.parametrize("seed", range(8))
def test_no_history_changes_what_is_found_without_an_index(seed: int) -> None:
    live(Random(seed), 8, folding="off", segments=False)


@pytest.mark.parametrize("seed", range(100, 110))
def test_no_history_changes_what_is_found_with_indexes(seed: int) -> None:
    live(Random(seed), 8, folding="off", segments=True)


@pytest.mark.parametrize("seed", range(200, 206))
def test_no_history_changes_what_is_found_while_folding(seed: int) -> None:
    live(Random(seed), 8, folding="inline", segments=True)


@pytest.mark.slow
@settings(max_examples=400)
@given(
    seed=st.integers(0, 2**32),
    steps=st.integers(0, 16),
    segments=st.booleans(),
    folding=st.sampled_from(("off", "inline")),
)
def test_no_drawn_history_changes_what_is_found(
    seed: int, steps: int, segments: bool, folding: str
) -> None:
    """Fewer steps of a seed are the beginning of the same history, so that a failure gets short."""
    live(Random(seed), steps, folding=folding, segments=segments)
