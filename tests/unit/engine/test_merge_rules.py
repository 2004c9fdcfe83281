"""What a merge refuses, how it can be told what to do, and bad input."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFound,
    InvalidArgument,
    InvalidBranchName,
    InvalidData,
    MainBranch,
    MergeFailed,
    ReadOnly,
    RefNotFound,
    SelfMerge,
    TypeNotFound,
)
from omnigraph.model.conflicts import MergeConflict
from omnigraph.settings import Settings

SCHEMA = """
node Person {
  name: String @key
  email: String? @unique
  age: I32?
  low: I32?
  score: F64?
  tags: [String]?
  face: Vector(2)?
  photo: Blob?
}
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge Lives: Person -> City @card(0..1)
edge Owns: Person -> City @card(1..)
"""
COUNTER = itertools.count()


@pytest.fixture
def g() -> Iterator[Graph]:
    settings = Settings(durability="relaxed", queue=False)
    root = f"memory://merge-rules-{next(COUNTER)}"
    with omnigraph.init(root, schema=SCHEMA, settings=settings) as graph:
        with graph.transaction() as tx:
            tx.append("Person", [{"name": n, "age": 1, "low": 0} for n in ("ann", "bob", "cy")])
            tx.append("City", [{"name": "rome"}, {"name": "oslo"}])
            tx.append("Knows", {"id": "k1", "from": "ann", "to": "bob", "since": 1})
            tx.append("Owns", {"id": "o1", "from": "ann", "to": "rome"})
            tx.append("Owns", {"id": "o2", "from": "ann", "to": "oslo"})
        graph.create_branch("dev")
        yield graph


def put(g: Graph, branch: str, kind: str, **row: Any) -> None:
    with g.branch(branch).transaction() as tx:
        tx.upsert(kind, {"from" if n == "src" else "to" if n == "dst" else n: row[n] for n in row})


def remove(g: Graph, branch: str, kind: str, identity: str) -> None:
    with g.branch(branch).transaction() as tx:
        tx.delete(kind, where=pc.field("id") == identity)


def rows(g: Graph, kind: str, ref: str = "main") -> dict[str, Any]:
    return {r["id"]: r for r in g.at(ref).scan(kind).read_all().to_pylist()}


def refused(g: Graph, **options: Any) -> tuple[MergeConflict, ...]:
    """The conflicts of a merge that publishes nothing and that its preview tells alike."""
    before = g.snapshot().commit
    with pytest.raises(MergeFailed) as failure:
        g.merge("dev", **options)
    assert g.snapshot().commit == before
    conflicts: tuple[MergeConflict, ...] = failure.value.conflicts
    preview = g.merge("dev", dry_run=True, **options)
    assert repr(preview.conflicts) == repr(conflicts)
    assert not failure.value.retryable
    return conflicts


# Rules that only the combination breaks


def test_a_unique_value_given_to_two_entities_is_a_conflict(g: Graph) -> None:
    put(g, "main", "Person", name="ann", email="x@y")
    put(g, "dev", "Person", name="bob", email="x@y")
    (conflict,) = refused(g)
    told = (conflict.kind, conflict.type, conflict.id, conflict.property)
    assert told == ("UniqueViolation", "Person", "bob", "email")
    assert (conflict.base, conflict.ours, conflict.theirs) == (None, None, "x@y")
    g.merge("dev", resolve={("Person", "bob"): {"email": "b@y"}})
    assert [r["email"] for r in rows(g, "Person").values() if r["email"]] == ["x@y", "b@y"]


def test_two_edges_where_one_is_allowed_are_a_conflict(g: Graph) -> None:
    put(g, "main", "Lives", id="l1", src="ann", dst="rome")
    put(g, "dev", "Lives", id="l2", src="ann", dst="oslo")
    (conflict,) = refused(g)
    assert (conflict.kind, conflict.type, conflict.id) == ("CardinalityViolation", "Lives", "ann")
    assert (conflict.base, conflict.ours, conflict.theirs) == (0, 1, 1)
    g.merge("dev", resolve={("Lives", "l1"): None})
    assert list(rows(g, "Lives")) == ["l2"]


def test_edges_that_both_sides_remove_may_leave_too_few(g: Graph) -> None:
    remove(g, "main", "Owns", "o1")
    remove(g, "dev", "Owns", "o2")
    (conflict,) = refused(g)
    assert (conflict.kind, conflict.id) == ("CardinalityViolation", "ann")
    assert (conflict.base, conflict.ours, conflict.theirs) == (2, 1, 1)


@pytest.mark.parametrize("way", ["they insert the edge", "we insert the edge"])
def test_an_edge_to_a_node_that_the_other_side_removed_is_a_conflict(g: Graph, way: str) -> None:
    adds, removes = ("dev", "main") if way == "they insert the edge" else ("main", "dev")
    put(g, adds, "Knows", id="k9", src="ann", dst="cy")
    remove(g, removes, "Person", "cy")
    (conflict,) = refused(g)
    told = (conflict.kind, conflict.type, conflict.id, conflict.property)
    assert told == ("OrphanEdge", "Knows", "k9", "to")
    sides = {adds: "cy", removes: None}
    assert (conflict.base, conflict.ours, conflict.theirs) == (None, sides["main"], sides["dev"])
    g.merge("dev", resolve={("Knows", "k9"): None})
    assert "cy" not in rows(g, "Person")
    assert list(rows(g, "Knows")) == ["k1"]


def test_an_orphan_is_saved_by_bringing_the_node_back(g: Graph) -> None:
    put(g, "dev", "Knows", id="k9", src="ann", dst="cy")
    remove(g, "main", "Person", "cy")
    g.merge("dev", resolve={("Person", "cy"): {"age": 7}})
    assert rows(g, "Person")["cy"]["age"] == 7
    assert rows(g, "Knows")["k9"]["dst"] == "cy"


def test_values_that_break_a_rule_of_the_other_side_are_a_conflict(g: Graph) -> None:
    strict = SCHEMA.replace("age: I32?", "age: I32? @range(age, 0..9)")
    g.apply_schema(strict)
    put(g, "dev", "Person", name="bob", age=50)
    (conflict,) = refused(g)
    told = (conflict.kind, conflict.type, conflict.id, conflict.property)
    assert told == ("ValueConstraintViolation", "Person", "bob", "age")
    assert (conflict.base, conflict.ours, conflict.theirs) == (1, 1, 50)
    assert g.merge("dev", resolve={("Person", "bob"): {"age": 5}}).outcome == "merged"


def test_our_values_meet_the_rules_that_they_bring(g: Graph) -> None:
    g.branch("dev").apply_schema(SCHEMA.replace("age: I32?", "age: I32? @range(age, 0..9)"))
    put(g, "main", "Person", name="bob", age=50)
    (conflict,) = refused(g)
    assert (conflict.kind, conflict.id) == ("ValueConstraintViolation", "bob")
    assert (conflict.base, conflict.ours, conflict.theirs) == (1, 50, 1)


def test_a_rule_of_theirs_holds_between_our_rows_too(g: Graph) -> None:
    put(g, "dev", "Person", name="ann", low=1)
    put(g, "dev", "Person", name="bob", low=2)
    g.branch("dev").apply_schema(SCHEMA.replace("low: I32?", "low: I32? @unique"))
    put(g, "main", "Person", name="dan", low=5)
    put(g, "main", "Person", name="eve", low=5)
    conflicts = refused(g)
    assert {c.kind for c in conflicts} == {"UniqueViolation"}
    assert {c.id for c in conflicts} <= {"dan", "eve"}


def test_all_conflicts_are_told_at_once(g: Graph) -> None:
    put(g, "main", "Person", name="ann", age=2, score=1.0)
    put(g, "dev", "Person", name="ann", age=3, score=2.0)
    remove(g, "main", "Person", "cy")
    put(g, "dev", "Person", name="cy", age=9)
    put(g, "main", "Person", name="new", age=1)
    put(g, "dev", "Person", name="new", age=2)
    told = {(str(c.kind), c.id, c.property) for c in refused(g)}
    assert told == {
        ("DivergentUpdate", "ann", "age"),
        ("DivergentUpdate", "ann", "score"),
        ("DeleteVsUpdate", "cy", None),
        ("DivergentInsert", "new", "age"),
    }


# Strategies


def diverge(g: Graph) -> None:
    put(g, "main", "Person", name="ann", age=2, score=1.0)
    put(g, "dev", "Person", name="ann", age=3, score=2.0)
    put(g, "main", "Knows", id="k1", src="ann", dst="bob", since=2)
    put(g, "dev", "Knows", id="k1", src="ann", dst="bob", since=3)
    remove(g, "main", "Person", "cy")
    put(g, "dev", "Person", name="cy", age=9)


@pytest.mark.parametrize(
    ("strategy", "age", "score", "since", "cy"),
    [
        ("ours", 2, 1.0, 2, False),
        ("theirs", 3, 2.0, 3, True),
        ({"*": "ours", "Person": "theirs"}, 3, 2.0, 2, True),
        ({"Person": "ours", "Knows": "theirs"}, 2, 1.0, 3, False),
        ({"*": "theirs", "Person.age": "ours"}, 2, 2.0, 3, True),
        ({"*": "theirs", "Person": "ours", "Person.score": "theirs"}, 2, 2.0, 3, False),
    ],
)
def test_a_strategy_decides_by_type_and_property(
    g: Graph, strategy: Any, age: int, score: float, since: int, cy: bool
) -> None:
    diverge(g)
    preview = g.merge("dev", strategy=strategy, dry_run=True)
    result = g.merge("dev", strategy=strategy)
    assert (preview.conflicts, preview.changes) == ((), result.changes)
    people = rows(g, "Person")
    assert (people["ann"]["age"], people["ann"]["score"]) == (age, score)
    assert rows(g, "Knows")["k1"]["since"] == since
    assert ("cy" in people) is cy
    assert g.merge("dev").outcome == "already_up_to_date"


def test_a_strategy_leaves_conflicts_where_it_says_nothing(g: Graph) -> None:
    diverge(g)
    conflicts = refused(g, strategy={"Person.age": "ours", "Knows": "theirs"})
    assert {(c.id, c.property) for c in conflicts} == {("ann", "score"), ("cy", None)}


def test_what_only_one_side_changed_needs_no_strategy(g: Graph) -> None:
    put(g, "main", "Person", name="ann", age=2)
    put(g, "dev", "Person", name="bob", age=3)
    g.merge("dev", strategy="ours")
    assert (rows(g, "Person")["ann"]["age"], rows(g, "Person")["bob"]["age"]) == (2, 3)


@pytest.mark.parametrize(
    ("strategy", "error", "message"),
    [
        ("mine", InvalidArgument, "'mine' is not known"),
        ({"Person": "both"}, InvalidArgument, "'both' is not known"),
        ({"Persn": "ours"}, TypeNotFound, "Persn"),
        ({"Person.agee": "ours"}, InvalidArgument, "no property 'agee'"),
        (["ours"], InvalidArgument, r"strategy of merge\(\) is"),
    ],
)
def test_a_strategy_for_nothing_is_an_error(
    g: Graph, strategy: Any, error: type[Exception], message: str
) -> None:
    diverge(g)
    before = g.snapshot().commit
    with pytest.raises(error, match=message):
        g.merge("dev", strategy=strategy)
    assert g.snapshot().commit == before


# Resolutions


def test_rows_resolve_single_entities_and_keep_what_they_do_not_name(g: Graph) -> None:
    diverge(g)
    answers: dict[tuple[str, str], Any] = {
        ("Person", "ann"): {"age": 10, "score": math.nan},
        ("Person", "cy"): None,
        ("Knows", "k1"): {"since": 11},
    }
    preview = g.merge("dev", resolve=answers, dry_run=True)
    result = g.merge("dev", resolve=answers)
    assert preview.changes == result.changes
    ann = rows(g, "Person")["ann"]
    assert (ann["age"], ann["low"], math.isnan(ann["score"])) == (10, 0, True)
    assert rows(g, "Knows")["k1"] == {"id": "k1", "src": "ann", "dst": "bob", "since": 11}
    assert "cy" not in rows(g, "Person")


def test_a_resolution_is_the_last_word_also_without_a_conflict(g: Graph) -> None:
    put(g, "main", "City", name="bern")
    put(g, "dev", "Person", name="bob", age=3)
    answers: dict[tuple[str, str], Any] = {
        ("Person", "bob"): {"age": 4},
        ("Person", "dan"): {"name": "dan", "age": 5},
    }
    g.merge("dev", resolve=answers)
    people = rows(g, "Person")
    assert (people["bob"]["age"], people["dan"]["age"]) == (4, 5)


@pytest.mark.parametrize(
    ("entity", "row", "message"),
    [
        (("Person", "ann"), {"age": "old"}, "age"),
        (("Person", "ann"), {"agee": 1}, "agee"),
        (("Person", "ann"), {"name": "bob"}, "id"),
        (("Person", "ann"), {"id": "bob"}, "id"),
        (("Person", "zoe"), {"age": 1}, "name"),
        (("Knows", "k1"), {"to": "cy"}, 'has `to` "bob", which cannot become "cy"'),
        (("Knows", "k7"), {"since": 1}, "from"),
    ],
)
def test_a_resolution_is_checked_like_any_row(
    g: Graph, entity: tuple[str, str], row: dict[str, Any], message: str
) -> None:
    diverge(g)
    before = g.snapshot().commit
    with pytest.raises(InvalidData, match=message):
        g.merge("dev", strategy="ours", resolve={entity: row})
    assert g.snapshot().commit == before


def test_a_resolution_for_an_unknown_type_is_an_error(g: Graph) -> None:
    diverge(g)
    with pytest.raises(TypeNotFound, match="Persn"):
        g.merge("dev", strategy="ours", resolve={("Persn", "ann"): None})


def test_a_node_that_a_resolution_deletes_takes_no_edges_along(g: Graph) -> None:
    put(g, "main", "Person", name="bob", age=2)
    put(g, "dev", "Person", name="bob", age=3)
    (conflict,) = refused(g, resolve={("Person", "bob"): None})
    assert (conflict.kind, conflict.id) == ("OrphanEdge", "k1")
    g.merge("dev", resolve={("Person", "bob"): None, ("Knows", "k1"): None})
    assert "bob" not in rows(g, "Person")


def test_there_is_nothing_to_resolve_in_a_fast_forward(g: Graph) -> None:
    put(g, "dev", "Person", name="bob", age=3)
    with pytest.raises(InvalidArgument, match="nothing to resolve"):
        g.merge("dev", resolve={("Person", "bob"): {"age": 4}})


# Values of every kind


@pytest.mark.parametrize(
    ("name", "one", "two"),
    [
        ("score", math.nan, 1.0),
        ("tags", ["a", "b"], ["a"]),
        ("face", [1.0, 2.0], [1.0, 3.0]),
        ("photo", b"1" * 300_000, b"2"),
        ("email", "a@b", "c@d"),
    ],
)
def test_values_of_every_kind_merge_and_conflict(g: Graph, name: str, one: Any, two: Any) -> None:
    put(g, "main", "Person", name="ann", age=2)
    put(g, "main", "Person", name="bob", **{name: one})
    put(g, "dev", "Person", name="ann", **{name: one})
    put(g, "dev", "Person", name="bob", **({} if name == "email" else {name: one}), low=3)
    put(g, "dev", "Person", name="new", **({} if name == "email" else {name: one}))
    if name == "email":
        put(g, "main", "Person", name="bob", email="z@z")
    result = g.merge("dev")
    people = rows(g, "Person")
    assert repr(people["ann"][name]) == repr(one)
    assert (people["ann"]["age"], people["bob"]["low"]) == (2, 3)
    assert result.outcome == "merged"
    put(g, "main", "Person", name="ann", **{name: two})
    put(g, "dev", "Person", name="ann", **{name: None})
    (conflict,) = refused(g)
    assert (conflict.property, repr(conflict.base)) == (name, repr(one))
    assert (conflict.ours, conflict.theirs) == (two, None)


def test_keyless_edges_stay_separate_and_ids_of_one_name_meet(g: Graph) -> None:
    for branch in ("main", "dev"):
        with g.branch(branch).transaction() as tx:
            tx.append("Knows", {"from": "ann", "to": "cy", "since": 5})
    g.merge("dev")
    assert sorted(r["dst"] for r in rows(g, "Knows").values()) == ["bob", "cy", "cy"]


# The target moves


POINTS = ["tables committed", "before put"]


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("touches", ["the same type", "another type", "the source too", "nothing"])
def test_a_merge_is_done_again_when_the_target_moves(
    g: Graph, monkeypatch: pytest.MonkeyPatch, point: str, touches: str
) -> None:
    put(g, "main", "Person", name="ann", age=2)
    put(g, "dev", "Person", name="bob", age=3)
    g.create_branch("other")
    put(g, "other", "City", name="bern")
    remove(g, "other", "City", "bern")

    def interfere() -> None:
        if touches == "the same type":
            put(g, "main", "Person", name="cy", age=4)
        elif touches == "another type":
            put(g, "main", "City", name="paris")
        elif touches == "nothing":
            g.merge("other")
        else:
            put(g, "dev", "Person", name="dev", age=1)
            put(g, "main", "Person", name="main", age=1)

    _once(monkeypatch, point, interfere)
    assert g.merge("dev").outcome == "merged"
    people = rows(g, "Person")
    assert (people["ann"]["age"], people["bob"]["age"]) == (2, 3)
    assert people["cy"]["age"] == (4 if touches == "the same type" else 1)
    assert ("paris" in rows(g, "City")) is (touches == "another type")
    assert ("main" in people) is (touches == "the source too")
    assert g.merge("other").outcome == "already_up_to_date" or touches != "nothing"
    kinds = [c.kind for c in g.log(limit=2)]
    assert kinds[0] == "merge"


def test_a_fast_forward_that_loses_the_race_becomes_a_merge(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(g, "dev", "Person", name="bob", age=3)
    _once(monkeypatch, "before put", lambda: put(g, "main", "Person", name="ann", age=2))
    assert g.merge("dev").outcome == "merged"
    assert (rows(g, "Person")["ann"]["age"], rows(g, "Person")["bob"]["age"]) == (2, 3)


def test_two_merges_at_once_both_land(g: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    g.create_branch("two")
    put(g, "main", "Person", name="cy", age=4)
    put(g, "dev", "Person", name="bob", age=3)
    put(g, "two", "Person", name="ann", age=2)
    _once(monkeypatch, "before put", lambda: g.merge("two"))
    g.merge("dev")
    assert [rows(g, "Person")[n]["age"] for n in ("ann", "bob", "cy")] == [2, 3, 4]
    assert [c.kind for c in g.log(limit=3)][:2] == ["merge", "merge"]
    for source in ("dev", "two"):
        assert g.merge(source).outcome == "already_up_to_date"


def _once(monkeypatch: pytest.MonkeyPatch, point: str, call: Callable[[], object]) -> None:
    pending = [call]

    def reached(at: str) -> None:
        if at == point and pending:
            pending.pop()()

    monkeypatch.setattr("omnigraph.runtime.on_reach", reached)


# Bad input


def test_bad_input_has_its_own_error(g: Graph) -> None:
    put(g, "dev", "Person", name="bob", age=3)
    g.create_branch("feature")
    before = g.snapshot().commit
    with pytest.raises(SelfMerge, match="into itself"):
        g.merge("main")
    with pytest.raises(BranchNotFound) as unknown:
        g.merge("featrue")
    assert "Did you mean 'feature'?" in str(unknown.value)
    with pytest.raises(BranchNotFound):
        g.branch("mian").merge("dev")
    with pytest.raises(RefNotFound):
        g.at("dev").diff("main~50")
    with pytest.raises(MainBranch, match="main"):
        g.delete_branch("main")
    for name in ("", "x" * 1000):
        with pytest.raises(InvalidBranchName):
            g.create_branch(name)
        with pytest.raises((BranchNotFound, InvalidArgument)):
            g.merge(name)
    assert g.snapshot().commit == before


def test_a_handle_for_reading_previews_and_writes_nothing(tmp_path: Path) -> None:
    with omnigraph.init(tmp_path / "g", schema=SCHEMA) as graph:
        put(graph, "main", "Person", name="ann", age=1)
        graph.create_branch("dev")
        wider = SCHEMA.replace("low: I32?", "low: I32? level: I32 @default(3)")
        graph.branch("dev").apply_schema(wider)
        put(graph, "dev", "Person", name="ann", age=2)
        put(graph, "main", "Person", name="bob", age=2)
    files = sorted(path for path in (tmp_path / "g").rglob("*") if path.is_file())
    with omnigraph.open(tmp_path / "g", mode="r") as reader:
        preview = reader.merge("dev", dry_run=True)
        assert (preview.outcome, preview.changes) == ("merged", {"Person": {"update": 1}})
        with pytest.raises(ReadOnly):
            reader.merge("dev")
    assert sorted(path for path in (tmp_path / "g").rglob("*") if path.is_file()) == files
