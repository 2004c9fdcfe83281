"""Owns the comparison of the properties of one type: which go, move, come or change."""

from __future__ import annotations

from collections.abc import Iterator

import msgspec

from omnigraph.model.arrow import arrow_type
from omnigraph.model.catalog import Catalog, Property, fresh_column, stable_id, used_columns
from omnigraph.model.schema import Embed, PropertyDecl, same
from omnigraph.model.types import Base, EnumType, ListType, PropertyType, ScalarType, type_text
from omnigraph.plan.migrate.change import CATALOG_ONLY, MOVE_TO_NEW_TYPE, TypeChange, when_empty
from omnigraph.plan.migrate.renames import Renames
from omnigraph.plan.migrate.steps import (
    AddProperty,
    ChangeEnum,
    ChangeNullability,
    ChangeProperty,
    DropProperty,
    MigrationStep,
    RenameProperty,
    ReorderProperties,
    Tier,
    Unsupported,
    WidenProperty,
)

# Every value of the left type is a value of the right one. Left out: I64 and U64 to F64, I32 and
# U32 to F32 (too few digits), signed to unsigned (negatives), U64 to I64 (too large), and U32 to
# I32; each of them would change or lose some number.
WIDENINGS = frozenset(
    {
        (Base.I32, Base.I64),
        (Base.U32, Base.U64),
        (Base.U32, Base.I64),
        (Base.F32, Base.F64),
        (Base.I32, Base.F64),
        (Base.U32, Base.F64),
    }
)


def plan_properties(
    change: TypeChange, renames: Renames, columns: dict[str, str]
) -> Iterator[MigrationStep]:
    """The steps of the properties; `columns` is told the column of each property afterwards."""
    names, disputed = renames.names, renames.disputed
    declared = {p.name for p in change.after.properties} | disputed
    yield from _drop_properties(change, names, declared)
    yield from _rename_properties(change, names)
    kept = {names.get(p.name, p.name): p for p in change.before.properties}
    kept = {n: p for n, p in kept.items() if n in declared and n not in disputed}
    yield from _reorder(change, kept)
    columns |= {n: p.column for n, p in kept.items()}
    used = set(used_columns(change.before))
    for index, prop in enumerate(change.after.properties):
        if prop.name in disputed:
            continue
        if prop.name in kept:
            yield from _property(change, kept[prop.name], prop, names, used, columns)
        else:
            yield _add_property(change, prop, index, used, columns)


# Properties that go, move or come


def _drop_properties(
    change: TypeChange, names: dict[str, str], declared: set[str]
) -> Iterator[MigrationStep]:
    for prop in change.before.properties:
        if names.get(prop.name, prop.name) not in declared:
            yield DropProperty(
                type=change.table,
                id=prop.id,
                property=prop.name,
                column=prop.column,
                reason="its values leave the graph; history keeps them unless data loss is allowed",
            )


def _rename_properties(change: TypeChange, names: dict[str, str]) -> Iterator[MigrationStep]:
    for prop in change.before.properties:
        if prop.name in names:
            yield RenameProperty(
                type=change.table,
                id=prop.id,
                old=prop.name,
                new=names[prop.name],
                reason=f"{CATALOG_ONLY}; the column keeps its name, so no data moves",
            )


def _reorder(change: TypeChange, kept: dict[str, Property]) -> Iterator[MigrationStep]:
    order = tuple(p.name for p in change.after.properties if p.name in kept)
    if order != tuple(kept):
        yield ReorderProperties(type=change.table, order=order, reason=CATALOG_ONLY)


def property_id(base: Catalog, kind: str, type_name: str, prop: PropertyDecl) -> str:
    """The id of a property that is added. Two branches that give one name to values of two kinds
    have two properties: whoever compares or joins them would take one for the other."""
    return stable_id(base, kind, type_name, f"{prop.name}: {arrow_type(prop.type)}")


def _add_property(
    change: TypeChange, prop: PropertyDecl, index: int, used: set[str], columns: dict[str, str]
) -> MigrationStep:
    given = property_id(change.base, change.kind, change.after.name, prop)
    column = fresh_column(prop.name, given, used)
    used.add(column)
    columns[prop.name] = column
    added = Property(**msgspec.structs.asdict(prop), id=given, column=column)
    fill = prop.default if prop.default is not None and prop.default.value is not None else None
    if fill is not None or prop.nullable or _is_embedded(change, prop.embed):
        reads = "the default" if fill is not None else "null"
        return AddProperty(
            type=change.table,
            property=added,
            index=index,
            fill=fill,
            reason=f"existing entities read {reads}; nothing is rewritten",
        )
    step = AddProperty(
        type=change.table,
        property=added,
        index=index,
        requires_empty=True,
        tier=Tier.VALIDATED,
        code="OG-MF-107",
        reason=f"{prop.name} is required and has no default, so existing entities would lack it",
    )
    remedy = "make it nullable, or give it a @default"
    return when_empty(change, step, code="OG-UN-104", remedy=remedy, property_name=prop.name)


def _is_embedded(change: TypeChange, embed: Embed | None) -> bool:
    """A required vector may be null until it is embedded, if its source is always there."""
    return embed is not None and any(
        p.name == embed.source and not p.nullable for p in change.after.properties
    )


# Properties that stay


def _property(
    change: TypeChange,
    before: Property,
    after: PropertyDecl,
    names: dict[str, str],
    used: set[str],
    columns: dict[str, str],
) -> Iterator[MigrationStep]:
    if before.type != after.type:
        yield _type_change(change, before, after, used, columns)
    if before.nullable != after.nullable:
        yield _nullability(change, before, after, columns[after.name])
    changed = tuple(
        name
        for name in ("default", "description", "instruction", "annotations")
        if not same(getattr(before, name), getattr(after, name))
    )
    if _renamed_embed(before.embed, names) != after.embed:
        changed += ("embed",)
    if changed:
        yield ChangeProperty(
            type=change.table,
            id=before.id,
            property=after.name,
            changed=changed,
            default=after.default,
            embed=after.embed,
            description=after.description,
            instruction=after.instruction,
            annotations=after.annotations,
            reason=f"{CATALOG_ONLY}; existing values stay as they are",
        )


def _renamed_embed(embed: Embed | None, names: dict[str, str]) -> Embed | None:
    if embed is None:
        return None
    return Embed(names.get(embed.source, embed.source), embed.model)


def _nullability(
    change: TypeChange, before: Property, after: PropertyDecl, column: str
) -> MigrationStep:
    step = ChangeNullability(
        type=change.table,
        id=before.id,
        property=after.name,
        column=column,
        nullable=after.nullable,
        reason=f"{CATALOG_ONLY}; every existing value is still allowed",
    )
    if after.nullable:
        return step
    # A @default is for entities to come; filling nulls that were written on purpose would not be
    # a change of the schema but of the data.
    reason = "entities without a value would break it, so they are looked for first"
    return msgspec.structs.replace(step, tier=Tier.VALIDATED, code="OG-MF-105", reason=reason)


def _type_change(
    change: TypeChange,
    before: Property,
    after: PropertyDecl,
    used: set[str],
    columns: dict[str, str],
) -> MigrationStep:
    if isinstance(before.type, EnumType) and isinstance(after.type, EnumType):
        return _enum_change(change, before, before.type, after, after.type)
    if not is_widening(before.type, after.type):
        return Unsupported(
            type=change.table,
            code="OG-UN-101",
            property=after.name,
            reason=f"{type_text(before.type)} cannot become {type_text(after.type)}: "
            "only numbers can be widened, to a type that holds every value they may have",
            help="add a property with the new type, fill it, then drop this one",
        )
    # Two branches that widen to different types give their columns different names.
    widened = f"{after.name}: {type_text(after.type)}"
    origin = stable_id(change.base, change.kind, change.after.name, widened)
    column = fresh_column(after.name, origin, used)
    used.add(column)
    columns[after.name] = column
    step = WidenProperty(
        type=change.table,
        id=before.id,
        property=after.name,
        old=before.type,
        new=after.type,
        old_column=before.column,
        new_column=column,
        reason="the column is rewritten; every value stays the same number",
    )
    if before.name not in change.before.key or before.type != ScalarType(Base.F32):
        return step
    keyed = msgspec.structs.replace(
        step,
        requires_empty=True,
        tier=Tier.VALIDATED,
        code="OG-MF-109",
        reason="0.1 has another canonical text as F64, so the ids of existing entities change",
    )
    return when_empty(
        change, keyed, code="OG-UN-103", remedy=MOVE_TO_NEW_TYPE, property_name=after.name
    )


def is_widening(before: PropertyType, after: PropertyType) -> bool:
    """Whether every value of the one type is one of the other."""
    match before, after:
        case ScalarType(base=old), ScalarType(base=new):
            return (old, new) in WIDENINGS
        case ListType(item=old), ListType(item=new):
            return (old, new) in WIDENINGS
        case _:
            return False


def _enum_change(
    change: TypeChange, prop: Property, before: EnumType, declared: PropertyDecl, after: EnumType
) -> MigrationStep:
    removed = tuple(v for v in before.values if v not in after.values)
    step = ChangeEnum(
        type=change.table,
        id=prop.id,
        property=declared.name,
        column=prop.column,
        new=after,
        added=tuple(v for v in after.values if v not in before.values),
        removed=removed,
        reason=f"{CATALOG_ONLY}; every existing value is still allowed",
    )
    if not removed:
        return step
    reason = f"entities that hold {', '.join(removed)} would break it, so they are looked for first"
    return msgspec.structs.replace(step, tier=Tier.VALIDATED, code="OG-MF-106", reason=reason)
