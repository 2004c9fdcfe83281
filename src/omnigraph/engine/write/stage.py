"""Owns the step from pending rows to table actions, which writes their files."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from operator import is_

import numpy as np
import pyarrow as pa

from omnigraph.engine.overlay import NEW, Overlay
from omnigraph.engine.view import TableView
from omnigraph.engine.write.work import Work
from omnigraph.model.arrow import row_schema, table_schema
from omnigraph.model.catalog import GraphType
from omnigraph.plan.publish import Append, Delete, Overwrite, TableAction, Update, Upsert
from omnigraph.store.staging import Staged, StagedDeletes, stage_deletes, stage_rows
from omnigraph.telemetry import Ledger

_PARALLEL = 8
_FEW = 64
"""Up to so many rows are compared by their values."""


@dataclass(frozen=True)
class StagedWork:
    """`rows` holds for each table the rows that were written, by column, and the addresses that
    were hidden."""

    actions: tuple[TableAction, ...]
    rows: dict[str, tuple[pa.Table, np.ndarray]]


class StagedAppends:
    """Fragments of appends, kept over rebases, so the same rows are not written twice. `since` is
    when the oldest of them was staged, because cleanup goes by the age of files and not of
    attempts."""

    def __init__(self) -> None:
        self._staged: dict[str, tuple[tuple[pa.Table, ...], pa.Table, Staged]] = {}
        self.since = 0

    def begin(self, now: int) -> None:
        """More files are going to be staged from now on."""
        if not self._staged:
            self.since = now

    def recall(
        self, place: str, given: list[pa.Table], rows: pa.Table, fields: dict[int, str]
    ) -> Staged | None:
        """What was staged there of the same given rows, or of a few that are equal column by
        column."""
        known = self._staged.get(place)
        if known is None or known[2].fields != fields:
            return None
        same = len(known[0]) == len(given) and all(map(is_, known[0], given))
        same = same or (rows.num_rows <= _FEW and rows.equals(known[1]))
        return known[2] if same else None

    def keep(self, place: str, given: list[pa.Table], rows: pa.Table, staged: Staged) -> None:
        self._staged[place] = (tuple(given), rows, staged)

    def clear(self) -> None:
        self._staged.clear()


def stage_work(work: Work, appends: StagedAppends, ledger: Ledger) -> StagedWork:
    kinds = work.touched
    if len(kinds) == 1:
        staged = [_stage_type(work, kinds[0], appends, ledger)]
    elif not kinds:
        staged = []
    else:
        ledgers = [Ledger() for _ in kinds]
        with ThreadPoolExecutor(_PARALLEL) as pool:
            staged = list(
                pool.map(lambda kind, own: _stage_type(work, kind, appends, own), kinds, ledgers)
            )
        ledger.join(ledgers)
    return StagedWork(
        actions=tuple(action for action, _ in staged if action is not None),
        rows={
            kind.table_key: (rows, work.overlays[kind.table_key].hidden)
            for kind, (_, rows) in zip(kinds, staged, strict=True)
        },
    )


def _stage_type(
    work: Work, kind: GraphType, appends: StagedAppends, ledger: Ledger
) -> tuple[TableAction | None, pa.Table]:
    overlay = work.overlays[kind.table_key]
    view = work.view(kind)
    rows = by_column(kind, overlay.rows)
    appended = work.only_appended.get(kind.table_key)
    if rows.num_rows and not overlay.replaced and not len(overlay.hidden):
        # It rests on what was looked up, and on no version of the table.
        given = [overlay.rows] if appended is None else appended
        return _stage_append(view, rows, given, appends, ledger), rows
    staged = None
    if rows.num_rows:
        staged = stage_rows(view.table, rows, ledger)
    fragments = staged.fragments if staged else ()
    size = staged.bytes if staged else 0
    if overlay.replaced:
        action: TableAction = Overwrite(
            table=kind.table_key,
            base=view.table.version,
            fragments=fragments,
            rows=rows.num_rows,
            deleted=view.table.rows,
            bytes=size,
        )
        return action, rows
    return _row_change(view, overlay, fragments, size, ledger), rows


def _stage_append(
    view: TableView,
    rows: pa.Table,
    given: list[pa.Table],
    appends: StagedAppends,
    ledger: Ledger,
) -> Append:
    # By its place: a type that was dropped and made again is another table.
    place = view.table.location
    staged = appends.recall(place, given, rows, view.table.fields)
    if staged is None:
        staged = stage_rows(view.table, rows, ledger)
        appends.keep(place, given, rows, staged)
    return Append(
        table=view.kind.table_key,
        fragments=staged.fragments,
        fields=staged.fields,
        rows=staged.rows,
        bytes=staged.bytes,
    )


def _row_change(
    view: TableView, overlay: Overlay, fragments: tuple[str, ...], size: int, ledger: Ledger
) -> TableAction | None:
    deletes = StagedDeletes()
    if len(overlay.hidden):
        deletes = stage_deletes(view.table, overlay.hidden, ledger)
    inserted = int(np.count_nonzero(overlay.origins == NEW))
    updated = len(overlay.origins) - inserted
    if not fragments and not len(overlay.hidden):
        return None  # the inserted rows were also deleted
    make = Delete if not fragments else Upsert if inserted else Update
    return make(
        table=view.kind.table_key,
        base=view.table.version,
        updated_fragments=deletes.updated,
        removed_fragments=deletes.removed,
        fragments=fragments,
        inserted=inserted,
        updated=updated,
        deleted=len(overlay.hidden) - updated,
        bytes=size,
    )


def by_column(kind: GraphType, rows: pa.Table) -> pa.Table:
    """Rows under the names of their columns, which may be older than those of the properties."""
    schema = table_schema(kind)
    if rows.schema.names != row_schema(kind).names:
        rows = rows.select(row_schema(kind).names)
    return pa.Table.from_arrays(rows.columns, schema=schema)
