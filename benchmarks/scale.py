"""Owns the curve of what grows with a graph: the driver's time, the bytes of versions, opening and
finding a node, against the number of fragments, of index segments and of types.

The rows are few: what is measured is what all rows together leave to one process, and not what
executors do with them. `python -m benchmarks.scale [fragments]` prints it; the page "A billion
edges" of the guide reckons with it.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import omnigraph
from omnigraph import Graph
from omnigraph.engine.upkeep.optimize import optimize
from omnigraph.engine.upkeep.workers import OwnWorkers, build_segment, pieces_of
from omnigraph.plan.optimize import BY_HAND, IndexWork, Limits, split_segment
from omnigraph.settings import Settings
from omnigraph.store.indexes import Segment
from omnigraph.store.tables import Table
from omnigraph.store.versions import encode_version
from omnigraph.telemetry import Ledger

FRAGMENTS = (10, 100, 1000)
SEGMENTS = (1, 4, 16)
TYPES = (10, 50, 200)
ROWS = 10
"""Of each fragment."""


@dataclass(frozen=True)
class SplitWorkers(OwnWorkers):
    """Builds the parts of an index one after the other, as tasks of Spark do side by side."""

    limits: Limits

    def build(
        self, table: Table, works: Sequence[IndexWork], ledger: Ledger
    ) -> list[tuple[Segment, ...]]:
        return [
            tuple(
                made
                for part in split_segment(pieces_of(table, work.fragments), self.limits)
                if (made := build_segment(table, replace(work, fragments=part), ledger))
            )
            for work in works
        ]


@dataclass(frozen=True)
class Measured:
    """`commit`: seconds of a commit of one row more. `reads`: requests of the first lookup."""

    graph_bytes: int
    table_bytes: int
    commit: float
    opened: float
    first: float
    later: float
    reads: int

    def line(self, what: str) -> str:
        times = (self.commit, self.opened, self.first, self.later)
        shown = " | ".join(f"{1000 * seconds:.1f} ms" for seconds in times)
        return f"| {what} | {self.graph_bytes:,} | {self.table_bytes:,} | {shown} | {self.reads} |"


HEAD = (
    "| | graph version, bytes | table version, bytes | commit | open | first lookup | later "
    "| reads |\n"
    "|---|---|---|---|---|---|---|---|"
)
_RELAXED = Settings(durability="relaxed", folding="off")


def measure(root: Path, rows: int) -> Measured:
    """Of a graph whose type `P` has so many rows."""
    with omnigraph.open(root, settings=_RELAXED) as g:
        commits = [_timed(lambda n=n: _append(g, [rows + n])) for n in range(5)]
        graph_bytes = len(encode_version(g.snapshot().graph_version))
        table = g.snapshot().view(g.snapshot().type("P")).table
        versions = Path(root, table.location).glob("_versions/*.manifest")
        table_bytes = max((path.stat().st_size for path in versions), default=0)
    opened, first, reads = [], [], 0
    for number in range(5):
        began = time.perf_counter()
        with omnigraph.open(root) as g:
            g.snapshot().count("P")
            opened.append(time.perf_counter() - began)
            began = time.perf_counter()
            reads = _find(g, number * 7 % rows)
            first.append(time.perf_counter() - began)
    with omnigraph.open(root) as g:
        _find(g, 0)
        later = [_timed(lambda n=n: _find(g, n * 13 % rows)) for n in range(30)]
    middle = statistics.median
    return Measured(
        graph_bytes,
        table_bytes,
        middle(commits),
        middle(opened),
        middle(first),
        middle(later),
        reads,
    )


def _timed(call: object) -> float:
    assert callable(call)
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def _find(g: Graph, number: int) -> int:
    found = g.query(f'match {{ $p: P {{ name: "p{number}" }} }} return {{ $p.name as name }}')
    assert [row["name"] for row in found.to_pylist()] == [f"p{number}"]
    return found.io.reads


def _append(g: Graph, numbers: Sequence[int]) -> None:
    with g.transaction() as tx:
        tx.append("P", [{"name": f"p{number}"} for number in numbers])


def make(root: Path, fragments: int, segments: int, types: int = 1) -> int:
    """A graph with so many fragments, indexed by so many segments; gives its number of rows."""
    others = "".join(f"node T{n} {{ name: String @key }}\n" for n in range(types - 1))
    g = omnigraph.init(root, schema="node P { name: String @key }\n" + others, settings=_RELAXED)
    for part in range(fragments):
        _append(g, range(part * ROWS, (part + 1) * ROWS))
    for number in range(types - 1):
        with g.transaction() as tx:
            tx.append(f"T{number}", [{"name": "only"}])
    rows = fragments * ROWS
    limits = replace(
        BY_HAND,
        tail=1 << 30,
        index_rows=1,
        segment_rows=max(rows // segments, 1),
        segments=segments,
    )
    optimize(g._session, "main", ["P"], limits=limits, workers=SplitWorkers(limits))  # noqa: SLF001
    g.close()
    return rows


def main() -> None:
    most = int(sys.argv[1]) if len(sys.argv) > 1 else FRAGMENTS[-1]
    asked = [
        *((f"{n:,} fragments", (n, 1, 1)) for n in (*FRAGMENTS, most) if n <= most),
        *((f"100 fragments, {n} segments", (100, n, 1)) for n in SEGMENTS),
        *((f"10 fragments, {n} types", (10, 1, n)) for n in TYPES),
    ]
    print(HEAD)
    for what, shape in dict(asked).items():
        with tempfile.TemporaryDirectory(prefix="omnigraph-scale-") as directory:
            root = Path(directory) / "g"
            print(measure(root, make(root, *shape)).line(what), flush=True)


if __name__ == "__main__":
    main()
