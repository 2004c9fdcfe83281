"""Owns rows as a table: as many as fit on a screen, and how many there are."""

from __future__ import annotations

import pyarrow as pa

from omnigraph.show.markup import Markup, counted, faint, line, table, view

SHOWN = 20


def rows_view(found: pa.Table, *more: Markup) -> str:
    shown = found.slice(0, SHOWN)
    columns = [column.to_pylist() for column in shown.columns]  # names may be there twice
    rows = zip(*columns, strict=True) if columns else ((),) * shown.num_rows
    note = line(faint(counted(shown.num_rows, "row", found.num_rows)))
    return view(table(found.column_names, rows), note, *more)
