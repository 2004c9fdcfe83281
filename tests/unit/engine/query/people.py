"""Owns small graphs of people for tests of the query engine."""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any, Final

import omnigraph
from omnigraph import Graph, Settings, Transaction
from omnigraph.engine.query.ask import ask
from omnigraph.engine.query.prepare import Preparations
from omnigraph.engine.query.result import Result

SCHEMA: Final = """
node Person { name: String @key  age: I64?  city: String? }
node Company { name: String @key }
edge Knows: Person -> Person { since: I64? }
edge WorksAt: Person -> Company
"""


def settings(**changes: Any) -> Settings:
    fixed: dict[str, Any] = {"durability": "relaxed", "folding": "off", "queue": False}
    return Settings(**(fixed | changes))


def graph(schema: str = SCHEMA, **changes: Any) -> Graph:
    return omnigraph.init(
        f"memory://{uuid.uuid4().hex}", schema=schema, settings=settings(**changes)
    )


def reopened(graph: Graph, **changes: Any) -> Graph:
    """Another handle that knows nothing yet."""
    return omnigraph.open(graph.root, settings=settings(**changes))


def fill(
    graph: Graph, rows: Mapping[str, Iterable[Mapping[str, Any]]], branch: str = "main"
) -> None:
    at = graph if branch == "main" else graph.branch(branch)
    with at.transaction() as tx:
        for kind, given in rows.items():
            tx.append(kind, list(given))


def crowd(people: int, edges: int, seed: int = 1) -> dict[str, list[dict[str, Any]]]:
    """People by number, who know others at random, some twice, some themselves."""
    chance = Random(seed)
    names = [f"p{n}" for n in range(people)]
    return {
        "Person": [{"name": n, "age": place % 90} for place, n in enumerate(names)],
        "Knows": [
            {"id": f"k{n}", "from": chance.choice(names), "to": chance.choice(names), "since": n}
            for n in range(edges)
        ],
    }


PAIRS: Final = (
    "match { $a: Person  $a $k:knows $b } return { $a.@id as a, $k.@id as k, $b.@id as b }"
)


def pairs(graph: Graph, ref: str = "main", **options: Any) -> list[tuple[str, str, str]]:
    """Every edge with its ends, as a query finds them."""
    rows = graph.at(ref).query(PAIRS, **options).to_pylist()
    return sorted((row["a"], row["k"], row["b"]) for row in rows)


def scanned(graph: Graph, ref: str = "main") -> list[tuple[str, str, str]]:
    """The same without the query engine."""
    rows = graph.at(ref).scan("Knows").read_all().to_pylist()
    return sorted((row["src"], row["id"], row["dst"]) for row in rows)


def within(tx: Transaction, text: str, **options: Any) -> Result:
    """Asks what a transaction would leave if it ended here."""
    work = tx._write.working(reading=True)
    session = tx._write._session
    prepared = Preparations.shared_by(session).read(text, None, work.snapshot.catalog)
    options = {"timeout": None, "memory_limit": None, "kernel": "auto"} | options
    return ask(session, work.snapshot, prepared, None, view=work.view, **options)
