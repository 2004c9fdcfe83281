"""Owns what a load on Spark knows while it checks: its pieces by type, the refused rows, and the
DataFrames that rules join."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from omnigraph.engine.load.spool import Spool, SpoolPiece
from omnigraph.engine.load.state import LoadState
from omnigraph.engine.session import Session
from omnigraph.model.catalog import GraphType, NodeType
from omnigraph.spark.load.frames import (
    PieceColumns,
    TableColumns,
    Wanted,
    piece_frame,
    table_frame,
)
from omnigraph.spark.load.journal import Journal
from omnigraph.spark.load.stage import StageJob
from omnigraph.spark.pinned import PinnedTable, pin_table

_BROADCAST_ROWS = 200_000
NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class TypePieces:
    """Everything that was read of one type. `refused` are the places of rows that take no further
    part. `whole` are the pieces of a merge once they are complete, without the `dropped` rows that
    were refused before."""

    kind: GraphType
    given: tuple[SpoolPiece, ...] = ()
    whole: tuple[SpoolPiece, ...] | None = None
    dropped: int = 0
    refused: np.ndarray = field(default_factory=lambda: NOTHING, compare=False)

    @property
    def pieces(self) -> tuple[SpoolPiece, ...]:
        return self.given if self.whole is None else self.whole

    @property
    def left(self) -> int:
        return sum(piece.rows for piece in self.pieces) + self.dropped - len(self.refused)

    @property
    def generated(self) -> bool:
        return all(piece.generated for piece in self.given)

    @property
    def replacing(self) -> bool:
        return self.whole is not None

    def without(self, places: np.ndarray) -> TypePieces:
        return replace(self, refused=np.union1d(self.refused, places))

    def completed(self, whole: tuple[SpoolPiece, ...]) -> TypePieces:
        """With whole rows of a merge, which no longer contain refused rows."""
        return replace(self, whole=whole, dropped=len(self.refused))


@dataclass(kw_only=True)
class SparkState(LoadState[TypePieces]):
    """The state of a load, and what executors need to read its pieces and the pinned tables."""

    spark: Any
    session: Session
    spool: Spool
    journal: Journal | None = None
    round: str = "0"

    def pinned(self, kind: GraphType) -> PinnedTable:
        return pin_table(self.session.root, self.snapshot, kind)

    def job(self, kind: GraphType, pieces: Sequence[SpoolPiece] | None = None) -> StageJob:
        rows = self.types[kind.table_key]
        held = rows.pieces if pieces is None else tuple(pieces)
        return StageJob(
            self.pinned(kind), self.spool, held, tuple(self.names), rows.refused, self.journal
        )

    def many(self, kind: GraphType) -> bool:
        """Whether more rows of a type remain than are sent to every executor."""
        return self.left(kind) > _BROADCAST_ROWS

    # What tasks read

    def arriving_columns(self, kind: GraphType, *names: str) -> PieceColumns:
        held = self.types.get(kind.table_key, TypePieces(kind))
        return PieceColumns(self.spool, held.pieces, held.refused, names)

    def stored_columns(self, kind: GraphType, *names: str) -> TableColumns:
        return TableColumns(self.pinned(kind), self._sizes(kind), names)

    def _sizes(self, kind: GraphType) -> tuple[tuple[int, int], ...]:
        marks = self.snapshot.view(kind).table.marks.values()
        return tuple((mark.id, mark.rows) for mark in marks)

    # Frames

    def arriving(self, kind: GraphType, wanted: Wanted) -> Any:
        held = self.types[kind.table_key]
        wanted = replace(wanted, origin=held.replacing)
        return piece_frame(self.spark, self.spool, held.pieces, wanted, held.refused)

    def stored(self, kind: GraphType, wanted: Wanted) -> Any | None:
        """Rows of the table that the load leaves there, or None if there are none."""
        if not self.keeps(kind):
            return None
        return table_frame(self.spark, self.pinned(kind), self._sizes(kind), wanted)

    def small(self, frame: Any, rows: int) -> Any:
        """Spark does not know the size of what Python reads, so it gets a hint."""
        from pyspark.sql import functions as sql

        return sql.broadcast(frame) if rows <= _BROADCAST_ROWS else frame


def rows_origins(state: SparkState, kind: GraphType) -> Any:
    """The addresses of rows that rows of a merge replace."""
    frame = state.arriving(kind, Wanted())
    return state.small(frame.where("origin is not null").select("origin"), state.left(kind))


def node_ids(state: SparkState, node: NodeType) -> tuple[Any | None, int]:
    """The ids of all nodes that there will be, and about how many."""
    stored = state.stored(node, Wanted(("id",)))
    count = 0 if stored is None else state.snapshot.view(node).table.rows
    found = None if stored is None else stored.select("id")
    if state.left(node):
        count += state.left(node)
        arriving = state.arriving(node, Wanted(("id",))).select("id")
        found = arriving if found is None else found.union(arriving)
    return found, count
