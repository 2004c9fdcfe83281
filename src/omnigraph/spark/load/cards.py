"""Owns the cardinality of edges as joins on Spark: how many a source would have."""

from __future__ import annotations

from functools import partial
from typing import Any

from omnigraph.model.catalog import EdgeType
from omnigraph.plan.load.reasons import Reason, abandoned, has_too_few, has_too_many
from omnigraph.spark.load.digests import may_exceed
from omnigraph.spark.load.frames import Wanted, table_frame
from omnigraph.spark.load.refusals import refuse
from omnigraph.spark.load.state import SparkState, node_ids, rows_origins
from omnigraph.spark.tasks import collect, explained


def check_card(state: SparkState, kind: EdgeType) -> None:
    card = kind.card
    if card.high is not None:
        _refuse_beyond(state, kind, card.high)
    if card.low:
        _refuse_below(state, kind, card.low)


def _totals(state: SparkState, kind: EdgeType) -> tuple[Any, Any]:
    """The rows that arrive with `held`, how many edges of their source stay in the table, and
    for each source `n`, how many it would have."""
    from pyspark.sql import functions as sql

    rows = state.arriving(kind, Wanted(("src",)))
    stored = state.stored(kind, Wanted(("src",)))
    if stored is None:
        rows = rows.withColumn("held", sql.lit(0).cast("long"))
    else:
        if state.replacing(kind):
            own = rows_origins(state, kind)
            stored = stored.join(own, stored.address == own.origin, "left_anti")
        counts = stored.groupBy("src").agg(sql.count("*").alias("held"))
        rows = rows.join(counts, "src", "left").fillna(0, ["held"])
    totals = rows.groupBy("src").agg((sql.count("*") + sql.max("held")).alias("n"))
    return rows, totals


def _too_many(kind: EdgeType, row: dict[str, Any]) -> Reason:
    return has_too_many(kind, row["src"], row["n"])


def _too_few(kind: EdgeType, row: dict[str, Any]) -> Reason:
    return has_too_few(kind, row["src"], row["n"])


def _refuse_beyond(state: SparkState, kind: EdgeType, high: int) -> None:
    from pyspark.sql import Window
    from pyspark.sql import functions as sql

    if not state.left(kind):
        return
    stored = state.keeps(kind)
    counted = not (stored and state.replacing(kind))  # what is replaced would count twice
    if counted and not may_exceed(state, kind, ("src",), high, stored=stored):
        return
    rows, totals = _totals(state, kind)
    many = totals.where(f"n > {high}")
    with explained():
        if many.isEmpty():  # as a rule, and then no row has to travel
            return
    order = [sql.col("origin").isNull(), sql.col("at")] if state.replacing(kind) else ["at"]
    place = sql.row_number().over(Window.partitionBy("src").orderBy(*order))
    beyond = rows.join(many, "src").withColumn("place", place)
    beyond = beyond.where(f"place + held > {high}").select("at", "src", "n")
    refuse(state, kind, "card", beyond, partial(_too_many, kind))


def _refuse_below(state: SparkState, kind: EdgeType, low: int) -> None:
    if state.left(kind):
        rows, totals = _totals(state, kind)
        below = rows.join(totals.where(f"n < {low}"), "src").select("at", "src", "n")
        refuse(state, kind, "card", below, partial(_too_few, kind))
    if state.replaced(kind):
        _check_abandoned(state, kind)


def _check_abandoned(state: SparkState, kind: EdgeType) -> None:
    """Sources that had edges before everything was replaced and are still there."""
    view = state.snapshot.view(kind)
    state.checks.add(kind.table_key)
    node = state.snapshot.catalog.node_names[kind.source]
    nodes, count = node_ids(state, node)
    if not view.table.rows or nodes is None:
        return
    sizes = [(mark.id, mark.rows) for mark in view.table.marks.values()]
    lost = table_frame(state.spark, state.pinned(kind), sizes, Wanted(("src",)))
    lost = lost.select("src").distinct()
    if state.left(kind):
        lost = lost.join(state.arriving(kind, Wanted(("src",))).select("src"), "src", "left_anti")
    nodes = state.small(nodes.withColumnRenamed("id", "src"), count)
    alive = collect(lost.join(nodes, "src", "left_semi"))
    if alive.num_rows:
        raise abandoned(kind, alive["src"][0].as_py(), alive.num_rows)
