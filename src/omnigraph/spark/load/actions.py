"""Owns what a load on Spark publishes: executors write the rows of a type, and their files become
one table action."""

from __future__ import annotations

from functools import partial

from omnigraph.engine.load.staging import FRAGMENT_ROWS
from omnigraph.errors import StoreFailure
from omnigraph.model.catalog import GraphType
from omnigraph.plan.publish import Append, Overwrite, TableAction, Update, Upsert
from omnigraph.spark.load.stage import StagedPieces, StagedRemovals, stage_pieces, stage_removals
from omnigraph.spark.load.state import SparkState, rows_origins
from omnigraph.spark.pinned import group_fragments
from omnigraph.spark.tasks import ANSWERS, collect_answers, run_tasks

_FRAGMENT_BYTES = 512 << 20


def stage_type(state: SparkState, kind: GraphType) -> TableAction:
    """Writes the rows of a type on executors and returns the action to publish."""
    job = state.job(kind)
    # A task holds its rows while it sorts them, so wide rows count for more.
    sizes = [max(p.rows, p.bytes * FRAGMENT_ROWS // _FRAGMENT_BYTES) for p in job.pieces]
    # The last pieces of each part of a source are small, so they are combined.
    ordered = sorted(enumerate(sizes), key=lambda numbered: numbered[1])
    groups = group_fragments(ordered, FRAGMENT_ROWS)[::-1]
    answers = run_tasks(
        state.spark,
        partial(stage_pieces, job),
        groups,
        StagedPieces,
        journal=state.journal,
        name=lambda group: job.name("staged", state.round, [job.pieces[n] for n in group]),
    )
    staged = [answer for _, answer in answers]
    rows = sum(answer.rows for answer in staged)
    if rows != state.left(kind):
        raise StoreFailure(
            f"Executors staged {rows} rows of {kind.name}, not {state.left(kind)}; nothing was "
            "published."
        )
    fragments = tuple(fragment for answer in staged for fragment in answer.fragments)
    size = sum(answer.bytes for answer in staged)
    table = state.snapshot.view(kind).table
    if state.mode == "overwrite":
        return Overwrite(
            table=kind.table_key,
            base=table.version,
            fragments=fragments,
            rows=rows,
            deleted=table.rows,
            bytes=size,
        )
    removals = _removals(state, kind) if state.mode == "merge" and table.rows else []
    updated = sum(answer.rows for answer in removals)
    if not updated:
        fields = staged[0].fields
        return Append(
            table=kind.table_key, fragments=fragments, fields=fields, rows=rows, bytes=size
        )
    make = Upsert if rows > updated else Update
    return make(
        table=kind.table_key,
        base=table.version,
        updated_fragments=tuple(text for answer in removals for text in answer.updated),
        removed_fragments=tuple(number for answer in removals for number in answer.removed),
        fragments=fragments,
        inserted=rows - updated,
        updated=updated,
        deleted=0,
        bytes=size,
    )


def _removals(state: SparkState, kind: GraphType) -> list[StagedRemovals]:
    """One task writes the deletion file of each fragment that loses rows."""
    if state.types[kind.table_key].generated:
        return []
    origins = rows_origins(state, kind).selectExpr("shiftright(origin, 32) as part", "origin")
    staged = origins.groupBy("part").applyInArrow(stage_removals(state.job(kind)), ANSWERS)
    return [answer for _, answer in collect_answers(staged, StagedRemovals)]
