"""Owns what steps do to a catalog: a fold that never looks at a schema or at data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import assert_never

import msgspec

from omnigraph.model.catalog import Catalog, EdgeType, GraphType, NodeType, Property
from omnigraph.model.schema import Embed, InterfaceDecl
from omnigraph.plan.migrate.constraints import constraints_of, with_constraints
from omnigraph.plan.migrate.steps import (
    AddConstraint,
    AddProperty,
    AddType,
    ChangeCard,
    ChangeEnum,
    ChangeKey,
    ChangeNullability,
    ChangeProperty,
    ChangeType,
    DropConstraint,
    DropInterface,
    DropProperty,
    DropType,
    MigrationStep,
    RenameProperty,
    RenameType,
    ReorderProperties,
    SetInterface,
    Unsupported,
    WidenProperty,
)

TypeStep = (
    ChangeType
    | AddProperty
    | WidenProperty
    | ChangeEnum
    | ChangeNullability
    | ChangeProperty
    | ReorderProperties
    | DropProperty
    | ChangeKey
    | ChangeCard
    | AddConstraint
    | DropConstraint
)


def apply_steps(accepted: Catalog | None, steps: Sequence[MigrationStep]) -> Catalog:
    """The catalog after all steps of a plan, or a ValueError if one of them is unsupported."""
    base = accepted or Catalog()
    refused = [step for step in steps if isinstance(step, Unsupported)]
    if refused:
        raise ValueError(f"{refused[0].code}: {refused[0].reason}; {refused[0].help}")
    if not steps:
        return base
    types = dict(base.by_key)
    interfaces = {i.name: i for i in base.interfaces}
    # Renames come as groups: each is one simultaneous change, so that names can be swapped.
    for group_key, group in groupby(steps, key=_group):
        match group_key[0]:
            case "rename_type":
                types = _rename_types(types, [s for s in group if isinstance(s, RenameType)])
            case "rename_property":
                renames = [s for s in group if isinstance(s, RenameProperty)]
                types[group_key[1]] = _rename_properties(types[group_key[1]], renames)
            case _:
                for step in group:
                    _apply(types, interfaces, step)
    return Catalog(
        generation=base.generation + 1,
        interfaces=tuple(interfaces[name] for name in sorted(interfaces)),
        nodes=tuple(t for _, t in sorted(types.items()) if isinstance(t, NodeType)),
        edges=tuple(t for _, t in sorted(types.items()) if isinstance(t, EdgeType)),
    )


def _group(step: MigrationStep) -> tuple[str, str]:
    match step:
        case RenameType():
            return "rename_type", ""
        case RenameProperty():
            return "rename_property", step.type
        case _:
            return "other", ""


def _apply(
    types: dict[str, GraphType], interfaces: dict[str, InterfaceDecl], step: MigrationStep
) -> None:
    match step:
        case AddType():
            types[step.type] = step.definition
        case DropType():
            del types[step.type]
        case SetInterface():
            interfaces[step.definition.name] = step.definition
        case DropInterface():
            del interfaces[step.type.removeprefix("interface:")]
        case RenameType() | RenameProperty() | Unsupported():
            raise AssertionError(f"{step.type}: renames are applied in groups, refusals never")
        case _:
            types[step.type] = _apply_to_type(types[step.type], step)


def _rename_types(
    types: dict[str, GraphType], renames: Iterable[RenameType]
) -> dict[str, GraphType]:
    renamed = {step.id: step for step in renames}
    ends = {s.old: s.new for s in renamed.values() if s.type.startswith("node:")}
    result: dict[str, GraphType] = {}
    for kind in types.values():
        changed = kind
        if step := renamed.get(kind.id):
            changed = msgspec.structs.replace(changed, name=step.new, rename_from=step.old)
        if isinstance(changed, EdgeType):
            source = ends.get(changed.source, changed.source)
            target = ends.get(changed.target, changed.target)
            changed = msgspec.structs.replace(changed, source=source, target=target)
        result[changed.table_key] = changed
    return result


def _rename_properties(kind: GraphType, renames: Iterable[RenameProperty]) -> GraphType:
    """Everything that names a property follows: key, constraints and the sources of vectors."""
    names = {step.old: step.new for step in renames}
    properties = []
    for prop in kind.properties:
        changed = prop
        if prop.name in names:
            changed = msgspec.structs.replace(changed, name=names[prop.name], rename_from=prop.name)
        if prop.embed is not None and prop.embed.source in names:
            embed = Embed(names[prop.embed.source], prop.embed.model)
            changed = msgspec.structs.replace(changed, embed=embed)
        properties.append(changed)
    renamed = msgspec.structs.replace(
        kind,
        properties=tuple(properties),
        key=tuple(names.get(name, name) for name in kind.key),
    )
    return with_constraints(renamed, constraints_of(kind, names).values())


def _apply_to_type(kind: GraphType, step: TypeStep) -> GraphType:
    match step:
        case ChangeType():
            return _describe(kind, step)
        case ChangeKey(new=key):
            return msgspec.structs.replace(kind, key=key)
        case ChangeCard(new=card):
            return msgspec.structs.replace(kind, card=card)
        case AddConstraint(constraint=constraint):
            return with_constraints(kind, [*constraints_of(kind, {}).values(), constraint])
        case DropConstraint(constraint=constraint):
            form = msgspec.json.encode(constraint)
            kept = [c for f, c in constraints_of(kind, {}).items() if f != form]
            return with_constraints(kind, kept)
        case AddProperty(property=prop, index=index):
            properties = (*kind.properties[:index], prop, *kind.properties[index:])
            return msgspec.structs.replace(kind, properties=properties)
        case ReorderProperties(order=order):
            by_name = {p.name: p for p in kind.properties}
            return msgspec.structs.replace(kind, properties=tuple(by_name[n] for n in order))
        case DropProperty(id=dropped, column=column):
            properties = tuple(p for p in kind.properties if p.id != dropped)
            retired = (*kind.retired, column)
            return msgspec.structs.replace(kind, properties=properties, retired=retired)
        case WidenProperty() | ChangeEnum() | ChangeNullability() | ChangeProperty():
            return _change_property(kind, step)
        case _:
            assert_never(step)


def _describe(kind: GraphType, step: ChangeType) -> GraphType:
    described = msgspec.structs.replace(
        kind,
        description=step.description,
        instruction=step.instruction,
        annotations=step.annotations,
    )
    if isinstance(described, NodeType):
        return msgspec.structs.replace(described, implements=step.implements)
    return described


def _change_property(
    kind: GraphType, step: WidenProperty | ChangeEnum | ChangeNullability | ChangeProperty
) -> GraphType:
    properties = tuple(_changed(p, step) if p.id == step.id else p for p in kind.properties)
    retired = kind.retired
    if isinstance(step, WidenProperty):
        retired = (*retired, step.old_column)
    return msgspec.structs.replace(kind, properties=properties, retired=retired)


def _changed(
    prop: Property, step: WidenProperty | ChangeEnum | ChangeNullability | ChangeProperty
) -> Property:
    match step:
        case WidenProperty():
            return msgspec.structs.replace(prop, type=step.new, column=step.new_column)
        case ChangeEnum():
            return msgspec.structs.replace(prop, type=step.new)
        case ChangeNullability():
            return msgspec.structs.replace(prop, nullable=step.nullable)
        case ChangeProperty():
            return msgspec.structs.replace(
                prop,
                default=step.default,
                filled=prop.filled or (() if step.default == prop.default else (prop.default,)),
                embed=step.embed,
                description=step.description,
                instruction=step.instruction,
                annotations=step.annotations,
            )
        case _:
            assert_never(step)
