"""Owns the phases of a merge as values: the inputs, the merged rows, and the checked merge. Each
is made from the one before it and never changes. Only a checked merge gives actions
(`commit.py`), and nothing is written before that.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.history.table_diff import TypeDelta
from omnigraph.engine.merge.base import BaseTable, MergeBase, delta_between
from omnigraph.engine.merge.sides import (
    diff_sides,
    entities_in,
    fits,
    kind_in,
    same_rows,
)
from omnigraph.engine.overlay import Overlay
from omnigraph.engine.session import Session
from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.model.conflicts import MergeConflict
from omnigraph.model.version import TablePin
from omnigraph.plan.merge import Row, RowMerge, SideDelta, Strategy
from omnigraph.plan.publish import TableAction
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class MergeInputs:
    """Base, sides and one catalog. In `theirs`, what both sides added carries our ids. The changes
    of a side to a type are read once and remembered."""

    session: Session
    base: MergeBase
    ours: GraphView
    theirs: GraphView
    catalog: Catalog
    strategy: Strategy
    ledger: Ledger
    _deltas: dict[tuple[int, str], TypeDelta] = field(default_factory=dict, repr=False)

    def changed(self, side: GraphView, kind: GraphType) -> bool:
        """Whether the rows of a side differ from those of the base."""
        was = self.base.table(kind)
        return was.imagined or not same_rows(was.snapshot, side, kind)

    def takes(self, kind: GraphType) -> bool:
        """Whether our table can be replaced by theirs without reading rows."""
        yours = kind_in(self.theirs, kind)
        return (
            yours is not None
            and not same_rows(self.theirs, self.ours, kind)
            and self.changed(self.theirs, kind)
            and not self.changed(self.ours, kind)
            and fits(kind, yours)
        )

    def delta(self, side: GraphView, kind: GraphType) -> TypeDelta:
        """What a side did to a type, as rows of that side, read once. If the base exists only in
        memory, this is the change since the nearest stored base."""
        key = (id(side), kind.id)
        if key not in self._deltas:
            was = self.base.table(kind).snapshot
            self._deltas[key] = diff_sides(was, side, kind, self.ledger)
        return self._deltas[key]

    def side(self, side: GraphView, kind: GraphType) -> SideDelta:
        """What a side did to a type since the base, as rows of the merged type."""
        was = self.base.table(kind)
        known = self.delta(side, kind)
        return delta_between(kind, was, BaseTable(side), self.ledger, known=known)

    def entity(self, side: GraphView, kind: GraphType, entity: str) -> Row | None:
        """One entity on one side, as a row of the merged type."""
        return entities_in(side, kind, [entity], self.ledger).get(entity)

    def was(self, kind: GraphType, entity: str) -> Row | None:
        """One entity at the base."""
        table = self.base.table(kind)
        if entity in table.rows:
            return table.rows[entity]
        return self.entity(table.snapshot, kind, entity)


@dataclass(frozen=True)
class MergedRows:
    """What becomes of each type. Tables in `pointed` are taken from the source as they are, those
    in `rows` were changed by both sides, and types in `arrived` exist only in the source. `actions`
    are the changes that the schemas ask for. If rows of one side cannot become rows of the other,
    nothing is `whole`."""

    inputs: MergeInputs
    rows: Mapping[str, RowMerge] = field(default_factory=dict)
    pointed: Mapping[str, TablePin] = field(default_factory=dict)
    arrived: tuple[GraphType, ...] = ()
    actions: tuple[TableAction, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()
    whole: bool = True


@dataclass(frozen=True)
class CheckedMerge:
    """The merged rows over our tables. Tables in `wide` need new columns. `changes` counts what the
    merge does to our rows. `conflicts` holds conflicts of rows and of rules."""

    merged: MergedRows
    overlays: Mapping[str, Overlay] = field(default_factory=dict)
    wide: frozenset[str] = frozenset()
    changes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    conflicts: tuple[MergeConflict, ...] = ()

    @property
    def catalog(self) -> Catalog:
        return self.merged.inputs.catalog

    @property
    def adopted(self) -> tuple[str, ...]:
        """Tables that are taken as they are."""
        arrived = tuple(
            kind.table_key for kind in self.merged.arrived if kind.table_key not in self.merged.rows
        )
        return arrived if self.conflicts else (*arrived, *self.merged.pointed)
