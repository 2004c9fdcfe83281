"""Owns the comparison of two versions of a table: which entities were added, removed and changed.

Only fragments that differ are read. Two fragments are the same if their first data file is the
same, because rows are never changed in place, and added columns are a change of the schema.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.view import TableView
from omnigraph.model.catalog import GraphType, system_columns
from omnigraph.plan.migrate.properties import is_widening
from omnigraph.plan.rows.compare import equal_values
from omnigraph.plan.rows.row_type import row_type
from omnigraph.telemetry import Ledger

_NO_ROWS = np.array([], dtype=np.int64)


@dataclass(frozen=True)
class TypeDelta:
    """What changed in one type. The rows of `before` and `after` are the updated entities, pair by
    pair. `changed` names the properties that differ in each pair."""

    old: GraphType | None
    new: GraphType | None
    inserts: pa.Table
    deletes: pa.Table
    before: pa.Table
    after: pa.Table
    changed: tuple[tuple[str, ...], ...]

    @property
    def empty(self) -> bool:
        return not (self.inserts.num_rows or self.deletes.num_rows or self.after.num_rows)


def diff_type(
    old: TableView | None, new: TableView | None, ledger: Ledger, *, entity: str | None = None
) -> TypeDelta:
    """Compares entities by id. None means that the type did not exist, so all rows were added or
    removed. With `entity`, an id, only that entity is compared, and of the others only ids are
    read."""
    if old is None or new is None:
        return _whole(old, new, ledger, entity)
    if (old.table.location, old.table.version) == (new.table.location, new.table.version):
        none_new, none_old = new.schema.empty_table(), old.schema.empty_table()
        return TypeDelta(old.kind, new.kind, none_new, none_old, none_old, none_new, ())
    gone, came = _differing_rows(old, new, ledger, entity)
    where = pc.index_in(came["id"], value_set=gone["id"].combine_chunks())
    known = where.is_valid().to_numpy()
    inserts = came.filter(pa.array(~known))
    after = came.filter(pa.array(known))
    places = where.drop_null().to_numpy()
    before = gone.take(pa.array(places, pa.int64()))
    left = np.ones(gone.num_rows, dtype=bool)
    left[places] = False
    differs = differing_properties(old.kind, new.kind, before, after)
    moved = np.any(list(differs.values()), axis=0) if differs else np.zeros(len(places), bool)
    rows = np.flatnonzero(moved)
    names = [tuple(name for name, flags in differs.items() if flags[row]) for row in rows]
    return TypeDelta(
        old.kind,
        new.kind,
        inserts,
        gone.filter(pa.array(left)),
        before.take(pa.array(rows)),
        after.take(pa.array(rows)),
        tuple(names),
    )


def _whole(
    old: TableView | None, new: TableView | None, ledger: Ledger, entity: str | None
) -> TypeDelta:
    def rows(view: TableView | None) -> pa.Table:
        if view is None:
            return pa.table({"id": pa.array([], pa.string())})
        return pa.Table.from_batches(view.scan(ledger, filter=_only(entity)), schema=view.schema)

    inserts, deletes = rows(new), rows(old)
    return TypeDelta(
        old.kind if old else None,
        new.kind if new else None,
        inserts,
        deletes,
        deletes.slice(0, 0),
        inserts.slice(0, 0),
        (),
    )


def _differing_rows(
    old: TableView, new: TableView, ledger: Ledger, entity: str | None
) -> tuple[pa.Table, pa.Table]:
    """Rows of one version that the other does not have at the same place."""
    if old.table.location != new.table.location:
        return _rows(old, [], list(old.table.marks), ledger, entity), _rows(
            new, [], list(new.table.marks), ledger, entity
        )
    befores = {mark.files[0]: mark for mark in old.table.marks.values()}
    afters = {mark.files[0]: mark for mark in new.table.marks.values()}
    gone: list[np.ndarray] = []
    came: list[np.ndarray] = []
    for file in befores.keys() & afters.keys():
        before, after = befores[file], afters[file]
        if before.deletion == after.deletion:
            continue
        was = old.live_offsets(before.id, ledger)
        now = new.live_offsets(after.id, ledger)
        gone.append(_without(was, now, before.physical) + (np.uint64(before.id) << np.uint64(32)))
        came.append(_without(now, was, after.physical) + (np.uint64(after.id) << np.uint64(32)))
    only_old = [befores[file].id for file in befores.keys() - afters.keys()]
    only_new = [afters[file].id for file in afters.keys() - befores.keys()]
    return _rows(old, gone, only_old, ledger, entity), _rows(new, came, only_new, ledger, entity)


def _without(offsets: np.ndarray, others: np.ndarray, physical: int) -> np.ndarray:
    """Numpy's own set difference takes a second for a million rows."""
    left = np.zeros(physical, dtype=bool)
    left[offsets] = True
    left[others] = False
    return np.flatnonzero(left).astype(np.uint64)


def _rows(
    view: TableView,
    addresses: Sequence[np.ndarray],
    fragments: list[int],
    ledger: Ledger,
    entity: str | None,
) -> pa.Table:
    single = np.concatenate([np.array([], dtype=np.uint64), *addresses])
    hidden = view.overlay.hidden
    if len(hidden):  # from who reads: here nothing is pending
        single = single[~np.isin(single, hidden)]
        names = view.schema.names
        found = view.located(names, ledger, filter=_only(entity), fragments=fragments)
        parts = [pa.Table.from_batches([b.select(names) for b in found], schema=view.schema)]
    else:
        parts = [view.fragment_rows(fragments, ledger, filter=_only(entity))] if fragments else []
    if len(single) and entity is not None:
        ids = view.take(single, ["id"], ledger)["id"]
        single = single[pc.equal(ids, entity).to_numpy()]
    if len(single):
        parts.append(view.rows_at(single, ledger))
    return pa.concat_tables(parts) if parts else view.schema.empty_table()


def _only(entity: str | None) -> pc.Expression | None:
    return None if entity is None else pc.field("id") == entity


def differing_properties(
    old: GraphType, new: GraphType, before: pa.Table, after: pa.Table
) -> dict[str, np.ndarray]:
    """For each property of the new type, the entities in which it differs. A property that the old
    type did not have counts as if it had held the value that the change gave to every entity. So
    does a property that held values of another kind, which graphs of format 1 may have under the
    same id."""
    was = {p.id: p for p in old.properties}
    facts = row_type(new)
    flags = {}
    for name in system_columns(new)[1:]:
        flags[name] = ~equal_values(before[name], after[name])
    for p in new.properties:
        past, now = facts.filled_array(p.name, before.num_rows), after[p.name]
        if (known := was.get(p.id)) is not None:
            held = before[known.name]
            if is_widening(p.type, known.type):  # comparing backwards, to a narrower type
                past, now = held, now.cast(held.type)
            elif held.type == now.type or is_widening(known.type, p.type):
                past = held.cast(now.type)
        flags[p.name] = ~equal_values(past, now)
    return {name: differs for name, differs in flags.items() if differs.any()}
