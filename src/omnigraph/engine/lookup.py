"""Owns lookups: at which addresses a table version holds given values of a column.

A table version never changes, so its lookup data can be kept for ever. The data of the next version
is derived from what differs, so a warm handle asks nothing of the store.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.cache import Cache
from omnigraph.engine.key_index import (
    NO_ROWS,
    KeyIndex,
    KeyRun,
    number_files,
    places_of,
    size_of,
)
from omnigraph.engine.session import Session
from omnigraph.plan.validate import key_texts
from omnigraph.store.fragments import TableColumn
from omnigraph.store.tables import ADDRESS, Table
from omnigraph.telemetry import Ledger

_FEW = 1000
_SMALL_TABLE = 50_000
_PAGE_ROWS = 4096
_VERSIONS = 4
"""The versions that are kept for each table and columns: they share most of their memory."""
_ROW = 48
"""The approximate size of a row in an index."""

Indexes = dict[tuple[TableColumn, ...], dict[str, KeyIndex]]
"""The indexes of one table: by columns, then by version."""


class Lookups:
    """Finds rows by value, from memory where that is cheap, through Lance where it is not."""

    @classmethod
    def shared_by(cls, session: Session) -> Lookups:
        """The one of all handles of this session."""
        return session.shared(_lookups)

    def __init__(self, cache: Cache, *, rows: int) -> None:
        self._cache = cache
        self._rows = rows
        self._lock = threading.Lock()
        self._spent: dict[tuple[str, tuple[str, ...]], int] = {}
        self._too_large: set[str] = set()

    def find(
        self, table: Table, columns: tuple[str, ...], texts: Sequence[str], ledger: Ledger
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions in `texts`, and the addresses of live rows whose columns have that text."""
        if not texts or not table.marks:
            return np.array([], dtype=np.int64), NO_ROWS
        known = tuple(table.column(name) for name in columns)
        index = self._known(table, known, ledger)
        if index is None and self._worth_building(table, columns, len(texts)):
            index = self._cache.once(
                ("indexing", table.location, table.version, *known),
                lambda: self._held(table, known),
                lambda: self._built(table, columns, known, ledger),
            )
        if index is None:
            return _find_through_lance(table, columns, texts, ledger)
        return index.find(texts)

    def carry(self, old: Table, new: Table, rows: pa.Table | None, dead: np.ndarray) -> None:
        """After a commit of ours the new rows are known, so no index is read again. `rows` are the
        new rows in the order in which they were staged."""
        for columns, index in self._of_version(old):
            compared = index.compare(new.marks.values())
            fresh = number_files(sorted(compared.fresh, key=lambda mark: mark.id))
            added = None
            if rows is not None:
                places = [
                    (np.uint64(number) << np.uint64(32)) + np.arange(mark.rows, dtype=np.uint64)
                    for number, mark in fresh.items()
                ]
                texts = key_texts(rows, [column.name for column in columns])
                added = KeyRun.build(texts, np.concatenate([NO_ROWS, *places]))
            marks = compared.same | compared.moved | fresh
            gone = places_of(index.marks, dead)
            self._keep(new, columns, index.derive(marks, added, gone))

    def follow(self, old: Table, new: Table, ledger: Ledger) -> None:
        """After maintenance, rows have moved. Only the rewritten fragments are read again."""
        for columns, index in self._of_version(old):
            self._keep(new, columns, _extended(index, new, columns, ledger))

    def _held(self, table: Table, columns: tuple[TableColumn, ...]) -> KeyIndex | None:
        with self._lock:
            known: Indexes = self._cache.get(_key(table)) or {}
            return known.get(columns, {}).get(table.version)

    def _built(
        self,
        table: Table,
        columns: tuple[str, ...],
        known: tuple[TableColumn, ...],
        ledger: Ledger,
    ) -> KeyIndex:
        keys, addresses = _read_keys(table, columns, ledger, fragments=None)
        return self._keep(table, known, KeyIndex.build(table.marks.values(), keys, addresses))

    # What is kept

    def _of_version(self, table: Table) -> list[tuple[tuple[TableColumn, ...], KeyIndex]]:
        with self._lock:
            known: Indexes = self._cache.get(_key(table)) or {}
            return [
                (columns, versions[table.version])
                for columns, versions in known.items()
                if table.version in versions
            ]

    def _known(
        self, table: Table, columns: tuple[TableColumn, ...], ledger: Ledger
    ) -> KeyIndex | None:
        with self._lock:
            known: Indexes = self._cache.get(_key(table)) or {}
            versions = known.get(columns, {})
            if (index := versions.pop(table.version, None)) is not None:
                versions[table.version] = index  # the last one that was asked for
                return index
            related = list(reversed(versions.values()))
        for index in related:
            shared = sum(mark.rows for mark in index.compare(table.marks.values()).same.values())
            if shared * 2 >= table.rows:
                return self._keep(table, columns, _extended(index, table, columns, ledger))
        return None

    def _keep(self, table: Table, columns: tuple[TableColumn, ...], index: KeyIndex) -> KeyIndex:
        with self._lock:
            known: Indexes = self._cache.get(_key(table)) or {}
            versions = known.setdefault(columns, {})
            versions.pop(table.version, None)
            versions[table.version] = index
            for old in list(versions)[:-_VERSIONS]:
                del versions[old]
            size = size_of(index for each in known.values() for index in each.values())
            if not self._cache.keep(_key(table), known, size):
                self._too_large.add(table.location)
        return index

    def _worth_building(self, table: Table, columns: tuple[str, ...], count: int) -> bool:
        """Not for a few values of a column that has an index: the first lookup in a table reads one
        page of it. Reading all values into memory pays once the pages of repeated lookups add up to
        the size of the column. For a table of some size that is the second lookup."""
        if table.rows > self._rows or table.rows * _ROW > self._cache.limit:
            return False
        if table.location in self._too_large:
            return False
        if count > _FEW or len(columns) != 1 or columns[0] not in table.indexed_columns:
            return True
        if not pa.types.is_string(table.schema.field(columns[0]).type):
            return True  # the index does not hold texts of other values
        key = (table.location, columns)
        with self._lock:
            spent = self._spent.get(key, 0)
            self._spent[key] = spent + count * _PAGE_ROWS
        return spent > 0 and (table.rows <= _SMALL_TABLE or spent >= table.rows)


def _key(table: Table) -> tuple[str, str]:
    return ("keys", table.location)


def _extended(
    index: KeyIndex, table: Table, columns: tuple[TableColumn, ...], ledger: Ledger
) -> KeyIndex:
    """Reads only what differs: the keys of new files, and which rows are live in files with another
    deletion file."""
    compared = index.compare(table.marks.values())
    moved = compared.moved
    live = places_of(moved, _read_addresses(table, ledger, [m.id for m in moved.values()]))
    # Rows that are deleted here may be live on another branch, and may be missing from the index.
    missing = np.unique(np.setdiff1d(live, index.held(moved)) >> np.uint64(32)).tolist()
    lost = [number for number in missing if index.marks[number].deletion is not None]
    fresh = number_files([*compared.fresh, *[moved.pop(number) for number in lost]])
    revived = index.reviving(moved)
    dead = np.setdiff1d(revived.held(moved), live)
    names = tuple(column.name for column in columns)
    texts, addresses = _read_keys(table, names, ledger, fragments=[m.id for m in fresh.values()])
    added = KeyRun.build(texts, places_of(fresh, addresses))
    return revived.derive(compared.same | moved | fresh, added, dead)


def _read_addresses(table: Table, ledger: Ledger, fragments: list[int]) -> np.ndarray:
    """The addresses of live rows. Reads deletion files and no data."""
    if not fragments:
        return NO_ROWS
    batches = table.scan([], ledger, addresses=True, fragments=fragments, purpose="lookup")
    return np.concatenate([NO_ROWS, *[batch.column(ADDRESS).to_numpy() for batch in batches]])


def _read_keys(
    table: Table, columns: tuple[str, ...], ledger: Ledger, *, fragments: list[int] | None
) -> tuple[list[str | None], np.ndarray]:
    batches = list(
        table.scan(columns, ledger, addresses=True, fragments=fragments, purpose="lookup")
    )
    if not batches:
        return [], NO_ROWS
    rows = pa.Table.from_batches(batches)
    return key_texts(rows, columns), rows[ADDRESS].to_numpy()


def _find_through_lance(
    table: Table, columns: tuple[str, ...], texts: Sequence[str], ledger: Ledger
) -> tuple[np.ndarray, np.ndarray]:
    """For tables that are too large to hold: an IN filter that an index can answer."""
    wanted: dict[str, list[int]] = {}
    for position, value in enumerate(texts):
        wanted.setdefault(value, []).append(position)
    text_column = len(columns) == 1 and pa.types.is_string(table.schema.field(columns[0]).type)
    condition = pc.field(columns[0]).isin(list(wanted)) if text_column else None
    # Rows that a filter for one value finds have that value. An index gives their places, so no
    # data is read.
    (only,) = wanted if text_column and len(wanted) == 1 else (None,)
    read = columns if only is None else ()
    positions: list[int] = []
    addresses: list[int] = []
    for batch in table.scan(read, ledger, filter=condition, addresses=True, purpose="lookup"):
        found = batch.column(ADDRESS).to_pylist()
        held: list[str | None] = (
            key_texts(pa.Table.from_batches([batch]), columns)
            if only is None
            else [only] * len(found)
        )
        for text, address in zip(held, found, strict=True):
            for position in wanted.get(text, ()) if text is not None else ():
                positions.append(position)
                addresses.append(address)
    return np.array(positions, dtype=np.int64), np.array(addresses, dtype=np.uint64)


def _lookups(session: Session) -> Lookups:
    return Lookups(Cache.shared_by(session), rows=session.settings.lookup_rows)
