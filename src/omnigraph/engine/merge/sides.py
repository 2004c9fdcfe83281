"""Owns how one side of a merge sees a type: its name, where its rows are, and their form."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.history.table_diff import TypeDelta, diff_type
from omnigraph.model.arrow import arrow_type, row_schema
from omnigraph.model.catalog import GraphType
from omnigraph.model.version import TablePin
from omnigraph.plan.merge import Row, SideDelta
from omnigraph.plan.rows.row_type import row_type
from omnigraph.telemetry import Ledger


def kind_in(snapshot: GraphView, kind: GraphType) -> GraphType | None:
    """A type on one side, found by its id whatever its name is there."""
    for candidate in snapshot.catalog.types:
        if candidate.id == kind.id:
            return candidate
    return None


def pin_in(snapshot: GraphView, kind: GraphType) -> TablePin | None:
    known = kind_in(snapshot, kind)
    return None if known is None else snapshot.graph_version.pins[known.table_key]


def same_rows(one: GraphView, other: GraphView, kind: GraphType) -> bool:
    """Whether two snapshots show the same rows of a type, as far as that is known without reading
    rows. If neither has the type, they do."""
    this, that = pin_in(one, kind), pin_in(other, kind)
    if this is None or that is None:
        return this is that
    if this.content == that.content:
        return True
    return (this.location, this.lance_version) == (that.location, that.lance_version)


def fits(kind: GraphType, side: GraphType) -> bool:
    """Whether a side's table has every column of the merged type, in its type."""
    return {(p.id, p.column, arrow_type(p.type)) for p in kind.properties} <= {
        (p.id, p.column, arrow_type(p.type)) for p in side.properties
    }


def converted(rows: pa.Table, side: GraphType | None, kind: GraphType) -> pa.Table:
    """Rows of a side as rows of the merged type. A property that the side lacks gets the value it
    would have if the side had added it."""
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
            columns.append(facts.filled_array(prop.name, rows.num_rows))
    return pa.Table.from_arrays(columns, schema=schema)


def diff_sides(was: GraphView, now: GraphView, kind: GraphType, ledger: Ledger) -> TypeDelta:
    """What changed in a type between two snapshots, as rows of each."""
    old, new = kind_in(was, kind), kind_in(now, kind)
    return diff_type(
        None if old is None else was.view(old), None if new is None else now.view(new), ledger
    )


def delta_as(kind: GraphType, delta: TypeDelta) -> SideDelta:
    """The same changes as rows of the merged type."""
    return SideDelta(
        inserts=converted(delta.inserts, delta.new, kind),
        deletes=converted(delta.deletes, delta.old, kind),
        before=converted(delta.before, delta.old, kind),
        after=converted(delta.after, delta.new, kind),
    )


def entities_in(side: GraphView, kind: GraphType, ids: list[str], ledger: Ledger) -> dict[str, Row]:
    """Some entities as they are on one side, as rows of the merged type. Missing ones are left
    out."""
    known = kind_in(side, kind)
    if known is None or not ids:
        return {}
    view = side.view(known)
    found = view.find(("id",), ids, ledger).addresses
    if not len(found):
        return {}
    rows = view.take(found, view.schema.names, ledger)
    return {row["id"]: row for row in converted(rows, known, kind).to_pylist()}
