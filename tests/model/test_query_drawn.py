"""Drawn queries are worth running: they check, find something, and leave no construct out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cache
from random import Random

from tests.model.query_data import Dataset
from tests.model.query_executors import Refused, compiled, expected_answer
from tests.model.query_features import WANTED, features
from tests.model.query_texts import DrawnQuery, draw_query
from tests.model.query_values import EvaluationError
from tests.model.query_worlds import draw_dataset

WORLDS, QUERIES = 350, 8


def drawn() -> Iterator[tuple[Dataset, DrawnQuery]]:
    for seed in range(WORLDS):
        chance = Random(seed)
        data = draw_dataset(chance)
        for _ in range(QUERIES):
            yield data, draw_query(chance, data)


@cache
def outcomes() -> tuple[Counter[str], Counter[str], Counter[str]]:
    """How queries ended; which features they had; which features were in queries with rows."""
    ends: Counter[str] = Counter()
    used: Counter[str] = Counter()
    fruitful: Counter[str] = Counter()
    for data, query in drawn():
        try:
            checked = compiled(data, query.text)
            answer = expected_answer(data, checked, query.parameters)
        except Refused:
            ends["refused"] += 1
            continue
        except EvaluationError:
            ends["failed"] += 1
            continue
        found = features(checked)
        used.update(found)
        ends["rows" if answer.rows else "empty"] += 1
        fruitful.update(found if answer.rows else ())
    return ends, used, fruitful


def test_nearly_every_drawn_query_checks_and_most_find_something() -> None:
    ends, _, _ = outcomes()
    total = WORLDS * QUERIES
    assert ends["refused"] <= 0.02 * total, ends
    assert ends["rows"] >= 0.5 * total, ends
    assert ends["failed"] <= 0.1 * total, ends


def test_every_construct_is_drawn_and_finds_something() -> None:
    _, used, fruitful = outcomes()
    assert WANTED - {name for name, count in used.items() if count >= 3} == set()
    assert WANTED - fruitful.keys() == set()
