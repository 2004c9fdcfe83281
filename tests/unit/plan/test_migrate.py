"""Schema plans, decision by decision."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from omnigraph.lang.pg import compile_schema
from omnigraph.model.catalog import Catalog
from omnigraph.model.schema import Default, Schema
from omnigraph.model.types import Base, ScalarType
from omnigraph.plan.migrate import (
    MigrationPlan,
    Tier,
    apply_steps,
    plan_migration,
    render_plan,
    requires_empty,
)
from omnigraph.plan.migrate.properties import WIDENINGS
from omnigraph.plan.migrate.renames import resolve_renames
from omnigraph.plan.migrate.steps import (
    AddConstraint,
    AddProperty,
    AddType,
    ChangeNullability,
    DropProperty,
    DropType,
    RenameType,
    Unsupported,
    WidenProperty,
)


def read(text: str) -> Schema:
    checked = compile_schema(text)
    assert checked.schema is not None, checked.diagnostics
    return checked.schema


def accept(text: str, base: Catalog | None = None) -> Catalog:
    plan = plan_migration(base, read(text))
    assert not plan.unsupported, render_plan(plan)
    return apply_steps(base, plan.steps)


def plan(before: str, after: str, **options: Any) -> MigrationPlan:
    return plan_migration(accept(before), read(after), **options)


def only(before: str, after: str, **options: Any) -> Any:
    (step,) = plan(before, after, **options).steps
    return step


# Renames


def names(accepted: str, *desired: tuple[str, str | None]) -> dict[str, str]:
    found = resolve_renames(dict.fromkeys(accepted.split()), desired)
    assert not found.refusals
    return found.names


def test_a_rename_needs_an_old_name_that_is_there_and_a_new_one_that_is_free() -> None:
    assert names("A B", ("A2", "A"), ("B", None)) == {"A": "A2"}
    assert names("A", ("A", "A")) == {}


def test_a_rename_that_was_applied_is_ignored() -> None:
    assert names("B", ("B", "A")) == {}


def test_names_can_be_swapped_and_passed_along_a_chain() -> None:
    assert names("A B", ("A", "B"), ("B", "A")) == {"A": "B", "B": "A"}
    assert names("A B", ("B", "A"), ("C", "B")) == {"A": "B", "B": "C"}
    assert names("A B C", ("B", "A"), ("C", "B"), ("A", "C")) == {"A": "B", "B": "C", "C": "A"}


def test_a_chain_that_was_applied_is_ignored() -> None:
    assert names("B C", ("B", "A"), ("C", "B")) == {}


@pytest.mark.parametrize(
    ("accepted", "desired", "codes"),
    [
        ("A B", [("B", "A")], ["OG-UN-105"]),
        ("A", [("B", "X")], ["OG-UN-106"]),
        ("A", [("B", "A"), ("C", "A")], ["OG-UN-107", "OG-UN-107"]),
        ("A", [("B", "A"), ("A", None)], ["OG-UN-108"]),
        ("A B", [("B", "A"), ("C", "B"), ("A", None)], ["OG-UN-108"]),
    ],
)
def test_renames_that_cannot_be_meant_are_refused(
    accepted: str, desired: list[tuple[str, str | None]], codes: list[str]
) -> None:
    found = resolve_renames(dict.fromkeys(accepted.split()), desired)
    assert [r.code for r in found.refusals] == codes
    assert found.names == {}
    assert {name for name, old in desired if old is not None} <= found.disputed


def test_a_refused_rename_does_not_also_tell_of_a_drop() -> None:
    step = only("node A { x: I32? }", 'node B @rename_from("Aa") { x: I32? } node A { x: I32? }')
    assert isinstance(step, Unsupported)
    steps = plan("node A {} node B {}", 'node B @rename_from("A") {}').steps
    assert [type(s) for s in steps] == [Unsupported]


def test_the_same_text_never_swaps_twice() -> None:
    text = 'node A @rename_from("B") { x: I32? } node B @rename_from("A") { y: I32? }'
    before = accept("node A { y: I32? } node B { x: I32? }")
    after = accept(text, before)
    assert after.node_names["A"].id == before.node_names["B"].id
    assert plan_migration(after, read(text)).steps == ()


def test_a_first_schema_may_carry_old_renames() -> None:
    made = plan_migration(None, read('node B @rename_from("A") { y: I32? @rename_from("x") }'))
    assert [type(s) for s in made.steps] == [AddType]
    assert made.notes == ('@rename_from("A") on B: nothing to rename, so it is new',)
    assert "Note: @rename_from" in render_plan(made)


def test_an_inherited_property_with_an_old_rename_is_new_where_there_is_nothing_to_rename() -> None:
    interface = 'interface I { title: String? @rename_from("name") } node B implements I {}'
    before = accept(f"{interface} node A {{}}")
    made = plan_migration(before, read(f"{interface} node A implements I {{}}"))
    assert not made.unsupported
    assert any(isinstance(s, AddProperty) for s in made.steps)
    assert len(made.notes) == 1


def test_an_edge_keeps_its_ends_when_a_node_type_is_renamed() -> None:
    before = accept("node A {} edge E: A -> A")
    after = accept('node B @rename_from("A") {} edge E: B -> B', before)
    assert (after.edges[0].source, after.edges[0].target) == ("B", "B")
    assert after.edges[0].id == before.edges[0].id


def test_renamed_types_are_reported_by_their_new_table_key() -> None:
    steps = plan("node A { x: I32? }", 'node B @rename_from("A") { x: I64? }').steps
    assert [s.type for s in steps] == ["node:B", "node:B"]
    assert isinstance(steps[0], RenameType)


# Columns


def test_a_dropped_name_gets_a_new_column_when_it_comes_back() -> None:
    catalog = accept("node A { x: I32? }")
    given = [catalog.nodes[0].properties[0]]
    for _ in range(2):
        catalog = accept("node A {}", catalog)
        catalog = accept("node A { x: I32? }", catalog)
        given += catalog.nodes[0].properties
        assert given[-1].column == f"x_{given[-1].id}"
    assert len({p.id for p in given}) == 3
    assert catalog.nodes[0].retired == ("x", given[1].column)


def test_a_type_that_comes_back_is_another_type_with_fresh_columns() -> None:
    before = accept("node A { x: I32? }")
    after = accept("node A { x: I32? }", accept("", before))
    assert after.nodes[0].id != before.nodes[0].id
    assert after.nodes[0].properties[0].column == "x"
    assert after.nodes[0].retired == ()


def test_widening_moves_the_values_to_a_new_column_and_keeps_the_id() -> None:
    before = accept("node A { n: I32? }")
    made = plan_migration(before, read("node A { n: I64? @index }"))
    widen, index = made.steps
    assert isinstance(widen, WidenProperty)
    assert widen.old_column == "n"
    assert widen.new_column.startswith("n_")
    assert isinstance(index, AddConstraint)
    assert index.columns == (widen.new_column,)
    after = apply_steps(before, made.steps)
    assert after.nodes[0].properties[0].id == before.nodes[0].properties[0].id
    assert after.nodes[0].retired == ("n",)


def test_dropping_says_which_column_is_retired() -> None:
    catalog = accept('node A { y: I32? @rename_from("x") }', accept("node A { x: I32? }"))
    (step,) = plan_migration(catalog, read("node A {}")).steps
    assert isinstance(step, DropProperty)
    assert (step.property, step.column) == ("y", "x")


# Types of properties


def test_exactly_the_lossless_widenings_are_allowed() -> None:
    numbers = [b for b in Base if b.value[0] in "IUF" and b.value[1:].isdigit()]
    for old in numbers:
        for new in numbers:
            if old is new:
                continue
            step = only(f"node A {{ n: {old}? }}", f"node A {{ n: {new}? }}")
            expected = WidenProperty if (old, new) in WIDENINGS else Unsupported
            assert type(step) is expected, (old, new)
    assert len(WIDENINGS) == 6


def test_a_key_may_be_widened_only_if_no_id_changes() -> None:
    assert only("node A { k: I32 @key }", "node A { k: F64 @key }").tier is Tier.SAFE
    step = only("node A { k: F32 @key }", "node A { k: F64 @key }")
    assert requires_empty(step)
    assert step.code == "OG-MF-109"
    full = only("node A { k: F32 @key }", "node A { k: F64 @key }", populated={"node:A"})
    assert (full.code, full.property) == ("OG-UN-103", "k")
    empty = only("node A { k: F32 @key }", "node A { k: F64 @key }", populated=())
    assert empty == step


# Properties that come


def test_a_new_property_reads_null_or_its_default() -> None:
    step = only("node A {}", "node A { x: I32? }")
    assert (step.tier, step.fill) == (Tier.SAFE, None)
    assert step.property.column == f"x_{step.property.id}"
    step = only("node A {}", 'node A { x: String? @default("d") }')
    assert (step.tier, step.fill) == (Tier.SAFE, Default("d"))
    step = only("node A {}", "node A { x: I32 @default(7) }")
    assert (step.tier, step.fill, requires_empty(step)) == (Tier.SAFE, Default(7), False)


def test_a_new_required_property_without_default_needs_an_empty_type() -> None:
    step = only("node A {}", "node A { x: I32 }")
    assert (step.tier, step.code) == (Tier.VALIDATED, "OG-MF-107")
    assert requires_empty(step)
    full = only("node A {}", "node A { x: I32 }", populated={"node:A"})
    assert (full.code, full.property) == ("OG-UN-104", "x")


def test_a_new_required_vector_is_null_until_it_is_embedded_from_a_required_source() -> None:
    safe = only("node A { t: String }", 'node A { t: String v: Vector(2) @embed("t") }')
    assert (safe.tier, safe.fill, requires_empty(safe)) == (Tier.SAFE, None, False)
    step = only("node A { t: String? }", 'node A { t: String? v: Vector(2) @embed("t") }')
    assert requires_empty(step)


def test_whether_a_renamed_type_has_entities_is_asked_by_its_accepted_name() -> None:
    made = plan("node A {}", 'node B @rename_from("A") { x: I32 }', populated={"node:A"})
    assert [s.code for s in made.unsupported] == ["OG-UN-104"]
    assert not plan(
        "node A {}", 'node B @rename_from("A") { x: I32 }', populated={"node:B"}
    ).unsupported


def test_making_a_property_required_is_validated_even_with_a_default() -> None:
    step = only("node A { x: I32? @default(1) }", "node A { x: I32 @default(1) }")
    assert isinstance(step, ChangeNullability)
    assert (step.tier, step.code, step.column) == (Tier.VALIDATED, "OG-MF-105", "x")


# Constraints


@pytest.mark.parametrize(
    ("old", "new", "tier"),
    [
        ("0..5", "0..9", Tier.SAFE),
        ("0..5", "..", Tier.SAFE),
        ("0..5", "-1..5", Tier.SAFE),
        ("0..5", "1..9", Tier.VALIDATED),
        ("0..5", "0..4", Tier.VALIDATED),
        ("0..", "0..9", Tier.VALIDATED),
        ("..5", "0..5", Tier.VALIDATED),
    ],
)
def test_a_range_is_checked_unless_the_accepted_one_lies_inside(
    old: str, new: str, tier: Tier
) -> None:
    def with_range(bounds: str) -> str:
        constraint = f"@range(x, {bounds})" if bounds != ".." else ""
        return f"node A {{ x: I32? {constraint} }}"

    steps = plan(with_range(old), with_range(new)).steps
    assert steps[0].code == "OG-SC-113"
    assert all(s.tier is tier for s in steps[1:])


@pytest.mark.parametrize(
    ("old", "new", "tier"),
    [
        ("1..2", "0..2", Tier.SAFE),
        ("1..2", "1..", Tier.SAFE),
        ("0..", "1..", Tier.VALIDATED),
        ("0..", "0..1", Tier.VALIDATED),
        ("0..2", "0..1", Tier.VALIDATED),
    ],
)
def test_a_cardinality_is_checked_when_a_bound_gets_tighter(old: str, new: str, tier: Tier) -> None:
    step = only(
        f"node A {{}} edge E: A -> A @card({old})", f"node A {{}} edge E: A -> A @card({new})"
    )
    assert step.tier is tier


# Keys and order


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("node A { a: I32 b: I32 }", "node A { a: I32 @key b: I32 }"),
        ("node A { a: I32 @key b: I32 }", "node A { a: I32 b: I32 }"),
        ("node A { a: I32 b: I32 @key(a, b) }", "node A { a: I32 b: I32 @key(b, a) }"),
    ],
)
def test_a_key_changes_only_while_there_are_no_entities(before: str, after: str) -> None:
    step = only(before, after)
    assert requires_empty(step)
    assert (step.tier, step.code) == (Tier.VALIDATED, "OG-MF-108")
    assert only(before, after, populated={"node:A"}).code == "OG-UN-103"


def test_renaming_a_key_property_is_no_change_of_the_key() -> None:
    steps = plan("node A { a: I32 @key }", 'node A { b: I32 @key @rename_from("a") }').steps
    assert [s.code for s in steps] == ["OG-SC-105"]


def test_types_come_before_what_needs_them_and_go_after_it() -> None:
    added = plan_migration(None, read("edge E: B -> A node A {} node B {}"))
    assert [s.type for s in added.steps] == ["node:A", "node:B", "edge:E"]
    dropped = plan("edge E: B -> A node A {} node B {}", "")
    assert [s.type for s in dropped.steps] == ["edge:E", "node:A", "node:B"]
    assert all(isinstance(s, DropType) and s.tier is Tier.DESTRUCTIVE for s in dropped.steps)


def test_properties_are_added_where_they_are_declared() -> None:
    before = accept("node A { a: I32? b: I32? }")
    after = accept("node A { x: I32? a: I32? y: I32? b: I32? z: I32? }", before)
    assert [p.name for p in after.nodes[0].properties] == ["x", "a", "y", "b", "z"]
    moved = accept("node A { b: I32? n: I32? a: I32? }", before)
    assert [p.name for p in moved.nodes[0].properties] == ["b", "n", "a"]


# Application


def test_nothing_of_a_plan_with_an_unsupported_step_is_applied() -> None:
    before = accept("node A { x: I64? }")
    made = plan_migration(before, read("node A { x: I32? y: I32? }"))
    assert len(made.steps) == 2
    with pytest.raises(ValueError, match="OG-UN-101"):
        apply_steps(before, made.steps)


def test_every_accepted_change_is_a_new_generation() -> None:
    one = accept("node A {}")
    two = accept('node A @description("d") {}', one)
    assert (one.generation, two.generation) == (1, 2)
    assert accept("node A {}", two).digest != one.digest


def test_a_plan_names_the_catalog_it_is_for() -> None:
    catalog = accept("node A {}")
    assert plan_migration(catalog, read("")).base == catalog.digest
    assert plan_migration(None, read("")).base == Catalog().digest


def test_a_literal_that_changes_its_type_is_a_change() -> None:
    step = only("node A { x: F64? @unit(1) }", "node A { x: F64? @unit(1.0) }")
    assert step.changed == ("annotations",)


def test_steps_show_themselves_as_json_with_tier_code_and_reason() -> None:
    shown = msgspec.to_builtins(only("node A {}", "node A { x: I32? }"))
    assert (shown["step"], shown["tier"], shown["code"]) == ("add_property", "safe", "OG-SC-104")
    assert shown["property"]["type"] == msgspec.to_builtins(ScalarType(Base.I32))
    assert shown["reason"]
