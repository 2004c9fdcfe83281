"""Golden run cases for every line of sections 5 and 12 of the language, over every executor."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from functools import partial
from typing import Any

import pytest

from omnigraph.lang.gq import checked as c
from tests.model.query_cases import Case, Topic, topics
from tests.model.query_data import Dataset
from tests.model.query_engine import EngineExecutor
from tests.model.query_executors import Executor, OracleExecutor, Refused, compiled
from tests.model.query_results import collected_columns, comparable
from tests.model.query_values import instant_text

TOPICS = {topic.name: topic for topic in topics()}
CASES = [case for topic in TOPICS.values() for case in topic.cases]
EXECUTORS: dict[str, Callable[[Dataset], Executor]] = {
    "oracle": OracleExecutor,
    "indexed": partial(EngineExecutor, kernel="indexed"),
    "adjacency": partial(EngineExecutor, kernel="adjacency"),
}


def jsonable(value: Any) -> Any:
    match value:
        case datetime():
            return instant_text(value)
        case date():
            return value.isoformat()
        case list() | tuple():
            return [jsonable(part) for part in value]
        case Mapping():
            return {name: jsonable(part) for name, part in value.items()}
        case _:
            return value


@pytest.fixture(scope="module", params=EXECUTORS)
def executors(request: pytest.FixtureRequest) -> Iterator[Callable[[Topic], Executor]]:
    """One executor for each topic, made when its first case runs."""
    made: dict[str, Executor] = {}

    def executor(topic: Topic) -> Executor:
        if topic.name not in made:
            made[topic.name] = EXECUTORS[request.param](topic.data)
        return made[topic.name]

    yield executor
    for one in made.values():
        one.close()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_gives_its_rows(case: Case, executors: Callable[[Topic], Executor]) -> None:
    topic = TOPICS[case.topic]
    executor = executors(topic)
    if case.outcome == "refused":
        with pytest.raises(Refused) as refused:
            executor.run(case.text, case.parameters)
        assert case.detail in refused.value.codes, refused.value
        return
    if case.outcome == "error":
        with pytest.raises(Exception) as failed:  # noqa: PT011
            executor.run(case.text, case.parameters)
        assert not isinstance(failed.value, Refused), failed.value
        return
    check_rows(case, topic, executor.run(case.text, case.parameters))


def check_rows(case: Case, topic: Topic, got: list[dict[str, Any]]) -> None:
    query = compiled(topic.data, case.text)
    names = [column.name for column in query.columns]
    unordered = collected_columns(query)
    found = comparable([jsonable(row) for row in got], unordered)
    expected = comparable([dict(zip(names, row, strict=True)) for row in case.rows], unordered)
    assert isinstance(query.body, c.Read)
    if case.outcome == "some":
        assert len(found) == int(case.detail)
        assert not Counter(found) - Counter(expected)
    elif query.body.order:
        assert found == expected
    else:
        assert Counter(found) == Counter(expected), json.dumps(jsonable(got))


def test_every_topic_has_cases_with_rows() -> None:
    assert len(TOPICS) >= 18
    for topic in TOPICS.values():
        assert any(case.rows for case in topic.cases), topic.name
