"""Owns the columns that are kept in memory: the values of a fragment's files, which never change.

A file holds the same rows in every version that uses it, deleted ones included. So a column that
was read once serves all versions and branches that share the file, and a new version costs only its
new files.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.cache import Cache, Key, checkpoint
from omnigraph.engine.session import Session
from omnigraph.store.fragments import FragmentMark
from omnigraph.store.tables import ADDRESS, Table
from omnigraph.telemetry import Ledger

_AT_ONCE = 1 << 20
"""A column of a fragment that is smaller than this is read whole at first use."""
_WIDTH_OF_TEXT = 24
_TOUCHES = 3


class Columns:
    """A column that does not fit into the cache is read through Lance each time."""

    @classmethod
    def shared_by(cls, session: Session) -> Columns:
        """The one of all handles of this session."""
        return session.shared(_columns)

    def __init__(self, cache: Cache) -> None:
        self._cache = cache
        self._lock = threading.Lock()
        self._touches: dict[Key, int] = {}

    # Columns of fragments

    def held(self, table: Table, mark: FragmentMark, column: str) -> pa.Array | None:
        return self.get(_key(table, mark, column))

    def read(
        self, table: Table, marks: Sequence[FragmentMark], column: str, ledger: Ledger
    ) -> list[pa.Array]:
        """The column of each fragment. All that are missing are read in one scan."""
        found = {mark.id: self.held(table, mark, column) for mark in marks}
        missing = [mark for mark in marks if found[mark.id] is None]
        if missing:
            keys = [_key(table, mark, column) for mark in missing]
            parts = self._cache.once(
                ("reading", *keys),
                lambda: self._held_all(keys),
                lambda: self._read_missing(table, missing, column, ledger),
            )
            found |= {mark.id: part for mark, part in zip(missing, parts, strict=True)}
        return [found[mark.id] for mark in marks]

    def _held_all(self, keys: Sequence[Key]) -> list[pa.Array] | None:
        held = [self.get(key) for key in keys]
        return None if any(part is None for part in held) else held

    def _read_missing(
        self, table: Table, missing: Sequence[FragmentMark], column: str, ledger: Ledger
    ) -> list[pa.Array]:
        checkpoint()
        rows = table.read_physical([column], [mark.id for mark in missing], ledger)[column]
        parts, start = [], 0
        for mark in missing:
            part = rows.slice(start, mark.physical).combine_chunks()
            start += mark.physical
            parts.append(part)
            self.keep(_key(table, mark, column), part, part.nbytes)
        return parts

    def worth_reading(self, table: Table, mark: FragmentMark, column: str, rows: int) -> bool:
        """Whether to read the whole column of a fragment for some of its rows: if it is small, if
        many rows are needed, or if it was needed repeatedly."""
        size = mark.physical * width(table.schema.field(column).type)
        if size <= _AT_ONCE:
            return True
        if size > self._cache.limit // 4:
            return False
        if rows * 16 >= mark.physical:
            return True
        key = _key(table, mark, column)
        with self._lock:
            touches = self._touches[key] = self._touches.get(key, 0) + 1
            if len(self._touches) > 65_536:
                self._touches.clear()
        return touches > _TOUCHES

    def fits(self, table: Table, columns: Sequence[str]) -> bool:
        """Whether these columns of the whole table may be kept."""
        rows = sum(mark.physical for mark in table.marks.values())
        widths = sum(width(table.schema.field(column).type) for column in columns)
        return rows * widths <= self._cache.limit // 4

    def live_offsets(self, table: Table, mark: FragmentMark, ledger: Ledger) -> np.ndarray:
        """Which rows of a fragment with a deletion file are live."""

        def read() -> np.ndarray:
            batches = table.scan([], ledger, addresses=True, fragments=[mark.id], purpose="columns")
            parts = [batch.column(ADDRESS).to_numpy() for batch in batches]
            offsets = np.concatenate([np.array([], np.uint64), *parts]) & np.uint64(0xFFFFFFFF)
            return offsets.astype(np.int64)

        key = (table.location, mark.files, mark.deletion, "live")
        found: np.ndarray = self.remember(key, read)
        return found

    def derived(
        self, table: Table, mark: FragmentMark, column: str, what: str, make: Callable[[], Any]
    ) -> Any:
        return self.remember((*_key(table, mark, column), what), make)

    # Other values that are derived from immutable files

    def remember(self, key: Key, make: Callable[[], Any]) -> Any:
        def kept() -> Any:
            checkpoint()
            made = make()
            self.keep(key, made, int(made.nbytes))
            return made

        found = self.get(key)  # most often it is here
        if found is None:
            found = self._cache.once(("making", *key), lambda: self.get(key), kept)
        return found

    def get(self, key: Key) -> Any:
        return self._cache.get(("columns", *key))

    def keep(self, key: Key, value: Any, size: int) -> None:
        self._cache.keep(("columns", *key), value, size)


def _key(table: Table, mark: FragmentMark, column: str) -> Key:
    """By file, because another fragment may get the same number, and by the meaning of the column:
    on another branch a missing column may be null of another type."""
    return (table.location, mark.files, table.column(column))


def width(kind: pa.DataType) -> int:
    """The approximate size of a value in bytes."""
    if pa.types.is_fixed_size_list(kind):
        return int(kind.list_size * width(kind.value_type))
    if pa.types.is_list(kind):
        return 4 * width(kind.value_type)
    try:
        return int(max(1, kind.bit_width // 8))
    except ValueError:
        return _WIDTH_OF_TEXT


def _columns(session: Session) -> Columns:
    return Columns(Cache.shared_by(session))
