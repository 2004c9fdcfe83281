"""Owns the indexes of a large load, which are built over its own new fragments, in the same
commit."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.session import Session
from omnigraph.model.catalog import GraphType, system_columns
from omnigraph.model.indexes import IndexSpec
from omnigraph.plan.optimize import wanted_indexes
from omnigraph.plan.publish import Append, Overwrite, Prepared, TableAction, Update, Upsert
from omnigraph.store import commits
from omnigraph.store.bulk import IndexTask, index_tables
from omnigraph.store.staging import StagedDeletes
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

INDEXED_ROWS = 100_000
"""If a type has fewer new rows, `optimize` indexes them later: scanning them is quick."""


IndexTables = Callable[[Sequence[IndexTask], Ledger], Sequence[Table]]


def prepare_indexes(
    session: Session,
    snapshot: GraphView,
    actions: list[TableAction],
    ledger: Ledger,
    *,
    build: IndexTables = index_tables,
) -> list[TableAction]:
    """Returns the actions, each with a ready version of its table if that is large. The version has
    its new rows with index segments over them: for `id`, for `src` and `dst`, and for searches. If
    another writer changes the table first, the segments are left out. `build` makes the segments,
    as `index_tables` does."""
    found = []
    for place, action in enumerate(actions):
        kind = snapshot.catalog.by_key[action.table]
        if _new_rows(action) < INDEXED_ROWS:
            continue
        table = snapshot.view(kind).table
        found.append((place, kind, table, _commit(table, action, ledger)))
    if not found:
        return actions
    tasks = [(new, _indexes(kind, new), _fresh(table, new)) for _, kind, table, new in found]
    prepared = list(actions)
    for (place, _, table, _), indexed in zip(found, build(tasks, ledger), strict=True):
        session.tables.keep(indexed)
        made = Prepared(base=table.version, version=indexed.version, unsynced=indexed.unsynced)
        prepared[place] = msgspec.structs.replace(actions[place], prepared=made)
    return prepared


def _new_rows(action: Any) -> int:
    match action:
        case Append() | Overwrite():
            return int(action.rows)
        case Upsert() | Update():
            return int(action.inserted + action.updated)
        case _:
            return 0


def _commit(table: Table, action: Any, ledger: Ledger) -> Table:
    match action:
        case Append():
            return commits.append(table, action.fragments, action.fields, ledger)
        case Overwrite():
            return commits.overwrite(table, action.base, action.fragments, ledger)
        case _:
            deletes = StagedDeletes(action.updated_fragments, action.removed_fragments)
            return commits.change(table, action.base, deletes, action.fragments, ledger)


def _indexes(kind: GraphType, table: Table) -> list[IndexSpec]:
    """The indexes that are needed at once; `optimize` builds the others."""
    system = system_columns(kind)
    return [
        spec
        for spec in wanted_indexes(kind)
        if spec.column in table.schema.names
        and (spec.column in system or spec.kind in ("INVERTED", "IVF_FLAT"))
    ]


def _fresh(before: Table, after: Table) -> list[int]:
    return [number for number in after.marks if number not in before.marks]
