"""Owns what a load on Spark knows while it checks: its pieces by type, which rows are refused, and
the DataFrames that rules are joins over."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.load.state import Mode
from omnigraph.engine.session import Session
from omnigraph.model.catalog import GraphType, NodeType
from omnigraph.model.violation import Violation
from omnigraph.plan.load.places import Reject, SourceName
from omnigraph.spark.load.frames import (
    PieceColumns,
    TableColumns,
    Wanted,
    piece_frame,
    table_frame,
)
from omnigraph.spark.load.journal import Journal
from omnigraph.spark.load.pieces import Piece, Spool
from omnigraph.spark.load.rejected_files import RejectedFile
from omnigraph.spark.load.stage import StageJob
from omnigraph.spark.pinned import PinnedTable, pin_table

_BROADCAST_ROWS = 200_000
NOTHING = np.empty(0, dtype=np.int64)


@dataclass(frozen=True)
class TypePieces:
    """Everything that was read of one type; `whole` once a merge has completed it, without the
    `dropped` rows that were refused before."""

    kind: GraphType
    given: tuple[Piece, ...] = ()
    whole: tuple[Piece, ...] | None = None
    dropped: int = 0

    @property
    def pieces(self) -> tuple[Piece, ...]:
        return self.given if self.whole is None else self.whole

    @property
    def rows(self) -> int:
        return sum(piece.rows for piece in self.pieces)

    @property
    def generated(self) -> bool:
        return all(piece.generated for piece in self.given)


@dataclass
class SparkState:
    """What a load knows while it checks. `refused` are places by type, `checks` the tables on
    which a decision rests."""

    spark: Any
    session: Session
    snapshot: GraphView
    mode: Mode
    types: dict[str, TypePieces]
    spool: Spool
    names: tuple[SourceName, ...]
    every: bool
    journal: Journal | None = None
    round: str = "0"
    checks: set[str] = field(default_factory=set)
    rejects: list[Reject] = field(default_factory=list)
    aside: list[RejectedFile] = field(default_factory=list)
    unblamed: list[Violation] = field(default_factory=list)
    more: int = 0
    refused: dict[str, np.ndarray] = field(default_factory=dict)

    def replaced(self, kind: GraphType) -> bool:
        return self.mode == "overwrite" and kind.table_key in self.types

    def pinned(self, kind: GraphType) -> PinnedTable:
        return pin_table(self.session.root, self.snapshot, kind)

    def job(self, kind: GraphType, pieces: Sequence[Piece] | None = None) -> StageJob:
        held = self.types[kind.table_key].pieces if pieces is None else pieces
        refused = self.refused.get(kind.table_key, NOTHING)
        return StageJob(
            self.pinned(kind), self.spool, tuple(held), self.names, refused, self.journal
        )

    def left(self, kind: GraphType) -> int:
        """How many rows of a type are still in."""
        held = self.types.get(kind.table_key)
        if held is None:
            return 0
        return held.rows + held.dropped - len(self.refused.get(kind.table_key, NOTHING))

    def many(self, kind: GraphType) -> bool:
        """More rows of a type are still in than are sent to every executor."""
        return self.left(kind) > _BROADCAST_ROWS

    def replacing(self, kind: GraphType) -> bool:
        """Rows that arrive have an origin: the row of the table that each replaces, if any."""
        return self.types[kind.table_key].whole is not None

    def keeps(self, kind: GraphType) -> bool:
        """Whether there are rows of the table that a load leaves there."""
        self.checks.add(kind.table_key)
        return not self.replaced(kind) and self.snapshot.view(kind).table.rows > 0

    # What tasks read

    def arriving_columns(self, kind: GraphType, *names: str) -> PieceColumns:
        held = self.types.get(kind.table_key)
        refused = self.refused.get(kind.table_key, NOTHING)
        return PieceColumns(self.spool, () if held is None else held.pieces, refused, names)

    def stored_columns(self, kind: GraphType, *names: str) -> TableColumns:
        return TableColumns(self.pinned(kind), self._sizes(kind), names)

    def _sizes(self, kind: GraphType) -> tuple[tuple[int, int], ...]:
        marks = self.snapshot.view(kind).table.marks.values()
        return tuple((mark.id, mark.rows) for mark in marks)

    # Frames

    def arriving(self, kind: GraphType, wanted: Wanted) -> Any:
        held = self.types[kind.table_key]
        wanted = replace(wanted, origin=self.replacing(kind))
        refused = self.refused.get(kind.table_key, NOTHING)
        return piece_frame(self.spark, self.spool, held.pieces, wanted, refused)

    def stored(self, kind: GraphType, wanted: Wanted) -> Any | None:
        """Rows of the table that a load leaves there, None if there are none."""
        if not self.keeps(kind):
            return None
        return table_frame(self.spark, self.pinned(kind), self._sizes(kind), wanted)

    def small(self, frame: Any, rows: int) -> Any:
        """Spark knows nothing of the size of what Python reads, so it is told."""
        from pyspark.sql import functions as sql

        return sql.broadcast(frame) if rows <= _BROADCAST_ROWS else frame

    def drop(self, kind: GraphType, places: np.ndarray) -> None:
        """These rows take no further part."""
        before = self.refused.get(kind.table_key, NOTHING)
        self.refused[kind.table_key] = np.union1d(before, places)


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
