"""Graphs whose object store fails where a test says, over a root that another handle reads."""

from __future__ import annotations

import uuid
from collections.abc import Sequence

import omnigraph
from omnigraph import Graph, Settings
from omnigraph.engine.access import Access
from omnigraph.engine.session import Session
from omnigraph.runtime import SYSTEM, Runtime
from omnigraph.store.objects import ObjectStore
from omnigraph.store.roots import parse_root
from omnigraph.telemetry import Ledger
from tests.bench.faults import Fault, FaultyStore
from tests.unit.engine.clock import Clock

SCHEMA = """
node Person { name: String @key  age: I64?  email: String? @unique }
node Note { text: String? }
edge Knows: Person -> Person @card(0..2) { @key(src, dst) }
edge Likes: Person -> Person
"""
SETTINGS = Settings(durability="relaxed", queue=False)


def fresh_root() -> str:
    return f"memory://{uuid.uuid4().hex}"


def new_graph(schema: str = SCHEMA) -> Graph:
    """A graph with two people who know each other, in memory."""
    g = omnigraph.init(fresh_root(), schema=schema, settings=SETTINGS)
    with g.transaction() as tx:
        tx.append("Person", [{"name": "A", "age": 1}, {"name": "B"}])
        tx.append("Knows", {"src": "A", "dst": "B"})
    return g


def over(
    root: str,
    objects: ObjectStore | None = None,
    *,
    settings: Settings = SETTINGS,
    runtime: Runtime = SYSTEM,
) -> Graph:
    """A handle on an existing graph through another object store."""
    place = parse_root(root)
    return Graph(
        Session(place, objects or place.objects(settings), settings, runtime),
        Access("rw"),
        Ledger(),
    )


def faulty_over(root: str, faults: Sequence[Fault] = ()) -> tuple[Graph, FaultyStore]:
    store = FaultyStore(parse_root(root).objects(SETTINGS), faults, sleep=lambda seconds: None)
    return over(root, store, runtime=Clock()), store
