"""Schemas and texts for property tests of `.pg`."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TypeVar

from hypothesis import strategies as st
from msgspec.structs import replace

from omnigraph.lang.pg.grammar import load_grammar
from omnigraph.lang.tokens import Token
from omnigraph.model.schema import (
    EdgeDecl,
    InterfaceDecl,
    NodeDecl,
    PropertyDecl,
    Schema,
    TypeDecl,
)
from omnigraph.model.types import Base, ListType, ScalarType, VectorType
from tests.strategies.schemas import schemas

AnyType = TypeVar("AnyType", bound=TypeDecl)

_SMALL = 1.0e38


def accepted(schema: Schema, seed: int) -> Schema:
    """The drawn schema without what only the checker refuses, and with what is not drawn: flags
    of interfaces and renames."""
    chance = random.Random(seed)
    interfaces = {i.name: _flagged(i, chance) for i in schema.interfaces}
    return Schema(
        interfaces=tuple(interfaces.values()),
        nodes=tuple(_node(node, interfaces) for node in schema.nodes),
        edges=tuple(_constrained(_renamed(edge, chance)) for edge in schema.edges),
    )


drawn_schemas = st.builds(accepted, schemas(), st.integers(0, 2**32))


def _without_default(p: PropertyDecl) -> PropertyDecl:
    return replace(p, default=None) if isinstance(p.type, VectorType) else p


def _flagged(interface: InterfaceDecl, chance: random.Random) -> InterfaceDecl:
    properties = tuple(_without_default(p) for p in interface.properties)
    plain = [
        p
        for p in properties
        if not isinstance(p.type, ListType | VectorType) and p.type != ScalarType(Base.BLOB)
    ]
    return replace(
        interface,
        properties=properties,
        uniques=tuple((p.name,) for p in plain if chance.random() < 0.3),
        indexes=tuple((p.name,) for p in plain if chance.random() < 0.3),
    )


def _node(node: NodeDecl, interfaces: dict[str, InterfaceDecl]) -> NodeDecl:
    brought = [interfaces[name] for name in node.implements]
    inherited = {p.name: p for i in brought for p in i.properties}
    fixed = _constrained(node)
    uniques = [names for i in brought for names in i.uniques]
    indexes = [names for i in brought for names in i.indexes]
    return replace(
        fixed,
        # A copy of an interface's property is exactly that: the interface decides its default.
        key=tuple(n for n in fixed.key if n not in inherited or not inherited[n].default),
        ranges=tuple(r for r in fixed.ranges if r.property not in inherited),
        checks=tuple(c for c in fixed.checks if c.property not in inherited),
        properties=tuple(inherited.get(p.name, p) for p in fixed.properties),
        uniques=(*uniques, *(names for names in fixed.uniques if names not in uniques)),
        indexes=(*indexes, *(names for names in fixed.indexes if names not in indexes)),
    )


def _renamed(edge: EdgeDecl, chance: random.Random) -> EdgeDecl:
    properties = tuple(
        replace(p, rename_from=f"old_{p.name}") if chance.random() < 0.2 else p
        for p in edge.properties
    )
    old = f"Old{edge.name}" if chance.random() < 0.3 else None
    return replace(edge, properties=properties, rename_from=old)


def _constrained(kind: AnyType) -> AnyType:
    """Defaults only where no constraint speaks about them, bounds and indexes that fit."""
    types = {p.name: p.type for p in kind.properties}
    bound = {*kind.key, *(r.property for r in kind.ranges), *(c.property for c in kind.checks)}

    def fits(names: Sequence[str]) -> bool:
        held = [types[name] for name in names if name in types]
        plain = not any(isinstance(t, ListType | VectorType) for t in held)
        return ScalarType(Base.BLOB) not in held and (plain or len(names) == 1)

    return replace(
        kind,
        properties=tuple(
            replace(_without_default(p), default=None) if p.name in bound else _without_default(p)
            for p in kind.properties
        ),
        indexes=tuple(names for names in kind.indexes if fits(names)),
        ranges=tuple(
            r
            for r in kind.ranges
            if types[r.property] != ScalarType(Base.F32)
            or all(abs(bound or 0) < _SMALL for bound in (r.low, r.high))
        ),
    )


_SEPARATORS = [" ", "\n", "\t", "\r\n", "\n\n\n", " /* c{} */ ", " // c{}\n", "\n// c{}\n"]
_SEPARATORS += [
    "\n/* c{} */\n",
    " /* c{}\n   more */ ",
    "\n/*\n * c{}\n */ ",
    " /*c{}*//*d{}*/ ",
    "\n/*c{}*/ /*d{}*/ ",
]


def tokens_of(text: str) -> list[Token]:
    return list(load_grammar().lexer.tokens(text, lambda _: None))


def scatter(text: str, seed: int, *, comments: float = 0.3) -> str:
    """The same tokens with other white space, and comments between them."""
    chance = random.Random(seed)
    parts: list[str] = []
    for number, token in enumerate(tokens_of(text)):
        between = " " if chance.random() > comments else chance.choice(_SEPARATORS)
        parts += [between.replace("{}", str(number)), token.text]
    return "".join(parts)
