"""Search where rows are many: ties beyond every cut, ranks beyond the window, many candidates; with
segments as maintenance makes them, a tail behind them, and dead rows under them."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest

from tests.search.world import World

ROWS = 1500


def check(chance: Random, questions: int) -> None:
    world = World(chance, segments=True, size=ROWS)
    try:
        stages: tuple[Callable[[], None], ...] = (
            lambda: None,
            lambda: world._optimize("main"),
            lambda: world.grow("main", 300),
            lambda: world._delete("main"),
            lambda: world._optimize("main"),
        )
        for stage in stages:
            stage()
            for _ in range(questions):
                world.ask_of("main")
    finally:
        world.close()


def test_many_rows_are_found_as_few_are() -> None:
    check(Random(1), 2)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 22))
def test_many_rows_are_always_found_as_few_are(seed: int) -> None:
    check(Random(seed), 40)
