"""Owns the rules between the rows of a load and the graph, as joins on Spark: the same rules, in
the same order and with the same words as in a load of one process."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from omnigraph.engine.load.rules import Rules
from omnigraph.model.catalog import GraphType
from omnigraph.plan.load.places import SourceName, place_text
from omnigraph.plan.load.reasons import (
    Reason,
    exists_already,
    id_rule,
    is_not_unique,
    stands_twice,
)
from omnigraph.spark.load.cards import check_card
from omnigraph.spark.load.digests import may_exceed
from omnigraph.spark.load.ends import check_ends, check_orphans
from omnigraph.spark.load.frames import Wanted
from omnigraph.spark.load.refusals import refuse
from omnigraph.spark.load.stage import Completed, complete_new, complete_pieces
from omnigraph.spark.load.state import NOTHING, SparkState, rows_origins
from omnigraph.spark.tasks import ANSWERS, collect_answers, run_tasks


def check_duplicates(state: SparkState) -> None:
    """An id comes once in an input, whatever the mode."""
    from pyspark.sql import functions as sql

    for held in state.types.values():
        kind = held.kind
        if held.generated or state.left(kind) < 2:
            continue
        if not may_exceed(state, kind, ("id",)):
            continue
        ids = state.arriving(kind, Wanted(("id",))).select("id", "at")
        many = ids.groupBy("id").agg(sql.min("at").alias("first"), sql.count("*").alias("n"))
        many = many.where("n > 1").drop("n")
        again = ids.join(many, "id").where("at > first")
        refuse(state, kind, id_rule(kind), again, partial(_twice, kind, state.names))


def _twice(kind: GraphType, names: tuple[SourceName, ...], row: dict[str, Any]) -> Reason:
    return stands_twice(kind, row["id"], place_text(names, row["first"]))


def check_new(state: SparkState) -> None:
    """What is appended must not be there."""
    for held in state.types.values():
        kind = held.kind
        if held.generated or not state.left(kind):
            continue
        stored = state.stored(kind, Wanted(("id",)))
        if stored is None:
            continue
        if state.many(kind) and not may_exceed(state, kind, ("id",), stored=True):
            continue
        ids = state.small(state.arriving(kind, Wanted(("id",))), state.left(kind))
        stored = state.small(stored, state.snapshot.view(kind).table.rows)
        taken = ids.join(stored, "id").select("at", "id")
        refuse(state, kind, id_rule(kind), taken, partial(_taken, kind))


def _taken(kind: GraphType, row: dict[str, Any]) -> Reason:
    return exists_already(kind, row["id"])


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


def _check_unique(state: SparkState, kind: GraphType, columns: tuple[str, ...]) -> bool:
    from pyspark.sql import functions as sql

    if not state.left(kind):
        return False
    together = state.keeps(kind) and state.many(kind) and not state.replacing(kind)
    repeats = may_exceed(state, kind, columns, stored=together)
    if together and not repeats:
        return False
    rows = state.arriving(kind, Wanted(("id",), columns)).where("key is not null")
    found = []
    if repeats:
        many = rows.groupBy("key").agg(sql.min("at").alias("first"), sql.count("*").alias("n"))
        many = many.where("n > 1").select("key", "first")
        found.append(rows.join(many, "key").where("at > first").select("at", "id", "key"))
    stored = state.stored(kind, Wanted((), columns))
    if stored is not None:
        others = stored.where("key is not null")
        if state.replacing(kind):
            own = rows_origins(state, kind)
            others = others.join(own, others.address == own.origin, "left_anti")
        others = state.small(others.select("key"), state.snapshot.view(kind).table.rows)
        found.append(rows.join(others, "key", "left_semi").select("at", "id", "key"))
    if not found:
        return False
    clashing = found[0] if len(found) == 1 else found[0].union(found[1]).distinct()
    refused = refuse(state, kind, "unique", clashing, partial(_clashing, kind, columns))
    return refused > 0 and state.every


def _clashing(kind: GraphType, columns: tuple[str, ...], row: dict[str, Any]) -> Reason:
    return is_not_unique(kind, columns, row["id"], row["key"])


RULES = Rules(unique=_check_unique, ends=check_ends, card=check_card, orphans=check_orphans)


def all_checks(state: SparkState) -> Iterator[None]:
    """In order; after each the caller may stop."""
    check_duplicates(state)
    yield
    if state.mode == "append":
        check_new(state)
    elif state.mode == "merge":
        complete_types(state)
    yield
    RULES.check(state, [held.kind for held in state.types.values()])
    yield
