"""Owns the merge of tables: for each type the version that the merged graph will have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.differ import TypeDelta, diff_type
from omnigraph.engine.integrity import find_violations
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.stage import by_column
from omnigraph.engine.view import NEW, Overlay, TableView
from omnigraph.engine.work import Work
from omnigraph.model.catalog import Catalog, GraphType, NodeType, row_schema, table_schema
from omnigraph.model.conflicts import ConflictKind, MergeConflict
from omnigraph.model.version import GraphVersion, TablePin, TableStatistics
from omnigraph.plan.merge import RowMerge, SideDelta, Strategy, merge_rows
from omnigraph.plan.publish import Adopt, Register, Rename, TableAction, Tombstone
from omnigraph.plan.row_type import row_type
from omnigraph.plan.validate import check_rows
from omnigraph.store import commits
from omnigraph.store.staging import StagedDeletes, shared_fragments, stage_deletes, stage_rows
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

_KINDS = {
    "endpoint": ConflictKind.ORPHAN_EDGE,
    "orphan": ConflictKind.ORPHAN_EDGE,
    "unique": ConflictKind.UNIQUE_VIOLATION,
    "card": ConflictKind.CARDINALITY_VIOLATION,
}


@dataclass(frozen=True)
class MergedTables:
    actions: tuple[TableAction, ...]
    adopted: tuple[str, ...]
    changes: dict[str, dict[str, int]]
    conflicts: tuple[MergeConflict, ...]


@dataclass
class _Merging:
    """One merge under way. `snapshot` is our side as the merged schema sees it."""

    session: Session
    base: Snapshot
    ours: Snapshot
    theirs: Snapshot
    catalog: Catalog
    strategy: Strategy
    ledger: Ledger
    actions: list[TableAction] = field(default_factory=list)
    adopted: list[str] = field(default_factory=list)
    conflicts: list[MergeConflict] = field(default_factory=list)
    changes: dict[str, dict[str, int]] = field(default_factory=dict)
    wide: dict[str, Table] = field(default_factory=dict)
    merged: dict[str, RowMerge] = field(default_factory=dict)
    pointed: dict[str, TablePin] = field(default_factory=dict)


def merge_tables(
    session: Session,
    base: GraphVersion,
    ours: GraphVersion,
    theirs: GraphVersion,
    catalog: Catalog,
    strategy: Strategy,
    ledger: Ledger,
) -> MergedTables:
    """Nothing becomes visible here: versions are made that only the returned actions know."""
    merging = _Merging(
        session,
        session.snapshot(base, ledger),
        session.snapshot(ours, ledger),
        session.snapshot(theirs, ledger),
        catalog,
        strategy,
        ledger,
    )
    for kind in catalog.by_key.values():
        _merge_type(merging, kind)
    _drop_types(merging)
    work = _check(merging)
    if not merging.conflicts:
        _commit_rows(merging, work)
    return MergedTables(
        tuple(merging.actions),
        tuple(merging.adopted),
        merging.changes,
        tuple(merging.conflicts),
    )


def _kind_of(snapshot: Snapshot, kind: GraphType) -> GraphType | None:
    for candidate in snapshot.catalog.by_key.values():
        if candidate.id == kind.id:
            return candidate
    return None


def _merge_type(m: _Merging, kind: GraphType) -> None:
    mine, yours, was = (_kind_of(s, kind) for s in (m.ours, m.theirs, m.base))
    if mine is None:
        if yours is not None:
            _take_new_type(m, kind, yours)
        return
    if mine.table_key != kind.table_key:
        m.actions.append(Rename(table=mine.table_key, to=kind.table_key))
    if yours is None:
        return
    ours_pin = m.ours.graph_version.pins[mine.table_key]
    theirs_pin = m.theirs.graph_version.pins[yours.table_key]
    base_pin = None if was is None else m.base.graph_version.pins[was.table_key]
    if _place(theirs_pin) == _place(ours_pin) or _place(theirs_pin) == _place(base_pin):
        return
    if _place(ours_pin) == _place(base_pin) and _fits(kind, yours):
        m.pointed[kind.table_key] = theirs_pin
        return
    _merge_type_rows(m, kind, mine, yours, was)


def _place(pin: TablePin | None) -> tuple[str, str] | None:
    return None if pin is None else (pin.location, pin.lance_version)


def _fits(kind: GraphType, side: GraphType) -> bool:
    """Whether a side's table has every column of the merged type, in its type."""
    return {(p.id, p.column, p.type) for p in kind.properties} <= {
        (p.id, p.column, p.type) for p in side.properties
    }


def _take_new_type(m: _Merging, kind: GraphType, yours: GraphType) -> None:
    pin = m.theirs.graph_version.pins[yours.table_key]
    pin = msgspec.structs.replace(pin, key=kind.table_key, type_id=kind.id)
    m.actions.append(Register(table=kind.table_key, pin=pin))
    m.adopted.append(kind.table_key)


def _drop_types(m: _Merging) -> None:
    kept = {kind.id for kind in m.catalog.by_key.values()}
    for kind in m.ours.catalog.by_key.values():
        if kind.id not in kept:
            m.actions.append(Tombstone(table=kind.table_key))


def _merge_type_rows(
    m: _Merging, kind: GraphType, mine: GraphType, yours: GraphType, was: GraphType | None
) -> None:
    ours, theirs = m.ours.view(mine), m.theirs.view(yours)
    base = None if was is None else m.base.view(was)
    left = _as_merged(diff_type(base, ours, m.ledger), kind)
    right = _as_merged(diff_type(base, theirs, m.ledger), kind)
    if right.empty:
        return
    result = merge_rows(kind, left, right, m.strategy)
    m.conflicts += result.conflicts
    m.merged[kind.table_key] = result


def _as_merged(delta: TypeDelta, kind: GraphType) -> SideDelta:
    """Rows of a side as rows of the merged type."""
    return SideDelta(
        inserts=_converted(delta.inserts, delta.new, kind),
        deletes=_converted(delta.deletes, delta.old, kind),
        before=_converted(delta.before, delta.old, kind),
        after=_converted(delta.after, delta.new, kind),
    )


def _converted(rows: pa.Table, side: GraphType | None, kind: GraphType) -> pa.Table:
    schema = row_schema(kind)
    if side is None or not rows.num_rows:
        return schema.empty_table()
    facts = row_type(kind)
    names = {p.id: p.name for p in side.properties}
    by_name = {p.name: p for p in kind.properties}
    columns = []
    for field_ in schema:
        prop = by_name.get(field_.name)
        if prop is None:
            columns.append(rows[field_.name])
        elif prop.id in names:
            columns.append(rows[names[prop.id]].cast(field_.type))
        else:
            columns.append(facts.default_array(prop.name, rows.num_rows))
    return pa.Table.from_arrays(columns, schema=schema)


# Checking the result


def _check(m: _Merging) -> Work:
    """The merged rows, pending over our side as the merged schema sees it, obey every rule."""
    pins = {}
    for kind in m.catalog.by_key.values():
        mine = _kind_of(m.ours, kind)
        if mine is None:
            yours = _kind_of(m.theirs, kind)
            assert yours is not None
            pin = m.theirs.graph_version.pins[yours.table_key]
        else:
            pin = m.ours.graph_version.pins[mine.table_key]
            if mine.id and not _fits(kind, mine) and kind.table_key not in m.pointed:
                table = _widened(m, kind, mine, pin)
                pin = msgspec.structs.replace(pin, lance_version=table.version)
                m.wide[kind.table_key] = table
        pins[kind.table_key] = msgspec.structs.replace(pin, key=kind.table_key)
    version = msgspec.structs.replace(m.ours.graph_version, tables=tuple(pins.values()))
    work = Work(Snapshot(version, m.catalog, m.session, m.ledger))
    for key, rows in _pending(m):
        kind = m.catalog.by_key[key]
        work.overlays[key] = _overlay(work.view(kind), rows, m.ledger)
    for key, rows in m.merged.items():
        for violation in check_rows(m.catalog.by_key[key], rows.upserts):
            m.conflicts.append(_conflict(violation))
    if not m.conflicts:
        removed = _removed_nodes(m)
        m.conflicts += [_conflict(v) for v in find_violations(work, removed)]
    return work


def _pending(m: _Merging) -> Iterator[tuple[str, RowMerge]]:
    """Merged rows, and of tables taken by pointer the rows that came and went, if our side
    changed anything that they might depend on."""
    yield from m.merged.items()
    for key in m.pointed:
        if not _depends(m, m.catalog.by_key[key]):
            continue
        kind = m.catalog.by_key[key]
        was, yours = _kind_of(m.base, kind), _kind_of(m.theirs, kind)
        assert yours is not None
        base = None if was is None else m.base.view(was)
        delta = _as_merged(diff_type(base, m.theirs.view(yours), m.ledger), kind)
        rows = pa.concat_tables([delta.inserts, delta.after])
        yield key, RowMerge(rows, tuple(delta.deletes["id"].to_pylist()), ())


def _depends(m: _Merging, kind: GraphType) -> bool:
    """Whether our side changed a table that rows of this type refer to or are referred to by."""
    related: set[str] = set()
    for edge in m.catalog.edges:
        ends = {f"node:{edge.source}", f"node:{edge.target}"}
        if edge.table_key == kind.table_key:
            related |= ends
        elif kind.table_key in ends:
            related.add(edge.table_key)
    for key in related:
        mine = _kind_of(m.ours, m.catalog.by_key[key])
        was = _kind_of(m.base, m.catalog.by_key[key])
        if mine is None:
            continue
        before = None if was is None else m.base.graph_version.pins[was.table_key]
        if _place(m.ours.graph_version.pins[mine.table_key]) != _place(before):
            return True
    return False


def _overlay(view: TableView, rows: RowMerge, ledger: Ledger) -> Overlay:
    ids = rows.upserts["id"].to_pylist()
    found = view.find(("id",), ids, ledger)
    origins = np.full(len(ids), NEW, dtype=np.uint64)
    origins[found.base_positions] = found.addresses
    gone = view.find(("id",), list(rows.deletes), ledger)
    return view.overlay.adding(rows.upserts, origins).hiding(gone.addresses)


def _removed_nodes(m: _Merging) -> dict[str, list[str]]:
    """Ids of nodes that their side removed, by table."""
    removed: dict[str, list[str]] = {}
    for key, rows in _pending(m):
        if isinstance(m.catalog.by_key[key], NodeType) and rows.deletes:
            removed.setdefault(key, []).extend(rows.deletes)
    return removed


def _conflict(violation: object) -> MergeConflict:
    rule = getattr(violation, "rule", "")
    return MergeConflict(
        _KINDS.get(rule, ConflictKind.VALUE_CONSTRAINT_VIOLATION),
        getattr(violation, "type", ""),
        getattr(violation, "id", None),
        getattr(violation, "message", ""),
        property=getattr(violation, "property", None),
        theirs=getattr(violation, "value", None),
    )


# Making the versions


def _widened(m: _Merging, kind: GraphType, mine: GraphType, pin: TablePin) -> Table:
    """Our table with the columns that the merge brings, unseen by anybody."""
    table = m.session.tables.open(pin.location, pin.lance_version, m.ledger)
    schema = table_schema(kind)
    held = {p.id: p for p in mine.properties}
    fields, fills, casts = [], {}, {}
    facts = row_type(kind)
    for p in kind.properties:
        if p.column in table.schema.names:
            continue
        fields.append(schema.field(p.column))
        if p.id in held:
            casts[p.column] = held[p.id].column
        elif facts.default_value(p.name) is not None:
            fills[p.column] = facts.default_array(p.name, 1)
    fill = None
    if fills:
        fill = pa.RecordBatch.from_arrays(
            list(fills.values()), schema=pa.schema([schema.field(name) for name in fills])
        )
    wide = commits.add_columns(table, table.version, pa.schema(fields), fill, casts, m.ledger)
    m.session.tables.keep(wide)
    return wide


def _commit_rows(m: _Merging, work: Work) -> None:
    for key, pin in m.pointed.items():
        mine = _kind_of(m.ours, m.catalog.by_key[key])
        assert mine is not None
        base = m.ours.graph_version.pins[mine.table_key].lance_version
        moved = msgspec.structs.replace(pin, key=mine.table_key)
        m.actions.append(Adopt(table=mine.table_key, base=base, pin=moved))
        m.adopted.append(key)
    for key in m.merged.keys() | m.wide.keys():
        _commit_type(m, work, m.catalog.by_key[key])


def _commit_type(m: _Merging, work: Work, kind: GraphType) -> None:
    key = kind.table_key
    mine = _kind_of(m.ours, kind)
    assert mine is not None
    pin = m.ours.graph_version.pins[mine.table_key]
    view = work.view(kind)
    table, statistics = view.table, TableStatistics()
    overlay = work.overlays.get(key)
    if overlay is not None and overlay.touched:
        fragments, left = _shared(m, kind, overlay, table)
        rows = by_column(kind, overlay.rows.filter(pa.array(left)))
        staged = stage_rows(table, rows, m.ledger) if rows.num_rows else None
        deletes = StagedDeletes()
        if len(overlay.hidden):
            deletes = stage_deletes(table, overlay.hidden, m.ledger)
        written = (*fragments, *(staged.fragments if staged else ()))
        table = commits.change(table, table.version, deletes, written, m.ledger)
        inserted = int(np.count_nonzero(overlay.origins == NEW))
        updated = len(overlay.origins) - inserted
        statistics = TableStatistics(
            inserted=inserted,
            updated=updated,
            deleted=len(overlay.hidden) - updated,
            bytes=staged.bytes if staged else 0,
        )
        m.changes[kind.name] = {
            "insert": inserted,
            "update": updated,
            "delete": statistics.deleted,
        }
    m.session.tables.keep(table)
    moved = msgspec.structs.replace(
        pin,
        key=mine.table_key,
        lance_version=table.version,
        rows=table.rows,
        fragments=len(table.marks),
    )
    m.actions.append(
        Adopt(table=mine.table_key, base=pin.lance_version, pin=moved, statistics=statistics)
    )


def _shared(
    m: _Merging, kind: GraphType, overlay: Overlay, table: Table
) -> tuple[tuple[str, ...], np.ndarray]:
    """Fragments that the source appended and that can be ours too without copying a row, and
    which pending rows are left to write."""
    left = np.ones(overlay.rows.num_rows, dtype=bool)
    yours, was = _kind_of(m.theirs, kind), _kind_of(m.base, kind)
    if yours is None or not overlay.rows.num_rows:
        return (), left
    source = m.theirs.view(yours).table
    known = (
        set() if was is None else {mark.files[0] for mark in m.base.view(was).table.marks.values()}
    )
    fragments: list[str] = []
    new = overlay.origins == NEW
    ids = overlay.rows["id"]
    for number, text in shared_fragments(source, table, known):
        held = m.theirs.view(yours).fragment_ids_of(number, m.ledger)
        where = pc.index_in(held, value_set=ids.combine_chunks())
        if where.null_count:
            continue
        places = where.to_numpy()
        if new[places].all() and left[places].all() and _untouched(m, kind, held):
            fragments.append(text)
            left[places] = False
    return tuple(fragments), left


def _untouched(m: _Merging, kind: GraphType, ids: pa.Array) -> bool:
    """Whether the merge takes these entities as the source has them."""
    answered = {entity for type_name, entity in m.strategy.rows or {} if type_name == kind.name}
    return not answered.intersection(ids.to_pylist())
