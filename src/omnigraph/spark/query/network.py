"""Owns the subgraph of a result: Spark finds which nodes and edges the match bound, and their
contents are read in this process."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sql

from omnigraph.engine.query.leaves import is_shown
from omnigraph.lang.gq.checked import EdgeKind, Variable
from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.model.types import PropertyType, VectorType
from omnigraph.plan.query.logical import pattern_variables
from omnigraph.show.parts import SubgraphEdge, SubgraphNode
from omnigraph.show.subgraph import Subgraph
from omnigraph.spark.query.context import Compiling
from omnigraph.spark.query.finish import chosen_rows
from omnigraph.spark.query.frame import SparkFrame
from omnigraph.spark.query.steps import run_steps


def build_network(c: Compiling, *, vectors: bool) -> Subgraph:
    """As the local engine builds it, from a plan that keeps every variable."""
    nodes: list[SubgraphNode] = []
    edges: list[SubgraphEdge] = []
    frame = run_steps(c, c.plan.pattern, c.unit())
    frame = c.shared(frame.over(chosen_rows(c, frame)))
    variables = list(pattern_variables(c.plan.query.pattern))
    for variable in sorted(variables, key=lambda v: isinstance(v.kind, EdgeKind)):
        for kind, ids in _bound(c, frame, variable):
            for row in _rows(c, kind, ids, vectors=vectors):
                if isinstance(kind, EdgeType):
                    edges.append(_edge(kind, row))
                else:
                    nodes.append(SubgraphNode(kind.name, row.pop("id"), row))
    return Subgraph(nodes, edges)


def _bound(c: Compiling, frame: SparkFrame, variable: Variable) -> list[tuple[GraphType, pa.Array]]:
    """The entities of a variable by their types."""
    bound = c.bound(variable)
    there = frame.data.where(sql.col(bound.id).isNotNull())
    found = there.select(*bound.identity).distinct().toArrow()
    kinds: tuple[GraphType, ...] = variable.kind.types
    if bound.type is None:
        return [(kinds[0], found.column(0).combine_chunks())]
    return [
        (kind, found.filter(pc.field(bound.type) == c.codes[kind.table_key])[bound.id])
        for kind in kinds
    ]


def _rows(c: Compiling, kind: GraphType, ids: pa.Array, *, vectors: bool) -> list[dict[str, Any]]:
    if not len(ids):
        return []
    ends = ["src", "dst"] if isinstance(kind, EdgeType) else []
    held = [p.name for p in kind.properties if is_shown(p.type) or _is_wanted(p.type, vectors)]
    wanted = pc.field("id").isin(ids)
    names = ["id", *ends, *held]
    batches = c.snapshot.view(kind).scan(c.snapshot.io, columns=names, filter=wanted)
    return [row for batch in batches for row in batch.to_pylist()]


def _is_wanted(kind: PropertyType, vectors: bool) -> bool:
    return vectors and isinstance(kind, VectorType)


def _edge(kind: EdgeType, row: dict[str, Any]) -> SubgraphEdge:
    key, source, target = row.pop("id"), row.pop("src"), row.pop("dst")
    return SubgraphEdge(kind.name, key, (kind.source, source), (kind.target, target), row)
