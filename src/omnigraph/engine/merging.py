"""Owns the state of one merge: three snapshots, one catalog, and what each side did to a type.

It reads; what comes of it is decided in `merge_tables`, checked in `merge_check` and made in
`merge_commit`.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.engine.differ import TypeDelta, diff_type
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot
from omnigraph.model.catalog import Catalog, GraphType, row_schema
from omnigraph.model.conflicts import MergeConflict
from omnigraph.model.types import arrow_type
from omnigraph.model.version import TablePin
from omnigraph.plan.merge import Row, RowMerge, SideDelta, Strategy
from omnigraph.plan.publish import TableAction
from omnigraph.plan.row_type import row_type
from omnigraph.telemetry import Ledger

Place = tuple[str, str] | None


@dataclass
class Merging:
    """`pointed` are tables taken from the source as they are, `merged` those that both changed,
    `arrived` types that only the source has. `theirs` knows what both added by our ids."""

    session: Session
    base: Snapshot
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
    _deltas: dict[tuple[int, str], TypeDelta] = field(default_factory=dict)

    def changed(self, side: Snapshot, kind: GraphType) -> bool:
        """Whether a side has another version of the table than the base."""
        return place(side, kind) != place(self.base, kind)

    def delta(self, side: Snapshot, kind: GraphType) -> TypeDelta:
        """What a side did to a type, as rows of that side; read once."""
        key = (id(side), kind.id)
        if key not in self._deltas:
            was, now = kind_in(self.base, kind), kind_in(side, kind)
            self._deltas[key] = diff_type(
                None if was is None else self.base.view(was),
                None if now is None else side.view(now),
                self.ledger,
            )
        return self._deltas[key]

    def side(self, side: Snapshot, kind: GraphType) -> SideDelta:
        """The same as rows of the merged type."""
        delta = self.delta(side, kind)
        return SideDelta(
            inserts=converted(delta.inserts, delta.new, kind),
            deletes=converted(delta.deletes, delta.old, kind),
            before=converted(delta.before, delta.old, kind),
            after=converted(delta.after, delta.new, kind),
        )

    def entity(self, side: Snapshot, kind: GraphType, entity: str) -> Row | None:
        """One entity on one side, as a row of the merged type."""
        known = kind_in(side, kind)
        if known is None:
            return None
        view = side.view(known)
        found = view.find(("id",), [entity], self.ledger).addresses
        if not len(found):
            return None
        rows = view.take(found[:1], view.schema.names, self.ledger)
        shown: Row = converted(rows, known, kind).to_pylist()[0]
        return shown


def kind_in(snapshot: Snapshot, kind: GraphType) -> GraphType | None:
    """A type as a side knows it: by its id, whatever it is called there."""
    for candidate in snapshot.catalog.types:
        if candidate.id == kind.id:
            return candidate
    return None


def pin_in(snapshot: Snapshot, kind: GraphType) -> TablePin | None:
    known = kind_in(snapshot, kind)
    return None if known is None else snapshot.graph_version.pins[known.table_key]


def place(snapshot: Snapshot, kind: GraphType) -> Place:
    pin = pin_in(snapshot, kind)
    return None if pin is None else (pin.location, pin.lance_version)


def fits(kind: GraphType, side: GraphType) -> bool:
    """Whether a side's table has every column of the merged type, in its type."""
    return {(p.id, p.column, arrow_type(p.type)) for p in kind.properties} <= {
        (p.id, p.column, arrow_type(p.type)) for p in side.properties
    }


def converted(rows: pa.Table, side: GraphType | None, kind: GraphType) -> pa.Table:
    """Rows of a side as rows of the merged type: a property that the side does not have has its
    default, as if the side had added it."""
    schema = row_schema(kind)
    if side is None or not rows.num_rows:
        return schema.empty_table()
    facts = row_type(kind)
    names = {p.id: p.name for p in side.properties}
    columns = []
    for column in schema:
        prop = facts.properties.get(column.name)
        if prop is None:
            columns.append(rows[column.name])
        elif prop.id in names:
            columns.append(rows[names[prop.id]].cast(column.type))
        else:
            columns.append(facts.default_array(prop.name, rows.num_rows))
    return pa.Table.from_arrays(columns, schema=schema)
