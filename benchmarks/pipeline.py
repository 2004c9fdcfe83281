"""Owns the numbers of Spark: a load of edges and a scan beside Spark's own Parquet, in one session.

    python -m benchmarks.pipeline [edges [nodes]]

Not part of `make bench`: it needs Java, and several minutes for the ten million edges of the issue.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import omnigraph
import omnigraph.spark
from benchmarks.measure import Line
from omnigraph.engine.load.result import Progress
from omnigraph.settings import Settings

EDGES, NODES = 10_000_000, 1_000_000
SCHEMA = """
node Person { name: String @key }
edge Knows: Person -> Person { weight: F64? }
"""


def run(directory: Path, edges: int = EDGES, nodes: int = NODES) -> list[Line]:
    spark = omnigraph.spark.session()
    people = spark.range(0, nodes, 1, 4).selectExpr("concat('p', id) as name")
    knows = spark.range(0, edges, 1, 8).selectExpr(
        f"concat('p', id % {nodes}) as `from`",
        f"concat('p', (id * 7919 + 13) % {nodes}) as `to`",
        "rand(7) as weight",
    )
    warm = str(directory / "warm")
    knows.limit(10_000).write.parquet(warm)
    spark.read.parquet(warm).count()
    g = omnigraph.init(str(directory / "g"), schema=SCHEMA, settings=Settings(durability="relaxed"))
    small = people.limit(1000)
    g.load(small, type="Person", mode="overwrite")
    g.load(people, type="Person", mode="overwrite")
    parquet = str(directory / "knows.parquet")
    written = _timed(lambda: knows.write.parquet(parquet))
    stages: list[tuple[str, float]] = []

    def watch(progress: Progress) -> None:
        stages.append((progress.stage, time.perf_counter()))

    loaded = _timed(lambda: g.load(knows, type="Knows", progress=watch))
    spent = {name: end - start for (name, start), (_, end) in pairwise(stages)}
    native = _timed(lambda: _aggregate(spark.read.parquet(parquet), "from", "to"))
    spark.read.format("omnigraph").option("type", "Person").load(g.root).count()  # warm as Parquet
    source = spark.read.format("omnigraph").option("type", "Knows")
    source = source.option("columns", "src,dst,weight")
    ours = _timed(lambda: _aggregate(source.load(g.root), "src", "dst"))
    staging = written / spent["writing"]
    whole = loaded / written
    scan = native / ours
    told = ", ".join(f"{name} {seconds:.1f} s" for name, seconds in spent.items())
    return [
        Line(f"Spark writes {edges:,} edges as Parquet", f"{written:.1f} s"),
        Line("staging the same, speed beside that", f"{staging:.2f}", "0.65", staging >= 0.65),
        Line("the load with endpoint checks, times that", f"{whole:.1f}", "5", whole <= 5),
        Line("where its time goes", told),
        Line("a scan by the data source beside Parquet", f"{scan:.2f}", "0.9", scan >= 0.9),
    ]


def _aggregate(frame: Any, source: str, target: str) -> Any:
    return frame.selectExpr(
        f"max(`{source}`) as a", f"max(`{target}`) as b", "sum(weight) as c"
    ).collect()


def _timed(call: Callable[[], Any]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


if __name__ == "__main__":
    sizes = [int(text) for text in sys.argv[1:]]
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as place:
        for line in run(Path(place), *sizes):
            print(f"{line.what}: {line.value} {f'(asked: {line.target})' if line.target else ''}")
