"""Owns the rows of a merge: what was given, over what the entity had, over defaults."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.load.spool import Room, Spool
from omnigraph.engine.load.state import ORIGIN, LoadState, TypeRows
from omnigraph.engine.view import TableView
from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import EdgeType, GraphType, system_columns
from omnigraph.plan.load.places import AT
from omnigraph.plan.rows.complete import complete_rows
from omnigraph.plan.rows.row_type import required_columns
from omnigraph.plan.rows.typed import RowGroup
from omnigraph.plan.rules.book import ENDS, describe_missing, describe_move
from omnigraph.store.tables import ADDRESS

_BATCH = 64 * 1024


@dataclass(frozen=True)
class Part:
    """Rows of a type that gave the same properties."""

    given: frozenset[str]
    table: pa.Table


def complete_merge(state: LoadState, kind: GraphType, parts: Sequence[Part], room: Room) -> None:
    """Puts whole rows, each with the address that it replaces, in the place of the parts. Before
    that `state.rows` holds the system columns of those that are still in."""
    held = state.rows[kind.table_key]
    ids = pa.table({"v": pc.unique(held.table["id"])})
    known = state.locate(kind, "id", ids.slice(0, 0) if held.generated else ids)
    view = state.view(kind) if not held.generated else state.snapshot.view(kind)
    for part in parts:
        rows = _located(part.table, known)
        _refuse_incomplete(state, kind, part, rows)
        _refuse_moved(state, kind, view, rows)
    left = state.rows[kind.table_key].table[AT]
    whole = len(left) == sum(part.table.num_rows for part in parts)
    schema = row_schema(kind).append(pa.field(AT, pa.int64())).append(pa.field(ORIGIN, pa.uint64()))
    spool = Spool(room, schema)
    for part in parts:
        rows = _located(part.table, known)
        if not whole:
            rows = rows.filter(pc.is_in(rows[AT], value_set=left))
        for start in range(0, rows.num_rows, _BATCH):
            spool.add(_complete(state, view, part.given, rows.slice(start, _BATCH), schema))
    state.rows[kind.table_key] = TypeRows(kind, spool.table(), held.generated)


def _located(table: pa.Table, known: pa.Table) -> pa.Table:
    """With the address of the row that each replaces, null for new entities."""
    if not known.num_rows:
        return table.append_column(ORIGIN, pa.nulls(table.num_rows, pa.uint64()))
    places = pc.index_in(table["id"], value_set=known["v"].combine_chunks())
    return table.append_column(ORIGIN, known[ADDRESS].combine_chunks().take(places))


def _refuse_incomplete(state: LoadState, kind: GraphType, part: Part, rows: pa.Table) -> None:
    missing = [p for p in required_columns(kind, part.given) if p not in part.given]
    if not missing:
        return
    new = rows.filter(rows[ORIGIN].is_null())
    name = missing[0]
    found = [
        (at, describe_missing(kind, name, entity))
        for at, entity in zip(new[AT].to_pylist(), new["id"].to_pylist(), strict=True)
    ]
    state.refuse(kind, found)


def _refuse_moved(state: LoadState, kind: GraphType, view: TableView, rows: pa.Table) -> None:
    """An edge keeps its ends: another end is another edge."""
    if not isinstance(kind, EdgeType) or kind.key:
        return
    changed = rows.filter(rows[ORIGIN].is_valid())
    for start in range(0, changed.num_rows, _BATCH):
        piece = changed.slice(start, _BATCH)
        old = view.take(piece[ORIGIN].to_numpy(), ["src", "dst"], state.ledger)
        for end in ENDS:
            moved = np.flatnonzero(pc.not_equal(old[end], piece[end])).tolist()
            left = set(state.rows[kind.table_key].table[AT].to_pylist()) if moved else set()
            found = [
                (place, describe_move(kind, entity, end, old[end][i].as_py(), now))
                for i in moved
                for place, entity, now in [[piece[n][i].as_py() for n in (AT, "id", end)]]
                if place in left
            ]
            state.refuse(kind, found)


def _complete(
    state: LoadState,
    view: TableView,
    given: frozenset[str],
    rows: pa.Table,
    schema: pa.Schema,
) -> pa.Table:
    kind = view.kind
    names = [n for n in rows.column_names if n not in (AT, ORIGIN)]
    positions = np.arange(rows.num_rows)
    group = RowGroup(rows.select(names), given, positions)
    whole, _ = complete_rows(kind, group, np.empty(0, dtype=np.int64))
    known = np.flatnonzero(rows[ORIGIN].is_valid())
    absent = [p.name for p in kind.properties if p.name not in given]
    columns = {name: whole[name] for name in whole.column_names}
    if len(known) and absent:
        addresses = rows[ORIGIN].drop_null().to_numpy()
        old = view.take(addresses, absent, state.ledger)
        order = np.full(rows.num_rows, -1, dtype=np.int64)
        order[known] = np.arange(len(known))
        fresh = np.flatnonzero(order < 0)
        order[fresh] = len(known) + np.arange(len(fresh))
        for name in absent:
            default = whole[name].take(pa.array(fresh))
            both = pa.chunked_array([*old[name].chunks, *default.chunks], old[name].type)
            columns[name] = both.take(pa.array(order))
    arrays = [columns[name] for name in schema.names[:-2]]
    return pa.Table.from_arrays([*arrays, rows[AT], rows[ORIGIN]], schema=schema)


def system_rows(kind: GraphType, parts: Sequence[Part]) -> pa.Table:
    """What all parts have in common: ids, ends and places."""
    names = [*system_columns(kind), AT]
    return pa.concat_tables([part.table.select(names) for part in parts])
