"""Owns the network that an algorithm runs on, as DataFrames: nodes with numbers that grow with type
and id, and edges as pairs of numbers, in the direction in which they are followed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from omnigraph.engine.algorithms.scope import AlgorithmScope
from omnigraph.engine.graph_view import GraphView
from omnigraph.errors import InvalidArgument, NotFound
from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.spark.scan import pin_scan


@dataclass(frozen=True)
class FrameNetwork:
    """`nodes` has `node`, `type` and `id`; `edges` has `src` and `dst`. Numbers have gaps."""

    spark: Any
    nodes: Any
    edges: Any
    count: int
    several: bool

    def find(self, names: Sequence[str | tuple[str, str]]) -> Any:
        """Nodes by id, or by (type, id) where several types have the id, as rows of `node`."""
        from pyspark.sql import functions as f

        texts = [name if isinstance(name, str) else name[1] for name in names]
        held = self.nodes.where(f.col("id").isin(texts)).collect()
        found = []
        for name in names:
            kind, text = (None, name) if isinstance(name, str) else name
            places = [r["node"] for r in held if r["id"] == text and kind in (None, r["type"])]
            if not places:
                raise NotFound(f"There is no node {name!r} among the nodes of these edges.")
            if len(places) > 1:
                raise InvalidArgument(f"Several types have a node {text!r}: give (type, id).")
            found += places
        return self.spark.createDataFrame([(place,) for place in sorted(set(found))], "node long")


def build_network(
    spark: Any, root: str, snapshot: GraphView, scope: AlgorithmScope
) -> FrameNetwork:
    from pyspark.sql import functions as f

    def scan(kind: GraphType, *columns: str) -> Any:
        where = scope.where.get(kind.table_key)
        pinned = pin_scan(root, snapshot, kind, now=scope.now, columns=columns, where=where)
        return pinned.frame(spark)

    kinds = [scan(kind, "id").select(f.lit(kind.name).alias("type"), "id") for kind in scope.nodes]
    together = reduce(lambda left, right: left.unionByName(right), kinds)
    # The numbers are those of a sort over all partitions; fixed here, because a partition that is
    # computed again may come out in other pieces.
    numbered = together.orderBy("type", "id").select(
        f.monotonically_increasing_id().alias("node"), "type", "id"
    )
    nodes = numbered.localCheckpoint()
    parts = [_ends(scan(edge, "src", "dst"), nodes, edge, way) for edge, way in scope.edges]
    edges = reduce(lambda left, right: left.unionByName(right), parts).localCheckpoint()
    return FrameNetwork(spark, nodes, edges, nodes.count(), len(scope.nodes) > 1)


def _ends(ends: Any, nodes: Any, edge: EdgeType, way: str) -> Any:
    """Numbers for ids; an edge with an end that takes no part is left out."""
    from pyspark.sql import functions as f

    def of(kind: str, number: str, id: str) -> Any:
        return nodes.where(f.col("type") == kind).select(
            f.col("node").alias(number), f.col("id").alias(id)
        )

    found = ends.join(of(edge.source, "here", "src"), "src")
    found = found.join(of(edge.target, "there", "dst"), "dst").select("here", "there")
    out = found.select(f.col("here").alias("src"), f.col("there").alias("dst"))
    back = found.select(f.col("there").alias("src"), f.col("here").alias("dst"))
    if way == "out":
        return out
    # A loop that is followed both ways is still one edge.
    return back if way == "in" else out.unionByName(back.where("src != dst"))
