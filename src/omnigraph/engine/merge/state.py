"""Owns the state of one merge: base, sides, one catalog, and what each side did to a type.

It reads; what comes of it is decided in `merge_tables`, checked in `merge_check` and made in
`merge_commit`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.engine.history.differ import TypeDelta
from omnigraph.engine.merge.base import BaseTable, MergeBase, delta_between
from omnigraph.engine.merge.sides import (
    diff_sides,
    entities_in,
    fits,
    kind_in,
    same_rows,
)
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot
from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.model.conflicts import MergeConflict
from omnigraph.model.version import TablePin
from omnigraph.plan.merge import Row, RowMerge, SideDelta, Strategy
from omnigraph.plan.publish import TableAction
from omnigraph.telemetry import Ledger


@dataclass
class Merging:
    """`pointed` are tables taken from the source as they are, `merged` those that both changed,
    `arrived` types that only the source has. `theirs` knows what both added by our ids. `widened`
    holds the files that came with the new columns of a table."""

    session: Session
    base: MergeBase
    ours: Snapshot
    theirs: Snapshot
    catalog: Catalog
    strategy: Strategy
    ledger: Ledger
    dry_run: bool
    actions: list[TableAction] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)
    conflicts: list[MergeConflict] = field(default_factory=list)
    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    merged: dict[str, RowMerge] = field(default_factory=dict)
    pointed: dict[str, TablePin] = field(default_factory=dict)
    arrived: list[GraphType] = field(default_factory=list)
    widened: dict[str, tuple[str, ...]] = field(default_factory=dict)
    _deltas: dict[tuple[int, str], TypeDelta] = field(default_factory=dict)

    def changed(self, side: Snapshot, kind: GraphType) -> bool:
        """Whether a side has other rows than the base."""
        was = self.base.table(kind)
        return was.imagined or not same_rows(was.snapshot, side, kind)

    def takes(self, kind: GraphType) -> bool:
        """Whether our table can be replaced by theirs as it is, without a look at its rows."""
        yours = kind_in(self.theirs, kind)
        return (
            yours is not None
            and not same_rows(self.theirs, self.ours, kind)
            and self.changed(self.theirs, kind)
            and not self.changed(self.ours, kind)
            and fits(kind, yours)
        )

    def delta(self, side: Snapshot, kind: GraphType) -> TypeDelta:
        """What a side did to a type, as rows of that side; read once. Of a base that is only
        imagined, what it did since the nearest that is real."""
        key = (id(side), kind.id)
        if key not in self._deltas:
            was = self.base.table(kind).snapshot
            self._deltas[key] = diff_sides(was, side, kind, self.ledger)
        return self._deltas[key]

    def side(self, side: Snapshot, kind: GraphType) -> SideDelta:
        """What a side did to a type since the base, as rows of the merged type."""
        was = self.base.table(kind)
        known = self.delta(side, kind)
        return delta_between(kind, was, BaseTable(side), self.ledger, known=known)

    def entity(self, side: Snapshot, kind: GraphType, entity: str) -> Row | None:
        """One entity on one side, as a row of the merged type."""
        return entities_in(side, kind, [entity], self.ledger).get(entity)

    def was(self, kind: GraphType, entity: str) -> Row | None:
        """One entity at the base."""
        table = self.base.table(kind)
        if entity in table.rows:
            return table.rows[entity]
        return self.entity(table.snapshot, kind, entity)
