"""A small graph to mutate, short words for looking at it, and a way into the middle of a write."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import omnigraph
from omnigraph import Graph, runtime

SCHEMA = """
node Person {
  name: String @key
  age: I32? @range(age, 0..150)
  email: String? @unique
  mood: enum(calm, wild)?
  city: String? @default("Bonn")
  score: F64?
}
node Note { text: String  stars: F32?  words: [String]?  day: Date?  at: DateTime?  big: U64? }
node Order { select: String @key  from_: I64?  group: Bool? }
node Media { title: String @key  cover: Blob?  place: Vector(2)? }
node Slot { row: I32  column: I32  held: String?  @key(row, column) }
edge Knows: Person -> Person { since: I32? }
edge Likes: Person -> Person { weight: F64?  @key(src, dst) }
edge Owns: Person -> Media @card(0..1)
"""
_NUMBERS = itertools.count()


def new_graph(schema: str = SCHEMA, **settings: Any) -> Graph:
    made = omnigraph.Settings(durability="relaxed", **settings)
    return omnigraph.init(f"memory://mutation-{next(_NUMBERS)}", schema=schema, settings=made)


def rows(g: Graph, type_: str, *columns: str, ref: str = "main") -> list[Any]:
    """Sorted values of the columns; of one column, just its values."""
    found = g.at(ref).scan(type_, columns=list(columns)).read_all().to_pylist()
    listed = [
        tuple(row[c] for c in columns) if len(columns) > 1 else row[columns[0]] for row in found
    ]
    return sorted(listed, key=repr)


@contextmanager
def at(point: str, action: Callable[[], object], *, times: int = 1) -> Iterator[None]:
    """Runs an action when the protocol reaches a point, the first few times."""
    waiting = [action] * times

    def reached(name: str) -> None:
        if name == point and waiting:
            waiting.pop()()

    runtime.on_reach = reached
    try:
        yield
    finally:
        runtime.on_reach = None
