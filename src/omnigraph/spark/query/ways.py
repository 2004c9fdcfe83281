"""Owns named paths on Spark: for each pair of start and end the ids of the shortest way, or of all
shortest ways together. Each round goes one step further from nodes that were reached last, and what
it reaches carries its way along."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as sql

from omnigraph.engine.query.distances import check_steps
from omnigraph.lang.gq.checked import UNBOUNDED, EdgeKind, PathValue, Variable
from omnigraph.model.catalog import EdgeType
from omnigraph.spark.query.context import Compiling
from omnigraph.spark.query.distances import starts_of
from omnigraph.spark.query.edges import FAR, FAR_TYPE, NEAR, NEAR_TYPE, EdgeHop, edges_of, few_edges
from omnigraph.spark.query.frame import SparkFrame

NODES, EDGES, LENGTH = "nodes", "edges", "length"
_NODE, _NODE_TYPE = "node", "node_t"
_PAIR = (NEAR, NEAR_TYPE, _NODE, _NODE_TYPE)
_SHOWN = 3
"""Rounds of a plan that is only shown."""
_EDGE_NUMBER = 1_000_000
"""Variables of a query have numbers below this one."""


def ways_of(c: Compiling, value: PathValue, frame: SparkFrame) -> Any:
    """`near` and `far` with `nodes`, `edges` and `length`, for the starts in a frame."""
    traversal = value.traversal
    types = tuple(dict.fromkeys(step.edge for step in traversal.steps))
    edge = Variable(_EDGE_NUMBER, None, EdgeKind(types))
    hop = EdgeHop(traversal, False, edge)
    starts = starts_of(c, hop, frame)
    own = sql.struct(sql.lit(0).alias("d"), sql.col(NEAR).alias("i"), sql.lit(0).alias("t"))
    whole = starts.select(
        NEAR, NEAR_TYPE, sql.col(NEAR).alias(_NODE), sql.col(NEAR_TYPE).alias(_NODE_TYPE),
        sql.array(own).alias(NODES), sql.array(own).alias(EDGES), sql.lit(0).alias(LENGTH),
    )  # fmt: skip
    whole = whole.withColumn(EDGES, sql.slice(EDGES, 1, 0))
    edges = edges_of(c, hop)
    if edges is None:
        return _named(whole.where(sql.lit(traversal.low == 0)))
    edges = few_edges(c, hop, c.keep(_numbered(c, edge, types, edges)))
    parts = [_search(c, value, whole, edges).where(sql.col(LENGTH) >= traversal.low)]
    if traversal.low == 1:
        parts.append(_loops(value, starts, edges))
    found = parts[0]
    for part in parts[1:]:
        found = found.unionByName(part)
    return _named(found)


def _numbered(c: Compiling, edge: Variable, types: tuple[EdgeType, ...], edges: Any) -> Any:
    """The edges, each with its id and the place of its type in the order of their names."""
    bound = c.bound(edge)
    place = sql.lit(0)
    if bound.type is not None:
        for number, kind in enumerate(sorted(types, key=lambda kind: kind.name)):
            code = c.codes[kind.table_key]
            place = sql.when(sql.col(bound.type) == code, number).otherwise(place)
    return edges.select(
        NEAR, NEAR_TYPE, FAR, FAR_TYPE, sql.col(bound.id).alias("edge"), place.alias("place")
    )


def _search(c: Compiling, value: PathValue, whole: Any, edges: Any) -> Any:
    high = value.traversal.high
    if c.dry:
        high = min(high, _SHOWN)
        c.notes.append(
            f"The search for a way is shown with {_SHOWN} rounds at most; each of its rounds is a "
            "job, and it ends when nothing new is reached."
        )
    ahead = edges.select(
        sql.col(NEAR).alias("from"), sql.col(NEAR_TYPE).alias("from_t"), FAR, FAR_TYPE,
        "edge", "place",
    )  # fmt: skip
    latest = whole
    step = 0
    while step < high:
        step += 1
        if high == UNBOUNDED:
            check_steps(step)
        on = sql.expr(f"{_NODE} = `from` and {_NODE_TYPE} = from_t")
        reached = latest.join(ahead, on).select(
            NEAR, NEAR_TYPE, NODES, EDGES, sql.col(FAR).alias(_NODE),
            sql.col(FAR_TYPE).alias(_NODE_TYPE), _entry(step, "edge", "place").alias("by"),
        )  # fmt: skip
        reached = reached.join(whole.select(*_PAIR), [*_PAIR], "left_anti")
        latest = _gathered(reached, step, every=value.every)
        if not c.dry:
            latest = latest.localCheckpoint()
            if latest.isEmpty():
                break
        whole = whole.unionByName(latest)
    return whole


def _entry(step: int, id_: str, place: str | None = None) -> Any:
    """A node or an edge on a way: sorted by its step, then its id."""
    type_ = sql.lit(0) if place is None else sql.col(place)
    return sql.struct(sql.lit(step).alias("d"), sql.col(id_).alias("i"), type_.alias("t"))


def _gathered(reached: Any, step: int, *, every: bool) -> Any:
    """The ways to each node that one round reached, as one."""
    node = _entry(step, _NODE)
    if every:
        ways = reached.groupBy(*_PAIR).agg(
            sql.flatten(sql.collect_list(NODES)).alias(NODES),
            sql.flatten(sql.collect_list(EDGES)).alias(EDGES),
            sql.collect_set("by").alias("by"),
        )
        nodes = sql.concat(sql.array_sort(sql.array_distinct(NODES)), sql.array(node))
        edges = sql.concat(sql.array_sort(sql.array_distinct(EDGES)), sql.array_sort("by"))
    else:
        way = sql.struct(sql.col(NODES).alias("n"), sql.col(EDGES).alias("e"), sql.col("by"))
        ways = reached.groupBy(*_PAIR).agg(sql.min(way).alias("w"))
        nodes = sql.concat(sql.col("w.n"), sql.array(node))
        edges = sql.concat(sql.col("w.e"), sql.array(sql.col("w.by")))
    return ways.select(*_PAIR, nodes.alias(NODES), edges.alias(EDGES), sql.lit(step).alias(LENGTH))


def _loops(value: PathValue, starts: Any, edges: Any) -> Any:
    """A node is one step from itself by an edge of its own."""
    own = edges.where(f"{NEAR} = {FAR} and {NEAR_TYPE} = {FAR_TYPE}")
    by = _entry(1, "edge", "place")
    held = sql.array_sort(sql.collect_set(by)) if value.every else sql.array(sql.min(by))
    found = own.join(starts, [NEAR, NEAR_TYPE]).groupBy(NEAR, NEAR_TYPE).agg(held.alias(EDGES))
    nodes = sql.array(_entry(0, NEAR), _entry(1, NEAR))
    return found.select(
        NEAR, NEAR_TYPE, sql.col(NEAR).alias(_NODE), sql.col(NEAR_TYPE).alias(_NODE_TYPE),
        nodes.alias(NODES), EDGES, sql.lit(1).alias(LENGTH),
    )  # fmt: skip


def _named(ways: Any) -> Any:
    return ways.select(
        NEAR, NEAR_TYPE, sql.col(_NODE).alias(FAR), sql.col(_NODE_TYPE).alias(FAR_TYPE),
        sql.expr(f"transform({NODES}, x -> x.i)").alias(NODES),
        sql.expr(f"transform({EDGES}, x -> x.i)").alias(EDGES),
        sql.col(LENGTH).cast("bigint").alias(LENGTH),
    )  # fmt: skip
