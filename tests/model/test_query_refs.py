"""A query is about one ref: its data, its schema, whatever the head has become since."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow.compute as pc
import pytest

from omnigraph import Graph
from tests.model.query_data import read_dataset
from tests.model.query_engine import KERNELS, EngineExecutor
from tests.model.query_executors import Refused

SCHEMA = """
node Person { name: String @key age: I32? city: String? }
edge Knows: Person -> Person { since: I32? }
"""
DATA = [
    '{"type": "Person", "data": {"name": "Ann", "age": 30, "city": "Bern"}}',
    '{"type": "Person", "data": {"name": "Bob", "age": 20}}',
    '{"type": "Person", "data": {"name": "Cy"}}',
    '{"edge": "Knows", "from": "Ann", "to": "Bob", "id": "1", "data": {"since": 1}}',
    '{"edge": "Knows", "from": "Bob", "to": "Cy", "id": "2"}',
]
NAMES = "match { $p: Person } return { $p.name } order { $p.name }"
FRIENDS = "match { $p: Person  $p knows{1,9} $q } return { $p.name, $q.name } order { $p.name }"


@pytest.fixture(params=KERNELS)
def executor(request: pytest.FixtureRequest) -> Iterator[EngineExecutor]:
    made = EngineExecutor(read_dataset(SCHEMA, DATA), kernel=request.param)
    yield made
    made.close()


@pytest.fixture
def graph(executor: EngineExecutor) -> Graph:
    return executor.graph


def values(executor: EngineExecutor, text: str, ref: str = "main") -> list[list[object]]:
    return [list(row.values()) for row in executor.run(text, {}, ref=ref)]


def test_an_older_ref_answers_as_it_did(executor: EngineExecutor, graph: Graph) -> None:
    before = [values(executor, NAMES), values(executor, FRIENDS)]
    with graph.transaction() as tx:
        tx.delete("Person", where=pc.field("id") == "Bob")
        tx.append("Person", {"name": "Dee"})
        tx.append("Knows", {"from": "Ann", "to": "Dee"})
    assert values(executor, NAMES) == [["Ann"], ["Cy"], ["Dee"]]
    assert values(executor, FRIENDS) == [["Ann", "Dee"]]
    graph.optimize()
    assert values(executor, FRIENDS) == [["Ann", "Dee"]]
    then = f"main@{executor.head}"
    assert [values(executor, NAMES, then), values(executor, FRIENDS, then)] == before
    assert before[1] == [["Ann", "Bob"], ["Ann", "Cy"], ["Bob", "Cy"]]


def test_a_branch_answers_by_itself_until_it_is_merged(
    executor: EngineExecutor, graph: Graph
) -> None:
    graph.create_branch("work")
    with graph.branch("work").transaction() as tx:
        tx.append("Person", {"name": "Dee"})
        tx.append("Knows", {"from": "Cy", "to": "Dee"})
    with graph.transaction() as tx:
        tx.delete("Knows", where=pc.field("id") == "1")
    assert values(executor, FRIENDS) == [["Bob", "Cy"]]
    assert len(values(executor, FRIENDS, "work")) == 6
    graph.merge("work")
    assert values(executor, FRIENDS) == [["Bob", "Cy"], ["Bob", "Dee"], ["Cy", "Dee"]]
    assert len(values(executor, FRIENDS, "work")) == 6


def test_names_are_those_of_the_ref(executor: EngineExecutor, graph: Graph) -> None:
    """Columns keep the names that they were made with; queries never see those."""
    graph.apply_schema(
        """
        node Human @rename_from("Person") { name: String @key  years: I32? @rename_from("age") }
        edge Meets: Human -> Human @rename_from("Knows") { since: I32? }
        """
    )
    text = "match { $p: Human  $p $m:meets $q  $q.years = 20 } return { $p.years, $m.since, $q }"
    assert values(executor, text) == [[30, 1, {"@id": "Bob", "name": "Bob", "years": 20}]]
    with pytest.raises(Refused) as refused:
        values(executor, NAMES)
    assert "T1" in refused.value.codes
    old = f"main@{executor.head}"
    assert values(executor, NAMES, old) == [["Ann"], ["Bob"], ["Cy"]]
    city = 'match { $p: Person { city: "Bern" } } return { $p.age }'
    assert values(executor, city, old) == [[30]]


def test_a_property_that_came_back_has_none_of_its_old_values(
    executor: EngineExecutor, graph: Graph
) -> None:
    edge = "edge Knows: Person -> Person { since: I32? }"
    graph.apply_schema(f"node Person {{ name: String @key  city: String? }} {edge}")
    graph.apply_schema(f"node Person {{ name: String @key  age: String?  city: String? }} {edge}")
    with graph.transaction() as tx:
        tx.upsert("Person", {"name": "Cy", "age": "old"})
    text = "match { $p: Person } return { $p.age, $p } order { $p.name }"
    assert values(executor, text) == [
        [None, {"@id": "Ann", "name": "Ann", "age": None, "city": "Bern"}],
        [None, {"@id": "Bob", "name": "Bob", "age": None, "city": None}],
        ["old", {"@id": "Cy", "name": "Cy", "age": "old", "city": None}],
    ]
    assert values(executor, 'match { $p: Person { age: "old" } } return { $p.name }') == [["Cy"]]
    numbers = "match { $p: Person  $p.age > 25 } return { $p.name }"
    assert values(executor, numbers, f"main@{executor.head}") == [["Ann"]]


def test_a_new_property_is_null_or_its_default_in_old_entities(
    executor: EngineExecutor, graph: Graph
) -> None:
    graph.apply_schema(
        """
        node Person {
            name: String @key age: I32? city: String? rank: I32 @default(7) note: String?
        }
        node Pet { call: String? }
        edge Knows: Person -> Person { since: I32? weight: F64 @default(0.5) }
        edge Owns: Person -> Pet
        """
    )
    with graph.transaction() as tx:
        tx.append("Person", {"name": "Dee", "rank": 1, "note": "new"})
    text = "match { $p: Person  $p.rank = 7  $p.note is null } return { $p.name } order { $p.name }"
    assert values(executor, text) == [["Ann"], ["Bob"], ["Cy"]]
    assert values(executor, "match { $p: Person  $p.rank < 7 } return { $p.note }") == [["new"]]
    weights = "match { $p $w:knows $q } return { sum($w.weight) as s }"
    assert values(executor, weights) == [[1.0]]
    assert values(executor, "match { $p owns $q } return { count($p) as n }") == [[0]]
