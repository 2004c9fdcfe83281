"""Owns the syntax tree of a `.pg` text: what was written and where, whether or not it makes
sense."""

from __future__ import annotations

import msgspec

from omnigraph.lang.diagnostics import Span
from omnigraph.model.schema import Literal


class Name(msgspec.Struct, frozen=True, gc=False):
    text: str
    span: Span


class LiteralNode(msgspec.Struct, frozen=True):
    value: Literal
    span: Span


class RangeNode(msgspec.Struct, frozen=True):
    """`low..high`. None is an open end."""

    low: LiteralNode | None
    high: LiteralNode | None
    span: Span


class Argument(msgspec.Struct, frozen=True):
    """`value` or `name = value`. A word that is not a literal is a Name."""

    value: LiteralNode | RangeNode | Name
    span: Span
    name: Name | None = None


class AnnotationNode(msgspec.Struct, frozen=True):
    """`arguments` is None without parentheses."""

    name: Name
    arguments: tuple[Argument, ...] | None
    span: Span


class ConstraintNode(msgspec.Struct, frozen=True):
    """`@key(…)` and the other constraints of a body."""

    name: Name
    arguments: tuple[Argument, ...]
    span: Span


class NamedNode(msgspec.Struct, frozen=True, gc=False):
    name: Name


class EnumValue(msgspec.Struct, frozen=True, gc=False):
    text: str
    span: Span
    quoted: bool = False


class EnumNode(msgspec.Struct, frozen=True):
    values: tuple[EnumValue, ...]


class VectorNode(msgspec.Struct, frozen=True):
    dimension: LiteralNode


class ListNode(msgspec.Struct, frozen=True):
    item: NamedNode | EnumNode | VectorNode
    item_nullable: bool


TypeShape = NamedNode | EnumNode | VectorNode | ListNode


class TypeNode(msgspec.Struct, frozen=True):
    shape: TypeShape
    nullable: bool
    span: Span


class PropertyNode(msgspec.Struct, frozen=True):
    name: Name
    type: TypeNode
    annotations: tuple[AnnotationNode, ...]
    span: Span


class Wreck(msgspec.Struct, frozen=True, gc=False):
    """Where tokens were thrown away after a syntax error."""

    span: Span


Item = PropertyNode | ConstraintNode | Wreck


class Body(msgspec.Struct, frozen=True):
    items: tuple[Item, ...]
    span: Span


class Declaration(msgspec.Struct, frozen=True, kw_only=True):
    """What interfaces, nodes and edges share. After a syntax error in the head `broken` is set and
    `name` may be missing; the body, if one was found, is kept."""

    name: Name | None
    annotations: tuple[AnnotationNode, ...] = ()
    body: Body | None = None
    span: Span
    broken: bool = False


class InterfaceNode(Declaration, frozen=True, kw_only=True):
    pass


class NodeNode(Declaration, frozen=True, kw_only=True):
    implements: tuple[Name, ...] = ()


class EdgeNode(Declaration, frozen=True, kw_only=True):
    """`source` and `target` are missing only in a broken head."""

    source: Name | None = None
    target: Name | None = None


class SchemaTree(msgspec.Struct, frozen=True):
    declarations: tuple[InterfaceNode | NodeNode | EdgeNode | Wreck, ...]
    span: Span
