"""What holds for every schema change: plans reach their goal, ids and columns are given once."""

from __future__ import annotations

import time

import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from omnigraph.model.catalog import Catalog, GraphType, declared, encode_catalog, used_columns
from omnigraph.model.catalog_file import decode_catalog
from omnigraph.model.schema import EdgeDecl, NodeDecl, PropertyDecl, Schema, canonical
from omnigraph.model.types import Base, ScalarType
from omnigraph.plan.migrate import MigrationPlan, apply_steps, plan_migration
from tests.strategies.evolutions import evolutions
from tests.strategies.schemas import schemas

SLOW = settings(suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much])


def accept(schema: Schema, base: Catalog | None = None) -> Catalog:
    plan = plan_migration(base, schema)
    assert not plan.unsupported
    return apply_steps(base, plan.steps)


def exactly(schema: Schema) -> bytes:
    return msgspec.json.encode(canonical(schema))


def types_of(catalog: Catalog) -> list[GraphType]:
    return [*catalog.nodes, *catalog.edges]


@st.composite
def changes(draw: st.DrawFn) -> tuple[Catalog, Schema]:
    """An accepted catalog and what somebody wants it to be: an edit, or another schema."""
    first = draw(schemas())
    desired = draw(evolutions(first) | schemas())
    return accept(first), desired


@SLOW
@given(schemas())
def test_a_first_schema_is_a_plan_from_nothing(schema: Schema) -> None:
    catalog = accept(schema)
    assert exactly(declared(catalog)) == exactly(schema)
    assert catalog.generation == (1 if types_of(catalog) or catalog.interfaces else 0)


@SLOW
@given(schemas())
def test_nothing_to_change_is_an_empty_plan(schema: Schema) -> None:
    catalog = accept(schema)
    plan = plan_migration(catalog, schema)
    assert plan.steps == ()
    assert apply_steps(catalog, plan.steps) is catalog
    shuffled = Schema(
        interfaces=schema.interfaces[::-1], nodes=schema.nodes[::-1], edges=schema.edges[::-1]
    )
    assert plan_migration(catalog, shuffled).steps == ()


@SLOW
@given(changes())
def test_applying_a_plan_gives_the_schema_it_was_made_for(case: tuple[Catalog, Schema]) -> None:
    catalog, desired = case
    plan = plan_migration(catalog, desired)
    if plan.unsupported:
        with pytest.raises(ValueError, match="OG-UN-"):
            apply_steps(catalog, plan.steps)
        return
    after = apply_steps(catalog, plan.steps)
    assert exactly(declared(after)) == exactly(desired)
    again = plan_migration(after, desired)
    assert again.steps == ()
    assert (after is catalog) == (not plan.steps)


@SLOW
@given(changes())
def test_a_plan_and_its_catalog_survive_json(case: tuple[Catalog, Schema]) -> None:
    catalog, desired = case
    plan = plan_migration(catalog, desired)
    stored = msgspec.json.decode(msgspec.json.encode(plan), type=MigrationPlan)
    assert stored == plan
    if not plan.unsupported:
        after = apply_steps(catalog, stored.steps)
        assert encode_catalog(after) == encode_catalog(apply_steps(catalog, plan.steps))
        assert decode_catalog(encode_catalog(after)) == after


@SLOW
@given(changes())
def test_the_same_change_of_the_same_base_gives_the_same_catalog(
    case: tuple[Catalog, Schema],
) -> None:
    catalog, desired = case
    turned = Schema(
        interfaces=desired.interfaces[::-1], nodes=desired.nodes[::-1], edges=desired.edges[::-1]
    )
    one = plan_migration(catalog, desired)
    other = plan_migration(decode_catalog(encode_catalog(catalog)), turned)
    assert one == other


@settings(
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(st.data())
def test_over_any_history_ids_and_columns_are_given_once(data: st.DataObject) -> None:
    schema = data.draw(schemas(most=2))
    catalog = accept(schema)
    owners: dict[str, str] = {}
    columns: dict[tuple[str, str], str] = {}
    for _ in range(4):
        before = {t.id: t for t in types_of(catalog)}
        _remember(catalog, owners, columns)
        desired = data.draw(evolutions(schema) | schemas(most=2))
        plan = plan_migration(catalog, desired)
        if plan.unsupported:
            continue
        catalog, schema = apply_steps(catalog, plan.steps), desired
        for kind in types_of(catalog):
            if kind.id in before:
                assert used_columns(before[kind.id]) <= used_columns(kind)
        _remember(catalog, owners, columns)


def _remember(
    catalog: Catalog, owners: dict[str, str], columns: dict[tuple[str, str], str]
) -> None:
    """Ids are unique, and neither an id nor a column ever comes back for something else."""
    ids = [t.id for t in types_of(catalog)]
    ids += [p.id for t in types_of(catalog) for p in t.properties]
    assert len(ids) == len(set(ids))
    for gone in owners.keys() - set(ids):
        owners[gone] = "gone"
    for found in ids:
        assert owners.setdefault(found, "alive") == "alive"
    for kind in types_of(catalog):
        assert set(kind.retired).isdisjoint(p.column for p in kind.properties)
        assert len(kind.retired) == len(set(kind.retired))
        for prop in kind.properties:
            assert columns.setdefault((kind.id, prop.column), prop.id) == prop.id


@SLOW
@given(st.data())
def test_ids_survive_every_rename(data: st.DataObject) -> None:
    schema = data.draw(schemas())
    catalog = accept(schema)
    desired = data.draw(evolutions(schema))
    plan = plan_migration(catalog, desired)
    assume(not plan.unsupported)
    after = apply_steps(catalog, plan.steps)
    for declaration in (*desired.nodes, *desired.edges):
        side = "node" if isinstance(declaration, NodeDecl) else "edge"
        old = catalog.find(f"{side}:{declaration.rename_from or declaration.name}")
        new = after.find(f"{side}:{declaration.name}")
        assert new is not None
        if old is None:
            continue
        assert new.id == old.id
        known = {p.name: p for p in old.properties}
        for prop, wanted in zip(new.properties, declaration.properties, strict=True):
            previous = known.get(wanted.rename_from or wanted.name)
            if previous is not None:
                assert prop.id == previous.id
                assert prop.column == previous.column or prop.type != previous.type


def test_ten_thousand_types_are_planned_within_seconds() -> None:
    def build(extra: bool) -> Schema:
        names = ["name", "age", "note"] + (["more"] if extra else [])
        properties = tuple(
            PropertyDecl(name=n, type=ScalarType(Base.STRING), nullable=True) for n in names
        )
        return Schema(
            nodes=tuple(
                NodeDecl(name=f"N{i}", properties=properties, indexes=(("name",),))
                for i in range(5000)
            ),
            edges=tuple(
                EdgeDecl(name=f"E{i}", source=f"N{i}", target="N0", properties=properties)
                for i in range(5000)
            ),
        )

    started = time.process_time()
    catalog = accept(build(extra=False))
    plan = plan_migration(catalog, build(extra=True))
    assert len(plan.steps) == 10_000
    apply_steps(catalog, plan.steps)
    assert time.process_time() - started < 8
