"""Owns undoing a change to one type: which rows undo it, and where it can no longer be undone."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.history.table_diff import TypeDelta, differing_properties
from omnigraph.engine.overlay import NEW
from omnigraph.engine.view import TableView
from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import GraphType, system_columns
from omnigraph.model.conflicts import ConflictKind, MergeConflict
from omnigraph.plan.rows.row_type import row_type
from omnigraph.plan.rows.stale import embedded_from
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class Undone:
    """`rows` replace those at `origins`. `gone` are the addresses of entities that are deleted, and
    `removed` their ids."""

    rows: pa.Table
    origins: np.ndarray
    gone: np.ndarray
    removed: list[str]
    conflicts: tuple[MergeConflict, ...]


@dataclass(frozen=True)
class _Present:
    """Which of some entities exist now; `positions` are their places among the given rows."""

    positions: np.ndarray
    addresses: np.ndarray
    rows: pa.Table


def undo_type(delta: TypeDelta, view: TableView, ledger: Ledger) -> Undone:
    """A change that the head no longer shows was undone already. A value that was changed again is
    a conflict."""
    then = delta.new
    assert then is not None
    conflicts: list[MergeConflict] = []
    gone, removed = _undo_inserts(delta.inserts, then, view, ledger, conflicts)
    returned = _undo_deletes(delta.deletes, then, view, ledger, conflicts)
    updated, origins = _undo_updates(delta, then, view, ledger, conflicts)
    return Undone(
        pa.concat_tables([returned, updated]),
        np.concatenate([np.full(returned.num_rows, NEW, dtype=np.uint64), origins]),
        gone,
        removed,
        tuple(conflicts),
    )


def _undo_inserts(
    inserted: pa.Table,
    then: GraphType,
    view: TableView,
    ledger: Ledger,
    conflicts: list[MergeConflict],
) -> tuple[np.ndarray, list[str]]:
    now = _present(inserted, view, ledger)
    made = inserted.take(pa.array(now.positions))
    differs = _but_vectors(view.kind, differing_properties(then, view.kind, made, now.rows))
    for name, row in _flagged(differs):
        conflicts.append(
            _conflict(
                ConflictKind.DELETE_VS_UPDATE,
                view.kind,
                now.rows,
                row,
                name,
                base=_value(made, _then_name(then, view.kind, name), row),
                theirs=None,
            )
        )
    return now.addresses, now.rows["id"].to_pylist()


def _undo_deletes(
    deleted: pa.Table,
    then: GraphType,
    view: TableView,
    ledger: Ledger,
    conflicts: list[MergeConflict],
) -> pa.Table:
    now = _present(deleted, view, ledger)
    was = deleted.take(pa.array(now.positions))
    differs = _but_vectors(view.kind, differing_properties(then, view.kind, was, now.rows))
    for name, row in _flagged(differs):
        conflicts.append(
            _conflict(
                ConflictKind.DIVERGENT_INSERT,
                view.kind,
                now.rows,
                row,
                name,
                base=None,
                theirs=_value(was, _then_name(then, view.kind, name), row),
            )
        )
    missing = np.setdiff1d(np.arange(deleted.num_rows), now.positions)
    return _as_now(deleted.take(pa.array(missing)), then, view.kind)


def _undo_updates(
    delta: TypeDelta,
    then: GraphType,
    view: TableView,
    ledger: Ledger,
    conflicts: list[MergeConflict],
) -> tuple[pa.Table, np.ndarray]:
    kind = view.kind
    now = _present(delta.after, view, ledger)
    for row in np.setdiff1d(np.arange(delta.after.num_rows), now.positions).tolist():
        (was,) = delta.before.slice(row, 1).to_pylist()
        (made,) = delta.after.slice(row, 1).to_pylist()
        conflicts.append(
            MergeConflict(
                ConflictKind.DELETE_VS_UPDATE,
                kind.name,
                made["id"],
                f"{kind.name} {made['id']!r} was deleted by a later commit.",
                base=made,
                theirs=was,
            )
        )
    at = pa.array(now.positions)
    before, after = delta.before.take(at), delta.after.take(at)
    changed = [delta.changed[position] for position in now.positions.tolist()]
    from_after = differing_properties(then, kind, after, now.rows)
    from_before = differing_properties(then, kind, before, now.rows)
    names = {p.id: p.name for p in kind.properties}
    rows = now.rows
    wanted = _as_now(before, then, kind)
    touched = np.zeros(rows.num_rows, dtype=bool)
    undone: dict[str, np.ndarray] = {}
    vectors = dict(embedded_from(kind))
    ends = [(end, end) for end in system_columns(kind)[1:]]
    for was, name in [*ends, *((p.name, names.get(p.id)) for p in then.properties)]:
        mask = np.array([was in told for told in changed], dtype=bool)
        if not mask.any() or name in vectors:
            continue
        if name is None:
            row = int(np.flatnonzero(mask)[0])
            conflicts.append(_property_dropped(kind, was, _value(rows, "id", row)))
            continue
        none = np.zeros(rows.num_rows, dtype=bool)
        moved = mask & from_after.get(name, none)
        conflicts += [
            _conflict(
                ConflictKind.DIVERGENT_UPDATE,
                kind,
                rows,
                row,
                name,
                base=_value(after, was, row),
                theirs=_value(before, was, row),
            )
            for row in np.flatnonzero(moved & from_before.get(name, none)).tolist()
        ]
        undone[name] = undo = mask & ~moved
        touched |= undo
        rows = _replaced(rows, wanted, name, undo)
    changes = [frozenset(_now_names(then, kind, told)) for told in changed]
    for vector, source in vectors.items():
        # A vector follows its text. It goes back if the text goes back; otherwise only if the
        # commit gave it to the current text. It never causes a conflict.
        none = np.zeros(rows.num_rows, dtype=bool)
        given = np.array([vector in told for told in changes], dtype=bool)
        alone = given & ~from_after.get(vector, none) & ~from_after.get(source, none)
        undo = undone.get(source, none) | alone
        touched |= undo
        rows = _replaced(rows, wanted, vector, undo)
    kept = pa.array(touched)
    return rows.filter(kept), now.addresses[touched]


def _present(rows: pa.Table, view: TableView, ledger: Ledger) -> _Present:
    if not rows.num_rows:
        none = np.array([], dtype=np.int64)
        return _Present(none, none.astype(np.uint64), view.schema.empty_table())
    found = view.find(("id",), rows["id"].to_pylist(), ledger)
    order = np.argsort(found.base_positions, kind="stable")
    addresses = found.addresses[order]
    current = view.schema.empty_table()
    if len(addresses):
        current = view.take(addresses, view.schema.names, ledger)
    return _Present(found.base_positions[order], addresses, current)


def _as_now(rows: pa.Table, then: GraphType, now: GraphType) -> pa.Table:
    """Rows of an older form of the type, in its present form."""
    schema = row_schema(now)
    names = {p.id: p.name for p in then.properties}
    columns = [rows[name] for name in system_columns(now)]
    for p in now.properties:
        if p.id in names:
            columns.append(rows[names[p.id]].cast(schema.field(p.name).type))
        else:
            columns.append(row_type(now).filled_array(p.name, rows.num_rows))
    return pa.Table.from_arrays(columns, schema=schema)


def _replaced(rows: pa.Table, wanted: pa.Table, name: str, mask: np.ndarray) -> pa.Table:
    """The rows with one property replaced where the mask is set."""
    count = rows.num_rows
    both = pa.chunked_array([*rows[name].chunks, *wanted[name].chunks], rows[name].type)
    index = np.arange(count) + np.where(mask, count, 0)
    place = rows.schema.get_field_index(name)
    return rows.set_column(place, rows.schema.field(place), both.take(pa.array(index)))


def _but_vectors(kind: GraphType, differs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """A vector that was embedded meanwhile does not count as a change."""
    vectors = dict(embedded_from(kind))
    return {name: flags for name, flags in differs.items() if name not in vectors}


def _now_names(then: GraphType, now: GraphType, names: Iterable[str]) -> Iterator[str]:
    """The present names of the properties of an older form of the type."""
    ids = {p.name: p.id for p in then.properties}
    held = {p.id: p.name for p in now.properties}
    for name in names:
        if (known := held.get(ids.get(name, ""))) is not None:
            yield known


def _flagged(differs: dict[str, np.ndarray]) -> Iterator[tuple[str, int]]:
    for name, flags in differs.items():
        for row in np.flatnonzero(flags).tolist():
            yield name, row


def _then_name(then: GraphType, now: GraphType, name: str) -> str | None:
    """The old name of a present property, or None if it did not exist."""
    ids = {p.name: p.id for p in now.properties}
    names = {p.id: p.name for p in then.properties}
    return names.get(ids[name]) if name in ids else name


def _value(rows: pa.Table, name: str | None, row: int) -> Any:
    return None if name is None else rows[name][row].as_py()


def _conflict(
    reason: ConflictKind,
    kind: GraphType,
    rows: pa.Table,
    row: int,
    name: str,
    *,
    base: Any,
    theirs: Any,
) -> MergeConflict:
    entity = rows["id"][row].as_py()
    return MergeConflict(
        reason,
        kind.name,
        entity,
        f"{kind.name} {entity!r}: a later commit has changed {name}.",
        property=name,
        base=base,
        ours=rows[name][row].as_py(),
        theirs=theirs,
    )


def _property_dropped(kind: GraphType, name: str, entity: Any) -> MergeConflict:
    return MergeConflict(
        ConflictKind.SCHEMA,
        kind.name,
        entity,
        f"{kind.name}.{name} was dropped by a later commit.",
        property=name,
    )
