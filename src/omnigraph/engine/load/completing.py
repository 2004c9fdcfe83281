"""Owns how rows of a merge become whole: values that were given, then values that the entity had,
then defaults."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.load.spool import GatheredRows, Room
from omnigraph.engine.load.state import ORIGIN
from omnigraph.engine.view import TableView
from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import EdgeType, GraphType, system_columns
from omnigraph.model.violation import Violation
from omnigraph.plan.load.places import AT
from omnigraph.plan.rows.complete import complete_rows
from omnigraph.plan.rows.row_type import required_columns
from omnigraph.plan.rows.stale import clear_stale, watched_sources
from omnigraph.plan.rows.typed import RowGroup
from omnigraph.plan.rules.book import ENDS, describe_missing, describe_move
from omnigraph.store.tables import ADDRESS
from omnigraph.telemetry import Ledger

_BATCH = 64 * 1024


@dataclass(frozen=True)
class Part:
    """Rows of a type that give the same properties."""

    given: frozenset[str]
    table: pa.Table


@dataclass(frozen=True)
class CompletedRows:
    """Whole rows, each with the address that it replaces, and the rows that cannot become whole, by
    place and with the reason."""

    table: pa.Table
    refused: tuple[tuple[int, Violation], ...]


def complete_merge(
    view: TableView, parts: Sequence[Part], known: pa.Table, room: Room, ledger: Ledger
) -> CompletedRows:
    """Makes whole rows of the parts. `known` holds the ids that the table has, in `v`, and their
    addresses."""
    kind = view.kind
    located = [(part, _located(part.table, known)) for part in parts]
    refused: dict[int, Violation] = {}
    for part, rows in located:
        for place, violation in chain(_incomplete(kind, part, rows), _moved(view, rows, ledger)):
            refused.setdefault(place, violation)
    schema = row_schema(kind).append(pa.field(AT, pa.int64())).append(pa.field(ORIGIN, pa.uint64()))
    whole = GatheredRows(room, schema)
    for part, rows in located:
        if refused:
            dropped = pa.array(refused, pa.int64())
            rows = rows.filter(pc.invert(pc.is_in(rows[AT], value_set=dropped)))
        for start in range(0, rows.num_rows, _BATCH):
            piece = rows.slice(start, _BATCH)
            whole.add(_complete(view, part.given, piece, schema, ledger))
    return CompletedRows(whole.table(), tuple(refused.items()))


def _located(table: pa.Table, known: pa.Table) -> pa.Table:
    """Adds the address of the row that each row replaces, null for new entities."""
    if not known.num_rows:
        return table.append_column(ORIGIN, pa.nulls(table.num_rows, pa.uint64()))
    places = pc.index_in(table["id"], value_set=known["v"].combine_chunks())
    return table.append_column(ORIGIN, known[ADDRESS].combine_chunks().take(places))


def _incomplete(kind: GraphType, part: Part, rows: pa.Table) -> Iterator[tuple[int, Violation]]:
    """New entities that lack a required property."""
    missing = [p for p in required_columns(kind, part.given) if p not in part.given]
    if not missing:
        return
    new = rows.filter(rows[ORIGIN].is_null())
    for at, entity in zip(new[AT].to_pylist(), new["id"].to_pylist(), strict=True):
        yield at, describe_missing(kind, missing[0], entity)


def _moved(view: TableView, rows: pa.Table, ledger: Ledger) -> Iterator[tuple[int, Violation]]:
    """Edges whose ends would change. An edge with other ends is another edge."""
    kind = view.kind
    if not isinstance(kind, EdgeType) or kind.key:
        return
    changed = rows.filter(rows[ORIGIN].is_valid())
    for start in range(0, changed.num_rows, _BATCH):
        piece = changed.slice(start, _BATCH)
        old = view.take(piece[ORIGIN].to_numpy(), ["src", "dst"], ledger)
        for end in ENDS:
            for i in np.flatnonzero(pc.not_equal(old[end], piece[end])).tolist():
                place, entity, now = (piece[name][i].as_py() for name in (AT, "id", end))
                yield place, describe_move(kind, entity, end, old[end][i].as_py(), now)


def _complete(
    view: TableView, given: frozenset[str], rows: pa.Table, schema: pa.Schema, ledger: Ledger
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
        watched = watched_sources(kind, given)
        old = view.take(addresses, [*absent, *watched], ledger)
        order = np.full(rows.num_rows, -1, dtype=np.int64)
        order[known] = np.arange(len(known))
        fresh = np.flatnonzero(order < 0)
        order[fresh] = len(known) + np.arange(len(fresh))
        for name in absent:
            default = whole[name].take(pa.array(fresh))
            both = pa.chunked_array([*old[name].chunks, *default.chunks], old[name].type)
            columns[name] = both.take(pa.array(order))
        if watched:
            kept = pa.table({name: columns[name] for name in schema.names[:-2]})
            cleared = clear_stale(kind, given, kept, old, known)
            columns = {name: cleared[name] for name in cleared.column_names}
    arrays = [columns[name] for name in schema.names[:-2]]
    return pa.Table.from_arrays([*arrays, rows[AT], rows[ORIGIN]], schema=schema)


def system_rows(kind: GraphType, parts: Sequence[Part]) -> pa.Table:
    """The columns that all parts have in common: ids, ends and places."""
    names = [*system_columns(kind), AT]
    return pa.concat_tables([part.table.select(names) for part in parts])
