"""Diffs against a plain comparison of all rows, over random histories."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidArgument, MergeFailed, RefNotFound, TypeNotFound
from omnigraph.model.changes import Op
from omnigraph.plan.rows.compare import equal_values
from omnigraph.settings import Settings

SCHEMA = """
node Person { name: String @key age: I32? score: F64? tags: [String]? face: Vector(2)? }
node Note { text: String }
edge Knows: Person -> Person { since: I32? }
"""
NAMES = ["ann", "bob", "cy", "dé", "eve"]
COUNTER = itertools.count()

ROWS = st.fixed_dictionaries(
    {
        "name": st.sampled_from(NAMES),
        "age": st.none() | st.integers(0, 2),
        "score": st.none() | st.sampled_from([0.0, math.nan, 1.5]),
        "tags": st.none() | st.lists(st.sampled_from(["x", "y"]), max_size=2),
        "face": st.none() | st.just([0.0, 1.0]) | st.just([3.0, 1.0]),
    }
)
STEPS = st.lists(
    st.one_of(
        st.tuples(
            st.just("upsert"), st.lists(ROWS, max_size=3, unique_by=lambda r: str(r["name"]))
        ),
        st.tuples(st.just("delete"), st.sampled_from(NAMES)),
        st.tuples(st.just("compact"), st.none()),
        st.tuples(
            st.just("overwrite"), st.lists(ROWS, max_size=3, unique_by=lambda r: str(r["name"]))
        ),
    ),
    min_size=1,
    max_size=8,
)


@pytest.fixture
def g() -> Graph:
    return new_graph()


def new_graph() -> Graph:
    settings = Settings(durability="relaxed")
    return omnigraph.init(f"memory://diff-{next(COUNTER)}", schema=SCHEMA, settings=settings)


def run(g: Graph, step: str, given: Any) -> None:
    if step == "compact":
        g.optimize()
        return
    with g.transaction() as tx:
        if step == "upsert":
            tx.upsert("Person", given)
        elif step == "overwrite":
            tx.overwrite("Person", given)
        else:
            tx.delete("Person", where=pc.field("name") == given)


def contents(g: Graph, ref: str) -> dict[str, Any]:
    rows = g.at(ref).scan("Person").read_all().to_pylist()
    return {row["id"]: row for row in rows}


def shown(row: Any) -> str:
    """NaN equals NaN here, as a value that did not change is no change."""
    return repr(row)


@given(STEPS)
def test_a_diff_applied_to_the_old_gives_the_new(steps: list[tuple[str, Any]]) -> None:
    g = new_graph()
    for step, data in steps:
        run(g, step, data)
    commits = [commit.id for commit in g.log()]
    for ref in {commits[-1], commits[len(commits) // 2]}:
        old, new = contents(g, ref), contents(g, "main")
        for change in g.diff(ref, types=["Person"]):
            match change.op:
                case Op.INSERT:
                    assert change.id not in old
                case Op.UPDATE:
                    assert shown(old[change.id]) == shown(change.before)
                    assert shown(change.before) != shown(change.after)
                    told = set(change.changed)
                    assert change.before is not None
                    assert change.after is not None
                    assert told == {
                        n for n, v in change.after.items() if shown(change.before[n]) != shown(v)
                    }
                case Op.DELETE:
                    assert shown(old[change.id]) == shown(change.before)
            if change.after is None:
                del old[change.id]
            else:
                old[change.id] = change.after
        assert {i: shown(r) for i, r in old.items()} == {i: shown(r) for i, r in new.items()}


def test_physical_changes_are_nothing(g: Graph) -> None:
    for name in NAMES:
        run(g, "upsert", [{"name": name, "age": 1}])
    before = g.snapshot().commit.id
    assert g.optimize().commit is not None
    assert list(g.diff(before)) == []


def test_a_renamed_property_and_a_filled_one_are_changes_of_the_schema_alone(g: Graph) -> None:
    run(g, "upsert", [{"name": "ann", "age": 1}, {"name": "bob"}])
    renamed = SCHEMA.replace("age: I32?", 'years: I64? @rename_from("age")  level: I32 @default(3)')
    g.apply_schema(renamed)
    diff = g.diff("main~1")
    assert list(diff) == []
    assert {step.code for step in diff.schema.steps} == {"OG-SC-105", "OG-SC-106", "OG-SC-104"}
    with g.transaction() as tx:
        tx.upsert("Person", {"name": "ann", "level": 4})
    (change,) = g.diff("main~2")
    assert (change.op, change.id, change.changed) == (Op.UPDATE, "ann", ("level",))


def test_a_dropped_type_takes_its_entities_along(g: Graph) -> None:
    with g.transaction() as tx:
        tx.append("Note", [{"text": "a"}, {"text": "b"}])
    g.apply_schema(SCHEMA.replace("node Note { text: String }", ""))
    assert g.diff("main~1").summary() == {"Note": {"delete": 2}}
    assert g.at("main~1").diff("main").summary() == {"Note": {"insert": 2}}


def test_filters_choose_types_kinds_and_operations(g: Graph) -> None:
    with g.transaction() as tx:
        tx.upsert("Person", [{"name": "ann"}, {"name": "bob"}])
        tx.append("Knows", {"from": "ann", "to": "bob"})
    with g.transaction() as tx:
        tx.upsert("Person", {"name": "ann", "age": 1})
        tx.append("Note", {"text": "x"})
    assert g.diff("main~2", kinds=["edge"]).summary() == {"Knows": {"insert": 1}}
    assert g.diff("main~1", ops=["update"]).summary() == {"Person": {"update": 1}}
    assert g.diff("main~1", types=["Note"]).summary() == {"Note": {"insert": 1}}
    with pytest.raises(TypeNotFound, match=r"Did you mean Person\?"):
        g.diff("main~1", types=["Persn"])
    with pytest.raises(InvalidArgument, match="'upsert' is not a operation of change"):
        g.diff("main~1", ops=["upsert"])
    with pytest.raises(RefNotFound):
        g.diff("main~99")


def test_branches_are_compared_where_they_differ_and_nowhere_else(g: Graph) -> None:
    with g.transaction() as tx:
        tx.append("Person", pa.table({"name": [f"p{n}" for n in range(50_000)]}))
    g.create_branch("dev")
    with g.branch("dev").transaction() as tx:
        tx.update("Person", set={"age": 0}, where=pc.field("name") == "p7")
    with g.transaction() as tx:
        tx.delete("Person", where=pc.field("name") == "p8")
    diff = g.at("dev").diff("main")
    assert {(c.op, c.id) for c in diff} == {(Op.UPDATE, "p7"), (Op.INSERT, "p8")}
    whole = g.at("dev")
    whole.scan("Person").read_all()
    assert diff.io.read_bytes < whole.io.read_bytes / 10


@given(
    st.lists(
        st.tuples(
            *[st.none() | st.lists(st.sampled_from([math.nan, 1.0, -0.0, 0.0]), max_size=3)] * 2
        )
    )
)
def test_lists_are_compared_item_by_item(pairs: list[tuple[Any, Any]]) -> None:
    kind = pa.list_(pa.float64())
    left, right = (pa.array([pair[side] for pair in pairs], kind) for side in (0, 1))

    def same(a: Any, b: Any) -> bool:
        if a is None or b is None:
            return a is b
        items = zip(a, b, strict=False)
        return len(a) == len(b) and all(
            x == y or (math.isnan(x) and math.isnan(y)) for x, y in items
        )

    assert equal_values(left, right).tolist() == [same(a, b) for a, b in pairs]


def test_two_branches_that_give_one_name_to_two_kinds_are_compared() -> None:
    g = omnigraph.init(f"memory://kinds-{next(COUNTER)}", schema="node P { name: String @key }")
    with g.transaction() as tx:
        tx.append("P", [{"name": name} for name in "abc"])
    g.create_branch("words")
    g.create_branch("numbers")
    words, numbers = g.branch("words"), g.branch("numbers")
    words.apply_schema("node P { name: String @key  x: String? }")
    numbers.apply_schema("node P { name: String @key  x: I64? }")
    with words.transaction() as tx:
        tx.upsert("P", [{"name": "a", "x": "five"}, {"name": "b", "x": "5"}])
    with numbers.transaction() as tx:
        tx.upsert("P", [{"name": "b", "x": 5}])
    there = {(one.id, one.changed) for one in g.at("numbers").diff("words")}
    back = {(one.id, one.changed) for one in g.at("words").diff("numbers")}
    assert there == {("b", ("x",))}
    assert back == {("a", ("x",)), ("b", ("x",))}
    with pytest.raises(MergeFailed):
        words.merge("numbers")
    numbers.restore("words")
    (block,) = numbers.changes("numbers~1")
    assert {one.id for one in block.changes} == {"a", "b"}


def test_a_look_back_over_a_wider_type_compares_all_digits() -> None:
    g = omnigraph.init(
        f"memory://wider-{next(COUNTER)}", schema="node P { name: String @key  x: I32? }"
    )
    with g.transaction() as tx:
        tx.append("P", [{"name": "a", "x": 1}, {"name": "b", "x": 2}])
    g.apply_schema("node P { name: String @key  x: I64? }")
    with g.transaction() as tx:
        tx.upsert("P", [{"name": "a", "x": 2**40}])
    assert {one.id for one in g.at("main~2").diff("main")} == {"a"}
    assert {one.id for one in g.diff("main~2")} == {"a"}
