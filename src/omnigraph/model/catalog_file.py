"""Owns the catalog as it is stored: how it is read, and which conditions its parts must meet.

A catalog may come from anybody. Every name that it uses must exist, exactly once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from omnigraph.errors import Corrupt
from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.model.stored_text import UNDECODABLE
from omnigraph.model.types import EnumType, VectorType

_LONGEST_VECTOR = 2**20


# Made once, before there are threads: msgspec finds out about a type when it is first decoded, and
# crashes if two threads do that at the same time.
_DECODER = msgspec.json.Decoder(Catalog)


def decode_catalog(data: bytes, key: str = "The catalog") -> Catalog:
    """Names are names of the language, and each of them is there: see `forms`."""
    try:
        catalog = _DECODER.decode(data)
    except UNDECODABLE as error:
        raise Corrupt(f"{key} is not a catalog: {error}.") from error
    if (flaw := find_flaw(catalog)) is not None:
        raise Corrupt(f"{key} is not a catalog: {flaw}.")
    return catalog


def find_flaw(catalog: Catalog) -> str | None:
    """What is wrong with a catalog, in words, or None."""
    return next(_flaws(catalog), None)


def _flaws(catalog: Catalog) -> Iterator[str]:
    nodes = {kind.name for kind in catalog.nodes}
    interfaces = {held.name for held in catalog.interfaces}
    yield from _repeated("node type", [kind.name for kind in catalog.nodes])
    yield from _repeated("edge type", [kind.name for kind in catalog.edges])
    for kind in catalog.edges:
        for end in (kind.source, kind.target):
            if end not in nodes:
                yield f"the edge type {kind.name} ends at {end}, which is no node type"
    for node in catalog.nodes:
        for name in node.implements:
            if name not in interfaces:
                yield f"{node.name} implements {name}, which is no interface"
    for each in catalog.types:
        yield from _flaws_of_type(each)


def _flaws_of_type(kind: GraphType) -> Iterator[str]:
    system = ["id"] if kind.table_key.startswith("node:") else ["id", "src", "dst"]
    names = [p.name for p in kind.properties]
    yield from _repeated(f"property of {kind.name}", [*system, *names])
    yield from _repeated(
        f"column of {kind.name}", [*system, *(p.column for p in kind.properties), *kind.retired]
    )
    known = {*names, *system}
    used = [*kind.key, *_flat(kind.uniques), *_flat(kind.indexes)]
    used += [held.property for held in kind.ranges] + [held.property for held in kind.checks]
    for name in used:
        if name not in known:
            yield f"{kind.name} has a rule about {name!r}, which it does not have"
    for p in kind.properties:
        if isinstance(p.type, VectorType) and not 1 <= p.type.dimension <= _LONGEST_VECTOR:
            yield f"{kind.name}.{p.name} is a vector of {p.type.dimension} numbers"
        if isinstance(p.type, EnumType) and not p.type.values:
            yield f"{kind.name}.{p.name} has no values to choose from"


def _flat(groups: Sequence[Sequence[str]]) -> list[str]:
    return [name for group in groups for name in group]


def _repeated(what: str, names: Iterable[str]) -> Iterator[str]:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            yield f"there are two of one {what}: {name}"
        seen.add(name)
