"""Owns the hypothesis strategy for what an author does to a schema: edits, with `@rename_from`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec
from hypothesis import strategies as st

from omnigraph.model.schema import (
    Card,
    Default,
    EdgeDecl,
    Embed,
    NodeDecl,
    PropertyDecl,
    Schema,
    TypeDecl,
)
from omnigraph.model.types import Base, EnumType, PropertyType, ScalarType
from tests.strategies.schemas import (
    EDGE_NAMES,
    ENUM_VALUES,
    NODE_NAMES,
    PROPERTY_NAMES,
    descriptions,
    edges,
    is_comparable,
    is_keyable,
    nodes,
    properties,
    subsets,
    values,
)

T = TypeVar("T", bound=TypeDecl)
WIDER = {Base.I32: Base.F64, Base.U32: Base.I64, Base.F32: Base.F64}


@st.composite
def _new_names(draw: st.DrawFn, names: Sequence[str], pool: Sequence[str]) -> dict[str, str]:
    """Each old name with its new one, mostly itself; swaps and chains among them."""
    if not draw(st.booleans()):
        return {name: name for name in names}
    targets = draw(st.permutations([*names, *(n for n in pool if n not in names)]))
    return dict(zip(names, targets, strict=False))


@st.composite
def _types(draw: st.DrawFn, kind: PropertyType) -> PropertyType:
    match kind:
        case EnumType():
            kept = draw(st.sets(st.sampled_from(ENUM_VALUES), min_size=1))
            return EnumType(tuple(sorted(kept)))
        case ScalarType(base=base) if base in WIDER:
            return ScalarType(WIDER[base])
        case _:
            return kind


@st.composite
def _edited(draw: st.DrawFn, prop: PropertyDecl, *, may_be_null: bool) -> PropertyDecl:
    if draw(st.booleans()):
        return prop
    kind = draw(st.just(prop.type) | _types(prop.type))
    default = prop.default
    if default is not None and kind != prop.type:
        default = draw(st.none() | st.builds(Default, values(kind)))
    return msgspec.structs.replace(
        prop,
        type=kind,
        default=default,
        nullable=draw(st.booleans()) if may_be_null else prop.nullable,
        description=draw(descriptions),
    )


def _known(group: Sequence[str], names: Mapping[str, str]) -> bool:
    return all(name in names for name in group)


@st.composite
def _evolved_type(draw: st.DrawFn, kind: T, inherited: frozenset[str], pool: Sequence[str]) -> T:
    """The type with some of its own properties renamed, dropped, edited, moved and added."""
    own = [p for p in kind.properties if p.name not in inherited]
    targets = draw(_new_names([p.name for p in own], pool))
    dropped = set(draw(st.just([]) | subsets(list(targets), most=1)))
    names = {old: new for old, new in targets.items() if old not in dropped}
    names |= {name: name for name in (*inherited, "src", "dst")}
    kept = []
    for prop in own:
        if prop.name in dropped:
            continue
        edited = draw(_edited(prop, may_be_null=prop.name not in kind.key))
        new = names[prop.name]
        embed = prop.embed
        if embed is not None:
            embed = Embed(names[embed.source], embed.model) if embed.source in names else None
        rename = prop.name if new != prop.name else None
        kept.append(msgspec.structs.replace(edited, name=new, rename_from=rename, embed=embed))
    free = [n for n in pool if n not in {p.name for p in kept} | inherited]
    fresh = [draw(properties(name)) for name in draw(subsets(free, most=1))]
    moved = draw(st.just([*kept, *fresh]) | st.permutations([*kept, *fresh]))
    first = [p for p in kind.properties if p.name in inherited]
    renamed: dict[str, Any] = {
        "uniques": tuple(tuple(names[n] for n in g) for g in kind.uniques if _known(g, names)),
        "indexes": tuple(tuple(names[n] for n in g) for g in kind.indexes if _known(g, names)),
        "ranges": tuple(
            msgspec.structs.replace(r, property=names[r.property])
            for r in kind.ranges
            if r.property in names
        ),
        "checks": tuple(
            msgspec.structs.replace(c, property=names[c.property])
            for c in kind.checks
            if c.property in names
        ),
        "key": tuple(names[n] for n in kind.key) if _known(kind.key, names) else (),
    }
    every = [*first, *moved]
    if draw(st.integers(0, 5)) == 0:
        ends = ("src", "dst") if isinstance(kind, EdgeDecl) else ()
        chosen = draw(subsets([p.name for p in every if is_keyable(p)], most=1))
        renamed["key"] = (*ends, *chosen)
    if draw(st.booleans()):
        kept_groups = [g for g in renamed["uniques"] if set(g) <= inherited]
        renamed["uniques"] = tuple(kept_groups)
        renamed["checks"] = ()
    if draw(st.booleans()) and every:
        comparable = [p.name for p in every if is_comparable(p)]
        group = tuple(draw(subsets(comparable, least=min(1, len(comparable)), most=2)))
        added = [group] if group else []
        renamed["indexes"] = tuple(dict.fromkeys([*renamed["indexes"], *added]))
    return msgspec.structs.replace(kind, properties=tuple(every), **renamed)


@st.composite
def _evolved_nodes(
    draw: st.DrawFn, schema: Schema, names: Mapping[str, str]
) -> tuple[NodeDecl, ...]:
    inherited = {i.name: {p.name for p in i.properties} for i in schema.interfaces}
    result = []
    for node in schema.nodes:
        if node.name not in names:
            continue
        own = frozenset[str]().union(*(inherited[i] for i in node.implements))
        pool = [n for n in PROPERTY_NAMES if n not in own]
        evolved = draw(_evolved_type(node, own, pool))
        new = names[node.name]
        rename = node.name if new != node.name else None
        result.append(msgspec.structs.replace(evolved, name=new, rename_from=rename))
    free = [n for n in NODE_NAMES if n not in {t.name for t in result}]
    result += [draw(nodes(name, schema.interfaces)) for name in draw(subsets(free, most=1))]
    return tuple(result)


@st.composite
def _evolved_edges(
    draw: st.DrawFn, schema: Schema, names: Mapping[str, str], ends: Sequence[str]
) -> tuple[EdgeDecl, ...]:
    living = [e for e in schema.edges if e.source in names and e.target in names]
    targets = draw(_new_names([e.name for e in living], EDGE_NAMES))
    result = []
    for edge in living:
        pool = [n for n in PROPERTY_NAMES if n not in ("from", "to")]
        evolved = draw(_evolved_type(edge, frozenset(), pool))
        low = draw(st.integers(0, 2))
        card = draw(st.just(edge.card) | st.builds(Card, st.just(low), st.none()))
        result.append(
            msgspec.structs.replace(
                evolved,
                name=targets[edge.name],
                rename_from=edge.name if targets[edge.name] != edge.name else None,
                source=names[edge.source],
                target=names[edge.target],
                card=card,
            )
        )
    free = [n for n in EDGE_NAMES if n not in {t.name for t in result}]
    if ends:
        result += [draw(edges(name, ends)) for name in draw(subsets(free, most=1))]
    return tuple(result)


@st.composite
def evolutions(draw: st.DrawFn, schema: Schema) -> Schema:
    """What an author may make of the schema in one edit; some of it can be unsupported."""
    targets = draw(_new_names([n.name for n in schema.nodes], NODE_NAMES))
    dropped = set(draw(st.just([]) | subsets(list(targets), most=1)))
    names = {old: new for old, new in targets.items() if old not in dropped}
    node_types = draw(_evolved_nodes(schema, names))
    ends = [n.name for n in node_types]
    edge_types = draw(_evolved_edges(schema, names, ends))
    return Schema(interfaces=schema.interfaces, nodes=node_types, edges=edge_types)
