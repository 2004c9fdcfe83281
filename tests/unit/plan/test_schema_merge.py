"""Merging schemas: what combines, what contradicts, and the laws of every merge."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from omnigraph.lang.pg import compile_schema
from omnigraph.lang.pg.print import print_schema
from omnigraph.model.catalog import Catalog, declared, used_columns
from omnigraph.model.schema import (
    Annotation,
    Card,
    Default,
    EdgeDecl,
    Embed,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    Range,
    Schema,
    canonical,
)
from omnigraph.model.types import Base, EnumType, PropertyType, ScalarType, VectorType
from omnigraph.plan.migrate import apply_steps, plan_migration
from omnigraph.plan.schema_merge import SchemaConflictKind, SchemaMerge, merge_schemas
from tests.strategies.evolutions import evolutions
from tests.strategies.schemas import schemas

STRING, I32, I64, F64 = (ScalarType(b) for b in (Base.STRING, Base.I32, Base.I64, Base.F64))


def prop(name: str, kind: PropertyType = STRING, **more: object) -> PropertyDecl:
    return msgspec.convert(
        {"name": name, "type": msgspec.to_builtins(kind), "nullable": True}
        | {k: msgspec.to_builtins(v) for k, v in more.items()},
        PropertyDecl,
    )


def node(name: str, *properties: PropertyDecl, **more: object) -> NodeDecl:
    return NodeDecl(name=name, properties=properties, **more)  # type: ignore[arg-type]


def schema(*types: NodeDecl | EdgeDecl | InterfaceDecl) -> Schema:
    return Schema(
        interfaces=tuple(t for t in types if isinstance(t, InterfaceDecl)),
        nodes=tuple(t for t in types if isinstance(t, NodeDecl)),
        edges=tuple(t for t in types if isinstance(t, EdgeDecl)),
    )


def accept(desired: Schema, base: Catalog | None = None) -> Catalog:
    plan = plan_migration(base, desired)
    assert not plan.unsupported
    return apply_steps(base, plan.steps)


def merge(base: Schema, ours: Schema, theirs: Schema) -> SchemaMerge:
    accepted = accept(base)
    return merge_schemas(accepted, accept(ours, accepted), accept(theirs, accepted))


def merged(base: Schema, ours: Schema, theirs: Schema) -> Schema:
    """The merged schema, which must be the same whoever merges whom."""
    result, mirrored = merge(base, ours, theirs), merge(base, theirs, ours)
    assert not result.conflicts
    assert result.catalog is not None
    assert mirrored.catalog is not None
    assert declared(result.catalog) == declared(mirrored.catalog)
    return declared(result.catalog)


def conflict(
    base: Schema, ours: Schema, theirs: Schema
) -> tuple[SchemaConflictKind, str, str | None]:
    result, mirrored = merge(base, ours, theirs), merge(base, theirs, ours)
    assert result.catalog is None
    (found,) = result.conflicts
    (mirror,) = mirrored.conflicts
    assert mirror.kind == found.kind
    assert (mirror.ours, mirror.theirs) == (found.theirs, found.ours)
    return found.kind, found.type, found.property


P = node("P", prop("a"), prop("b"))


def test_properties_added_on_both_sides_combine() -> None:
    ours = schema(node("P", prop("a"), prop("b"), prop("x")))
    theirs = schema(node("P", prop("a"), prop("b"), prop("c"), prop("d", I32)))
    expected = schema(node("P", prop("a"), prop("b"), prop("c"), prop("d", I32), prop("x")))
    assert merged(schema(P), ours, theirs) == expected


def test_a_property_added_in_the_middle_stays_there() -> None:
    theirs = schema(node("P", prop("a"), prop("new"), prop("b")))
    ours = schema(node("P", prop("a"), prop("b"), description="d"))
    assert merged(schema(P), ours, theirs) == schema(
        node("P", prop("a"), prop("new"), prop("b"), description="d")
    )


def test_types_added_on_both_sides_combine() -> None:
    edge = EdgeDecl(name="E", source="P", target="P")
    assert merged(schema(P), schema(P, node("A")), schema(P, edge)) == schema(node("A"), P, edge)


def test_the_same_addition_on_both_sides_is_one() -> None:
    both = schema(node("N"), node("P", prop("a"), prop("b"), prop("c", default=Default("x"))))
    assert merged(schema(P), both, both) == both


def test_renames_and_changes_of_one_property_combine() -> None:
    ours = schema(node("Q", prop("z", rename_from="a"), prop("b"), rename_from="P"))
    theirs = schema(
        node("P", prop("a", description="d"), prop("b"), uniques=(("a", "b"),)),
        EdgeDecl(name="E", source="P", target="P"),
    )
    assert merged(schema(P), ours, theirs) == schema(
        node("Q", prop("z", description="d"), prop("b"), uniques=(("z", "b"),)),
        EdgeDecl(name="E", source="Q", target="Q"),
    )


def test_a_rename_here_and_an_embedding_there_combine() -> None:
    base = schema(node("P", prop("t"), prop("v", VectorType(2))))
    ours = schema(node("P", prop("text", rename_from="t"), prop("v", VectorType(2))))
    theirs = schema(node("P", prop("t"), prop("v", VectorType(2), embed=Embed("t"))))
    assert merged(base, ours, theirs) == schema(
        node("P", prop("text"), prop("v", VectorType(2), embed=Embed("text")))
    )


def test_drops_of_untouched_things_go_through() -> None:
    base = schema(P, node("Q"), EdgeDecl(name="E", source="Q", target="P"))
    ours = schema(node("P", prop("b")), node("Q"), EdgeDecl(name="E", source="Q", target="P"))
    theirs = schema(P, node("R"))
    assert merged(base, ours, theirs) == schema(node("P", prop("b")), node("R"))


def test_enums_merge_value_by_value() -> None:
    def with_values(*values: str) -> Schema:
        return schema(node("P", prop("k", EnumType(values))))

    result = merged(with_values("a", "b"), with_values("a", "b", "c"), with_values("b", "d"))
    assert result == with_values("b", "c", "d")


def test_constraints_and_annotations_of_both_sides_combine() -> None:
    base = schema(node("P", prop("a"), prop("n", I32), indexes=(("a",),)))
    ours = schema(
        node(
            "P",
            prop("a"),
            prop("n", I32),
            ranges=(Range("n", 0),),
            annotations=(Annotation("x"), Annotation("y", 1, True)),
        )
    )
    theirs = schema(
        node(
            "P",
            prop("a"),
            prop("n", I32),
            indexes=(("a",),),
            uniques=(("a",),),
            annotations=(Annotation("z"),),
        )
    )
    assert merged(base, ours, theirs) == schema(
        node(
            "P",
            prop("a"),
            prop("n", I32),
            uniques=(("a",),),
            ranges=(Range("n", 0),),
            annotations=(Annotation("x"), Annotation("y", 1, True), Annotation("z")),
        )
    )


N = node("P", prop("n", I32))


@pytest.mark.parametrize(
    ("base", "ours", "theirs", "kind", "prop_name"),
    [
        pytest.param(
            N,
            node("P", prop("n", I64)),
            node("P", prop("n", F64)),
            SchemaConflictKind.CHANGED_BOTH,
            "n",
            id="widened to different types",
        ),
        pytest.param(
            N,
            node("P", prop("n", I32, description="one")),
            node("P", prop("n", I32, description="two")),
            SchemaConflictKind.CHANGED_BOTH,
            "n",
            id="described differently",
        ),
        pytest.param(
            N,
            node("P"),
            node("P", prop("n", I64)),
            SchemaConflictKind.DROPPED_AND_CHANGED,
            "n",
            id="dropped and widened",
        ),
        pytest.param(
            N,
            node("P", prop("x", I32, rename_from="n")),
            node("P", prop("y", I32, rename_from="n")),
            SchemaConflictKind.CHANGED_BOTH,
            "x",
            id="renamed to different names",
        ),
        pytest.param(
            node("P"),
            node("P", prop("n", I32)),
            node("P", prop("n", STRING)),
            SchemaConflictKind.CHANGED_BOTH,
            "n",
            id="added with different types",
        ),
        pytest.param(
            N,
            node("P"),
            node("P", prop("n", I32), indexes=(("n",),)),
            SchemaConflictKind.DANGLING,
            None,
            id="dropped and indexed",
        ),
        pytest.param(
            N,
            node("P", prop("n", I32), prop("m")),
            node("P", prop("m", I32, rename_from="n")),
            SchemaConflictKind.NAME_TAKEN,
            "m",
            id="added under a name that the other side renamed to",
        ),
        pytest.param(
            N,
            node("P", prop("n", I32), ranges=(Range("n", 0, 5),)),
            node("P", prop("n", I32), ranges=(Range("n", 0, 8),)),
            SchemaConflictKind.CHANGED_BOTH,
            "n",
            id="given different ranges",
        ),
        pytest.param(
            node("P", prop("n", I32, nullable=False)),
            node("P", prop("n", I32, nullable=False), key=("n",)),
            N,
            SchemaConflictKind.INVALID,
            "n",
            id="made key and made nullable",
        ),
        pytest.param(
            node("P", prop("k", EnumType(("a", "b")))),
            node("P", prop("k", EnumType(("a",)))),
            node("P", prop("k", EnumType(("a", "b")), default=Default("b"))),
            SchemaConflictKind.INVALID,
            "k",
            id="narrowed away from a new default",
        ),
    ],
)
def test_contradictions_about_properties_are_conflicts(
    base: NodeDecl,
    ours: NodeDecl,
    theirs: NodeDecl,
    kind: SchemaConflictKind,
    prop_name: str | None,
) -> None:
    found = conflict(schema(base), schema(ours), schema(theirs))
    if prop_name == "x":
        assert found[:2] == (kind, "node:P")
    else:
        assert found == (kind, "node:P", prop_name)


def test_a_type_added_under_a_name_that_ours_renamed_to_is_another_type() -> None:
    ours = schema(node("N", *P.properties, rename_from="P"))
    found = merge(schema(P), ours, schema(node("N", *P.properties))).conflicts
    assert {c.kind for c in found} == {
        SchemaConflictKind.DROPPED_AND_CHANGED,
        SchemaConflictKind.NAME_TAKEN,
    }


def test_a_side_that_came_back_to_the_base_still_counts_its_generations() -> None:
    base = accept(schema(P))
    detour = accept(schema(P), accept(schema(P, node("Q")), base))
    for ours, theirs in ((base, detour), (detour, base)):
        assert merge_schemas(base, ours, theirs).catalog == detour
    assert detour.generation == 3


def test_retired_columns_keep_the_order_in_which_they_were_retired() -> None:
    base = accept(schema(node("P", prop("z"), prop("n", I32))))
    changed = accept(schema(node("P", prop("n", I64))), base)
    assert changed.nodes[0].retired == ("z", "n")
    assert merge_schemas(base, base, changed).catalog == changed
    assert merge_schemas(base, changed, base).catalog == changed


def test_what_the_checker_would_refuse_is_no_result() -> None:
    bare = prop("n", I32)
    ours = schema(node("P", prop("n", I32, default=Default(9))))
    theirs = schema(node("P", bare, ranges=(Range("n", 0, 5),)))
    assert conflict(schema(node("P", bare)), ours, theirs)[0] is SchemaConflictKind.INVALID


def test_contradictions_about_types_are_conflicts() -> None:
    edge = EdgeDecl(name="E", source="P", target="P")
    dropped = conflict(schema(P), schema(), schema(node("P", prop("a"), prop("b"), prop("c"))))
    assert dropped == (SchemaConflictKind.DROPPED_AND_CHANGED, "node:P", None)
    joined = conflict(schema(P), schema(), schema(P, edge))
    assert joined == (SchemaConflictKind.DANGLING, "edge:E", None)
    named = conflict(
        schema(P), schema(node("Q", *P.properties, rename_from="P")), schema(P, node("Q"))
    )
    assert named == (SchemaConflictKind.NAME_TAKEN, "node:Q", None)
    carded = conflict(
        schema(P, edge),
        schema(P, msgspec.structs.replace(edge, card=Card(0, 1))),
        schema(P, msgspec.structs.replace(edge, card=Card(0, 2))),
    )
    assert carded == (SchemaConflictKind.CHANGED_BOTH, "edge:E", None)
    ends = conflict(
        schema(P, node("R")),
        schema(P, node("R"), edge),
        schema(P, node("R"), msgspec.structs.replace(edge, target="R")),
    )
    assert ends == (SchemaConflictKind.CHANGED_BOTH, "edge:E", None)
    keys = conflict(
        schema(),
        schema(node("K", prop("a", nullable=False), key=("a",))),
        schema(node("K", prop("a", nullable=False))),
    )
    assert keys == (SchemaConflictKind.CHANGED_BOTH, "node:K", None)


def test_interfaces_merge_with_the_nodes_that_implement_them() -> None:
    title, tags = prop("title"), prop("tags")
    base = schema(InterfaceDecl(name="I", properties=(title,)), node("P", title, implements=("I",)))
    ours = schema(
        InterfaceDecl(name="I", properties=(title, tags)),
        node("P", title, tags, implements=("I",)),
    )
    theirs = schema(
        InterfaceDecl(name="I", properties=(title,), description="d"),
        node("P", title, prop("own"), implements=("I",)),
    )
    assert merged(base, ours, theirs) == schema(
        InterfaceDecl(name="I", properties=(title, tags), description="d"),
        node("P", title, tags, prop("own"), implements=("I",)),
    )
    new_node = schema(*base.interfaces, *base.nodes, node("Q", title, implements=("I",)))
    found = conflict(base, ours, new_node)
    assert found == (SchemaConflictKind.INVALID, "node:Q", "tags")
    gone = conflict(base, schema(node("P", title)), new_node)
    assert gone == (SchemaConflictKind.DANGLING, "node:Q", None)


def test_every_contradiction_is_reported_at_once() -> None:
    base = schema(node("P", prop("a", I32), prop("b", I32)))
    ours = schema(node("P", prop("a", I64), prop("b", I64)))
    theirs = schema(node("P", prop("a", F64), prop("b", F64)))
    found = merge(base, ours, theirs).conflicts
    assert [(c.property, c.base, c.ours, c.theirs) for c in found] == [
        ("a", "I32", "I64", "F64"),
        ("b", "I32", "I64", "F64"),
    ]
    assert "node:P.a" in found[0].message


def test_a_property_added_twice_keeps_the_column_of_ours_and_maps_that_of_theirs() -> None:
    base = accept(schema(node("P", prop("a"))))
    ours = accept(schema(node("P", prop("a"), prop("x"))), base)
    detour = accept(schema(node("P", prop("a"), prop("x", I32))), base)
    detour = accept(schema(node("P", prop("a"))), detour)
    theirs = accept(schema(node("P", prop("a"), prop("x"))), detour)
    mine, other = ours.nodes[0].properties[1], theirs.nodes[0].properties[1]
    assert mine.column != other.column
    result = merge_schemas(base, ours, theirs)
    assert result.catalog is not None
    (kept,) = (p for p in result.catalog.nodes[0].properties if p.name == "x")
    assert (kept.id, kept.column) == (mine.id, mine.column)
    assert kept.twins == (other.id,)
    assert result.columns["node:P"].theirs == {"a": "a", other.column: mine.column}
    assert result.columns["node:P"].ours == {"a": "a", mine.column: mine.column}
    assert result.catalog.nodes[0].retired == (other.column,)


def test_a_column_of_theirs_whose_name_ours_used_for_something_else_gets_a_new_name() -> None:
    """As catalogs of earlier releases have it, which called every column like its property."""
    base = accept(schema(node("P", prop("a"))))
    ours = plain(accept(schema(node("P", prop("a"), prop("x"))), base))
    theirs = accept(schema(node("P", prop("a"), prop("c"))), base)
    theirs = accept(schema(node("P", prop("a"))), theirs)
    theirs = plain(accept(schema(node("P", prop("a"), prop("x", I32))), theirs))
    theirs = accept(schema(node("P", prop("a"), prop("y", I32, rename_from="x"))), theirs)
    added = theirs.nodes[0].properties[1]
    assert added.column == "x"
    result = merge_schemas(base, ours, theirs)
    assert result.catalog is not None
    moved = f"y_{added.id}"
    assert [p.column for p in result.catalog.nodes[0].properties] == ["a", "x", moved]
    assert result.columns["node:P"].theirs == {"a": "a", "x": moved}


def plain(catalog: Catalog) -> Catalog:
    """The catalog with every column called like its property."""
    (kind,) = catalog.nodes
    properties = tuple(msgspec.structs.replace(p, column=p.name) for p in kind.properties)
    return msgspec.structs.replace(
        catalog, nodes=(msgspec.structs.replace(kind, properties=properties),)
    )


def test_a_property_that_one_side_widened_takes_the_rows_of_the_other_side_along() -> None:
    base = accept(schema(node("P", prop("n", I32))))
    wide = accept(schema(node("P", prop("n", I64))), base)
    other = accept(schema(node("P", prop("n", I32, description="d"))), base)
    for ours, theirs in ((wide, other), (other, wide)):
        result = merge_schemas(base, ours, theirs)
        assert result.catalog is not None
        (kept,) = result.catalog.nodes[0].properties
        column = wide.nodes[0].properties[0].column
        assert (kept.type, kept.column, kept.id) == (I64, column, base.nodes[0].properties[0].id)
        columns = result.columns["node:P"]
        assert {columns.ours.popitem(), columns.theirs.popitem()} == {
            (column, column),
            ("n", column),
        }
        assert result.catalog.nodes[0].retired == ("n",)


LAWS = settings(
    max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much]
)


@st.composite
def histories(draw: st.DrawFn) -> tuple[Catalog, Catalog, Catalog]:
    """A base and two edits of it, one of them sometimes in two steps."""
    first = draw(schemas(most=2))
    base = accept(first)
    sides = []
    for _ in range(2):
        current, catalog = first, base
        for _ in range(draw(st.integers(1, 2))):
            desired = draw(evolutions(current))
            plan = plan_migration(catalog, desired)
            if not plan.unsupported:
                current, catalog = desired, apply_steps(catalog, plan.steps)
        sides.append(catalog)
    return base, sides[0], sides[1]


@LAWS
@given(histories())
def test_a_merge_means_the_same_from_both_sides(case: tuple[Catalog, Catalog, Catalog]) -> None:
    base, ours, theirs = case
    result, mirrored = merge_schemas(base, ours, theirs), merge_schemas(base, theirs, ours)
    assert result == merge_schemas(base, ours, theirs)
    assert bool(result.conflicts) == bool(mirrored.conflicts)
    assert (result.catalog is None) == bool(result.conflicts)
    if result.catalog is not None and mirrored.catalog is not None:
        one, other = declared(result.catalog), declared(mirrored.catalog)
        assert msgspec.json.encode(one) == msgspec.json.encode(other)


@LAWS
@given(histories())
def test_a_side_without_changes_adds_nothing(case: tuple[Catalog, Catalog, Catalog]) -> None:
    base, ours, _ = case
    assert merge_schemas(base, ours, ours).catalog == ours
    assert merge_schemas(base, ours, base).catalog == ours
    assert merge_schemas(base, base, ours).catalog == ours


@LAWS
@given(histories())
def test_merging_again_changes_nothing(case: tuple[Catalog, Catalog, Catalog]) -> None:
    base, ours, theirs = case
    result = merge_schemas(base, ours, theirs).catalog
    assume(result is not None)
    assert result is not None
    assert merge_schemas(theirs, result, theirs).catalog == result
    assert result.generation >= max(ours.generation, theirs.generation)


@LAWS
@given(histories())
def test_the_result_is_a_catalog_that_can_be_worked_with(
    case: tuple[Catalog, Catalog, Catalog],
) -> None:
    base, ours, theirs = case
    result = merge_schemas(base, ours, theirs)
    assume(result.catalog is not None)
    assert result.catalog is not None
    schema_text = declared(result.catalog)
    assert canonical(schema_text) == schema_text
    assert plan_migration(result.catalog, schema_text).steps == ()
    checked = compile_schema(print_schema(schema_text))
    assert checked.schema is not None, checked.diagnostics
    assert canonical(checked.schema) == schema_text
    sides = {t.id: t for t in ours.types}
    for kind in result.catalog.types:
        columns = [p.column for p in kind.properties]
        assert len(columns) == len(set(columns))
        assert set(kind.retired).isdisjoint(columns)
        if kind.id in sides:
            assert used_columns(sides[kind.id]) <= used_columns(kind)
        mapped = result.columns[kind.table_key]
        assert {*mapped.ours.values(), *mapped.theirs.values()} == set(columns)
