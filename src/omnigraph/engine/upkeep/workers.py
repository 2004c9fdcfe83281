"""Owns the heavy part of maintenance, which another engine may do: rewriting fragments and building
segments.

Everything else, and every decision, stays with the caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from omnigraph.plan.optimize import IndexWork, Piece
from omnigraph.store.indexes import Segment, stage_index
from omnigraph.store.staging import stage_compaction
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

Written = list[tuple[tuple[str, ...], tuple[str, ...]]]
"""The old and the new fragments of each group. The new ones have no numbers yet."""


class Workers(Protocol):
    def compact(
        self, table: Table, groups: Sequence[Sequence[int]], target_rows: int, ledger: Ledger
    ) -> Written:
        """Rewrites the rows of each group of fragments. A group may become several fragments."""

    def build(
        self, table: Table, works: Sequence[IndexWork], ledger: Ledger
    ) -> list[tuple[Segment, ...]]:
        """For each its segment, or several that share its fragments; none if too few vectors have a
        direction to find partitions by."""


class OwnWorkers:
    """Does the work in this process."""

    def compact(
        self, table: Table, groups: Sequence[Sequence[int]], target_rows: int, ledger: Ledger
    ) -> Written:
        return stage_compaction(table, groups, ledger, target_rows=target_rows)

    def build(
        self, table: Table, works: Sequence[IndexWork], ledger: Ledger
    ) -> list[tuple[Segment, ...]]:
        built = [build_segment(table, work, ledger) for work in works]
        return [() if one is None else (one,) for one in built]


def build_segment(table: Table, work: IndexWork, ledger: Ledger) -> Segment | None:
    return stage_index(table, work.spec, work.fragments, ledger)


def pieces_of(table: Table, fragments: Sequence[int] | None = None) -> list[Piece]:
    """The sizes of all fragments of a table, or of some."""
    marks = table.marks.values() if fragments is None else [table.marks[n] for n in fragments]
    return [Piece(mark.id, mark.rows, mark.physical - mark.rows, mark.bytes) for mark in marks]
