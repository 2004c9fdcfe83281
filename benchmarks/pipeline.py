"""Owns the numbers of Spark: loads of edges and a scan beside Spark's own Parquet, in one session.

    python -m benchmarks.pipeline [edges [nodes [rounds]]]

Not part of `make bench`: it needs Java, and several minutes for the ten million edges of the issue.
All contenders take turns, and medians are compared.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any

import omnigraph
import omnigraph.spark
from benchmarks.measure import Line, Moment, Spent, median_spent, spent_on
from omnigraph.engine.load.progress import LoadProgress
from omnigraph.settings import Settings

EDGES, NODES, ROUNDS = 10_000_000, 1_000_000, 3
SCANS = 5
"""The first of them warms up: the JVM compiles what it has run often."""
SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person { weight: F64? }
edge Follows: Person -> Person @card(0..20) { weight: F64?  @key(src, dst)  @unique(src, dst) }
"""
"""Of `Knows` the ends are checked, of `Follows` all that can be: that no edge comes twice and
none is there already, that no two have the same ends, and how many a person has."""
STAGES = ("reading", "checking", "writing", "indexing", "publishing")


def run(
    directory: Path, edges: int = EDGES, nodes: int = NODES, rounds: int = ROUNDS
) -> list[Line]:
    spark = omnigraph.spark.session()
    frame = spark.range(0, edges, 1, 8).selectExpr(
        f"concat('p', id % {nodes}) as `from`",
        f"concat('p', (id * 7919 + id div {nodes} * 104729 + 13) % {nodes}) as `to`",
        "rand(7) as weight",
    )
    people = spark.range(0, nodes, 1, 4).selectExpr("concat('p', id) as name")
    g = omnigraph.init(str(directory / "g"), schema=SCHEMA, settings=Settings(durability="relaxed"))
    g.load(people, type="Person", mode="overwrite")
    parquet = str(directory / "edges.parquet")
    branches = count()
    stages: dict[str, list[dict[str, Spent]]] = {"Knows": [], "Follows": []}

    def load(type: str, source: Any) -> None:
        watch = Watch()
        g.load(
            source,
            type=type,
            new_branch=f"round-{next(branches)}",
            progress=watch.see,
        )
        stages[type].append(watch.spent())

    for kind in stages:
        load(kind, frame.limit(10_000))
    frame.limit(10_000).write.parquet(parquet)
    loads = in_turns(
        {
            "parquet": lambda: frame.write.mode("overwrite").parquet(parquet),
            "ends": partial(load, "Knows", frame),
            "all": partial(load, "Follows", frame),
        },
        rounds,
    )
    spent = {
        kind: {stage: median_spent([one[stage] for one in seen[1:]]) for stage in STAGES}
        for kind, seen in stages.items()
    }
    ref = f"round-{next(branches) - 2}"
    source = spark.read.format("omnigraph").option("type", "Knows").option("ref", ref)
    source = source.option("columns", "src,dst,weight")

    def rows_only() -> None:
        spark.conf.set("spark.omnigraph.columnar", "false")
        _aggregate(source.load(g.root), "src", "dst")
        spark.conf.unset("spark.omnigraph.columnar")

    scans = in_turns(
        {
            "parquet": lambda: _aggregate(spark.read.parquet(parquet), "from", "to"),
            "ours": lambda: _aggregate(source.load(g.root), "src", "dst"),
            "rows": rows_only,
        },
        SCANS,
        warm=1,
    )
    return [*_of_loads(edges, loads, spent), *_of_scans(edges, scans)]


class Watch:
    """When each stage of a load began."""

    def __init__(self) -> None:
        self._seen: dict[str, Moment] = {}

    def see(self, progress: LoadProgress) -> None:
        if progress.stage not in self._seen:
            self._seen[progress.stage] = Moment.now()

    def spent(self) -> dict[str, Spent]:
        marks = [*self._seen.items(), ("", Moment.now())]
        return {name: start.until(end) for (name, start), (_, end) in pairwise(marks)}


def in_turns(
    contenders: dict[str, Callable[[], object]], rounds: int, *, warm: int = 0
) -> dict[str, Spent]:
    seen: dict[str, list[Spent]] = {name: [] for name in contenders}
    for number in range(warm + rounds):
        for name, call in contenders.items():
            spent = spent_on(call)
            print(f"{name}: {spent}", file=sys.stderr)
            if number >= warm:
                seen[name].append(spent)
    return {name: median_spent(values) for name, values in seen.items()}


def _of_loads(
    edges: int, loads: dict[str, Spent], stages: dict[str, dict[str, Spent]]
) -> list[Line]:
    parquet = loads["parquet"]
    knows = stages["Knows"]
    both = Spent(
        knows["reading"].clock + knows["writing"].clock,
        knows["reading"].processors + knows["writing"].processors,
    )
    staging = parquet.clock / both.clock
    lines = [
        Line(f"Spark writes {edges:,} edges as Parquet", str(parquet)),
        Line(
            "speed of staging the same, from DataFrame to fragments / of that",
            f"{staging:.2f} ({both})",
            "≥ 0.65",
            staging >= 0.65,
        ),
        Line(
            "of that only writing fragments",
            f"{parquet.clock / knows['writing'].clock:.2f} ({knows['writing']})",
        ),
    ]
    for what, name, kind, most in (
        ("endpoint checks only", "ends", "Knows", 5),
        ("all checks", "all", "Follows", 8),
    ):
        ratio = loads[name].clock / parquet.clock
        busy = loads[name].processors / parquet.processors
        lines.append(
            Line(
                f"whole load with indexes and {what} / that",
                f"{ratio:.1f} × ({loads[name]}; by processors {busy:.1f} ×)",
                f"≤ {most} ×",
                ratio <= most,
            )
        )
        told = ", ".join(f"{stage} {stages[kind][stage]}" for stage in STAGES)
        lines.append(Line("where its time goes", told))
    return lines


def _of_scans(edges: int, scans: dict[str, Spent]) -> list[Line]:
    native, ours, rows = scans["parquet"], scans["ours"], scans["rows"]
    ratio = native.clock / ours.clock
    return [
        Line(
            f"speed of a scan of {edges:,} edges by the data source / of Parquet",
            f"{ratio:.2f} ({ours.clock:.2f} s / {native.clock:.2f} s; by processors "
            f"{native.processors / ours.processors:.2f}, {ours.processors:.2f} s / "
            f"{native.processors:.2f} s)",
            "≥ 0.9",
            ratio >= 0.9,
        ),
        Line(
            "the same without the extension, row by row",
            f"{native.clock / rows.clock:.2f} ({rows.clock:.2f} s; by processors "
            f"{native.processors / rows.processors:.2f})",
        ),
    ]


def _aggregate(frame: Any, source: str, target: str) -> Any:
    return frame.selectExpr(
        f"max(`{source}`) as a", f"max(`{target}`) as b", "sum(weight) as c"
    ).collect()


if __name__ == "__main__":
    sizes = [int(text) for text in sys.argv[1:]]
    place = Path(tempfile.mkdtemp(prefix="omnigraph-bench-"))
    try:
        for line in run(place, *sizes):
            target = f" | asked: {line.target}" if line.target else ""
            print(f"{line.what}: {line.value}{target}")
    finally:
        shutil.rmtree(place)
