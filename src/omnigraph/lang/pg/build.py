"""Owns how each grammar rule becomes a node of the tree. It decides nothing and never fails.

The methods are named after the rules in pg.lark; the parser calls them as it reduces.
"""

from __future__ import annotations

from typing import Any

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.pg.tree import (
    AnnotationNode,
    Argument,
    Body,
    ConstraintNode,
    EdgeNode,
    EnumNode,
    EnumValue,
    InterfaceNode,
    ListNode,
    LiteralNode,
    Name,
    NamedNode,
    NodeNode,
    PropertyNode,
    RangeNode,
    SchemaTree,
    TypeNode,
    VectorNode,
    Wreck,
)
from omnigraph.lang.tokens import Token, integer_value, string_value
from omnigraph.lang.tree_building import Children, all_of, item_span, span_of
from omnigraph.model.schema import Atom

_CONSTANTS: dict[str, Atom] = {"true": True, "false": False, "null": None}


def _name(children: Children) -> Name:
    token: Token = children[0]
    return Name(token.text, Span(token.start, token.end))


def _head(children: Children) -> dict[str, Any]:
    """What every declaration has. The first Name after the keyword is its own."""
    names = all_of(children, Name)
    bodies = all_of(children, Body)
    return {
        "name": names[0] if names else None,
        "annotations": all_of(children, AnnotationNode),
        "body": bodies[0] if bodies else None,
        "span": span_of(children),
    }


class SchemaTreeBuilder:
    def schema(self, children: Children) -> SchemaTree:
        return SchemaTree(tuple(children), span_of(children) if children else Span(0, 0))

    def wreck(self, children: Children) -> Wreck:
        return Wreck(span_of(children))

    def interface(self, children: Children) -> InterfaceNode:
        return InterfaceNode(**_head(children))

    def broken_interface(self, children: Children) -> InterfaceNode:
        return InterfaceNode(**_head(children), broken=True)

    def node(self, children: Children) -> NodeNode:
        return NodeNode(**_head(children), implements=_implemented(children))

    def broken_node(self, children: Children) -> NodeNode:
        return NodeNode(**_head(children), implements=_implemented(children), broken=True)

    def implements(self, children: Children) -> _Implements:
        return _Implements(children)

    def edge(self, children: Children) -> EdgeNode:
        _, source, target = all_of(children, Name)
        return EdgeNode(**_head(children), source=source, target=target)

    def broken_edge(self, children: Children) -> EdgeNode:
        ends = all_of(children, Name)[1:]
        source, target = ends if len(ends) == 2 else (None, None)
        return EdgeNode(**_head(children), source=source, target=target, broken=True)

    def body(self, children: Children) -> Body:
        return Body(tuple(children[1:-1]), span_of(children))

    def property(self, children: Children) -> PropertyNode:
        annotations = all_of(children, AnnotationNode)
        return PropertyNode(children[0], children[2], annotations, item_span(children))

    def type(self, children: Children) -> TypeNode:
        shape, span = children[0]
        if len(children) == 2:
            return TypeNode(shape, True, Span(span.start, children[1].end))
        return TypeNode(shape, False, span)

    # The shapes come with their spans, which only TypeNode keeps.

    def named(self, children: Children) -> tuple[NamedNode, Span]:
        name = _name(children)
        return NamedNode(name), name.span

    def enumeration(self, children: Children) -> tuple[EnumNode, Span]:
        return EnumNode(all_of(children, EnumValue)), span_of(children)

    def value(self, children: Children) -> EnumValue:
        token: Token = children[0]
        span = Span(token.start, token.end)
        if token.type == "STRING":
            return EnumValue(string_value(token.text), span, quoted=True)
        return EnumValue(token.text, span)

    def vector(self, children: Children) -> tuple[VectorNode, Span]:
        return VectorNode(children[2]), span_of(children)

    def list(self, children: Children) -> tuple[ListNode, Span]:
        shape, _ = children[1]
        return ListNode(shape, len(children) == 4), span_of(children)

    def constraint(self, children: Children) -> ConstraintNode:
        arguments = all_of(children, Argument)
        return ConstraintNode(_name(children[1:]), arguments, item_span(children))

    def annotation(self, children: Children) -> AnnotationNode:
        arguments = all_of(children, Argument) if len(children) > 2 else None
        return AnnotationNode(_name(children[1:]), arguments, span_of(children))

    def argument(self, children: Children) -> Argument:
        return Argument(children[0], children[0].span)

    def named_argument(self, children: Children) -> Argument:
        return Argument(children[2], span_of(children), _name(children))

    def range(self, children: Children) -> RangeNode:
        high = children[2] if len(children) == 3 else None
        return RangeNode(children[0], high, span_of(children))

    def range_below(self, children: Children) -> RangeNode:
        return RangeNode(None, children[1], span_of(children))

    def literal(self, children: Children) -> LiteralNode:
        if type(children[0]) is LiteralNode:
            return children[0]
        atoms: list[Any] = [child.value for child in all_of(children, LiteralNode)]
        return LiteralNode(tuple(atoms), span_of(children))

    def scalar(self, children: Children) -> LiteralNode:
        child = children[0]
        if type(child) is LiteralNode:
            return child
        if child.type == "STRING":
            return LiteralNode(string_value(child.text), span_of(children))
        return LiteralNode(_CONSTANTS[child.text], span_of(children))

    def number(self, children: Children) -> LiteralNode:
        token: Token = children[-1]
        text = "-" + token.text if len(children) == 2 else token.text
        value = float(text) if token.type == "FLOAT" else integer_value(text)
        return LiteralNode(value, span_of(children))

    def word(self, children: Children) -> Name:
        return _name(children)

    property_name = word


class _Implements:
    """Separates the names after `implements` from the name of the node."""

    def __init__(self, children: Children) -> None:
        self.names = all_of(children, Name)
        self.span = span_of(children)


def _implemented(children: Children) -> tuple[Name, ...]:
    return next((child.names for child in children if type(child) is _Implements), ())
