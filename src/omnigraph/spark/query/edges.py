"""Owns the edges of a traversal as rows: `near`, `far`, the numbers of their types, and an edge
variable if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sql

from omnigraph.lang.gq.checked import Direction, Expression, Traversal, Variable
from omnigraph.lang.gq.walk import used_variables
from omnigraph.model.catalog import EdgeType
from omnigraph.spark.query.context import Compiling, union
from omnigraph.spark.query.frame import schema_of
from omnigraph.spark.query.tables import TableReading, Way, read_frame

NEAR, FAR, NEAR_TYPE, FAR_TYPE = "near", "far", "near_t", "far_t"
PAIR = (NEAR, NEAR_TYPE, FAR, FAR_TYPE)


@dataclass(frozen=True)
class TypedEdgeHop:
    """One edge type in one direction. `place` is its index among the types of an edge variable."""

    edge: EdgeType
    near: str
    far: str
    way: Way


@dataclass(frozen=True)
class EdgeHop:
    """A traversal from one of its ends, with `edge` and its `tests` if the edges themselves are
    needed."""

    traversal: Traversal
    backward: bool
    edge: Variable | None = None
    tests: tuple[Expression, ...] = ()

    @property
    def start(self) -> int:
        return self.traversal.target if self.backward else self.traversal.source

    @property
    def end(self) -> int:
        return self.traversal.source if self.backward else self.traversal.target

    @property
    def is_single(self) -> bool:
        return (self.traversal.low, self.traversal.high) == (1, 1)


def hop_of(
    traversal: Traversal,
    backward: bool,
    edge: Variable | None = None,
    tests: tuple[Expression, ...] = (),
) -> EdgeHop:
    mine = () if edge is None else tuple(t for t in tests if edge.id in used_variables(t))
    return EdgeHop(traversal, backward, edge, mine)


def legs_of(c: Compiling, hop: EdgeHop) -> list[TypedEdgeHop]:
    """The steps that can lead from the types of the one end to those of the other."""
    starts = {kind.name for kind in c.plan.variables[hop.start].kind.types}
    ends = {kind.name for kind in c.plan.variables[hop.end].kind.types}
    found = []
    for step in hop.traversal.steps:
        forward = (step.direction is Direction.FORWARD) != hop.backward
        way: Way = "out" if forward else "in"
        if step.direction is Direction.EITHER:
            way, forward = "both", True
        near, far = step.edge.source, step.edge.target
        if not forward:
            near, far = far, near
        if near in starts and far in ends:
            found.append(TypedEdgeHop(step.edge, near, far, way))
    return found


def edges_of(c: Compiling, hop: EdgeHop) -> Any:
    """Every edge, by its ends, or None if no edge can lead there."""
    parts = []
    for leg in legs_of(c, hop):
        data = _read(c, hop, leg)
        near = sql.lit(c.codes[f"node:{leg.near}"]).alias(NEAR_TYPE)
        far = sql.lit(c.codes[f"node:{leg.far}"]).alias(FAR_TYPE)
        parts.append(data.select("*", near, far))
    return union(parts) if parts else None


def _read(c: Compiling, hop: EdgeHop, leg: TypedEdgeHop) -> Any:
    fields = [pa.field(NEAR, pa.string()), pa.field(FAR, pa.string())]
    if hop.edge is None:
        reading = TableReading(c.pinned(leg.edge), pa.schema(fields), ends=(NEAR, FAR), way=leg.way)
        return read_frame(c.spark, reading, c.sizes(leg.edge))
    bound = c.bound(hop.edge)
    reading = TableReading(
        c.pinned(leg.edge),
        pa.schema([*schema_of(bound), *fields]),
        identity=tuple(bound.identity),
        held=tuple((bound.column(held), held) for held in bound.held),
        code=c.codes[leg.edge.table_key],
        place=_place(hop.edge, leg.edge),
        tests=hop.tests,
        bindings=c.given.bindings,
        ends=(NEAR, FAR),
        way=leg.way,
    )
    return read_frame(c.spark, reading, c.sizes(leg.edge))


def _place(variable: Variable, edge: EdgeType) -> int:
    return [kind.name for kind in variable.kind.types].index(edge.name)


def pairs_of(c: Compiling, hop: EdgeHop) -> Any:
    """The pairs of joined nodes, each once however many edges join them. None if there can be
    none."""
    edges = edges_of(c, hop)
    if edges is None or _are_pairs(c, hop):
        return edges
    # By the near end, so that a join on it finds the rows where they are.
    return edges.repartition(NEAR, NEAR_TYPE).dropDuplicates(list(PAIR))


def _are_pairs(c: Compiling, hop: EdgeHop) -> bool:
    """Whether no two edges join the same nodes."""
    legs = legs_of(c, hop)
    return len(legs) == 1 and legs[0].way != "both" and set(legs[0].edge.key) == {"src", "dst"}


def few_edges(c: Compiling, hop: EdgeHop, data: Any) -> Any:
    """Adds a hint if they are few."""
    return c.small(data, [leg.edge for leg in legs_of(c, hop)])
