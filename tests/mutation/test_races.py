"""Mutations that lose a race run again on what the winner left, or say why they cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.mutation import run
from omnigraph.engine.mutation.lower import lower_mutation
from omnigraph.engine.query.prepare import Preparations
from omnigraph.engine.write.statements import AppendRows, Statement
from omnigraph.errors import (
    BranchMoved,
    Contention,
    InvalidData,
    InvalidQuery,
    PreconditionFailed,
)
from omnigraph.model.changes import TypeCounts
from tests.bench.processes import results_of, run_together
from tests.mutation.world import SCHEMA, at, new_graph, rows

POINTS = ("staged", "tables committed", "before put")


@pytest.fixture
def g() -> Graph:
    g = new_graph(queue=False)
    g.mutate('insert Person { name: "A", age: 1 } insert Person { name: "B", age: 2 }')
    return g


def other(g: Graph) -> Graph:
    handle = omnigraph.open(g.root, settings=omnigraph.Settings(durability="relaxed", queue=False))
    handle.snapshot()
    return handle


def meddling(g: Graph, text: str) -> Callable[[], object]:
    handle = other(g)
    return lambda: handle.mutate(text)


@pytest.mark.parametrize("point", POINTS)
def test_an_update_computes_from_what_the_winner_wrote(g: Graph, point: str) -> None:
    with at(point, meddling(g, 'update Person set { age: 100 } where name = "A"')):
        g.mutate('update Person set { age: age + 1 } where name = "A"')
    assert rows(g, "Person", "name", "age") == [("A", 101), ("B", 2)]


@pytest.mark.parametrize("point", POINTS)
def test_counts_are_those_of_the_run_that_landed(g: Graph, point: str) -> None:
    with at(point, meddling(g, 'insert Person { name: "C", age: 3 }')):
        result = g.mutate("update Person set { age: age * 2 } where age > 0")
    assert result.counts == {"Person": TypeCounts(updated=3)}
    assert rows(g, "Person", "age") == [2, 4, 6]


@pytest.mark.parametrize("point", POINTS)
def test_an_upsert_keeps_what_the_winner_set(g: Graph, point: str) -> None:
    with at(point, meddling(g, 'insert Person { name: "N", email: "n@x" }')):
        result = g.mutate('insert Person { name: "N", age: 9 }')
    assert result.counts == {"Person": TypeCounts(updated=1)}
    assert rows(g, "Person", "name", "age", "email")[-1] == ("N", 9, "n@x")


@pytest.mark.parametrize("point", POINTS)
def test_a_delete_takes_an_edge_along_that_came_in_between(g: Graph, point: str) -> None:
    with at(point, meddling(g, 'insert Knows { from: "A", to: "B" }')):
        result = g.mutate('delete Person where name = "B"')
    assert (result.nodes, result.edges) == (1, 1)
    assert rows(g, "Knows", "src") == []


@pytest.mark.parametrize("point", POINTS)
def test_an_edge_is_refused_when_its_node_went_in_between(g: Graph, point: str) -> None:
    with (
        at(point, meddling(g, 'delete Person where name = "B"')),
        pytest.raises(InvalidData, match="there is no Person with that id"),
    ):
        g.mutate('insert Knows { from: "A", to: "B" }')
    assert rows(g, "Knows", "src") == []


@pytest.mark.parametrize("point", POINTS)
def test_what_no_longer_matches_makes_no_commit(g: Graph, point: str) -> None:
    with at(point, meddling(g, "update Person set { age: 50 } where true")):
        result = g.mutate("delete Person where age < 10")
    assert result.commit_id is None
    assert (result.nodes, result.counts) == (0, {})
    assert rows(g, "Person", "age") == [50, 50]


@pytest.mark.parametrize("change", ["update Person set { age: 9 }", "delete Person"])
@pytest.mark.parametrize("point", POINTS)
def test_what_matched_nothing_matches_what_came_in_between(
    g: Graph, point: str, change: str
) -> None:
    """It read the table and wrote to another: that nothing was there is part of what it saw."""
    with at(point, meddling(g, 'insert Person { name: "C", age: 3 }')):
        result = g.mutate(f'insert Note {{ text: "n" }} {change} where name = "C"')
    assert result.nodes == 2
    assert (("C", 3) in rows(g, "Person", "name", "age")) is False
    assert rows(g, "Note", "text") == ["n"]


@pytest.mark.parametrize("point", POINTS)
def test_a_pinned_head_is_never_retried(g: Graph, point: str) -> None:
    head = g.snapshot().commit.id
    with (
        at(point, meddling(g, 'insert Note { text: "elsewhere" }')),
        pytest.raises(PreconditionFailed),
    ):
        g.mutate('update Person set { age: 9 } where name = "A"', if_commit=head)
    assert rows(g, "Person", "age") == [1, 2]


@pytest.mark.parametrize("point", POINTS)
def test_the_text_is_checked_again_under_a_schema_that_changed(g: Graph, point: str) -> None:
    handle = other(g)
    wider = SCHEMA.replace("edge Knows", "node Extra { n: I64? }\nedge Knows").replace(
        "score: F64?", "score: F64?  extra: I64? @default(7)"
    )
    with at(point, lambda: handle.apply_schema(wider)):
        g.mutate('insert Person { name: "C" } update Person set { age: 9 } where name = "C"')
    found = g.entity("Person", "C")
    assert found is not None
    assert (found["age"], found["extra"]) == (9, 7)


@pytest.mark.parametrize("point", POINTS)
def test_a_property_that_went_in_between_is_an_error_of_the_query(g: Graph, point: str) -> None:
    handle = other(g)
    narrower = SCHEMA.replace("score: F64?", "")
    with (
        at(point, lambda: handle.apply_schema(narrower)),
        pytest.raises(InvalidQuery, match=r"T11.*`Person` has no property `score`"),
    ):
        g.mutate('update Person set { score: 1.0 } where name = "A"')
    assert g.snapshot().commit.kind == "schema"


@pytest.mark.parametrize("point", POINTS)
def test_a_renamed_property_is_written_under_its_new_name(g: Graph, point: str) -> None:
    handle = other(g)
    renamed = SCHEMA.replace("score: F64?", 'points: F64? @rename_from("score")')
    with at(point, lambda: handle.apply_schema(renamed)):
        g.mutate('update Person set { age: 7 } where name = "A"')
    g.mutate("update Person set { points: 2.5 } where age = 7 and points is null")
    assert rows(g, "Person", "name", "points") == [("A", 2.5), ("B", None)]


def test_a_stale_handle_sees_types_that_others_added(g: Graph) -> None:
    handle = other(g)
    handle.apply_schema(SCHEMA + "node Extra { n: I64? }\n")
    catalog = g.snapshot().catalog
    Preparations.shared_by(g._session).query('insert Note { text: "x" }', None, catalog)
    stale = other(g)
    handle.apply_schema(SCHEMA + "node Extra { n: I64? }\nnode More { n: I64? }\n")
    assert stale.mutate("insert More { n: 1 }").nodes == 1


def test_losing_three_times_writes_what_was_asked_for_once(g: Graph) -> None:
    handle = other(g)
    with at("before put", lambda: handle.mutate('insert Knows { from: "B", to: "A" }'), times=3):
        g.mutate('insert Note { text: "one" } insert Knows { from: "A", to: "B" }')
    assert rows(g, "Note", "text") == ["one"]
    assert rows(g, "Knows", "src") == ["A", "B", "B", "B"]


def test_made_up_ids_are_the_same_when_the_text_is_checked_again(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[list[str]] = []

    def recording(*arguments: Any) -> list[Statement]:
        statements = lower_mutation(*arguments)
        appends = [one for one in statements if isinstance(one, AppendRows)]
        made.append([i for one in appends for i in one.shaped.groups[0].table["id"].to_pylist()])
        return statements

    monkeypatch.setattr(run, "lower_mutation", recording)
    handle = other(g)
    with at("staged", lambda: handle.apply_schema(SCHEMA + "node Extra { n: I64? }\n")):
        g.mutate('insert Note { text: "one" } insert Knows { from: "A", to: "B" }')
    assert len(made) == 2
    assert made[0] == made[1] == [*rows(g, "Note", "id"), *rows(g, "Knows", "id")]


def test_losing_for_too_long_is_contention_and_changes_nothing() -> None:
    g = new_graph(queue=False, retry_for=0.0)
    g.mutate('insert Person { name: "A", age: 1 }')
    handle = other(g)
    with (
        at("before put", lambda: handle.mutate('insert Note { text: "n" }'), times=50),
        pytest.raises(Contention, match="each time before this write"),
    ):
        g.mutate("update Person set { age: 2 } where true")
    assert rows(g, "Person", "age") == [1]


def test_a_branch_that_was_deleted_in_between_is_not_written_to(g: Graph) -> None:
    g.create_branch("side")
    handle = other(g)

    def recreate() -> None:
        handle.delete_branch("side")
        handle.create_branch("side")

    with at("staged", recreate), pytest.raises(BranchMoved):
        g.branch("side").mutate("delete Person where true")
    assert rows(g, "Person", "name", ref="side") == ["A", "B"]


# Processes

COUNTERS = "node Counter { name: String @key  n: I64 }\nedge Saw: Counter -> Counter { n: I64 }\n"


def count_up(root: str, times: int, who: int) -> int:
    """Adds one, again and again; every process to the same entity, and an edge of its own."""
    with omnigraph.open(root, settings=omnigraph.Settings(retry_for=120.0)) as g:
        done = 0
        for number in range(times):
            done += g.mutate(
                "query q($n: I64, $me: String) {"
                ' update Counter set { n: n + 1 } where name = "shared"'
                " insert Counter { name: $me, n: $n }"
                ' insert Saw { from: $me, to: "shared", n: $n } }',
                params={"n": number, "me": f"p{who}"},
                idempotency_key=f"{who}-{number}",
            ).nodes
    return done


def test_two_processes_count_without_losing_a_step(tmp_path: Path) -> None:
    root, times, processes = str(tmp_path / "graph"), 8, 2
    g = omnigraph.init(
        root,
        schema=COUNTERS,
        settings=omnigraph.Settings(durability="relaxed"),
    )
    g.mutate('insert Counter { name: "shared", n: 0 }')
    outcomes = run_together(
        "tests.mutation.test_races:count_up",
        [{"root": root, "times": times, "who": n} for n in range(processes)],
    )
    assert results_of(outcomes) == [2 * times] * processes
    with omnigraph.open(root) as fresh:
        assert rows(fresh, "Counter", "name", "n") == [
            ("p0", times - 1),
            ("p1", times - 1),
            ("shared", times * processes),
        ]
        assert rows(fresh, "Saw", "src", "n") == sorted(
            ((f"p{who}", n) for who in range(processes) for n in range(times)), key=repr
        )
