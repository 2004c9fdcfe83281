"""Owns the numbers of idempotency keys: what a commit costs when its version carries as many as it
can, beside one that carries none."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import omnigraph
from benchmarks.measure import Line, medians, milliseconds
from omnigraph import Graph
from omnigraph.model.keys import RECENT
from omnigraph.settings import Settings
from omnigraph.store.versions import encode_version

TARGET = 1.1


def run(directory: Path) -> list[Line]:
    """Both graphs are equally deep at any time, and write the same rows."""
    full, empty = (_graph(directory / name, keyed=name == "full") for name in ("full", "empty"))
    contenders = {"full": _commit(full), "empty": _commit(empty)}
    for call in contenders.values():
        for _ in range(20):
            call()
    seconds = medians(contenders, rounds=300)
    ratio = seconds["full"] / seconds["empty"]
    sizes = [len(encode_version(g.snapshot().graph_version)) for g in (full, empty)]
    return [
        Line(
            f"one-row commit with {RECENT} keys in its version / with none",
            f"{ratio:.2f} × ({milliseconds(seconds['full'])} / {milliseconds(seconds['empty'])}; "
            f"{sizes[0]:,} / {sizes[1]:,} bytes)",
            f"≤ {TARGET} ×",
            ratio <= TARGET,
        )
    ]


def _graph(root: Path, *, keyed: bool) -> Graph:
    settings = Settings(durability="relaxed", folding="off")
    g = omnigraph.init(root, schema="node Event { at: I64 }\n", settings=settings)
    for number in range(RECENT):
        with g.transaction(idempotency_key=f"key {number}" if keyed else None) as tx:
            tx.append("Event", {"at": number})
    g.optimize()
    return g


def _commit(g: Graph) -> Callable[[], object]:
    numbers = itertools.count()

    def commit() -> None:
        with g.transaction() as tx:
            tx.append("Event", {"at": next(numbers)})

    return commit
