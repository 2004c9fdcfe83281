"""Owns the table versions that a merge makes: widened, with merged rows, or with shared fragments.
Nobody can see them before the merge is published."""

from __future__ import annotations

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.merge.sides import kind_in, pin_in
from omnigraph.engine.merge.state import CheckedMerge, MergeInputs
from omnigraph.engine.overlay import NEW, Overlay
from omnigraph.engine.write.stage import by_column
from omnigraph.model.arrow import table_schema
from omnigraph.model.catalog import GraphType
from omnigraph.model.version import TablePin, TableStatistics
from omnigraph.plan.publish import Adopt, Register, TableAction
from omnigraph.plan.rows.row_type import row_type
from omnigraph.store import commits
from omnigraph.store.staging import StagedDeletes, shared_fragments, stage_deletes, stage_rows
from omnigraph.store.tables import Table


def write_merge(checked: CheckedMerge) -> tuple[TableAction, ...]:
    """Writes the table versions of a checked merge and returns the actions that publish them."""
    assert not checked.conflicts
    merged, m = checked.merged, checked.merged.inputs
    actions = list(merged.actions)
    for key, pin in merged.pointed.items():
        mine = pin_in(m.ours, m.catalog.by_key[key])
        assert mine is not None
        moved = msgspec.structs.replace(pin, key=mine.key, type_id=mine.type_id)
        actions.append(Adopt(table=mine.key, base=mine.lance_version, pin=moved, published=True))
    arrived = {kind.table_key for kind in merged.arrived}
    for key in sorted((merged.rows.keys() | checked.wide) - arrived):
        kind = m.catalog.by_key[key]
        held = pin_in(m.ours, kind)
        assert held is not None
        made = _write_type(checked, kind, held)
        actions += [made] if made is not None else []
    actions += [_register(checked, kind) for kind in merged.arrived]
    return tuple(actions)


def _register(checked: CheckedMerge, kind: GraphType) -> Register:
    """Their table as it is, or the version that the merge makes of it."""
    pin = pin_in(checked.merged.inputs.theirs, kind)
    assert pin is not None
    pin = msgspec.structs.replace(pin, key=kind.table_key, type_id=kind.id)
    made = _write_type(checked, kind, pin)
    if made is None:
        return Register(table=kind.table_key, pin=pin)
    changed = msgspec.structs.replace(made.pin, table_version=pin.table_version + 1)
    return Register(table=kind.table_key, pin=changed, unsynced=made.unsynced)


def _write_type(checked: CheckedMerge, kind: GraphType, pin: TablePin) -> Adopt | None:
    """The version that the merge makes of a table, ours or one that arrives; None for none."""
    m = checked.merged.inputs
    table, statistics = (
        _opened(m, kind, pin, wide=kind.table_key in checked.wide),
        TableStatistics(),
    )
    came_with = table.unsynced if table.version != pin.lance_version else ()
    overlay = checked.overlays.get(kind.table_key)
    if overlay is not None and overlay.touched:
        table, written = _changed(m, kind, table, overlay)
        inserted = int(np.count_nonzero(overlay.origins == NEW))
        updated = len(overlay.origins) - inserted
        deleted = len(overlay.hidden) - updated
        statistics = TableStatistics(
            inserted=inserted, updated=updated, deleted=deleted, bytes=written
        )
    if table.version == pin.lance_version:
        return None
    m.session.tables.keep(table)
    moved = msgspec.structs.replace(
        pin,
        content=m.session.runtime.ulid(),
        lance_version=table.version,
        rows=table.rows,
        fragments=len(table.marks),
    )
    return Adopt(
        table=pin.key,
        base=pin.lance_version,
        pin=moved,
        unsynced=(*came_with, *table.unsynced),
        statistics=statistics,
    )


def _opened(m: MergeInputs, kind: GraphType, pin: TablePin, *, wide: bool) -> Table:
    """Our table, with the columns that the merge brings if there are any."""
    table = m.session.tables.open(pin.location, pin.lance_version, m.ledger)
    return _widened(m, kind, table) if wide else table


def _changed(m: MergeInputs, kind: GraphType, table: Table, overlay: Overlay) -> tuple[Table, int]:
    """The version with the merged rows, and how many bytes they took."""
    fragments, left = _shared(m, kind, overlay, table)
    rows = by_column(kind, overlay.rows.filter(pa.array(left)))
    staged = stage_rows(table, rows, m.ledger) if rows.num_rows else None
    deletes = StagedDeletes()
    if len(overlay.hidden):
        deletes = stage_deletes(table, overlay.hidden, m.ledger)
    written = (*fragments, *(staged.fragments if staged else ()))
    changed = commits.change(table, table.version, deletes, written, m.ledger)
    return changed, staged.bytes if staged else 0


def _widened(m: MergeInputs, kind: GraphType, table: Table) -> Table:
    """Our table with the columns that the merge brings. A column that is already there is in use
    (`settle_columns`)."""
    schema = table_schema(kind)
    mine = kind_in(m.ours, kind)
    held = {p.id: p for p in mine.properties} if mine is not None else {}
    fields, fills, casts = [], {}, {}
    facts = row_type(kind)
    for p in kind.properties:
        if p.column in table.schema.names:
            continue
        fields.append(schema.field(p.column))
        if p.id in held:
            casts[p.column] = held[p.id].column
        elif facts.filled_value(p.name) is not None:
            fills[p.column] = facts.filled_array(p.name, 1)
    fill = None
    if fills:
        fill = pa.RecordBatch.from_arrays(
            list(fills.values()), schema=pa.schema([schema.field(name) for name in fills])
        )
    wide = commits.add_columns(table, table.version, pa.schema(fields), fill, casts, m.ledger)
    m.session.tables.keep(wide)
    return wide


def _shared(
    m: MergeInputs, kind: GraphType, overlay: Overlay, table: Table
) -> tuple[tuple[str, ...], np.ndarray]:
    """Fragments that the source appended and that our table can share without copying a row, and
    the pending rows that still have to be written."""
    left = np.ones(overlay.rows.num_rows, dtype=bool)
    yours = kind_in(m.theirs, kind)
    base = m.base.table(kind).snapshot
    was = kind_in(base, kind)
    if yours is None or kind_in(m.ours, kind) is None or not overlay.rows.num_rows:
        return (), left  # what arrives is theirs already
    view = m.theirs.view(yours)
    if view.table.location != table.location:
        return (), left  # a fragment names its files relative to its table
    known = (
        set() if was is None else {mark.files[0] for mark in base.view(was).table.marks.values()}
    )
    answered = {entity for name, entity in m.strategy.rows or {} if name == kind.name}
    fragments: list[str] = []
    new = overlay.origins == NEW
    ids = overlay.rows["id"].combine_chunks()
    theirs = {p.id for p in yours.properties}
    unwanted = {p.column for p in kind.properties if p.id not in theirs}
    for number, text in shared_fragments(view.table, table, known, _valued(kind, yours), unwanted):
        held = view.fragment_ids_of(number, m.ledger)
        where = pc.index_in(held, value_set=ids)
        if where.null_count or answered.intersection(held.to_pylist()):
            continue
        places = where.to_numpy()
        if new[places].all() and left[places].all():
            fragments.append(text)
            left[places] = False
    return tuple(fragments), left


def _valued(kind: GraphType, yours: GraphType) -> frozenset[str]:
    """Columns in which a row of theirs has a value, so null would be wrong."""
    held = {p.id for p in yours.properties}
    facts = row_type(kind)
    return frozenset(
        p.column for p in kind.properties if p.id in held or facts.filled_value(p.name) is not None
    )
