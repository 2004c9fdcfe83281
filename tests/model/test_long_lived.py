"""A handle that stays open answers as a fresh one does and as the model says, whatever branches,
merges, restores and schema changes did."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph.engine import key_index
from tests.model.long_lived import live

BUDGETS = (1 << 30, 1 << 18, 1 << 14)
"""Everything is kept, something must go now and then, hardly anything is kept."""


@pytest.fixture(autouse=True)
def forgetful() -> Iterator[None]:
    """Dead rows are forgotten as soon as in a large table, where it takes thousands."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(key_index, "_TAIL", 4)
        yield


@pytest.mark.parametrize("seed", range(9))
def test_an_open_handle_answers_as_a_fresh_one(seed: int) -> None:
    live(seed, 25, cache_bytes=BUDGETS[seed % 3])


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1000, 1200))
def test_an_open_handle_answers_as_a_fresh_one_over_long_histories(seed: int) -> None:
    live(seed, 60, cache_bytes=BUDGETS[seed % 3])
