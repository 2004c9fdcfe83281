"""Owns the heavy part of maintenance, which may be done elsewhere: rewriting fragments and
building segments. Everything else, and every decision, stays with the caller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from omnigraph.plan.optimize import IndexWork
from omnigraph.store.indexes import Segment, stage_segment, stage_vectors
from omnigraph.store.staging import stage_compaction
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

Written = list[tuple[tuple[str, ...], tuple[str, ...]]]
"""Old and new fragments of each group, the new ones without numbers of their own."""


class Workers(Protocol):
    def compact(
        self, table: Table, groups: Sequence[Sequence[int]], target_rows: int, ledger: Ledger
    ) -> Written:
        """Writes the rows of each group of fragments anew; a group may come back as several."""

    def build(
        self, table: Table, works: Sequence[IndexWork], ledger: Ledger
    ) -> list[Segment | None]:
        """A segment for each; None where vectors have no direction to find partitions by."""


class OwnWorkers:
    """In this process."""

    def compact(
        self, table: Table, groups: Sequence[Sequence[int]], target_rows: int, ledger: Ledger
    ) -> Written:
        return stage_compaction(table, groups, ledger, target_rows=target_rows)

    def build(
        self, table: Table, works: Sequence[IndexWork], ledger: Ledger
    ) -> list[Segment | None]:
        return [build_segment(table, work, ledger) for work in works]


def build_segment(table: Table, work: IndexWork, ledger: Ledger) -> Segment | None:
    column, kind = work.spec.column, work.spec.kind
    if kind == "IVF_FLAT":
        assert work.partitions is not None
        return stage_vectors(table, column, work.fragments, work.partitions, ledger)
    return stage_segment(table, column, kind, work.fragments, ledger)
