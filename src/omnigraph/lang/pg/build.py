"""Owns how each grammar rule becomes a node of the tree; it decides nothing and never fails.

The methods carry the names of the rules in pg.lark; the parser calls them while it reduces.
"""

from __future__ import annotations

from typing import Any, TypeVar

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
from omnigraph.model.schema import Atom

T = TypeVar("T")
Children = list[Any]
_CONSTANTS: dict[str, Atom] = {"true": True, "false": False, "null": None}


def _name(children: Children) -> Name:
    token: Token = children[0]
    return Name(token.text, Span(token.start, token.end))


def _all(children: Children, kind: type[T]) -> tuple[T, ...]:
    return tuple([child for child in children if type(child) is kind])


def _span(children: Children) -> Span:
    """From the first child to the last that stands for text."""
    first, last = children[0], children[-1]
    start = first.start if type(first) is Token else first.span.start
    return Span(start, last.end if type(last) is Token else last.span.end)


def _item_span(children: Children) -> Span:
    """Like `_span`, but the comma that may follow an item is not part of it."""
    last = children[-1]
    return _span(children[:-1] if type(last) is Token and last.type == "COMMA" else children)


def _head(children: Children) -> dict[str, Any]:
    """What every declaration has; the first Name after the keyword is its own."""
    names = _all(children, Name)
    bodies = _all(children, Body)
    return {
        "name": names[0] if names else None,
        "annotations": _all(children, AnnotationNode),
        "body": bodies[0] if bodies else None,
        "span": _span(children),
    }


class TreeBuilder:
    def schema(self, children: Children) -> SchemaTree:
        return SchemaTree(tuple(children), _span(children) if children else Span(0, 0))

    def wreck(self, children: Children) -> Wreck:
        return Wreck(_span(children))

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
        _, source, target = _all(children, Name)
        return EdgeNode(**_head(children), source=source, target=target)

    def broken_edge(self, children: Children) -> EdgeNode:
        ends = _all(children, Name)[1:]
        source, target = ends if len(ends) == 2 else (None, None)
        return EdgeNode(**_head(children), source=source, target=target, broken=True)

    def body(self, children: Children) -> Body:
        return Body(tuple(children[1:-1]), _span(children))

    def property(self, children: Children) -> PropertyNode:
        annotations = _all(children, AnnotationNode)
        return PropertyNode(children[0], children[2], annotations, _item_span(children))

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
        return EnumNode(_all(children, EnumValue)), _span(children)

    def value(self, children: Children) -> EnumValue:
        token: Token = children[0]
        span = Span(token.start, token.end)
        if token.type == "STRING":
            return EnumValue(string_value(token.text), span, quoted=True)
        return EnumValue(token.text, span)

    def vector(self, children: Children) -> tuple[VectorNode, Span]:
        return VectorNode(children[2]), _span(children)

    def list(self, children: Children) -> tuple[ListNode, Span]:
        shape, _ = children[1]
        return ListNode(shape, len(children) == 4), _span(children)

    def constraint(self, children: Children) -> ConstraintNode:
        arguments = _all(children, Argument)
        return ConstraintNode(_name(children[1:]), arguments, _item_span(children))

    def annotation(self, children: Children) -> AnnotationNode:
        arguments = _all(children, Argument) if len(children) > 2 else None
        return AnnotationNode(_name(children[1:]), arguments, _span(children))

    def argument(self, children: Children) -> Argument:
        return Argument(children[0], children[0].span)

    def named_argument(self, children: Children) -> Argument:
        return Argument(children[2], _span(children), _name(children))

    def range(self, children: Children) -> RangeNode:
        high = children[2] if len(children) == 3 else None
        return RangeNode(children[0], high, _span(children))

    def range_below(self, children: Children) -> RangeNode:
        return RangeNode(None, children[1], _span(children))

    def literal(self, children: Children) -> LiteralNode:
        if type(children[0]) is LiteralNode:
            return children[0]
        atoms: list[Any] = [child.value for child in _all(children, LiteralNode)]
        return LiteralNode(tuple(atoms), _span(children))

    def scalar(self, children: Children) -> LiteralNode:
        child = children[0]
        if type(child) is LiteralNode:
            return child
        if child.type == "STRING":
            return LiteralNode(string_value(child.text), _span(children))
        return LiteralNode(_CONSTANTS[child.text], _span(children))

    def number(self, children: Children) -> LiteralNode:
        token: Token = children[-1]
        text = "-" + token.text if len(children) == 2 else token.text
        value = float(text) if token.type == "FLOAT" else integer_value(text)
        return LiteralNode(value, _span(children))

    def word(self, children: Children) -> Name:
        return _name(children)

    property_name = word


class _Implements:
    """Keeps the names after `implements` apart from the name of the node."""

    def __init__(self, children: Children) -> None:
        self.names = _all(children, Name)
        self.span = _span(children)


def _implemented(children: Children) -> tuple[Name, ...]:
    return next((child.names for child in children if type(child) is _Implements), ())
