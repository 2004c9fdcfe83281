"""Owns searching the vectors of a column through Lance: always by cosine and over every partition,
so the result is that of a comparison with all vectors, up to rounding."""

from __future__ import annotations

from typing import Final

import numpy as np

from omnigraph.model.indexes import index_name
from omnigraph.store.damaged_files import reading
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

_EVERY: Final = 1 << 20


def has_vector_index(table: Table, column: str) -> bool:
    return len(without_vector_index(table, column)) < len(table.marks)


def without_vector_index(table: Table, column: str) -> frozenset[int]:
    """Fragments that no segment of the column's index covers."""
    name = index_name(column, "IVF_FLAT")
    known = (s.fragments for s in table.segments if s.name == name)
    return frozenset(table.marks).difference(*known)


def find_vectors(
    table: Table,
    column: str,
    vector: np.ndarray,
    count: int,
    allowed: bytes,
    ledger: Ledger,
    *,
    exact: bool = True,
) -> tuple[np.ndarray, np.ndarray]:
    """Addresses and distances of the nearest rows among the allowed ones, nearest first. Null, zero
    and non-finite vectors are never among them."""
    nearest = {"column": column, "q": vector.astype(np.float32), "k": count, "metric": "cosine"}
    if exact:
        nearest["nprobes"] = _EVERY
    with reading(table):
        rows = table.handle.scanner(
            columns=["_rowid", "_distance"], nearest=nearest, row_addr_allowlist=allowed
        ).to_table()
    table.book(ledger, "search")
    return rows["_rowid"].to_numpy(), rows["_distance"].to_numpy()
