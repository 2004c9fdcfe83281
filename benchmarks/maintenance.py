"""Owns the numbers of maintenance: reads and writes after few and after many one-row commits, with
folding on and nobody to look after the graph, and what folding itself costs."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import omnigraph
from benchmarks.measure import Line, milliseconds
from omnigraph.engine.graph import Graph
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger

SCHEMA = "node Person { name: String @key age: I64? @index }\n"
POINT = (
    "query one($name: String) { match { $p: Person { name: $name } } return { $p.name, $p.age } }"
)
SETTINGS = Settings(durability="relaxed")
DEPTHS = (10, 1_000, 10_000)
SAMPLES = 15


@dataclass(frozen=True)
class Look:
    """What operations took at a depth: seconds and, where it matters, requests and bytes."""

    cold: float
    cold_io: Ledger
    warm: float
    warm_io: Ledger
    scan: float
    scan_io: Ledger
    write: float
    write_io: Ledger


def run(directory: Path) -> list[Line]:
    with omnigraph.init(directory / "graph", schema=SCHEMA, settings=SETTINGS) as g:
        looks, written = {}, 0
        start = time.perf_counter()
        for depth in DEPTHS:
            while written < depth:
                written = _write(g, written)[1]
            looks[depth], written = _look(g, written)
        seconds = time.perf_counter() - start
        assert g.maintenance is not None
        folds, io = g.maintenance.folds, g.maintenance.io
        segments = g.snapshot().graph_version.pins["node:Person"].fragments
        few = looks[DEPTHS[0]]
        lines = []
        for depth in DEPTHS[1:]:
            lines += _compare(depth, few, looks[depth])
        share = (io.reads + io.writes) / written
        lines += [
            Line(
                "folds, and their requests for each commit",
                f"{folds} for {written:,} commits; {share:.2f} requests, "
                f"{io.bytes / written / 1024:.1f} KB a commit",
            ),
            Line("fragments at the end", str(segments)),
            Line("commits a second over all, folds included", f"{written / seconds:.0f}"),
        ]
    return lines


def _compare(depth: int, few: Look, many: Look) -> list[Line]:
    def requests(name: str, old: Ledger, new: Ledger, *, bound: int | None) -> Line:
        ratio = new.reads / max(old.reads, 1)
        return Line(
            f"{name}, requests after {depth:,} / after 10",
            f"{ratio:.2f} × ({new.reads} / {old.reads}; {new.read_bytes / 1024:.0f} KB / "
            f"{old.read_bytes / 1024:.0f} KB)",
            "" if bound is None else f"≤ {bound} ×",
            None if bound is None else ratio <= bound,
        )

    def times(name: str, old: float, new: float) -> Line:
        return Line(
            f"{name}, time after {depth:,} / after 10",
            f"{new / old:.2f} × ({milliseconds(new)} / {milliseconds(old)})",
        )

    return [
        requests("point query, cold handle", few.cold_io, many.cold_io, bound=3),
        times("point query, cold handle", few.cold, many.cold),
        requests("point query, warm handle", few.warm_io, many.warm_io, bound=3),
        times("point query, warm handle", few.warm, many.warm),
        times(f"scan of all {depth:,} rows", few.scan, many.scan),
        Line(
            f"one-row write, requests after {depth:,} / after 10",
            f"{many.write_io.reads + many.write_io.writes} / "
            f"{few.write_io.reads + few.write_io.writes}",
            "equal",
            many.write_io.counts == few.write_io.counts,
        ),
        times("one-row write", few.write, many.write),
    ]


def _look(g: Graph, written: int) -> tuple[Look, int]:
    """Samples spread over a whole cycle of folding, writes in between."""
    timed: dict[str, list[float]] = {"cold": [], "warm": [], "scan": [], "write": []}
    ledgers: dict[str, list[Ledger]] = {name: [] for name in timed}
    few = written < 100
    for sample in range(SAMPLES):
        asked = f"person-{(sample * written) // SAMPLES:08}"
        with omnigraph.open(g.root, mode="r", settings=SETTINGS) as cold:
            _time("cold", lambda: _ask(cold, asked), timed, ledgers)  # noqa: B023
        _ask(g, asked)
        _time("warm", lambda: _ask(g, asked), timed, ledgers)  # noqa: B023
        _time("scan", lambda: _scan(g), timed, ledgers)
        if not few or sample == 0:
            start = time.perf_counter()
            io, written = _write(g, written)
            timed["write"].append(time.perf_counter() - start)
            ledgers["write"].append(io)
    found = {name: statistics.median(values) for name, values in timed.items()}
    worst = {name: max(values, key=lambda io: io.reads) for name, values in ledgers.items()}
    look = Look(
        found["cold"],
        worst["cold"],
        found["warm"],
        worst["warm"],
        found["scan"],
        worst["scan"],
        found["write"],
        worst["write"],
    )
    return look, written


def _time(
    name: str,
    call: Callable[[], Ledger],
    timed: dict[str, list[float]],
    ledgers: dict[str, list[Ledger]],
) -> None:
    start = time.perf_counter()
    ledger = call()
    timed[name].append(time.perf_counter() - start)
    ledgers[name].append(ledger)


def _ask(g: Graph, name: str) -> Ledger:
    found = g.query(POINT, params={"name": name})
    assert len(found.to_pylist()) == 1
    return found.io


def _scan(g: Graph) -> Ledger:
    snapshot = g.snapshot()
    snapshot.scan("Person").read_all()
    return snapshot.io


def _write(g: Graph, written: int) -> tuple[Ledger, int]:
    with g.transaction() as tx:
        tx.append("Person", {"name": f"person-{written:08}", "age": written})
    return tx.io, written + 1


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as place:
        for line in run(Path(place)):
            print(f"| {line.what} | {line.value} | {line.target} | {line.holds} |")
    sys.exit(0)
