"""The three-way merge of rows, as a pure function: what it decides, and with which words."""

from __future__ import annotations

from typing import Any

import pytest

from omnigraph.engine.write.migration import read_schema
from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import GraphType
from omnigraph.plan.merge import Row, RowMerge, SideDelta, Strategy, merge_rows
from omnigraph.plan.migrate import apply_steps, plan_migration

SCHEMA = "node P { k: String @key a: I32? b: F64? tags: [String]? }"
KIND: GraphType = apply_steps(None, plan_migration(None, read_schema(SCHEMA)).steps).nodes[0]


def row(k: str, a: int | None = 0, b: float | None = None, tags: Any = None) -> Row:
    return {"id": k, "k": k, "a": a, "b": b, "tags": tags}


def side(*pairs: tuple[Row | None, Row | None]) -> SideDelta:
    """Changes as (before, after)."""
    table = row_schema(KIND).empty_table().from_pylist
    both = [(b, a) for b, a in pairs if b is not None and a is not None]
    return SideDelta(
        inserts=table([a for b, a in pairs if b is None and a], schema=row_schema(KIND)),
        deletes=table([b for b, a in pairs if a is None and b], schema=row_schema(KIND)),
        before=table([b for b, _ in both], schema=row_schema(KIND)),
        after=table([a for _, a in both], schema=row_schema(KIND)),
    )


def merge(
    ours: SideDelta, theirs: SideDelta, strategy: Strategy | None = None, **more: Any
) -> RowMerge:
    answers = more.pop("answers", {})
    return merge_rows(KIND, ours, theirs, strategy or Strategy(), answers, **more)


def told(result: RowMerge) -> list[tuple[str, str | None, str | None]]:
    return [(str(c.kind), c.id, c.property) for c in result.conflicts]


def test_what_only_they_changed_is_taken_as_it_is() -> None:
    theirs = side((None, row("n")), (row("u"), row("u", 5)), (row("d"), None))
    result = merge(side((row("x"), row("x", 1))), theirs)
    assert result.upserts.to_pylist() == [row("n"), row("u", 5)]
    assert (result.deletes, result.conflicts) == (("d",), ())


def test_changes_to_different_properties_of_one_row_merge() -> None:
    result = merge(side((row("x"), row("x", 1))), side((row("x"), row("x", 0, 2.5))))
    assert result.upserts.to_pylist() == [row("x", 1, 2.5)]
    assert not result.conflicts


@pytest.mark.parametrize(
    "pair",
    [
        (row("x"), row("x", 7)),
        (row("x"), None),
        (None, row("x", 7)),
        (row("x"), row("x", 0, float("nan"), ["a"])),
    ],
)
def test_the_same_change_on_both_sides_leaves_our_row_alone(pair: Any) -> None:
    result = merge(side(pair), side(pair))
    assert (result.upserts.num_rows, result.deletes, result.conflicts) == (0, (), ())


@pytest.mark.parametrize(
    ("ours", "theirs", "conflict"),
    [
        ((row("x"), row("x", 1)), (row("x"), row("x", 2)), ("DivergentUpdate", "x", "a")),
        ((None, row("x", 1)), (None, row("x", 2)), ("DivergentInsert", "x", "a")),
        ((row("x"), None), (row("x"), row("x", 2)), ("DeleteVsUpdate", "x", None)),
        ((row("x"), row("x", 2)), (row("x"), None), ("DeleteVsUpdate", "x", None)),
    ],
)
def test_what_contradicts_is_a_conflict_and_a_strategy_decides_it(
    ours: Any, theirs: Any, conflict: Any
) -> None:
    result = merge(side(ours), side(theirs))
    assert told(result) == [conflict]
    kept = merge(side(ours), side(theirs), Strategy("ours"))
    assert (kept.upserts.num_rows, kept.deletes, kept.conflicts) == (0, (), ())
    taken = merge(side(ours), side(theirs), Strategy("theirs"))
    assert not taken.conflicts
    if theirs[1] is None:
        assert (taken.upserts.num_rows, taken.deletes) == (0, ("x",))
    else:
        assert taken.upserts.to_pylist() == [theirs[1]]


def test_a_strategy_for_a_property_goes_before_one_for_the_type_and_for_all() -> None:
    ours, theirs = side((row("x"), row("x", 1, 1.0))), side((row("x"), row("x", 2, 2.0)))
    chosen = Strategy("ours", {"P": "theirs", "P.b": "ours"})
    assert merge(ours, theirs, chosen).upserts.to_pylist() == [row("x", 2, 1.0)]


def test_an_answer_is_the_last_word() -> None:
    ours, theirs = side((row("x"), row("x", 1))), side((row("x"), row("x", 2)))
    result = merge(ours, theirs, answers={"x": row("x", 3), "y": None})
    assert result.upserts.to_pylist() == [row("x", 3)]
    assert (result.deletes, result.conflicts) == (("y",), ())


def test_a_contested_property_lets_neither_side_say_that_it_changed_nothing() -> None:
    same, other = (row("x"), row("x")), (row("x"), row("x", 2, 1.0))
    result = merge(side(same), side(other), contested={"x": frozenset({"a"})})
    assert told(result) == [("DivergentUpdate", "x", "a")]
    assert result.upserts.to_pylist() == [row("x", 0, 1.0)]  # what is sure is merged
    agreed = merge(side(other), side(other), contested={"x": frozenset({"a"})})
    assert (agreed.upserts.num_rows, agreed.conflicts) == (0, ())


@pytest.mark.parametrize("ours", [row("x"), None])
def test_a_contested_entity_that_one_side_has_is_a_conflict(ours: Row | None) -> None:
    theirs = row("x", 2) if ours is None else None
    unsure = {"x": frozenset({"id"})}
    result = merge(side((None, ours)), side((None, theirs)), contested=unsure)
    assert told(result) == [("DeleteVsUpdate", "x", None)]
    gone = merge(side(), side(), contested=unsure)
    assert (gone.upserts.num_rows, gone.deletes, gone.conflicts) == (0, (), ())
