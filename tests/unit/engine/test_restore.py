"""Restoring and reverting, against the contents that they promise and a naive three-way model."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import msgspec
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph
from omnigraph import Graph
from omnigraph.engine.history import restore, revert
from omnigraph.engine.history import restore as restoring
from omnigraph.engine.history import revert as reverting
from omnigraph.engine.write.publisher import publish
from omnigraph.errors import (
    Conflict,
    InvalidArgument,
    InvalidData,
    OmnigraphError,
    RefNotFound,
    RevertFailed,
)
from omnigraph.model.conflicts import ConflictKind
from omnigraph.model.options import CommitOptions
from omnigraph.model.version import GraphVersion
from omnigraph.plan.publish import Adopt, Lineage
from omnigraph.plan.rules.book import Orphans, describe
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger

SCHEMA = """
node Person { name: String @key age: I32? rank: I32? tags: [String]? face: Vector(2)? }
node Note { text: String code: String? @unique }
edge Knows: Person -> Person { since: I32? @key(src, dst) }
"""
COUNTER = itertools.count()
RELAXED = Settings(durability="relaxed")
NAMES = ["ann", "bob", "cy"]


def new_graph() -> Graph:
    return omnigraph.init(f"memory://back-{next(COUNTER)}", schema=SCHEMA, settings=RELAXED)


@pytest.fixture
def g() -> Graph:
    return new_graph()


def write(g: Graph, change: Callable[[Any], object], branch: str = "main") -> str:
    with g.branch(branch).transaction() as tx:
        change(tx)
    assert tx.commit_id is not None
    return tx.commit_id


def put(g: Graph, name: str, branch: str = "main", **values: Any) -> str:
    return write(g, lambda tx: tx.upsert("Person", {"name": name, **values}), branch)


def drop(g: Graph, name: str) -> str:
    return write(g, lambda tx: tx.delete("Person", where=pc.field("name") == name))


def everything(g: Graph, ref: str = "main") -> dict[str, dict[str, Any]]:
    snapshot = g.at(ref)
    return {
        name: {row["id"]: row for row in snapshot.scan(name).read_all().to_pylist()}
        for name in snapshot.types()
    }


def counters(g: Graph) -> dict[str, int]:
    return {pin.key: pin.table_version for pin in g.snapshot().graph_version.tables}


OTHER = """
node Human @rename_from("Person") { name: String @key years: I32? @rename_from("age") rank: I32? }
node Extra { x: I32? }
edge Knows: Human -> Human { since: I32? @key(src, dst) }
"""
STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "delete", "edge", "compact", "schema", "back", "branch"]),
        st.sampled_from(NAMES),
        st.integers(0, 9),
    ),
    max_size=9,
)


def run(g: Graph, steps: list[tuple[str, str, int]]) -> None:
    for number, (step, name, value) in enumerate(steps):
        types = g.snapshot().types()
        person = "Human" if "Human" in types else "Person"
        age = "years" if person == "Human" else "age"
        match step:
            case "put":
                write(g, lambda tx: tx.upsert(person, {"name": name, age: value}))  # noqa: B023
            case "delete":
                with g.transaction() as tx:
                    tx.delete(person, where=pc.field("name") == name)
            case "edge":
                row = {"from": name, "to": name, "since": value}
                with g.transaction() as tx:
                    tx.upsert(person, {"name": name})
                    tx.upsert("Knows", row)
            case "compact":
                g.optimize()
            case "schema" if person == "Person":
                g.apply_schema(OTHER)
            case "back":
                g.restore(f"main~{value % visible(g)}")
            case "branch":
                g.create_branch(f"b{number}")


def visible(g: Graph) -> int:
    """How many versions there are for `main~n`: maintenance makes none."""
    head = g.snapshot().graph_version
    return head.version - head.maintained


@given(STEPS, st.integers(0, 9))
def test_a_restored_branch_is_what_it_was(steps: list[tuple[str, str, int]], back: int) -> None:
    g = new_graph()
    run(g, steps)
    ref = f"main~{back % visible(g)}"
    target = g.at(ref)
    expected, before = everything(g, ref), counters(g)
    head = g.snapshot()
    commit = g.restore(ref, actor="me")
    now = g.snapshot()
    assert everything(g) == expected
    assert (now.schema, now.types()) == (target.schema, target.types())
    assert now.commit == commit
    if commit != head.commit:
        assert (commit.kind, commit.actor) == ("restore", "me")
        assert commit.parents == (head.commit.id,)
        assert commit.message == f"restore {target.commit.id}"
    assert all(after >= before.get(key, 0) for key, after in counters(g).items())
    assert g.restore(f"main@{target.commit.id}") == commit
    person = "Human" if "Human" in now.types() else "Person"
    write(g, lambda tx: tx.upsert(person, {"name": "new"}))
    assert set(everything(g)[person]) == {*expected[person], "new"}


def test_restoring_copies_nothing_and_costs_the_same_for_any_number_of_rows() -> None:
    costs = []
    for rows in (1, 5_000):
        g = new_graph()
        write(g, lambda tx: tx.append("Person", [{"name": f"p{n}"} for n in range(rows)]))  # noqa: B023
        write(g, lambda tx: tx.delete("Person", where=None))
        ledger = Ledger()
        options = CommitOptions(message="m", retry_for=9.0)
        restoring.restore(g._session, "main~1", "main", options, ledger)
        assert g.snapshot().count("Person") == rows
        assert g.snapshot().commit.message == "m"
        costs.append((ledger.writes, ledger.reads))
    assert costs[0] == costs[1]
    assert costs[0][0] == 3  # the version, and an intent that holds the old one meanwhile


def test_a_restored_type_has_the_content_that_it_had_and_a_newer_schema(g: Graph) -> None:
    write(g, lambda tx: tx.append("Note", {"text": "a"}))
    early = g.snapshot()
    write(g, lambda tx: tx.append("Note", {"text": "b"}))
    g.apply_schema(SCHEMA.replace("node Note { text: String code: String? @unique }", ""))
    g.restore(early.commit.id)
    pins = [at.graph_version.pins["node:Note"] for at in (early, g.snapshot())]
    assert pins[0].content == pins[1].content
    assert pins[0].table_version < pins[1].table_version
    assert g.snapshot().count("Note") == 1
    later = g.snapshot().catalog
    assert later.generation > early.catalog.generation
    assert later.by_key == early.catalog.by_key


def test_restoring_what_was_only_compacted_since_keeps_it_compact(g: Graph) -> None:
    for name in NAMES:
        put(g, name)
    put(g, "dee")
    g.optimize()
    write(g, lambda tx: tx.append("Note", {"text": "x"}))
    actions = list(restoring.plan_actions(g.snapshot().graph_version, g.at("main~1").graph_version))
    assert [(type(a), a.table) for a in actions] == [(Adopt, "node:Note")]


def test_another_branch_can_be_restored_from_and_unknown_refs_cannot(g: Graph) -> None:
    g.create_branch("dev")
    put(g, "ann", branch="dev", age=1)
    put(g, "bob")
    g.restore("dev")
    assert everything(g) == everything(g, "dev")
    with pytest.raises(RefNotFound):
        g.restore("main~99")
    with pytest.raises(RefNotFound):
        g.branch("nowhere").restore("main")


def meanwhile(monkeypatch: pytest.MonkeyPatch, *acts: Callable[[], object]) -> None:
    """Others write between the plan of a write and its publication."""
    left = list(acts)

    def late(*given: Any, **options: Any) -> Any:
        if left:
            left.pop(0)()
        return publish(*given, **options)

    for module in (restore, revert):
        monkeypatch.setattr(module, "publish", late)


def test_a_restore_that_lost_a_race_restores_the_new_head(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = put(g, "ann", age=1)
    put(g, "ann", age=2)
    expected = everything(g, first)
    with omnigraph.open(g.root, settings=RELAXED) as other:

        def also_write() -> None:
            monkeypatch.undo()
            write(other, lambda tx: tx.append("Note", {"text": "late"}))

        meanwhile(monkeypatch, also_write)
        g.restore(first)
    assert everything(g) == expected
    assert [c.kind for c in g.log(limit=2)] == ["restore", "write"]


def test_a_branch_that_is_gone_meanwhile_is_not_restored(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    g.create_branch("dev")
    put(g, "ann", branch="dev")

    def recreate() -> None:
        g.delete_branch("dev")
        g.create_branch("dev")

    meanwhile(monkeypatch, recreate)
    with pytest.raises(Conflict):
        g.branch("dev").restore("main")


# Reverting

VALUES = st.fixed_dictionaries(
    {"age": st.integers(0, 2), "rank": st.integers(0, 2), "tags": st.none() | st.just(["x"])}
)
EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("put"), st.sampled_from(NAMES), VALUES),
        st.tuples(st.just("age"), st.sampled_from(NAMES), st.integers(0, 2)),
        st.tuples(st.just("delete"), st.sampled_from(NAMES), st.none()),
        st.tuples(st.just("compact"), st.none(), st.none()),
    ),
    min_size=1,
    max_size=7,
)


def edit(g: Graph, step: str, name: Any, value: Any) -> None:
    if step == "compact":
        g.optimize()
        return
    with g.transaction() as tx:
        if step == "put":
            tx.upsert("Person", {"name": name, **value})
        elif step == "age":
            tx.upsert("Person", {"name": name, "age": value})
        else:
            tx.delete("Person", where=pc.field("name") == name)


Entities = dict[str, dict[str, Any]]


def undone(before: Entities, after: Entities, head: Entities) -> Entities | None:
    """What reverting must give; None is a conflict."""
    result = dict(head)
    for entity in before.keys() | after.keys():
        was, made, now = before.get(entity), after.get(entity), head.get(entity)
        if was == made:
            continue
        if was is None:
            if now not in (None, made):
                return None
            result.pop(entity, None)
        elif made is None:
            if now not in (None, was):
                return None
            result[entity] = was
        elif now is None:
            return None
        else:
            merged = dict(now)
            for name in [n for n in was if was[n] != made[n]]:
                if now[name] not in (was[name], made[name]):
                    return None
                merged[name] = was[name]
            result[entity] = merged
    return result


@given(EDITS, st.integers(0, 6))
def test_a_revert_is_the_naive_three_way_undo_of_a_commit(
    steps: list[tuple[str, Any, Any]], back: int
) -> None:
    g = new_graph()
    for step in steps:
        edit(g, *step)
    commits = [f"main@{commit.id}" for commit in g.log() if commit.kind != "optimize"]
    if len(commits) == 1:
        return
    back %= len(commits) - 1
    before, after = everything(g, commits[back + 1]), everything(g, commits[back])
    head = everything(g)
    expected = undone(before["Person"], after["Person"], head["Person"])
    if expected is None:
        with pytest.raises(RevertFailed) as error:
            g.revert(commits[back])
        assert error.value.conflicts
        assert everything(g) == head
        return
    commit = g.revert(commits[back], actor="me")
    assert everything(g)["Person"] == expected
    assert (commit.kind == "revert") == (expected != head["Person"])
    assert g.snapshot().commit == commit


def test_a_revert_says_which_values_later_commits_have_changed(g: Graph) -> None:
    put(g, "ann", age=1, rank=1)
    put(g, "bob", age=1)
    commit = write(
        g,
        lambda tx: [
            tx.upsert("Person", [{"name": "ann", "age": 2, "rank": 2}, {"name": "bob", "age": 2}]),
            tx.upsert("Person", {"name": "cy", "age": 2}),
        ],
    )
    put(g, "ann", age=3)
    drop(g, "bob")
    put(g, "cy", rank=9)
    with pytest.raises(RevertFailed) as error:
        g.revert(commit)
    found = {
        (c.kind, c.id, c.property, c.base, c.ours, c.theirs)
        for c in error.value.conflicts
        if c.property
    }
    assert found == {
        (ConflictKind.DIVERGENT_UPDATE, "ann", "age", 2, 3, 1),
        (ConflictKind.DELETE_VS_UPDATE, "cy", "rank", None, 9, None),
    }
    (gone,) = [c for c in error.value.conflicts if c.property is None]
    assert (gone.kind, gone.id, gone.theirs["age"]) == (ConflictKind.DELETE_VS_UPDATE, "bob", 1)
    assert (error.value.code, error.value.retryable) == ("revert_conflict", False)
    deleted = drop(g, "ann")
    put(g, "ann", age=7)
    with pytest.raises(RevertFailed) as error:
        g.revert(deleted)
    assert {c.kind for c in error.value.conflicts} == {ConflictKind.DIVERGENT_INSERT}


def test_a_revert_brings_back_a_node_with_the_edges_that_went_along(g: Graph) -> None:
    put(g, "ann", face=[0.0, 1.0])
    put(g, "bob")
    write(g, lambda tx: tx.append("Knows", {"from": "ann", "to": "bob", "since": 3}))
    before = everything(g)
    commit = drop(g, "ann")
    assert not everything(g)["Knows"]
    made = g.revert(commit)
    assert everything(g) == before
    assert made.message == f"revert {commit}"
    again = g.revert(made.id)
    assert not everything(g)["Knows"]
    assert again.parents == (made.id,)


def test_reverting_the_insert_of_a_node_that_has_edges_now_is_refused(g: Graph) -> None:
    commit = put(g, "ann")
    put(g, "bob")
    write(g, lambda tx: tx.append("Knows", {"from": "bob", "to": "ann"}))
    before = g.snapshot().commit
    with pytest.raises(InvalidData) as error:
        g.revert(commit)
    (orphan,) = error.value.violations
    assert (orphan.rule, orphan.id) == ("orphan", "ann")
    (edge,) = everything(g)["Knows"]
    known = next(kind for kind in g.snapshot().catalog.edges if kind.name == "Knows")
    (person,) = (kind for kind in g.snapshot().catalog.nodes if kind.name == "Person")
    assert orphan == describe(Orphans(person, known, "dst"), {"id": edge, "node": "ann"})
    assert g.snapshot().commit == before
    write(g, lambda tx: tx.delete("Knows", where=None))
    g.revert(commit)
    assert set(everything(g)["Person"]) == {"bob"}


def test_a_revert_obeys_the_rules_between_rows(g: Graph) -> None:
    write(g, lambda tx: tx.append("Note", {"id": "n", "text": "a", "code": "x"}))
    commit = write(g, lambda tx: tx.delete("Note", where=None))
    write(g, lambda tx: tx.append("Note", {"text": "b", "code": "x"}))
    with pytest.raises(InvalidData) as error:
        g.revert(commit)
    assert [v.rule for v in error.value.violations] == ["unique"]
    write(g, lambda tx: [tx.upsert("Person", {"name": "ann"}), tx.upsert("Person", {"name": "b"})])
    write(g, lambda tx: tx.append("Knows", {"from": "ann", "to": "b"}))
    commit = write(g, lambda tx: tx.delete("Knows", where=None))
    drop(g, "b")
    with pytest.raises(InvalidData) as error:
        g.revert(commit)
    assert [v.rule for v in error.value.violations] == ["endpoint"]


def test_a_revert_reaches_through_renamed_widened_and_added_properties(g: Graph) -> None:
    put(g, "ann", age=1)
    put(g, "bob", age=5)
    updated = put(g, "ann", age=2)
    deleted = drop(g, "bob")
    g.apply_schema(
        SCHEMA.replace("age: I32?", 'years: I64? @rename_from("age") level: I32 @default(3)')
    )
    g.revert(updated)
    g.revert(deleted)
    people = everything(g)["Person"]
    assert {n: (p["years"], p["level"]) for n, p in people.items()} == {
        "ann": (1, 3),
        "bob": (5, 3),
    }
    g.apply_schema(SCHEMA.replace("age: I32?", ""))
    with pytest.raises(RevertFailed, match=r"Person.age was dropped"):
        g.revert(updated)
    g.apply_schema("node Note { text: String code: String? @unique }")
    with pytest.raises(RevertFailed, match="type Person was dropped"):
        g.revert(updated)


def test_what_cannot_be_reverted_says_why(g: Graph) -> None:
    first = g.snapshot().commit.id
    with pytest.raises(InvalidArgument, match="is the first one"):
        g.revert(first)
    changed = g.apply_schema(SCHEMA.replace("rank: I32?", ""))
    assert changed.commit is not None
    with pytest.raises(InvalidArgument, match="changed the schema") as error:
        g.revert(changed.commit.id)
    assert f"restore({first!r})" in error.value.hint
    with pytest.raises(RefNotFound):
        g.revert("01ARZ3NDEKTSV4RRFFQ69G5FAV")
    for name in NAMES:
        put(g, name)
    compacted = g.optimize().commit
    assert compacted is not None
    assert g.revert(compacted.id) == compacted


def test_a_commit_of_another_branch_can_be_reverted_where_it_was_merged(g: Graph) -> None:
    g.create_branch("dev")
    commit = put(g, "ann", branch="dev")
    put(g, "bob")
    g.merge("dev")
    g.revert(commit)
    assert set(everything(g)["Person"]) == {"bob"}


def test_a_revert_that_lost_a_race_is_made_again_on_the_new_head(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(g, "ann", age=1, rank=1)
    commit = put(g, "ann", age=2)
    with omnigraph.open(g.root, settings=RELAXED) as other:

        def also_write(**values: int) -> None:
            monkeypatch.undo()
            put(other, "ann", "main", **values)

        meanwhile(monkeypatch, lambda: also_write(rank=5))
        g.revert(commit)
        (ann,) = everything(g)["Person"].values()
        assert (ann["age"], ann["rank"]) == (1, 5)
        again = put(g, "ann", age=2)
        meanwhile(monkeypatch, lambda: also_write(age=9))
        with pytest.raises(RevertFailed):
            g.revert(again)
    assert everything(g)["Person"]["ann"]["age"] == 9


def test_files_that_cleanup_may_have_taken_are_staged_again(g: Graph) -> None:
    put(g, "ann")
    head = g.snapshot().graph_version
    reversal = reverting.Reversal(g._session, [], ({}, {}), reverting_lineage(), None, Ledger())
    reversal.replan(head)
    assert not reversal.stale(head)
    cut: GraphVersion = msgspec.structs.replace(head, gc_cutoff=g._session.runtime.now())
    assert reversal.stale(cut)


def reverting_lineage() -> Lineage:
    return Lineage(kind="revert", operation="o")


def test_errors_of_both_leave_nothing(g: Graph) -> None:
    put(g, "ann")
    before = g.snapshot().commit
    acts: list[Callable[[], object]] = [lambda: g.restore("x"), lambda: g.revert("x")]
    for act in acts:
        with pytest.raises(OmnigraphError):
            act()
    assert g.snapshot().commit == before
