"""Two oracles that share nothing agree: the naive evaluator and sqlite, on what sqlite can say."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.lang.gq import bind_parameters
from omnigraph.lang.gq.checked import Read
from tests.model.query_cases import topics
from tests.model.query_data import Dataset
from tests.model.query_executors import Refused, compiled, expected_answer
from tests.model.query_results import plain
from tests.model.query_sqlite import Untranslatable, is_total, run_sqlite, stored
from tests.model.query_texts import DrawnQuery, draw_query
from tests.model.query_values import EvaluationError
from tests.model.query_worlds import draw_dataset


def agree(data: Dataset, query: DrawnQuery) -> bool:
    """Whether both were asked; fails where they differ."""
    try:
        checked = compiled(data, query.text)
        answer = expected_answer(data, checked, query.parameters)
    except (Refused, EvaluationError):
        return False
    rows = run_sqlite(checked, data, bind_parameters(checked, query.parameters))
    if rows is None:
        return False
    try:
        expected = [tuple(plain(stored(x)) for x in row) for row in answer.rows]
    except Untranslatable:  # a number that was computed, and that sqlite has no room for
        return False
    found = [tuple(plain(x) for x in row) for row in rows]
    assert isinstance(checked.body, Read)
    if checked.body.parts:
        return False
    if is_total(checked.body):
        assert found == expected, query
    else:
        assert Counter(found) == Counter(expected), query
    return True


@pytest.mark.parametrize("seed", range(2))
def test_many_drawn_queries_are_answered_alike(seed: int) -> None:
    chance = Random(seed)
    asked = 0
    for _ in range(50):
        data = tame(draw_dataset(chance))
        asked += sum(agree(data, draw_query(chance, data)) for _ in range(8))
    assert asked >= 30, asked


@settings(max_examples=12)
@given(st.randoms(use_true_random=False))
def test_drawn_queries_are_answered_alike(chance: Random) -> None:
    data = tame(draw_dataset(chance))
    for _ in range(4):
        agree(data, draw_query(chance, data))


def test_golden_cases_are_answered_alike() -> None:
    asked = Counter(
        topic.name
        for topic in topics()
        for case in topic.cases
        if case.outcome == "rows" and agree(topic.data, DrawnQuery(case.text, case.parameters))
    )
    assert asked["cases"] >= 4, asked
    assert asked["aggregates"] >= 8, asked
    assert asked.total() >= 50, asked


def tame(data: Dataset) -> Dataset:
    """Without what sqlite has no counterpart for."""
    for rows in (*data.nodes.values(), *data.edges.values()):
        for row in rows:
            for name, value in row.items():
                is_special = isinstance(value, float) and value - value != 0
                is_large = isinstance(value, int) and abs(value) > 2**31
                if name not in ("id", "src", "dst", "key") and (is_special or is_large):
                    row[name] = 2.5 if is_special else 2
    return data
