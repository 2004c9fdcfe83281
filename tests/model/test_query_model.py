"""The engine against the oracle: drawn data, drawn queries, either kernel, along a history of
changes and compactions, and back in time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model import query_engine
from tests.model.query_cases import Topic, topics
from tests.model.query_data import Dataset
from tests.model.query_engine import KERNELS, EngineExecutor, History, mismatch
from tests.model.query_texts import draw_query
from tests.model.query_worlds import draw_dataset
from tests.model.test_query_golden import check_rows

SEEDS = 6


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


SMALL = {
    "engine.query.expand": {"CHUNK": 2, "_FEW": 1, "_LARGE": 2, "_TOUCHES": 1},
    "engine.query.distances": {"_BITS": 128},
    "engine.query.ways": {"_CODES": 64},
    "engine.query.adjacency.arrays": {"_SHARE": 1},
    "engine.query.adjacency.cache": {"_VERSIONS": 1, "_WORTH_WRITING": 1},
    "engine.query.pattern": {"_FIRST": 1, "_MERGE": 2, "_LOOSE": 0},
    "engine.query.adjacency.vertices": {"_FEW": 1, "_LARGE": 2, "_RUNS": 1},
    "engine.query.rows": {"_FEW": 1, "_ONE_BY_ONE": 0},
    "engine.query.frame": {"_SAMPLE": 2},
    "engine.query.groups": {"_MARKS": 0},
    "engine.key_index": {"_ONE_BY_ONE": 0},
    "engine.query.ordering": {"_BATCH": 2},
    "engine.query.scan": {"_SMALL": 1},
    "engine.query.gather": {"_BATCH": 2},
    "engine.query.spill": {"_BATCH": 2},
    "engine.columns": {"_AT_ONCE": 0},
    "plan.values.compare": {"_MANY": 1},
}
"""What the engine calls few, where it would otherwise take thousands of rows to be many."""


@pytest.fixture(params=["held", "pushed", "spilled"])
def few_is_many(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns are held in memory; or none may be, so that filters go down to Lance; or hardly any
    rows may, so that duckdb sorts and groups them."""
    bounds: dict[str, dict[str, Any]] = {
        "held": {},
        "pushed": {"cache_bytes": 0},
        "spilled": {"query_rows": 2},
    }
    bounded = replace(query_engine.SETTINGS, **bounds[request.param])
    monkeypatch.setattr(query_engine, "SETTINGS", bounded)
    for module, constants in SMALL.items():
        for name, value in constants.items():
            monkeypatch.setattr(f"omnigraph.{module}.{name}", value)


@pytest.mark.usefixtures("few_is_many")
@pytest.mark.parametrize("seed", range(100, 104))
def test_what_is_done_for_many_rows_answers_alike(seed: int) -> None:
    check_world(Random(seed), 8)
    check_history(Random(seed), 4, 4)


@pytest.mark.usefixtures("few_is_many")
@pytest.mark.parametrize("topic", list(topics()), ids=lambda topic: topic.name)
def test_golden_cases_are_answered_alike_as_if_rows_were_many(topic: Topic) -> None:
    with engine(topic.data) as executor:
        for case in topic.cases:
            if case.outcome in ("rows", "some"):
                check_rows(case, topic, executor.run(case.text, case.parameters))


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
