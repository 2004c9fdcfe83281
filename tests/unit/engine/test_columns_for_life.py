"""A column belongs to one property for life: nothing that was dropped, widened or restored away
comes back under another, whatever is merged."""

from __future__ import annotations

import itertools
from collections.abc import Collection
from typing import Any

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import MergeFailed
from omnigraph.plan.migrate import properties as migrating
from omnigraph.plan.schema_merge import properties as merging
from omnigraph.settings import Settings

NONE = "node P { name: String @key }\n"
NUMBER = "node P { name: String @key  x: I64? }\n"
NARROW = "node P { name: String @key  x: I32? }\n"
TEXT = "node P { name: String @key  x: String? }\n"
COUNTER = itertools.count()
QUICK = Settings(durability="relaxed", queue=False, folding="off")


class World:
    def __init__(self, schema: str = NONE) -> None:
        self.root = f"memory://life-{next(COUNTER)}"
        self.g = omnigraph.init(self.root, schema=schema, settings=QUICK)

    def put(self, branch: str = "main", **values: Any) -> None:
        rows = [{"name": name} | ({} if x is ... else {"x": x}) for name, x in values.items()]
        with self.g.branch(branch).transaction() as tx:
            tx.upsert("P", rows)

    def apply(self, schema: str, branch: str = "main") -> None:
        self.g.branch(branch).apply_schema(schema)

    def head(self, branch: str = "main") -> str:
        return self.g.at(branch).commit.id

    def rows(self, branch: str = "main") -> dict[str, Any]:
        """What both an old and a fresh handle say, by scan and by query."""
        found = [_scanned(self.g, branch)]
        with omnigraph.open(self.root, settings=QUICK) as fresh:
            found += [_scanned(fresh, branch)]
            if "x" in self.g.at(branch).type("P").properties[-1].name:
                found += [_queried(self.g, branch), _queried(fresh, branch)]
            damage = [f.message for f in fresh.verify(deep=True).findings if f.severity == "error"]
        assert damage == []
        assert all(one == found[0] for one in found), found
        return found[0]


def _scanned(g: Graph, ref: str) -> dict[str, Any]:
    rows = g.at(ref).scan("P").read_all().to_pylist()
    return {row["name"]: row.get("x") for row in rows}


def _queried(g: Graph, ref: str) -> dict[str, Any]:
    rows = g.at(ref).query("match { $p: P } return { $p.name as n, $p.x as x }").to_pylist()
    return {row["n"]: row["x"] for row in rows}


def _before(name: str, origin: str, used: Collection[str]) -> str:
    """How earlier releases named columns, so that catalogs that they wrote are tried, too."""
    column, number = name, 1
    while column in used:
        number += 1
        column = f"_{number}_{name}"
    return column


@pytest.fixture(params=["now", "before"])
def named(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.param == "before":
        for module in (migrating, merging):
            monkeypatch.setattr(module, "fresh_column", _before)


def test_what_comes_to_a_table_carries_an_id_and_what_it_began_with_does_not() -> None:
    world = World(NARROW)
    world.put(a=1)
    names = []
    for schema in (NUMBER, NONE, TEXT, NONE, TEXT):
        world.apply(schema)
        names += [p.column for p in world.g.snapshot().type("P").properties[1:]]
    assert all(name.startswith("x_") for name in names)
    assert len(names) == len(set(names)) == 3
    held = world.g.snapshot().view(world.g.snapshot().type("P")).table.schema.names
    assert held == ["id", "name", "x", *names]
    assert world.rows() == {"a": None}


def test_a_property_can_be_added_again_after_a_merge_that_forgot_it() -> None:
    world = World()
    world.put(a=...)
    before = world.head()
    world.apply(NUMBER)
    world.put(b=1)
    world.g.create_branch("fix")
    world.g.branch("fix").restore(before)
    world.put(c=...)
    assert world.g.merge("fix").outcome == "merged"
    assert world.rows() == {"a": None, "c": None}
    for schema in (TEXT, NONE, NUMBER):
        world.apply(schema)
    world.put(a=7)
    assert world.rows() == {"a": 7, "c": None}


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("how", ["restore", "drop"])
def test_values_of_a_removed_property_do_not_come_back_under_its_name(how: str) -> None:
    world = World()
    world.put(a=..., b=...)
    before = world.head()
    world.apply(NUMBER)
    world.put(a=222, b=111)
    world.g.create_branch("fix")
    if how == "restore":
        world.g.branch("fix").restore(before)
    else:
        world.apply(NONE, "fix")
    world.apply(NUMBER, "fix")
    world.put("fix", a=5)
    world.put(c=...)
    assert world.g.merge("fix").outcome == "merged"
    assert world.rows() == {"a": 5, "b": None, "c": None}
    assert world.rows("fix") == {"a": 5, "b": None}


@pytest.mark.usefixtures("named")
def test_values_do_not_come_back_with_the_property_itself() -> None:
    """It went with one merge and comes back with the next: whoever was not asked has no value."""
    world = World()
    world.put(a=...)
    before = world.head()
    world.apply(NUMBER)
    world.put(a=1)
    then = world.head()
    world.g.create_branch("fix")
    world.g.branch("fix").restore(before)
    world.put(mine=9)
    world.g.merge("fix")
    assert world.rows() == {"a": None, "mine": None}
    world.g.branch("fix").restore(then)
    world.put(late=...)
    world.g.merge("fix")
    assert world.rows("fix") == {"a": 1}
    assert world.rows() == {"a": 1, "mine": None, "late": None}


@pytest.mark.usefixtures("named")
@pytest.mark.parametrize("both", [False, True])
def test_a_widening_is_taken_back_by_a_merge_only_where_every_value_fits(both: bool) -> None:
    """Rows that were written after it are not in the column from before it."""
    world = World(NARROW)
    world.put(a=1, b=2)
    before = world.head()
    world.apply(NUMBER)
    world.put(a=1 << 40)
    world.g.create_branch("fix")
    world.g.branch("fix").restore(before)
    world.put("fix", b=20)
    world.g.create_branch("still")
    assert world.g.branch("still").merge("fix").outcome in ("merged", "fast_forward")
    assert world.rows("still") == {"a": 1, "b": 20}
    if both:
        world.g.restore(before)
    world.put(c=3)
    left = world.rows()
    with pytest.raises(MergeFailed, match="back from I64 to I32") as failed:
        world.g.merge("fix")
    (conflict,) = failed.value.conflicts
    assert (conflict.base, conflict.theirs) == ("I64", "I32")
    assert world.rows() == left
    for branch in ("fix", "main"):
        world.apply(NUMBER, branch)
    assert world.g.merge("fix").outcome == "merged"
    assert world.rows() == {"a": 1, "b": 20, "c": 3}


@pytest.mark.usefixtures("named")
def test_files_that_are_shared_bring_no_values_that_their_branch_has_dropped() -> None:
    world = World()
    world.put(a=...)
    world.g.create_branch("other")
    for branch in ("main", "other"):
        world.apply(NUMBER, branch)
    world.put("other", b=5)
    world.apply(NONE, "other")
    world.put(c=6)
    assert world.g.merge("other").outcome == "merged"
    assert world.rows() == {"a": None, "b": None, "c": 6}
    assert world.g.branch("other").merge("main").outcome == "fast_forward"


@pytest.mark.usefixtures("named")
def test_both_directions_of_a_merge_end_in_the_same_rows() -> None:
    """One side has a leftover where the other has a property of the same id."""
    world = World()
    world.put(a=...)
    world.g.create_branch("other")
    for branch in ("main", "other"):
        world.apply(NUMBER, branch)
    world.put("other", b=5)
    world.apply(NONE, "other")
    world.put(c=6)
    world.put("other", d=...)
    world.g.create_branch("copy")
    assert world.g.branch("other").merge("main").outcome == "merged"
    assert world.g.branch("copy").merge("other").outcome == "fast_forward"
    for branch in ("other", "copy"):
        assert world.rows(branch) == {"a": None, "b": None, "c": 6, "d": None}
    world.put("other", b=8)
    world.put("main", a=9)
    assert world.g.merge("other").outcome == "merged"
    assert world.rows("main") == {"a": 9, "b": 8, "c": 6, "d": None}


@pytest.mark.usefixtures("named")
def test_files_that_hold_leftovers_beside_values_are_not_shared() -> None:
    """Maintenance carries what a column held before along with what another holds now."""
    world = World()
    world.g.create_branch("other")
    for branch in ("main", "other"):
        world.apply(NUMBER, branch)
    world.put("other", b=5)
    world.apply(NONE, "other")
    assert world.g.branch("other").merge("main").outcome == "merged"
    world.put("other", d=8)
    columns = {world.g.at(b).type("P").properties[1].column for b in ("main", "other")}
    assert len(columns) == 2
    assert world.g.branch("other").optimize().commit is not None
    world.put(c=6)
    assert world.g.merge("other").outcome == "merged"
    assert world.rows() == {"b": None, "c": 6, "d": 8}


def test_a_type_that_two_branches_made_gets_columns_of_the_other_with_ids() -> None:
    world = World()
    world.g.create_branch("other")
    world.apply(NONE + "node Q { name: String @key  y: I64? }")
    world.apply(NONE + "node Q { name: String @key  z: I64? }", "other")
    with world.g.transaction() as tx:
        tx.append("Q", {"name": "a", "y": 1})
    with world.g.branch("other").transaction() as tx:
        tx.append("Q", {"name": "b", "z": 2})
    world.g.merge("other")
    name, y, z = world.g.snapshot().type("Q").properties
    assert (name.column, y.column, z.column) == ("name", "y", f"z_{z.id}")
    rows = world.g.snapshot().scan("Q").read_all().to_pylist()
    assert sorted((r["name"], r["y"], r["z"]) for r in rows) == [("a", 1, None), ("b", None, 2)]


def test_filters_over_added_properties_are_answered_by_the_table() -> None:
    rich = (
        "node P { name: String @key  v: Vector(2)?  tags: [String]?  x: I64?"
        ' w: String? @default("d")  f: F64? }\n'
    )
    world = World("node P { name: String @key  v: Vector(2)? }\n")
    world.put(old=...)
    world.apply(rich)
    with world.g.transaction() as tx:
        tx.append("P", [{"name": f"n{n}", "x": n, "v": [0.0, n], "tags": ["t"]} for n in range(9)])
    snapshot = world.g.snapshot()
    view = snapshot.view(snapshot.type("P"))
    asked = [
        ((pc.field("x") > 3) & (pc.field("w") == "d"), {f"n{n}" for n in range(4, 9)}),
        (pc.field("w") == "d", {"old", *(f"n{n}" for n in range(9))}),
        (pc.field("name") == "n3", {"n3"}),
        (pc.field("x").is_null(), {"old"}),
    ]
    for condition, names in asked:
        assert view._pushed(condition) is not None
        found = snapshot.scan("P", filter=condition).read_all()
        assert set(found["name"].to_pylist()) == names
    assert view._pushed(pc.field("f") > 1.0) is None
