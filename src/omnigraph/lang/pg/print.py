"""Owns schemas as text: the canonical `.pg` of a schema value, which compiles to that value.

It trusts that the checker could have made the schema: properties and constraints from interfaces
come first.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from omnigraph.lang.pg.format import format_schema
from omnigraph.model.schema import (
    Annotation,
    Card,
    EdgeDecl,
    InterfaceDecl,
    Literal,
    NodeDecl,
    PropertyDecl,
    Range,
    Schema,
    TypeDecl,
)
from omnigraph.model.types import type_text

_ESCAPED = re.compile(r'["\\\x00-\x1f\x7f-\x9f]')
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_Names = tuple[str, ...]


def print_schema(schema: Schema) -> str:
    """Raises a ValueError for a schema that no text can declare."""
    interfaces = {interface.name: interface for interface in schema.interfaces}
    declarations = [
        *(_interface(interface) for interface in schema.interfaces),
        *(_node(node, interfaces) for node in schema.nodes),
        *(_edge(edge) for edge in schema.edges),
    ]
    formatted = format_schema("\n".join(declarations))
    if formatted.text is None:
        problem = formatted.diagnostics[0]
        raise ValueError(f"the schema cannot be written down: {problem.message}")
    return formatted.text


def literal_text(value: Literal) -> str:
    """A literal as the language writes it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f'"{_ESCAPED.sub(_escape, value)}"'
        case tuple():
            return f"[{', '.join(literal_text(atom) for atom in value)}]"
        case float():
            return _float_text(value)
        case _:
            return str(value)


def _escape(match: re.Match[str]) -> str:
    return _ESCAPES.get(match[0], f"\\u{ord(match[0]):04x}")


def _float_text(value: float) -> str:
    """The language requires a digit after the point, even before an exponent."""
    mantissa, exponent, power = repr(value).partition("e")
    return f"{mantissa}{'' if '.' in mantissa else '.0'}{exponent}{power}"


def _interface(interface: InterfaceDecl) -> str:
    flags = _Flags(interface.key, interface.uniques, interface.indexes)
    lines = [_property(p, flags) for p in interface.properties]
    return _block([f"interface {interface.name}", *_words(interface)], lines)


def _node(node: NodeDecl, interfaces: dict[str, InterfaceDecl]) -> str:
    inherited: dict[str, PropertyDecl] = {}
    key: _Names = ()
    uniques: set[_Names] = set()
    indexes: set[_Names] = set()
    for name in node.implements:
        interface = interfaces[name]
        inherited = {p.name: p for p in interface.properties} | inherited
        key = interface.key or key
        uniques.update(interface.uniques)
        indexes.update(interface.indexes)
    head = [f"node {node.name}", *_words(node), *_renamed(node)]
    if node.implements:
        head.append(f"implements {', '.join(node.implements)}")
    own = _Own(
        [p for p in node.properties if inherited.get(p.name) != p],
        node.key if node.key != key else (),
        [names for names in node.uniques if names not in uniques],
        [names for names in node.indexes if names not in indexes],
    )
    return _block(head, list(_body(node, own)))


def _edge(edge: EdgeDecl) -> str:
    head = [f"edge {edge.name}: {edge.source} -> {edge.target}"]
    if edge.card != Card():
        high = "" if edge.card.high is None else edge.card.high
        head.append(f"@card({edge.card.low}..{high})")
    head += [*_words(edge), *_renamed(edge)]
    own = _Own(list(edge.properties), edge.key, list(edge.uniques), list(edge.indexes))
    lines = list(_body(edge, own))
    return _block(head, lines) if lines else " ".join(head)


def _block(head: list[str], lines: list[str]) -> str:
    return "\n".join([" ".join([*head, "{"]), *lines, "}\n"])


class _Own:
    """What a type declares itself, without what comes from its interfaces."""

    def __init__(
        self,
        properties: list[PropertyDecl],
        key: _Names,
        uniques: list[_Names],
        indexes: list[_Names],
    ) -> None:
        self.properties = properties
        self.key = key
        self.uniques = uniques
        self.indexes = indexes


class _Flags:
    """Constraints that are written behind their property."""

    def __init__(
        self, key: _Names, uniques: tuple[_Names, ...], indexes: tuple[_Names, ...]
    ) -> None:
        self.key, self.uniques, self.indexes = key, set(uniques), set(indexes)

    def of(self, name: str) -> Iterator[str]:
        if self.key == (name,):
            yield "@key"
        if (name,) in self.uniques:
            yield "@unique"
        if (name,) in self.indexes:
            yield "@index"


def _body(kind: TypeDecl, own: _Own) -> Iterator[str]:
    order = [p.name for p in own.properties]
    key = own.key if len(own.key) == 1 and own.key[0] in order else ()
    uniques, indexes = _flagged(own.uniques, order), _flagged(own.indexes, order)
    flags = _Flags(key, uniques, indexes)
    for p in own.properties:
        yield _property(p, flags)
    if own.key != key:
        yield f"@key({', '.join(own.key)})"
    for names in own.uniques[len(uniques) :]:
        yield f"@unique({', '.join(names)})"
    for names in own.indexes[len(indexes) :]:
        yield f"@index({', '.join(names)})"
    for r in kind.ranges:
        yield _range(r)
    for c in kind.checks:
        yield f"@check({c.property}, {literal_text(c.pattern)})"


def _flagged(constraints: list[_Names], order: list[str]) -> tuple[_Names, ...]:
    """The constraints that can be written behind their properties without changing the order: those
    at the front that name one property each, in the order of the properties."""
    flagged: list[_Names] = []
    place = -1
    for names in constraints:
        if len(names) > 1 or names[0] not in order or order.index(names[0]) <= place:
            break
        place = order.index(names[0])
        flagged.append(names)
    return tuple(flagged)


def _property(p: PropertyDecl, flags: _Flags) -> str:
    words = [f"{p.name}: {type_text(p.type)}{'?' if p.nullable else ''}", *flags.of(p.name)]
    if p.default is not None:
        words.append(f"@default({literal_text(p.default.value)})")
    if p.embed is not None:
        model = "" if p.embed.model is None else f", model={literal_text(p.embed.model)}"
        words.append(f"@embed({literal_text(p.embed.source)}{model})")
    return " ".join([*words, *_words(p), *_renamed(p)])


def _words(described: InterfaceDecl | TypeDecl | PropertyDecl) -> Iterator[str]:
    if described.description is not None:
        yield f"@description({literal_text(described.description)})"
    if described.instruction is not None:
        yield f"@instruction({literal_text(described.instruction)})"
    for annotation in described.annotations:
        yield _annotation(annotation)


def _renamed(named: TypeDecl | PropertyDecl) -> Iterator[str]:
    if named.rename_from is not None:
        yield f"@rename_from({literal_text(named.rename_from)})"


def _annotation(annotation: Annotation) -> str:
    if not annotation.given:
        return f"@{annotation.name}"
    arguments = [f"{name}={literal_text(value)}" for name, value in annotation.arguments]
    return f"@{annotation.name}({', '.join([literal_text(annotation.value), *arguments])})"


def _range(r: Range) -> str:
    low = "" if r.low is None else literal_text(r.low)
    high = "" if r.high is None else literal_text(r.high)
    return f"@range({r.property}, {low}..{high})"
