"""Owns the schema as its author declared it and the checker accepted it: names, without stable
ids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from omnigraph.model.stored_text import Name
from omnigraph.model.types import PropertyType

Atom = str | int | float | bool | None
Literal = Atom | tuple[Atom, ...]
T = TypeVar("T", bound="TypeDecl")


def _require_finite(value: Literal) -> None:
    """JSON has no NaN or infinity and would silently store null instead."""
    for item in value if isinstance(value, tuple) else (value,):
        if isinstance(item, float) and not math.isfinite(item):
            raise ValueError(f"a schema cannot hold the number {item}")


class Annotation(msgspec.Struct, frozen=True, omit_defaults=True):
    """An annotation without a meaning of its own: it is kept and shown, never interpreted. `value`
    is None both for `@flag` and for `@flag(null)`; `given` distinguishes them."""

    name: str
    value: Literal = None
    given: bool = False
    arguments: tuple[tuple[str, Literal], ...] = ()

    def __post_init__(self) -> None:
        _require_finite(self.value)
        for _, value in self.arguments:
            _require_finite(value)


class Default(msgspec.Struct, frozen=True):
    """`@default(value)`: the value of an entity that leaves the property out."""

    value: Literal

    def __post_init__(self) -> None:
        _require_finite(self.value)


class Embed(msgspec.Struct, frozen=True, omit_defaults=True):
    """`@embed("source", model="m")` of a vector property."""

    source: str
    model: str | None = None


class Range(msgspec.Struct, frozen=True, omit_defaults=True):
    """`@range(p, low..high)`, inclusive; None is an open side."""

    property: str
    low: int | float | None = None
    high: int | float | None = None

    def __post_init__(self) -> None:
        _require_finite(self.low)
        _require_finite(self.high)


class Check(msgspec.Struct, frozen=True):
    """`@check(p, "regex")`: the pattern must be found somewhere in the value."""

    property: str
    pattern: str


class Card(msgspec.Struct, frozen=True, omit_defaults=True):
    """`@card(low..high)`: outgoing edges of the type per source; high None is unbounded."""

    low: int = 0
    high: int | None = None


class PropertyDecl(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    name: Name
    type: PropertyType
    nullable: bool = False
    default: Default | None = None
    embed: Embed | None = None
    description: str | None = None
    instruction: str | None = None
    annotations: tuple[Annotation, ...] = ()
    rename_from: str | None = None

    @property
    def may_be_null(self) -> bool:
        """Also true for a required vector, until its source is embedded."""
        return self.nullable or self.embed is not None


class InterfaceDecl(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """`key`, `uniques` and `indexes` come from `@key`, `@unique`, `@index` of its properties; the
    nodes that implement it hold copies of them, before their own."""

    name: Name
    properties: tuple[PropertyDecl, ...] = ()
    key: tuple[str, ...] = ()
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    description: str | None = None
    instruction: str | None = None
    annotations: tuple[Annotation, ...] = ()


class TypeDecl(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What node and edge types share. Constraints name properties (on edges also src, dst).
    `uniques` and `indexes` contain one tuple of names for each constraint, in declaration order and
    without duplicates. `key` is () for a type without one."""

    name: Name
    properties: tuple[PropertyDecl, ...] = ()
    key: tuple[str, ...] = ()
    uniques: tuple[tuple[str, ...], ...] = ()
    indexes: tuple[tuple[str, ...], ...] = ()
    ranges: tuple[Range, ...] = ()
    checks: tuple[Check, ...] = ()
    description: str | None = None
    instruction: str | None = None
    annotations: tuple[Annotation, ...] = ()
    rename_from: str | None = None


class NodeDecl(TypeDecl, frozen=True, omit_defaults=True, kw_only=True):
    """`properties` includes those copied from interfaces: first theirs, then its own."""

    implements: tuple[str, ...] = ()


class EdgeDecl(TypeDecl, frozen=True, omit_defaults=True, kw_only=True):
    source: str
    target: str
    card: Card = Card()


class Schema(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    interfaces: tuple[InterfaceDecl, ...] = ()
    nodes: tuple[NodeDecl, ...] = ()
    edges: tuple[EdgeDecl, ...] = ()


def same(left: object, right: object) -> bool:
    """Exactly equal: Python's `==` would take `@x(1)` for `@x(true)` and for `@x(1.0)`."""
    return left == right and msgspec.json.encode(left) == msgspec.json.encode(right)


def canonical(schema: Schema) -> Schema:
    """The schema without what means nothing to a graph that accepted it.

    The order of types and of constraints is dropped (sorted), and so is `@rename_from`, which
    tells how to get here, not what is here. The order of properties stays: users see it.
    """
    return Schema(
        interfaces=tuple(
            msgspec.structs.replace(
                i,
                properties=_without_renames(i.properties),
                uniques=tuple(sorted(i.uniques)),
                indexes=tuple(sorted(i.indexes)),
            )
            for i in sorted(schema.interfaces, key=lambda i: i.name)
        ),
        nodes=tuple(_canonical_type(t) for t in sorted(schema.nodes, key=lambda t: t.name)),
        edges=tuple(_canonical_type(t) for t in sorted(schema.edges, key=lambda t: t.name)),
    )


def sorted_constraints(kind: T) -> T:
    """The type with its uniques, indexes, ranges and checks in the one canonical order."""
    return msgspec.structs.replace(
        kind,
        uniques=tuple(sorted(kind.uniques)),
        indexes=tuple(sorted(kind.indexes)),
        ranges=tuple(sorted(kind.ranges, key=msgspec.json.encode)),
        checks=tuple(sorted(kind.checks, key=msgspec.json.encode)),
    )


def _canonical_type(kind: T) -> T:
    return msgspec.structs.replace(
        sorted_constraints(kind), properties=_without_renames(kind.properties), rename_from=None
    )


def _without_renames(properties: Sequence[PropertyDecl]) -> tuple[PropertyDecl, ...]:
    return tuple(msgspec.structs.replace(p, rename_from=None) for p in properties)
