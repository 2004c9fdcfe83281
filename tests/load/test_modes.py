"""Append, merge, overwrite; quarantine; branches; races."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.engine.load import local, operation
from omnigraph.errors import BranchExists, Conflict, InvalidData, PreconditionFailed
from tests.contract.graphs import rows
from tests.load.world import contents, knows, new_graph, person, refused

NOTE = {"type": "Note", "id": "n", "data": {"text": "t"}}


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    graph = new_graph(tmp_path)
    graph.load([person("a", age=1, email="e"), person("b"), knows("a", "b"), NOTE])
    return graph


def test_a_merge_keeps_what_is_absent_sets_null_and_inserts_the_rest(g: Graph) -> None:
    result = g.load([person("a", age=None, mood="calm"), person("c", age=5)], mode="merge")
    assert (result.counts["Person"].inserted, result.counts["Person"].updated) == (1, 1)
    a, _, c = rows(g, "Person")
    assert (a["age"], a["mood"], a["email"], a["city"]) == (None, "calm", "e", "Bonn")
    assert (c["age"], c["city"]) == (5, "Bonn")
    assert result.commit is not None
    assert result.commit.statistics["node:Person"].updated == 1


def test_a_merge_of_an_edge_keeps_its_ends(g: Graph) -> None:
    g.load([{"edge": "Wrote", "id": "w", "from": "a", "to": "n", "data": {"how": "x"}}])
    g.load([{"edge": "Wrote", "id": "w", "from": "a", "to": "n"}], mode="merge")
    assert rows(g, "Wrote")[0]["how"] == "x"
    moved = [{"edge": "Wrote", "id": "w", "from": "b", "to": "n"}]
    assert 'has `from` "a", which cannot become "b"' in refused(g, moved, mode="merge").message


def test_unique_values_are_judged_in_the_final_state(g: Graph) -> None:
    g.load([person("a", email=None), person("b", email="e")], mode="merge")
    assert [p["email"] for p in rows(g, "Person")] == [None, "e"]
    error = refused(g, [person("c", email="e")], mode="merge")
    assert "@unique(email) allows it once" in error.message


def test_an_overwrite_replaces_the_types_that_the_source_touches(g: Graph) -> None:
    result = g.load([person("x"), knows("x", "x")], mode="overwrite")
    assert [p["id"] for p in rows(g, "Person")] == ["x"]
    assert [e["id"] for e in rows(g, "Knows")] == ['["x","x"]']
    assert len(rows(g, "Note")) == 1
    counts = result.counts["Person"]
    assert (counts.inserted, counts.deleted) == (1, 2)


def test_an_overwrite_with_an_empty_file_empties_the_type(g: Graph, tmp_path: Path) -> None:
    path = tmp_path / "Knows.csv"
    path.write_text("from,to\n")
    g.load(path, mode="overwrite")
    assert rows(g, "Knows") == []


def test_an_overwrite_must_leave_no_edge_without_its_node(g: Graph) -> None:
    error = refused(g, [person("a")], mode="overwrite")
    assert 'Person "b" would be gone, but Knows' in error.message
    assert error.violations[0].rule == "orphan"


def test_an_overwrite_of_edges_counts_sources_that_lose_theirs(g: Graph) -> None:
    media = [{"type": "Media", "data": {"title": t}} for t in "mn"]
    owns = [{"edge": "Owns", "from": "a", "to": t} for t in "mn"]
    g.load([*media, *owns])
    others = [{"edge": "Owns", "from": "b", "to": t} for t in "mn"]
    error = refused(g, others, mode="overwrite")
    assert '0 Owns edges from Person "a" are too few' in error.message
    everything = [person("b"), *media, *others, knows("b", "b")]
    g.load(everything, mode="overwrite")
    assert [p["id"] for p in rows(g, "Person")] == ["b"]


BAD: list[tuple[Any, str]] = [
    (person("p", age="x"), "type"),
    (person("p", age=999), "range"),
    ({"type": "Nobody"}, "type"),
    (person("a"), "key"),
    (person("q", email="e"), "unique"),
    (knows("a", "zz"), "endpoint"),
    (knows("a", "b"), "key"),
]


def test_quarantine_loads_the_rest_and_tells_line_reason_and_row(g: Graph) -> None:
    good = [person("good"), knows("good", "a")]
    result = g.load([*good, *(entry for entry, _ in BAD)], on_error="quarantine")
    assert result.counts["Person"].inserted == result.counts["Knows"].inserted == 1
    found = {r.line: r for r in result.rejected}
    assert sorted(found) == list(range(3, 3 + len(BAD)))
    for line, (_, rule) in enumerate(BAD, 3):
        assert found[line].rule == rule
        assert found[line].reason
        assert found[line].row.startswith("{")
    assert result.rejected_rows().num_rows == len(BAD)
    assert {"good"} < {p["id"] for p in rows(g, "Person")}


def test_what_hangs_on_a_rejected_row_is_rejected_too(g: Graph) -> None:
    entries = [person("x", mood="mad"), person("y"), knows("x", "y"), knows("y", "a")]
    result = g.load(entries, on_error="quarantine")
    assert sorted(r.line for r in result.rejected) == [1, 3]
    assert [p["id"] for p in rows(g, "Person")] == ["a", "b", "y"]


def test_of_an_id_that_comes_twice_the_first_is_loaded(g: Graph) -> None:
    result = g.load([person("x", age=1), person("x", age=2)], on_error="quarantine")
    assert [(r.line, r.rule) for r in result.rejected] == [(2, "key")]
    assert rows(g, "Person")[-1]["age"] == 1


def test_quarantine_keeps_cardinality(g: Graph) -> None:
    notes = [{"type": "Note", "id": f"n{i}", "data": {"text": "t"}} for i in range(4)]
    wrote = [{"edge": "Wrote", "from": "a", "to": f"n{i}"} for i in range(4)]
    owns = [{"edge": "Owns", "from": "a", "to": "m"}, {"type": "Media", "data": {"title": "m"}}]
    result = g.load([*notes, *wrote, *owns], on_error="quarantine")
    assert [(r.line, r.rule) for r in result.rejected] == [(9, "card"), (7, "card"), (8, "card")]
    assert len(rows(g, "Wrote")) == 2


def test_many_rejected_rows_of_one_column_all_have_their_reason(g: Graph) -> None:
    entries = [person(f"p{i}", age="x" if i % 2 else i % 100) for i in range(1000)]
    result = g.load(entries, on_error="quarantine")
    assert [r.line for r in result.rejected] == list(range(2, 1001, 2))
    assert {r.property for r in result.rejected} == {"age"}
    assert result.counts["Person"].inserted == 500


def test_a_row_that_breaks_only_the_last_rule_is_rejected_among_many_that_break_all(
    g: Graph,
) -> None:
    bad = [person(f"p{i}", age=999, mood="mad", nick="X", email=None) for i in range(300)]
    entries = [*bad, person("last", nick="Y"), person("fine", nick="y")]
    result = g.load(entries, on_error="quarantine")
    assert len(result.rejected) == 301
    assert [p["id"] for p in rows(g, "Person")] == ["a", "b", "fine"]


def test_a_rejected_row_of_a_merge_is_shown_whole(g: Graph) -> None:
    entries = [person("x", age=1), person("x", age=2, mood="calm")]
    result = g.load(entries, mode="merge", on_error="quarantine")
    assert json.loads(result.rejected[0].row)["mood"] == "calm"


def test_a_load_may_go_to_a_new_branch_which_is_not_made_if_it_fails(g: Graph) -> None:
    result = g.load([person("x")], new_branch="work")
    assert (result.branch, g.branches()) == ("work", ["main", "work"])
    assert len(rows(g, "Person", ref="work")) == 3
    assert len(rows(g, "Person")) == 2
    with pytest.raises(InvalidData):
        g.load([person("a")], new_branch="other")
    assert g.branches() == ["main", "work"]
    with pytest.raises(BranchExists):
        g.load([person("y")], new_branch="work")
    g.branch("work").load([person("y")])
    assert len(rows(g, "Person", ref="work")) == 4


def test_if_commit_pins_the_head(g: Graph) -> None:
    head = g.snapshot().commit.id
    g.load([person("x")], if_commit=head)
    with pytest.raises(PreconditionFailed):
        g.load([person("y")], if_commit=head)


def race(monkeypatch: pytest.MonkeyPatch, point: str, others: list[Any]) -> None:
    """Lets others write each time that a load passes the point, until none is left."""

    def reach(passed: str) -> None:
        if passed == point and others:
            others.pop(0)()

    monkeypatch.setattr(local, "reach", reach)
    monkeypatch.setattr(operation, "reach", reach)


def test_a_lost_race_checks_again_and_publishes(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    others = [
        lambda: g.load([person("r1")]),
        lambda: g.load([person("a", age=9)], mode="merge"),
    ]
    race(monkeypatch, "staged", others)
    result = g.load([person("x"), knows("x", "a")])
    assert [p["id"] for p in rows(g, "Person")] == ["a", "b", "r1", "x"]
    assert rows(g, "Person")[0]["age"] == 9
    assert result.commit_id == g.snapshot().commit.id


def test_a_lost_race_that_took_the_id_or_the_node_is_an_error(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    race(monkeypatch, "staged", [lambda: g.load([person("x")])])
    with pytest.raises(InvalidData, match="exists already"):
        g.load([person("x")])
    import pyarrow.compute as pc

    def remove() -> None:
        with g.transaction() as tx:
            tx.delete("Person", where=pc.field("name") == "x")

    race(monkeypatch, "staged", [remove])
    with pytest.raises(InvalidData, match="there is no Person"):
        g.load([knows("x", "a")])


def test_a_merge_that_lost_a_race_works_on_what_is_there_now(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    race(monkeypatch, "staged", [lambda: g.load([person("a", mood="wild")], mode="merge")])
    g.load([person("a", age=50)], mode="merge")
    a = rows(g, "Person")[0]
    assert (a["age"], a["mood"]) == (50, "wild")


@pytest.mark.parametrize("meanwhile", ["another load", "a rule", "a row that is in the way"])
def test_rows_for_a_new_branch_are_checked_against_what_it_begins_with(
    g: Graph, monkeypatch: pytest.MonkeyPatch, meanwhile: str
) -> None:
    narrower = g.snapshot().schema.replace("0..150", "0..100")
    others = {
        "another load": lambda: g.load([person("r")]),
        "a rule": lambda: g.apply_schema(narrower),
        "a row that is in the way": lambda: g.load([person("x")]),
    }
    race(monkeypatch, "staged", [others[meanwhile]])
    if meanwhile == "another load":
        g.load([person("x", age=120)], new_branch="work")
        assert [p["id"] for p in rows(g, "Person", ref="work")] == ["a", "b", "r", "x"]
        return
    with pytest.raises((InvalidData, Conflict), match=r"exists already|schema of Person changed"):
        g.load([person("x", age=120)], new_branch="work")
    assert g.branches() == ["main"]


def test_an_overwrite_that_lost_a_race_is_a_conflict(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    race(monkeypatch, "staged", [lambda: g.load([NOTE | {"id": "n2"}])])
    with pytest.raises(Conflict):
        g.load([NOTE], mode="overwrite")
    assert len(contents(g)["Note"]) == 2


def test_a_schema_that_changed_under_a_load_is_a_conflict(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    wider = g.snapshot().schema.replace("text: String ", "text: String  more: String? ")
    race(monkeypatch, "staged", [lambda: g.apply_schema(wider)])
    with pytest.raises(Conflict, match="schema of Note changed"):
        g.load([NOTE | {"id": "n2"}])
    race(monkeypatch, "staged", [lambda: g.apply_schema(wider.replace("more: String?", ""))])
    g.load([person("z")])
