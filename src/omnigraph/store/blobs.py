"""Owns reading parts of large values: a range of a blob costs that range, not the blob."""

from __future__ import annotations

from typing import Any

from omnigraph.store.damaged_files import reading
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger


class StoredBlob:
    """A blob in one version of a table."""

    def __init__(self, table: Table, inner: Any, fragment: int) -> None:
        self._table = table
        self._fragment = fragment
        self._inner = inner
        with reading(table, [fragment]):
            self.size = int(inner.size())

    def read_range(self, offset: int, length: int, ledger: Ledger) -> bytes:
        if not length:
            return b""
        with reading(self._table, [self._fragment]):
            data = bytes(self._inner.read_range(offset, length))
        self._table.book(ledger, "blob", writes=0)
        return data


def open_blob(table: Table, column: str, address: int, ledger: Ledger) -> StoredBlob | None:
    """None where the value is null."""
    table.require_own_blobs([column], [address >> 32], ledger)
    with reading(table, [address >> 32]):
        (found,) = table.handle.take_blobs(column, addresses=[address])
    table.book(ledger, "blob", writes=0)
    return None if found is None else StoredBlob(table, found, address >> 32)
