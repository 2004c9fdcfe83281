"""Owns an algorithm on Spark, from the snapshot to its values, and storing these as a property.
Executors compute, join and stage. No value comes to this process unless it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.engine.algorithms.registry import VALUES, find_algorithm
from omnigraph.engine.algorithms.result import Target
from omnigraph.engine.algorithms.scope import AlgorithmScope
from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.load.run import LoadOptions, load
from omnigraph.engine.session import Session
from omnigraph.model.catalog import NodeType
from omnigraph.model.version import Commit
from omnigraph.spark.algorithms.kernels import KERNELS
from omnigraph.spark.algorithms.network import FrameNetwork, build_network
from omnigraph.spark.cluster import require_reachable
from omnigraph.spark.scan import pin_scan
from omnigraph.spark.tasks import collect, ending_jobs, explained


@dataclass(frozen=True)
class SparkValues:
    """Values on executors: `frame` has `type`, `id` and `value`."""

    spark: Any
    session: Session
    snapshot: GraphView
    scope: AlgorithmScope
    frame: Any
    kind: pa.DataType
    rounds: int

    def read(self) -> pa.Table:
        schema = pa.schema([("type", pa.string()), ("id", pa.string()), ("value", self.kind)])
        return collect(self.frame.orderBy("type", "id")).cast(schema)

    def write(self, target: Target) -> Commit | None:
        frames = {kind.table_key: self._rows(kind, target.property) for kind in target.kinds}
        branch = self.snapshot.branch
        options = LoadOptions(mode="merge", branch=branch, engine="spark", commit=target.commit)
        return load(self.session, frames, options).commit

    def _rows(self, kind: NodeType, property: str) -> Any:
        """The id, and the key from which it is made, with the value under the property's name."""
        from pyspark.sql import functions as f

        own = self.frame.where(f.col("type") == kind.name)
        rows = own.select("id", f.col("value").alias(property))
        if not kind.key:
            return rows
        scan = pin_scan(
            self.session.root.uri,
            self.snapshot,
            kind,
            now=self.scope.now,
            columns=["id", *kind.key],
        )
        return rows.join(scan.frame(self.spark), "id")


def compute_on(
    spark: Any,
    session: Session,
    snapshot: GraphView,
    scope: AlgorithmScope,
    name: str,
    options: Mapping[str, Any],
) -> SparkValues:
    require_reachable(spark, session.root)
    kind = find_algorithm(name).kind
    operation = session.runtime.ulid()
    with ending_jobs(spark, operation), explained():
        network = build_network(spark, session.root.uri, snapshot, scope)
        values, rounds = KERNELS[name](network, **options)
        if kind == "label":
            values = _named(network, values)
        held = network.nodes.join(values, "node", "left").select("type", "id", "value")
        frame = held.localCheckpoint()
    return SparkValues(spark, session, snapshot, scope, frame, VALUES[kind], rounds)


def _named(network: FrameNetwork, values: Any) -> Any:
    """The name of the node that a label stands for: its id, preceded by its type if there are
    several types."""
    from pyspark.sql import functions as f

    name = f.concat_ws(":", "type", "id") if network.several else f.col("id")
    names = network.nodes.select(f.col("node").alias("value"), name.alias("name"))
    return values.join(names, "value").select("node", f.col("name").alias("value"))
