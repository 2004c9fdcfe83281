"""What the processes of these tests do, each in an interpreter of its own."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import GraphExists
from omnigraph.settings import Settings
from omnigraph.store.queue import Ticket, Tickets

SCHEMA = """
node Event { writer: I64  number: I64 }
node Person { name: String @key  writer: I64  number: I64  visits: I64 }
edge Knows: Person -> Person { writer: I64  number: I64 }
"""

SHARED = "shared"
DISJOINT = "disjoint"
UPSERT = "upsert"
EDGES = "edges"
PATIENCE = 120.0


def schema_for(writers: int) -> str:
    """With a type for each writer of its own."""
    own = [f"node Own{n} {{ writer: I64  number: I64 }}" for n in range(writers)]
    return SCHEMA + "\n".join(own)


def write(root: str, kinds: list[str], writer: int, commits: int) -> dict[str, Any]:
    """One commit after the other; every error reaches the caller, as it would reach a user.

    `retry_for` is long because the time that a commit takes is judged by ratios, not by a limit
    that a busy machine may break.
    """
    took = []
    with omnigraph.open(root, settings=Settings(retry_for=PATIENCE)) as g:
        g.snapshot()
        started = time.perf_counter()
        for kind in kinds:
            for number in range(commits):
                before = time.perf_counter()
                _commit(g, kind, writer, number)
                took.append(time.perf_counter() - before)
        ended = time.perf_counter()
    return {"seconds": ended - started, "slowest": max(took), "commits": len(took)}


def write_for(root: str, seconds: float, writer: int, tickets: bool) -> dict[str, Any]:
    """As many commits as this writer gets within a time, as if on a machine of its own."""
    if not tickets:
        _switch_tickets_off()
    commits = 0
    with omnigraph.open(root, settings=Settings(queue=False, retry_for=PATIENCE)) as g:
        g.snapshot()
        deadline = time.perf_counter() + seconds
        while time.perf_counter() < deadline:
            _commit(g, SHARED, writer, commits)
            commits += 1
    return {"commits": commits}


def _switch_tickets_off() -> None:
    def nobody_waits(*_: object) -> bool:
        return False

    def no_line(self: Tickets, *_: object) -> tuple[Ticket, bool]:
        return Ticket(0, 0, ""), False

    setattr(Tickets, "give_way", nobody_waits)  # noqa: B010
    setattr(Tickets, "stand_in_line", no_line)  # noqa: B010


def _commit(g: Graph, kind: str, writer: int, number: int) -> None:
    with g.transaction(actor=f"writer-{writer}") as tx:
        match kind:
            case "shared":
                tx.append("Event", [{"writer": writer, "number": number}])
            case "disjoint":
                tx.append(f"Own{writer}", [{"writer": writer, "number": number}])
            case "upsert":
                # One key that all writers change, and one that is this commit's own.
                own = f"u-{writer}-{number}"
                rows = [
                    {"name": name, "writer": writer, "number": number, "visits": 1}
                    for name in ("everybody", own)
                ]
                tx.upsert("Person", rows)
            case "edges":
                name = f"e-{writer}-{number}"
                person = {"name": name, "writer": writer, "number": number, "visits": 1}
                tx.upsert("Person", [person])
                ends = {"src": name, "dst": "hub"}
                tx.append("Knows", [ends | {"writer": writer, "number": number}])
            case _:
                raise ValueError(kind)


def compact_until(root: str, stop: str) -> dict[str, int]:
    """Compacts again and again until a file appears; counts what was published, and how much of
    that while others wrote."""
    beside, published = 0, 0
    with omnigraph.open(root) as g:
        while not Path(stop).exists():
            published += g.optimize().commit is not None
            beside = published
        published += g.optimize().commit is not None
    return {"published": published, "beside": beside}


def create(roots: list[str], schema: str, name: str) -> list[str]:
    """Creates graphs; says which were won."""
    told = []
    for root in roots:
        try:
            with omnigraph.init(root, schema=schema, actor=name) as g, g.transaction() as tx:
                tx.append("Event", [{"writer": int(name.split("-")[1]), "number": 0}])
            told.append("won")
        except GraphExists:
            told.append("exists")
    return told
