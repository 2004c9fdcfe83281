"""Owns the rules between the rows of a load and the graph, as joins on Spark: the same rules, in
the same order and with the same words as in a load of one process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from omnigraph.model.catalog import EdgeType, GraphType, NodeType
from omnigraph.model.violation import show_value
from omnigraph.plan.load.places import SourceName, place_text
from omnigraph.spark.load.cards import check_card
from omnigraph.spark.load.ends import check_ends, check_orphans
from omnigraph.spark.load.frames import Wanted
from omnigraph.spark.load.refusals import refuse
from omnigraph.spark.load.stage import Completed, complete_new, complete_pieces
from omnigraph.spark.load.state import NOTHING, SparkState, rows_origins
from omnigraph.spark.tasks import ANSWERS, collect_answers, explained, run_tasks


def check_duplicates(state: SparkState) -> None:
    """An id comes once in an input, whatever the mode."""
    from pyspark.sql import functions as sql

    for held in state.types.values():
        kind = held.kind
        if held.generated or state.left(kind) < 2:
            continue
        ids = state.arriving(kind, Wanted(("id",))).select("id", "at")
        many = ids.groupBy("id").agg(sql.min("at").alias("first"), sql.count("*").alias("n"))
        many = many.where("n > 1").drop("n")
        with explained():
            if many.isEmpty():
                continue
        made = f", which is made from {', '.join(f'`{n}`' for n in kind.key)}" if kind.key else ""
        name, names = kind.name, state.names

        def describe(
            row: dict[str, Any],
            name: str = name,
            made: str = made,
            names: tuple[SourceName, ...] = names,
        ) -> tuple[str, str]:
            return (
                f"the id {show_value(row['id'])} of {name}{made}, stands in "
                f"{place_text(names, row['first'])} already; give each entity once."
            ), ""

        refuse(
            state,
            kind,
            "key" if kind.key else "id",
            ids.join(many, "id").where("at > first"),
            describe,
        )


def check_new(state: SparkState) -> None:
    """What is appended must not be there."""
    for held in state.types.values():
        kind = held.kind
        if held.generated or not state.left(kind):
            continue
        stored = state.stored(kind, Wanted(("id",)))
        if stored is None:
            continue
        ids = state.small(state.arriving(kind, Wanted(("id",))), state.left(kind))
        stored = state.small(stored, state.snapshot.view(kind).table.rows)
        taken = ids.join(stored, "id").select("at", "id")

        def describe(row: dict[str, Any], name: str = kind.name) -> tuple[str, str]:
            return (
                f"{name} {show_value(row['id'])} exists already; mode='merge' changes it, "
                "append does not."
            ), ""

        refuse(state, kind, "key" if kind.key else "id", taken, describe)


def complete_types(state: SparkState) -> None:
    """Whole rows of a merge, each with the row that it replaces."""
    for key, held in list(state.types.items()):
        kind, stored = held.kind, None
        if not held.generated:
            stored = state.stored(kind, Wanted(("id",)))
        job = state.job(kind, held.given)
        if stored is None:
            answers = run_tasks(
                state.spark, partial(complete_new, job), range(len(held.given)), Completed
            )
        else:
            ids = state.arriving(kind, Wanted(("id",)))
            stored = state.small(stored, state.snapshot.view(kind).table.rows)
            located = ids.join(stored, "id", "left").selectExpr("part", "at", "address as origin")
            grouped = located.groupBy("part").applyInArrow(complete_pieces(job), ANSWERS)
            answers = collect_answers(grouped, Completed)
        for _, answer in answers:
            state.rejects += answer.rejects
            state.aside += answer.aside
            state.drop(kind, np.array(answer.dropped, dtype=np.int64))
        whole = tuple(answer.piece for _, answer in answers if answer.piece is not None)
        dropped = len(state.refused.get(key, NOTHING))
        state.types[key] = replace(held, whole=whole, dropped=dropped)


def check_rules(state: SparkState) -> None:
    """Nodes first: an edge may hang on a node that is refused."""
    kinds = [held.kind for held in state.types.values()]
    for kind in kinds:
        for columns in kind.uniques:
            # Refusing a row gives back the value that the entity had, which may clash again.
            while _check_unique(state, kind, columns):
                pass
    if state.rejects and not state.every:
        return  # edges of a node that is refused would only hide the reason
    for kind in kinds:
        if isinstance(kind, EdgeType):
            check_ends(state, kind)
            check_card(state, kind)
    for kind in kinds:
        if isinstance(kind, NodeType) and state.replaced(kind):
            check_orphans(state, kind)


def _check_unique(state: SparkState, kind: GraphType, columns: tuple[str, ...]) -> bool:
    from pyspark.sql import functions as sql

    if not state.left(kind):
        return False
    rows = state.arriving(kind, Wanted(("id",), columns)).where("key is not null")
    many = rows.groupBy("key").agg(sql.min("at").alias("first"), sql.count("*").alias("n"))
    many = many.where("n > 1").select("key", "first")
    clashing = rows.join(many, "key").where("at > first").select("at", "id", "key")
    stored = state.stored(kind, Wanted((), columns))
    if stored is not None:
        others = stored.where("key is not null")
        if "origin" in rows.columns:
            own = rows_origins(state, kind)
            others = others.join(own, others.address == own.origin, "left_anti")
        others = state.small(others.select("key"), state.snapshot.view(kind).table.rows)
        held = rows.join(others, "key", "left_semi").select("at", "id", "key")
        clashing = clashing.union(held).distinct()
    shown = ", ".join(columns)

    name = kind.name

    def describe(row: dict[str, Any]) -> tuple[str, str]:
        return (
            f"{name} {show_value(row['id'])} has {shown} = {show_value(row['key'])}, which "
            f"another {name} has already; @unique({shown}) allows it once."
        ), shown

    return refuse(state, kind, "unique", clashing, describe) > 0 and state.every


def all_checks(state: SparkState) -> Iterator[None]:
    """In order; after each the caller may stop."""
    check_duplicates(state)
    yield
    if state.mode == "append":
        check_new(state)
    elif state.mode == "merge":
        complete_types(state)
    yield
    check_rules(state)
    yield
