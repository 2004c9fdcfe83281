"""Owns the check of a merge: the combined rows obey every rule.

Only what changed is checked: rows of theirs where our side changed something that they depend on,
and rows of either side where the other side brought new rules.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.merge.sides import converted, fits, kind_in, pin_in
from omnigraph.engine.merge.state import CheckedMerge, MergedRows, MergeInputs
from omnigraph.engine.overlay import NEW, Overlay
from omnigraph.engine.view import TableView
from omnigraph.engine.write.integrity import check_sources, find_violations
from omnigraph.engine.write.work import Work
from omnigraph.model.catalog import EdgeType, GraphType, NodeType
from omnigraph.model.conflicts import ConflictKind, MergeConflict
from omnigraph.model.violation import Violation
from omnigraph.plan.merge import RowMerge
from omnigraph.plan.rows.row_type import row_type
from omnigraph.plan.validate import check_rows
from omnigraph.telemetry import Ledger

_KINDS = {
    "endpoint": ConflictKind.ORPHAN_EDGE,
    "orphan": ConflictKind.ORPHAN_EDGE,
    "unique": ConflictKind.UNIQUE_VIOLATION,
    "card": ConflictKind.CARDINALITY_VIOLATION,
}


def check_merge(merged: MergedRows) -> CheckedMerge:
    """Returns a conflict for every rule that the merged rows break. Nothing is written."""
    if not merged.whole:
        return CheckedMerge(merged, conflicts=merged.conflicts)
    m = merged.inputs
    wide = frozenset(kind.table_key for kind in m.catalog.types if _needs_columns(merged, kind))
    taken = _taken_rows(merged)
    snapshot = _as_merged(merged, looked_at={key for key, _ in taken})
    work = Work(snapshot)
    changes: dict[str, Mapping[str, int]] = {}
    for key, rows in merged.rows.items():
        view = work.view(m.catalog.by_key[key])
        changes |= _count_changes(view, rows, m.ledger)
        work.overlays[key] = _overlay(view, rows, m.ledger)
    looked = _looked_at(merged, work, wide)
    removed: dict[str, Sequence[str]] = {}
    violations: list[Violation] = []
    for key, rows in [*merged.rows.items(), *taken]:
        kind = m.catalog.by_key[key]
        if key not in looked.overlays:
            looked.overlays[key] = _overlay(looked.view(kind), rows, m.ledger)
        if isinstance(kind, NodeType):
            removed[key] = rows.deletes
        violations += check_rows(kind, rows.upserts)
    for kind in m.catalog.types:
        violations += _check_ours(merged, kind, looked)
    for kind in merged.arrived:
        if isinstance(kind, EdgeType) and _ends_changed(m, kind):
            looked.overlays[kind.table_key] = _all_new(m, kind, merged.rows.get(kind.table_key))
    violations += find_violations(looked, removed)
    for edge in m.catalog.edges:
        violations += _check_thinned(m, edge, looked, violations)
    conflicts = (*merged.conflicts, *(_conflict(m, violation) for violation in violations))
    return CheckedMerge(merged, work.overlays, wide, changes, conflicts)


def _needs_columns(merged: MergedRows, kind: GraphType) -> bool:
    mine = kind_in(merged.inputs.ours, kind)
    return mine is not None and not fits(kind, mine) and kind.table_key not in merged.pointed


def _as_merged(merged: MergedRows, looked_at: Collection[str]) -> GraphView:
    """Our side under the merged schema. Tables from theirs appear as they are there, except for
    those whose changes are checked, which are overlaid on ours. Columns that a table of ours will
    get are not there yet. Only ids, ends and unique values are needed: see `_looked_at`."""
    m = merged.inputs
    pins = []
    for kind in m.catalog.types:
        pin = pin_in(m.ours, kind) or pin_in(m.theirs, kind)
        if kind.table_key in merged.pointed and kind.table_key not in looked_at:
            pin = merged.pointed[kind.table_key]
        assert pin is not None
        pins.append(msgspec.structs.replace(pin, key=kind.table_key))
    version = msgspec.structs.replace(m.ours.graph_version, tables=tuple(pins))
    return GraphView(version, m.catalog, m.session, m.ledger)


def _looked_at(merged: MergedRows, work: Work, wide: Collection[str]) -> Work:
    """The same tables, ready to be checked. A table of ours that lacks a column for a unique value
    is read whole, with the column that it will get."""
    m = merged.inputs
    looked = Work(work.snapshot)
    looked.moves_edges = True
    looked.overlays = dict(work.overlays)
    for key in wide:
        kind = m.catalog.by_key[key]
        columns = {p.name: p.column for p in kind.properties}
        held = set(work.view(kind).table.schema.names)
        wanted = {columns[name] for names in kind.uniques for name in names if name in columns}
        if wanted <= held:
            continue
        looked.overlays[key] = _read_whole(m, kind)
        if key in merged.rows:
            looked.overlays[key] = _overlay(looked.view(kind), merged.rows[key], m.ledger)
    return looked


def _read_whole(m: MergeInputs, kind: GraphType) -> Overlay:
    """Our rows with the columns that the merge brings."""
    mine = kind_in(m.ours, kind)
    assert mine is not None
    view = m.ours.view(mine)
    rows = pa.Table.from_batches(view.scan(m.ledger), schema=view.schema)
    return _replacing(converted(rows, mine, kind))


def _all_new(m: MergeInputs, kind: GraphType, answered: RowMerge | None) -> Overlay:
    rows = m.side(m.theirs, kind).inserts
    if answered is not None:
        rows = pa.concat_tables([_undecided(rows, answered), answered.upserts])
    return _replacing(rows)


def _undecided(rows: pa.Table, done: RowMerge) -> pa.Table:
    decided = pa.concat_arrays(
        [done.upserts["id"].combine_chunks(), pa.array(done.deletes, pa.string())]
    )
    return rows.filter(pc.invert(pc.is_in(rows["id"], value_set=decided)))


def _replacing(rows: pa.Table) -> Overlay:
    origins = np.full(rows.num_rows, NEW, dtype=np.uint64)
    return Overlay(rows, origins, np.array([], dtype=np.uint64), replaced=True)


def _count_changes(view: TableView, rows: RowMerge, ledger: Ledger) -> dict[str, Mapping[str, int]]:
    """How many of our rows the merge changes, by the name of the type."""
    known = view.find(("id",), rows.upserts["id"].to_pylist(), ledger).positions
    gone = view.find(("id",), list(rows.deletes), ledger).positions
    counts = {
        "insert": rows.upserts.num_rows - len(known),
        "update": len(known),
        "delete": len(gone),
    }
    counts = {op: count for op, count in counts.items() if count}
    return {view.kind.name: counts} if counts else {}


def _overlay(view: TableView, rows: RowMerge, ledger: Ledger) -> Overlay:
    ids = rows.upserts["id"].to_pylist()
    found = view.find(("id",), ids, ledger)
    origins = np.full(len(ids), NEW, dtype=np.uint64)
    origins[found.base_positions] = found.addresses
    gone = view.find(("id",), list(rows.deletes), ledger)
    pending = np.union1d(found.pending, gone.pending).astype(np.int64)
    return view.overlay.without(pending).adding(rows.upserts, origins).hiding(gone.addresses)


def _taken_rows(merged: MergedRows) -> list[tuple[str, RowMerge]]:
    """The rows that were added and removed in tables taken by reference, if our side changed what
    they depend on or brought rules that they have not met."""
    m, found = merged.inputs, []
    for key in merged.pointed:
        kind = m.catalog.by_key[key]
        if kind == kind_in(m.theirs, kind) and not _depends(m, kind):
            continue
        delta = m.side(m.theirs, kind)
        rows = pa.concat_tables([delta.inserts, delta.after])
        found.append((key, RowMerge(rows, tuple(delta.deletes["id"].to_pylist()), ())))
    return found


def _depends(m: MergeInputs, kind: GraphType) -> bool:
    """Whether our side changed a table that rows of this type refer to or are referred to by."""
    related: set[str] = set()
    for edge in m.catalog.edges:
        ends = {f"node:{edge.source}", f"node:{edge.target}"}
        if edge.table_key == kind.table_key:
            related |= ends
        elif kind.table_key in ends:
            related.add(edge.table_key)
    return any(m.changed(m.ours, m.catalog.by_key[key]) for key in related)


def _ends_changed(m: MergeInputs, kind: EdgeType) -> bool:
    ends = {f"node:{kind.source}", f"node:{kind.target}"}
    return any(m.changed(m.ours, m.catalog.by_key[key]) for key in ends)


def _check_ours(merged: MergedRows, kind: GraphType, looked: Work) -> list[Violation]:
    """Checks our own changes where the merge brings rules that they have not met."""
    m = merged.inputs
    mine = kind_in(m.ours, kind)
    if mine is None or mine == kind or not m.changed(m.ours, kind):
        return []
    delta = m.side(m.ours, kind)
    rows = pa.concat_tables([delta.inserts, delta.after])
    done = merged.rows.get(kind.table_key)
    if done is not None:
        rows = _undecided(rows, done)
    if not rows.num_rows:
        return []
    view = looked.view(kind)
    looked.overlays[kind.table_key] = _overlay(view, RowMerge(rows, (), ()), m.ledger)
    return check_rows(kind, rows)


def _check_thinned(
    m: MergeInputs, kind: EdgeType, looked: Work, told: Sequence[Violation]
) -> list[Violation]:
    """Nodes from which our side took edges away, where the merge brings another minimum."""
    mine = kind_in(m.ours, kind)
    if mine is None or not isinstance(mine, EdgeType) or mine.card == kind.card:
        return []
    if not m.changed(m.ours, kind):
        return []
    known = {one.id for one in told if one.rule == "card" and one.type == kind.name}
    delta = m.side(m.ours, kind)
    sources = {*delta.deletes["src"].to_pylist(), *delta.before["src"].to_pylist()} - known
    return list(check_sources(looked, kind, sorted(sources)))


def _conflict(m: MergeInputs, violation: Violation) -> MergeConflict:
    """A conflict with the entity on each side, or with the number of a node's edges."""
    kind = m.catalog.find(violation.type)
    values: list[Any] = [None, None, None]
    if kind is not None and violation.id is not None:
        if violation.rule == "card":
            sides = (m.base.table(kind).snapshot, m.ours, m.theirs)
            values = [_count_edges(m, side, kind, violation.id) for side in sides]
        else:
            now = [m.entity(side, kind, violation.id) for side in (m.ours, m.theirs)]
            rows = [m.was(kind, violation.id), *now]
            name = row_type(kind).spellings.get(violation.property or "")
            values = [
                row[name] if row is not None and name is not None and name in row else row
                for row in rows
            ]
    return MergeConflict(
        _KINDS.get(violation.rule, ConflictKind.VALUE_CONSTRAINT_VIOLATION),
        violation.type,
        violation.id,
        violation.message,
        property=violation.property,
        base=values[0],
        ours=values[1],
        theirs=values[2],
    )


def _count_edges(m: MergeInputs, side: GraphView, kind: GraphType, source: str) -> int:
    known = kind_in(side, kind)
    if known is None:
        return 0
    return len(side.view(known).find(("src",), [source], m.ledger).addresses)
