"""The engine against the oracle: drawn data, drawn queries, either kernel, along a history of
changes and compactions, and back in time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.query_data import Dataset
from tests.model.query_engine import KERNELS, EngineExecutor, History, mismatch
from tests.model.query_texts import draw_query
from tests.model.query_worlds import draw_dataset

SEEDS = 8


@contextmanager
def engine(data: Dataset) -> Iterator[EngineExecutor]:
    executor = EngineExecutor(data)
    try:
        yield executor
    finally:
        executor.close()


def check_world(chance: Random, queries: int) -> None:
    data = draw_dataset(chance)
    with engine(data) as executor:
        for _ in range(queries):
            query = draw_query(chance, data)
            for kernel in KERNELS:
                found = mismatch(executor, data, query, kernel=kernel)
                assert found is None, f"{data}\n{query}\n{kernel}\n{found}"


def check_history(chance: Random, steps: int, queries: int) -> None:
    """Every version answers as it did when it was new, whatever came later."""
    data = draw_dataset(chance)
    history = History(chance, data)
    try:
        history.go(steps)
        history.executor.graph.optimize()
        for _ in range(queries):
            query = draw_query(chance, history.versions[-1][1])
            chosen = [history.versions[-1], chance.choice(history.versions)]
            for commit, then in chosen:
                ref, kernel = f"main@{commit}", chance.choice(KERNELS)
                found = mismatch(history.executor, then, query, ref=ref, kernel=kernel)
                assert found is None, f"{then}\n{query}\n{ref} {kernel}\n{found}"
    finally:
        history.executor.close()


@pytest.mark.parametrize("seed", range(SEEDS))
def test_the_engine_answers_as_the_oracle_does(seed: int) -> None:
    check_world(Random(seed), 10)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_history_changes_an_answer(seed: int) -> None:
    check_history(Random(seed), 6, 6)


@pytest.mark.slow
@settings(max_examples=300)
@given(st.randoms(use_true_random=False))
def test_the_engine_answers_any_drawn_query_as_the_oracle_does(chance: Random) -> None:
    check_world(chance, 5)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.randoms(use_true_random=False))
def test_no_drawn_history_changes_an_answer(chance: Random) -> None:
    check_history(chance, 8, 5)
