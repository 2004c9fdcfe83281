"""Owns distances: which nodes are between m and n steps from where a frame stands, by the shortest
way. Each round joins the nodes that were reached last with their edges, and keeps for each pair of
start and node the least distance."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as sql

from omnigraph.engine.query.distances import check_steps
from omnigraph.lang.gq.checked import UNBOUNDED
from omnigraph.spark.query.context import Compiling
from omnigraph.spark.query.edges import (
    FAR,
    FAR_TYPE,
    NEAR,
    NEAR_TYPE,
    PAIR,
    EdgeHop,
    few_edges,
    pairs_of,
)
from omnigraph.spark.query.frame import SparkFrame

_UNROLLED = 3
"""Up to this many rounds are part of one plan; more run one by one, until nothing new is
reached."""
_NODE, _NODE_TYPE, _AT = "node", "node_t", "at"


def pairs_within(c: Compiling, hop: EdgeHop, frame: SparkFrame) -> Any:
    """`near` and `far` by the distance between them, in the form of edges. None if there can be no
    such pairs."""
    low, high = hop.traversal.low, hop.traversal.high
    starts = starts_of(c, hop, frame)
    edges = pairs_of(c, hop)
    parts = []
    if edges is None:
        high = 0
    reached = starts.select(
        NEAR, NEAR_TYPE, sql.col(NEAR).alias(_NODE), sql.col(NEAR_TYPE).alias(_NODE_TYPE),
        sql.lit(0).alias(_AT),
    )  # fmt: skip
    if high > 0:
        # They are followed in every round.
        edges = few_edges(c, hop, c.keep(edges))
        reached = _rounds(c, reached, edges, high)
    between = reached.where((sql.col(_AT) >= low) & (sql.col(_AT) <= high))
    names = sql.col(_NODE).alias(FAR), sql.col(_NODE_TYPE).alias(FAR_TYPE)
    parts.append(between.select(NEAR, NEAR_TYPE, *names))
    if low == 1 and high > 0:
        # A node is one step from itself by a loop of its own.
        loops = edges.where(f"{NEAR} = {FAR} and {NEAR_TYPE} = {FAR_TYPE}")
        parts.append(loops.join(starts, [NEAR, NEAR_TYPE]).select(*PAIR))
    whole = parts[0].select(*PAIR)
    for part in parts[1:]:
        whole = whole.unionByName(part)
    return _fitting(c, hop, whole)


def starts_of(c: Compiling, hop: EdgeHop, frame: SparkFrame) -> Any:
    """The distinct nodes in the rows of a frame."""
    bound = frame.bound[hop.start]
    kind = bound.variable.kind.types[0]
    code = sql.lit(c.codes[kind.table_key]) if bound.type is None else sql.col(bound.type)
    there = frame.data.where(sql.col(bound.id).isNotNull())
    return there.select(sql.col(bound.id).alias(NEAR), code.alias(NEAR_TYPE)).distinct()


def _rounds(c: Compiling, reached: Any, edges: Any, high: int) -> Any:
    rounds = high
    if high > _UNROLLED:
        if not c.dry:
            return _search(reached, edges, high)
        rounds = _UNROLLED
        of = "any number of" if high == UNBOUNDED else high
        c.notes.append(
            f"A search of {of} rounds is shown with {rounds}; each of its rounds is a job, and "
            "it ends when nothing new is reached."
        )
    for distance in range(1, rounds + 1):
        reached = _round(reached, edges, distance)
    return reached


def _search(reached: Any, edges: Any, high: int) -> Any:
    """Round by round. Each is kept where it was computed: the nodes reached last are few compared
    with all edges, and joined with them as such."""
    latest = whole = reached
    for distance in range(1, high + 1):
        check_steps(distance)
        ahead = _ahead(edges)
        on = sql.expr(f"{_NODE} = `from` and {_NODE_TYPE} = from_t")
        found = latest.join(ahead, on).select(
            NEAR, NEAR_TYPE, sql.col(FAR).alias(_NODE), sql.col(FAR_TYPE).alias(_NODE_TYPE)
        )
        pair = [NEAR, NEAR_TYPE, _NODE, _NODE_TYPE]
        latest = found.distinct().join(whole.select(*pair), pair, "left_anti")
        latest = latest.select(*pair, sql.lit(distance).alias(_AT)).localCheckpoint()
        if latest.isEmpty():
            break
        whole = whole.unionByName(latest)
    return whole


def _ahead(edges: Any) -> Any:
    return edges.select(
        sql.col(NEAR).alias("from"), sql.col(NEAR_TYPE).alias("from_t"), FAR, FAR_TYPE
    )


def _round(reached: Any, edges: Any, distance: int) -> Any:
    """One more step. Nodes that were reached before stay as they are, and the edges of the last
    ones are followed. Both come out of one join, so a round is computed once."""
    on = f"{_AT} = {distance - 1} and {_NODE} = `from` and {_NODE_TYPE} = from_t"
    joined = reached.join(_ahead(edges), sql.expr(on), "left")
    stays = sql.struct(
        sql.col(_NODE).alias("i"), sql.col(_NODE_TYPE).alias("t"), sql.col(_AT).alias("d")
    )
    goes = sql.struct(
        sql.col(FAR).alias("i"), sql.col(FAR_TYPE).alias("t"), sql.lit(distance).alias("d")
    )
    both = joined.select(NEAR, NEAR_TYPE, sql.explode(sql.array(stays, goes)).alias("p"))
    listed = both.where("p.i is not null").select(
        NEAR, NEAR_TYPE, sql.expr("p.i").alias(_NODE), sql.expr("p.t").alias(_NODE_TYPE),
        sql.expr("p.d").alias(_AT),
    )  # fmt: skip
    return listed.groupBy(NEAR, NEAR_TYPE, _NODE, _NODE_TYPE).agg(sql.min(_AT).alias(_AT))


def _fitting(c: Compiling, hop: EdgeHop, pairs: Any) -> Any:
    """Distance 0 is the start itself, which may have a type that the end cannot have."""
    starts = {kind.name for kind in c.plan.variables[hop.start].kind.types}
    ends = c.plan.variables[hop.end].kind.types
    if hop.traversal.low > 0 or starts <= {kind.name for kind in ends}:
        return pairs
    return pairs.where(pairs[FAR_TYPE].isin([c.codes[kind.table_key] for kind in ends]))
