"""Owns the last stage of a load on executors: pieces become sorted fragments of the pinned table,
and replaced rows get deletion files. Nothing is retried within a task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.engine.load.completing import Part, complete_merge
from omnigraph.engine.load.rejected import RejectedFile, RejectedShelf
from omnigraph.engine.load.spool import PIECE_BYTES, Room, Spool, SpoolPiece, temporary_spool
from omnigraph.engine.load.staging import sorted_batches
from omnigraph.engine.load.state import shown_rows
from omnigraph.model.arrow import row_schema, table_schema
from omnigraph.plan.load.places import AT, Reject, SourceName, to_reject
from omnigraph.spark.load.frames import without
from omnigraph.spark.load.journal import Journal, digest
from omnigraph.spark.pinned import PinnedTable
from omnigraph.spark.tasks import answer_batch
from omnigraph.store.durability import sync_fragments
from omnigraph.store.staging import stage_deletes, stage_rows
from omnigraph.store.tables import ADDRESS
from omnigraph.telemetry import Ledger

_MEMORY = 4 << 30  # a piece is sorted whole: it is no larger than a fragment


class StagedPieces(msgspec.Struct, frozen=True, kw_only=True):
    """Fragments that are written and that nobody can see yet."""

    fragments: tuple[str, ...]
    fields: dict[int, str]
    rows: int
    bytes: int


class StagedRemovals(msgspec.Struct, frozen=True, kw_only=True):
    updated: tuple[str, ...]
    removed: tuple[int, ...]
    rows: int


class Completed(msgspec.Struct, frozen=True, kw_only=True):
    """Whole rows of a merge in a new piece, and the rows that take no further part."""

    piece: SpoolPiece | None
    rejects: tuple[Reject, ...]
    dropped: tuple[int, ...]
    aside: tuple[RejectedFile, ...] = ()


@dataclass(frozen=True)
class StageJob:
    pinned: PinnedTable
    spool: Spool
    pieces: Sequence[SpoolPiece]
    names: tuple[SourceName, ...]
    refused: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    journal: Journal | None = None

    def name(self, stage: str, *given: Any) -> str:
        """The name of a task in the journal, which follows from all its arguments."""
        held = (self.pinned.table, self.pinned.location, self.pinned.version, self.pinned.catalog)
        return f"{stage}-{digest(held, self.refused, given)}"

    def read(self, number: int) -> pa.Table:
        return without(self.spool.read(self.pieces[number]), self.refused)


def stage_pieces(job: StageJob, numbers: tuple[int, ...]) -> Iterator[StagedPieces]:
    view = job.pinned.view()
    names = row_schema(view.kind).names
    rows = pa.concat_tables([job.read(number).select(names) for number in numbers])
    if not rows.num_rows:
        return
    generated = all(job.pieces[number].generated for number in numbers)
    batches = sorted_batches(view.kind, rows, _MEMORY, generated=generated)
    reader = pa.RecordBatchReader.from_batches(table_schema(view.kind), batches)
    staged = stage_rows(view.table, reader, Ledger())
    if job.journal is not None:  # an entry must not outlive the files that it names
        sync_fragments(view.table, staged.fragments)
    yield StagedPieces(
        fragments=staged.fragments, fields=staged.fields, rows=staged.rows, bytes=staged.bytes
    )


def stage_removals(job: StageJob) -> Any:
    """For `applyInArrow` over addresses, grouped by fragment."""

    def run(rows: pa.Table) -> pa.Table:
        addresses = rows["origin"].to_numpy().astype(np.uint64)
        table = job.pinned.view().table
        staged = stage_deletes(table, addresses, Ledger())
        if job.journal is not None:
            sync_fragments(table, staged.updated)
        answer = StagedRemovals(updated=staged.updated, removed=staged.removed, rows=len(addresses))
        return pa.Table.from_batches([answer_batch(rows["part"][0].as_py(), answer)])

    return run


# Merges


def complete_pieces(job: StageJob) -> Any:
    """For `applyInArrow` over `place` and `origin` of the rows of each piece."""

    def run(rows: pa.Table) -> pa.Table:
        number = rows["part"][0].as_py()
        answer = _complete_once(job, number, rows)
        return pa.Table.from_batches([answer_batch(number, answer)])

    return run


def complete_new(job: StageJob, number: int) -> Iterator[Completed]:
    """A piece whose ids were all generated for it, so none of them is in the table."""
    yield _complete_once(job, number, None)


def _complete_once(job: StageJob, number: int, located: pa.Table | None) -> Completed:
    if job.journal is None:
        return _complete(job, number, located)
    origins: Any = None
    if located is not None:
        origins = located.sort_by("place").select(["place", "origin"])
        origins = [origins["place"].to_numpy(), origins["origin"].fill_null(-1).to_numpy()]
    name = job.name("completed", job.pieces[number], origins)
    return job.journal.once_one(name, Completed, lambda: _complete(job, number, located))


def _complete(job: StageJob, number: int, located: pa.Table | None) -> Completed:
    """Done by the function of the load in one process, for one piece and the stored rows found for
    it."""
    piece, view = job.pieces[number], job.pinned.view()
    rows = job.read(number)
    known = pa.table({"v": pa.array([], pa.string()), ADDRESS: pa.array([], pa.uint64())})
    if located is not None:
        there = located.filter(located["origin"].is_valid())
        ids = pa.compute.index_in(there["place"], value_set=rows[AT].combine_chunks())
        known = pa.table({"v": rows["id"].take(ids), ADDRESS: there["origin"].cast(pa.uint64())})
    parts = [Part(frozenset(piece.given), rows)]
    with temporary_spool("merge", job.spool.settings) as spool:
        merged = complete_merge(view, parts, known, Room(8 * PIECE_BYTES, spool), Ledger())
        whole, made = merged.table, None
        if whole.num_rows:
            name = f"whole-{number}-{uuid4().hex[:12]}.arrow"
            made = SpoolPiece(
                key=job.spool.write(name, whole),
                table=piece.table,
                given=(),
                generated=piece.generated,
                rows=whole.num_rows,
                bytes=whole.nbytes,
            )
    dropped = sorted(place for place, _ in merged.refused)
    shown = shown_rows(rows, dropped)
    aside = RejectedShelf(job.spool)
    aside.add(to_reject(job.names, place, why, *shown[place]) for place, why in merged.refused)
    aside.close()
    return Completed(
        piece=made,
        rejects=tuple(aside.few),
        dropped=tuple(dropped),
        aside=tuple(aside.files),
    )
