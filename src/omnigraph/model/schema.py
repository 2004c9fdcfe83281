"""Owns the schema as its author declared and the checker accepted it: names, no stable ids."""

from __future__ import annotations

import msgspec

from omnigraph.model.types import PropertyType

Atom = str | int | float | bool | None
Literal = Atom | tuple[Atom, ...]


class Annotation(msgspec.Struct, frozen=True, omit_defaults=True):
    """An annotation without a meaning of its own: kept, shown, never interpreted.

    `value` is None both for `@flag` and for `@flag(null)`; `given` tells them apart.
    """

    name: str
    value: Literal = None
    given: bool = False
    arguments: tuple[tuple[str, Literal], ...] = ()


class Default(msgspec.Struct, frozen=True):
    """`@default(value)`: what an entity gets when the property is left out."""

    value: Literal


class Embed(msgspec.Struct, frozen=True, omit_defaults=True):
    """`@embed("source", model="m")` of a vector property."""

    source: str
    model: str | None = None


class Range(msgspec.Struct, frozen=True, omit_defaults=True):
    """`@range(p, low..high)`, inclusive; None is an open side."""

    property: str
    low: int | float | None = None
    high: int | float | None = None


class Check(msgspec.Struct, frozen=True):
    """`@check(p, "regex")`: the pattern must be found somewhere in the value."""

    property: str
    pattern: str


class Card(msgspec.Struct, frozen=True, omit_defaults=True):
    """`@card(low..high)`: outgoing edges of the type per source; high None is unbounded."""

    low: int = 0
    high: int | None = None


class PropertyDecl(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    name: str
    type: PropertyType
    nullable: bool = False
    default: Default | None = None
    embed: Embed | None = None
    description: str | None = None
    instruction: str | None = None
    annotations: tuple[Annotation, ...] = ()
    rename_from: str | None = None


class InterfaceDecl(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    name: str
    properties: tuple[PropertyDecl, ...] = ()
    description: str | None = None
    instruction: str | None = None
    annotations: tuple[Annotation, ...] = ()


class TypeDecl(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """What node and edge types share. Constraints name properties (on edges also src, dst).

    `uniques` and `indexes` hold one tuple of names for each constraint, in declaration order and
    without duplicates; `key` is () for a type without one.
    """

    name: str
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
    """`properties` already holds those copied from interfaces: theirs first, then its own."""

    implements: tuple[str, ...] = ()


class EdgeDecl(TypeDecl, frozen=True, omit_defaults=True, kw_only=True):
    source: str
    target: str
    card: Card = Card()


class Schema(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    interfaces: tuple[InterfaceDecl, ...] = ()
    nodes: tuple[NodeDecl, ...] = ()
    edges: tuple[EdgeDecl, ...] = ()
