"""Owns the result as a networkx graph: Spark finds which nodes and edges the match bound, and their
contents are read in this process, where the graph is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import functions as sql

from omnigraph.engine.query.leaves import is_shown
from omnigraph.engine.query.networks import empty_network
from omnigraph.lang.gq.checked import EdgeKind, Variable
from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.plan.query.logical import pattern_variables
from omnigraph.spark.query.context import Compiling
from omnigraph.spark.query.finish import chosen_rows
from omnigraph.spark.query.frame import SparkFrame
from omnigraph.spark.query.steps import run_steps

if TYPE_CHECKING:
    import networkx as nx


def build_network(c: Compiling) -> nx.MultiDiGraph:
    """As the local engine builds it, from a plan that keeps every variable."""
    network = empty_network()
    frame = run_steps(c, c.plan.pattern, c.unit())
    frame = c.shared(frame.over(chosen_rows(c, frame)))
    variables = list(pattern_variables(c.plan.query.pattern))
    for variable in sorted(variables, key=lambda v: isinstance(v.kind, EdgeKind)):
        for kind, ids in _bound(c, frame, variable):
            for row in _rows(c, kind, ids):
                _add(network, kind, row)
    return network


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


def _rows(c: Compiling, kind: GraphType, ids: pa.Array) -> list[dict[str, Any]]:
    if not len(ids):
        return []
    ends = ["src", "dst"] if isinstance(kind, EdgeType) else []
    names = ["id", *ends, *(p.name for p in kind.properties if is_shown(p.type))]
    wanted = pc.field("id").isin(ids)
    batches = c.snapshot.view(kind).scan(c.snapshot.io, columns=names, filter=wanted)
    return [row for batch in batches for row in batch.to_pylist()]


def _add(network: Any, kind: GraphType, row: dict[str, Any]) -> None:
    key = row.pop("id")
    if isinstance(kind, EdgeType):
        ends = ((kind.source, row.pop("src")), (kind.target, row.pop("dst")))
        network.add_edge(*ends, key=key)
        network.edges[*ends, key].update(row | {"@type": kind.name})
        return
    node = (kind.name, key)
    network.add_node(node)
    network.nodes[node].update(row)  # not as keywords: users choose the names
