"""The graph that the contract suite works on, and short words for looking at one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc

import omnigraph
from omnigraph import Graph, Snapshot

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  email: String? @unique
  mood: enum(calm, wild)?
}
node Note {
  text: String?
  select: String?
}
node Item {
  region: String
  number: I64
  price: F64?
  code: String?
  @key(region, number)
  @unique(region, code)
}
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
}
edge Knows: Person -> Person {
  since: Date?
  @key(src, dst)
}
edge Wrote: Person -> Note @card(0..2)
edge Owns: Person -> Item @card(1..3)
"""

Rows = list[dict[str, Any]]


def field(name: str) -> Any:
    return pc.field(name)


def rows(at: Graph | Snapshot, type: str, *columns: str, ref: str = "main") -> Rows:
    """The rows of a type in the order of their ids."""
    snapshot = at.at(ref) if hasattr(at, "at") else at
    wanted = ["id", *columns] if columns else None
    found: Rows = snapshot.scan(type, columns=wanted).read_all().to_pylist()
    return sorted(found, key=lambda row: str(row["id"]))


def ids(at: Graph | Snapshot, type: str, *, ref: str = "main") -> list[str]:
    snapshot = at.at(ref) if hasattr(at, "at") else at
    return sorted(snapshot.scan(type, columns=["id"]).read_all()["id"].to_pylist())


def write(
    g: Graph, change: Callable[[Any], object], *, branch: str = "main", **options: Any
) -> str:
    """One transaction; returns its commit."""
    at = g if branch == "main" else g.branch(branch)
    with at.transaction(**options) as tx:
        change(tx)
    assert tx.commit_id is not None
    return tx.commit_id


def people(g: Graph, *names: str, **values: Any) -> str:
    return write(g, lambda tx: tx.append("Person", [{"name": n, **values} for n in names]))


def begin(root: str, schema: str = SCHEMA) -> Graph:
    return omnigraph.init(root, schema=schema)
