"""The rebase table of the design: what becomes of each action when the branch has moved on."""

from __future__ import annotations

from typing import Any, Literal, get_args

import msgspec
import pytest

from omnigraph.model.stored_queries import QueriesChange
from omnigraph.model.version import FORMAT, Commit, GraphVersion, TablePin
from omnigraph.plan.publish import (
    AddColumns,
    Adopt,
    Append,
    Delete,
    DropColumns,
    Index,
    Lineage,
    Overwrite,
    PublishPlan,
    Register,
    Rename,
    Rewrite,
    SchemaChange,
    TableAction,
    Tombstone,
    Update,
    Upsert,
)
from omnigraph.plan.rebase import BranchGone, Clash, HeadMoved, Keep, Rerun, resolve_rebase

TABLE, OTHER = "node:Person", "node:Other"
Moved = Literal["unchanged", "written", "compacted", "dropped", "replaced"]


def pin(key: str, number: int = 3, content: str = "same", location: str = "") -> TablePin:
    return TablePin(
        key=key,
        type_id=key,
        location=location or f"at/{key}",
        table_version=number,
        content=content,
        lance_version=f"9{number}",
        rows=number,
        fragments=1,
    )


def version(number: int, *pins: TablePin, **changes: Any) -> GraphVersion:
    commit = Commit(id=f"C{number}", parents=(), kind="write", created_at=number, operation="o")
    made = GraphVersion(
        format=FORMAT,
        graph="g",
        token=str(number),
        branch="main",
        incarnation=1,
        version=number,
        commit=commit,
        schema="s",
        catalog="c",
        tables=pins,
    )
    return msgspec.structs.replace(made, **changes)


BASE = version(7, pin(TABLE), pin(OTHER))
HEADS: dict[Moved, GraphVersion] = {
    "unchanged": version(8, pin(TABLE), pin(OTHER)),
    "written": version(8, pin(TABLE, 4, "other"), pin(OTHER)),
    "compacted": version(8, pin(TABLE, 4), pin(OTHER)),
    "dropped": version(8, pin(OTHER)),
    "replaced": version(8, pin(TABLE, 3, "other", "elsewhere"), pin(OTHER)),
}
CHANGE: dict[str, Any] = {
    "table": TABLE,
    "base": "93",
    "updated_fragments": (),
    "removed_fragments": (),
    "fragments": (),
    "inserted": 0,
    "updated": 0,
    "deleted": 0,
    "bytes": 0,
}
ACTIONS: dict[str, TableAction] = {
    "Append": Append(table=TABLE, fragments=(), fields={}, rows=1, bytes=1),
    "Upsert": Upsert(**CHANGE),
    "Update": Update(**CHANGE),
    "Delete": Delete(**CHANGE),
    "Overwrite": Overwrite(table=TABLE, base="93", fragments=(), rows=1, deleted=0, bytes=1),
    "Rewrite": Rewrite(table=TABLE, groups=()),
    "Index": Index(table=TABLE, segments=(), files={}),
    "AddColumns": AddColumns(table=TABLE, base="93", columns=b""),
    "DropColumns": DropColumns(table=TABLE, columns=("x",)),
    "Rename": Rename(table=TABLE, to="node:Human"),
    "Tombstone": Tombstone(table=TABLE),
    "Adopt": Adopt(table=TABLE, base="93", pin=pin(TABLE, 9, "adopted")),
    "Register": Register(table="node:New", pin=pin("node:New", 1, "new")),
}
K, R, C = Keep, Rerun, Clash
EXPECTED: dict[str, tuple[type, type, type, type]] = {
    # action: unchanged, written, compacted, dropped
    "Append": (K, K, K, C),
    "Upsert": (K, R, R, R),
    "Update": (K, R, R, R),
    "Delete": (K, R, R, R),
    "Overwrite": (K, C, R, C),
    "Rewrite": (K, K, K, C),
    "Index": (K, K, K, C),
    "AddColumns": (K, C, C, C),
    "DropColumns": (K, K, K, C),
    "Rename": (K, K, K, C),
    "Tombstone": (K, C, K, C),
    "Adopt": (K, C, C, C),
    "Register": (K, K, K, K),
}


def plan(*actions: TableAction, **given: Any) -> PublishPlan:
    fields: dict[str, Any] = {
        "branch": "main",
        "base_version": BASE.version,
        "base_incarnation": 1,
        "actions": actions,
        "lineage": Lineage(kind="write", operation="o"),
    }
    return PublishPlan(**(fields | given))


def test_the_table_has_every_action_of_the_closed_union() -> None:
    assert set(EXPECTED) == set(ACTIONS) == {kind.__name__ for kind in get_args(TableAction)}


@pytest.mark.parametrize("name", EXPECTED)
def test_each_action_meets_each_change_as_the_table_says(name: str) -> None:
    moves: tuple[Moved, ...] = ("unchanged", "written", "compacted", "dropped")
    verdicts = [resolve_rebase(plan(ACTIONS[name]), BASE, HEADS[moved]) for moved in moves]
    assert tuple(type(verdict) for verdict in verdicts) == EXPECTED[name]


def test_a_type_that_another_registered_first_is_a_clash() -> None:
    taken = version(8, pin(TABLE), pin(OTHER), pin("node:New", 1, "new", "theirs"))
    verdict = resolve_rebase(plan(ACTIONS["Register"]), BASE, taken)
    assert isinstance(verdict, Clash)
    assert "exists already" in verdict.because


@pytest.mark.parametrize("moved", ["written", "dropped", "replaced"])
def test_what_was_read_and_changed_is_a_clash_with_both_versions(moved: Moved) -> None:
    verdict = resolve_rebase(plan(reads={TABLE: "same"}), BASE, HEADS[moved])
    assert isinstance(verdict, Clash)
    assert verdict.mismatch.table_key == TABLE
    assert verdict.mismatch.expected == 3
    assert verdict.mismatch.actual == {"written": 4, "dropped": None, "replaced": 3}[moved]


@pytest.mark.parametrize("moved", ["written", "dropped", "replaced"])
def test_what_was_checked_and_changed_is_checked_again(moved: Moved) -> None:
    append_elsewhere = Append(table=OTHER, fragments=(), fields={}, rows=1, bytes=1)
    verdict = resolve_rebase(plan(append_elsewhere, checks={TABLE: "same"}), BASE, HEADS[moved])
    assert isinstance(verdict, Rerun)


@pytest.mark.parametrize("moved", ["unchanged", "compacted"])
def test_what_no_reader_can_see_is_no_change(moved: Moved) -> None:
    given = plan(ACTIONS["Append"], reads={TABLE: "same"}, checks={TABLE: "same"})
    assert resolve_rebase(given, BASE, HEADS[moved]) == Keep()


def test_the_worst_verdict_of_any_action_decides() -> None:
    head = HEADS["written"]
    rerun = plan(ACTIONS["Append"], ACTIONS["Update"])
    assert isinstance(resolve_rebase(rerun, BASE, head), Rerun)
    clash = plan(ACTIONS["Append"], ACTIONS["Update"], ACTIONS["Overwrite"])
    assert isinstance(resolve_rebase(clash, BASE, head), Clash)
    assert resolve_rebase(plan(), BASE, head) == Keep()


def test_another_schema_runs_statements_again_and_stops_a_schema_change() -> None:
    moved = version(8, pin(TABLE), pin(OTHER), catalog="other")
    assert isinstance(resolve_rebase(plan(ACTIONS["Append"]), BASE, moved), Rerun)
    change = plan(schema=SchemaChange(schema="s2", catalog="c2"))
    verdict = resolve_rebase(change, BASE, moved)
    assert isinstance(verdict, Clash)
    assert verdict.mismatch.table_key == "schema"


def test_other_queries_run_what_rests_on_them_again_and_nothing_else() -> None:
    moved = version(8, pin(TABLE), pin(OTHER), queries="q2")
    change = plan(queries=QueriesChange(queries=None))
    schema = plan(schema=SchemaChange(schema="s2", catalog="c2"))
    for given in (change, schema):
        assert isinstance(resolve_rebase(given, BASE, moved), Rerun)
        assert resolve_rebase(given, BASE, HEADS["unchanged"]) == Keep()
    assert resolve_rebase(plan(ACTIONS["Append"]), BASE, moved) == Keep()


def test_a_pinned_head_that_moved_is_refused_whatever_moved_it() -> None:
    for head in HEADS.values():
        assert resolve_rebase(plan(ACTIONS["Append"], if_commit="C7"), BASE, head) == HeadMoved()
    assert resolve_rebase(plan(ACTIONS["Append"], if_commit="C8"), BASE, HEADS["written"]) == Keep()


def test_a_branch_that_is_gone_or_another_comes_before_everything() -> None:
    given = plan(ACTIONS["Overwrite"], if_commit="C7", reads={TABLE: "same"})
    for changes in ({"deleted": True}, {"incarnation": 2}):
        head = version(8, pin(TABLE, 4, "other"), catalog="other", **changes)
        assert resolve_rebase(given, BASE, head) == BranchGone()
