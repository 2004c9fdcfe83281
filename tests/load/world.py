"""A small graph with every kind of rule, and short words for loading into it and looking at it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData
from omnigraph.settings import Settings
from tests.contract.graphs import rows

SCHEMA = """
node Person {
  name: String @key
  age: I32? @range(age, 0..150)
  email: String? @unique
  mood: enum(calm, wild)?
  city: String? @default("Bonn")
  nick: String? @check(nick, "^[a-z]+$")
}
node Note { text: String  stars: F64? }
node Media {
  title: String @key
  cover: Blob?
  place: Vector(3)?
  day: Date?
  at: DateTime?
  scores: [F64]?
  words: [String]?
  ok: Bool?
  huge: U64?
  small: F32?
}
edge Knows: Person -> Person { since: Date? @key(src, dst) }
edge Wrote: Person -> Note @card(0..2) { how: String? }
edge Owns: Person -> Media @card(2..3)
"""
TYPES = ("Person", "Note", "Media", "Knows", "Wrote", "Owns")


def new_graph(directory: Path, schema: str = SCHEMA, **settings: Any) -> Graph:
    made = Settings(durability="relaxed", **settings)
    return omnigraph.init(str(directory / "graph"), schema=schema, settings=made)


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def knows(start: str, end: str, **data: Any) -> dict[str, Any]:
    return {"edge": "Knows", "from": start, "to": end, "data": data}


def write_lines(path: Path, entries: Iterable[Any]) -> Path:
    lines = [entry if isinstance(entry, str) else json.dumps(entry) for entry in entries]
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


def contents(g: Graph, ref: str = "main") -> dict[str, list[dict[str, Any]]]:
    """Everything in the graph, in an order that does not depend on how it came there."""
    return {kind: rows(g, kind, ref=ref) for kind in g.at(ref).types()}


def refused(g: Graph, source: Any, **options: Any) -> InvalidData:
    """The error of a load that must change nothing."""
    before, head = contents(g), g.snapshot().commit.id
    with pytest.raises(InvalidData) as caught:
        g.load(source, **options)
    assert g.snapshot().commit.id == head
    assert contents(g) == before
    return caught.value
