"""Owns lookups: at which addresses a table version holds given values of a column.

A table version never changes, so what is known of it may be kept for ever; the next version's
index is derived from it by what differs, so a warm handle asks nothing of the store.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from omnigraph.plan.validate import key_texts
from omnigraph.store.tables import ADDRESS, FragmentMark, Table
from omnigraph.telemetry import Ledger

_FEW = 1000
_SMALL_TABLE = 50_000
_TAIL = 4096
_ONE_BY_ONE = 8
_PAGE_ROWS = 4096
_NONE = np.array([], dtype=np.uint64)


def hash_texts(texts: Iterable[str], count: int) -> np.ndarray:
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(text.encode()) for text in texts), np.uint64, count)


@dataclass(frozen=True)
class Run:
    """Values of some rows, sorted by hash, with the address of each."""

    hashes: np.ndarray
    addresses: np.ndarray
    texts: pa.Array

    @staticmethod
    def build(texts: Sequence[str | None], addresses: np.ndarray) -> Run:
        if None in texts:
            kept = np.array([text is not None for text in texts])
            texts = [text for text in texts if text is not None]
            addresses = addresses[kept]
        hashes = hash_texts((text for text in texts if text is not None), len(texts))
        order = np.argsort(hashes, kind="stable")
        values = pa.array(texts, pa.large_string())
        return Run(hashes[order], addresses[order], values.take(pa.array(order)))

    @staticmethod
    def merge(runs: Sequence[Run], keep: Callable[[np.ndarray], np.ndarray]) -> Run:
        hashes = np.concatenate([run.hashes for run in runs])
        addresses = np.concatenate([run.addresses for run in runs])
        texts = pa.chunked_array([run.texts for run in runs]).combine_chunks()
        live = np.flatnonzero(keep(addresses))
        order = live[np.argsort(hashes[live], kind="stable")]
        return Run(hashes[order], addresses[order], texts.take(pa.array(order)))

    def find(self, text: str) -> int | None:
        """The address of one row with this value."""
        wanted = np.uint64(xxhash.xxh3_64_intdigest(text.encode()))
        slot = int(np.searchsorted(self.hashes, wanted, side="left"))
        while slot < len(self.hashes) and self.hashes[slot] == wanted:
            if self.texts[slot].as_py() == text:  # different values may share a hash
                return int(self.addresses[slot])
            slot += 1
        return None

    @cached_property
    def fragments(self) -> frozenset[int]:
        return frozenset(np.unique(self.addresses >> 32).tolist())

    @property
    def nbytes(self) -> int:
        return int(self.hashes.nbytes + self.addresses.nbytes + self.texts.nbytes)


@dataclass(frozen=True)
class KeyIndex:
    """Where each value is, in one table version. `dead` are addresses that runs still hold."""

    runs: tuple[Run, ...]
    dead: np.ndarray
    marks: dict[int, FragmentMark]

    def find(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Positions in `texts` and addresses, one pair for each row that holds the value."""
        if len(texts) <= _ONE_BY_ONE:
            return self._find_few(texts)
        wanted = hash_texts(texts, len(texts))
        positions, addresses = [], []
        for run in self.runs:
            low = np.searchsorted(run.hashes, wanted, side="left")
            high = np.searchsorted(run.hashes, wanted, side="right")
            for position in np.flatnonzero(high > low).tolist():
                for slot in range(int(low[position]), int(high[position])):
                    # Different values may share a hash.
                    if run.texts[slot].as_py() == texts[position]:
                        positions.append(position)
                        addresses.append(int(run.addresses[slot]))
        found = np.array(addresses, dtype=np.uint64)
        live = self._live(found)
        return np.array(positions, dtype=np.int64)[live], found[live]

    def _find_few(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The same for a few, where setting up arrays would take longer than the search."""
        positions, addresses = [], []
        dead = self.dead
        for position, text in enumerate(texts):
            wanted = np.uint64(xxhash.xxh3_64_intdigest(text.encode()))
            for run in self.runs:
                slot = int(run.hashes.searchsorted(wanted))
                while slot < len(run.hashes) and run.hashes[slot] == wanted:
                    address = int(run.addresses[slot])
                    if run.texts[slot].as_py() == text and address >> 32 in self.marks:
                        place = int(dead.searchsorted(np.uint64(address))) if len(dead) else 0
                        if place >= len(dead) or int(dead[place]) != address:
                            positions.append(position)
                            addresses.append(address)
                    slot += 1
        return np.array(positions, dtype=np.int64), np.array(addresses, dtype=np.uint64)

    def derive(
        self, marks: dict[int, FragmentMark], added: Run | None, dead: np.ndarray
    ) -> KeyIndex:
        """The index of a version that differs by these rows and these dead addresses."""
        runs = self.runs if added is None or not len(added.hashes) else (*self.runs, added)
        all_dead = np.union1d(self.dead, dead) if len(dead) else self.dead
        derived = KeyIndex(runs, all_dead, marks)
        return derived._consolidated()

    def held(self, fragments: Sequence[int]) -> np.ndarray:
        """Every address of these fragments that the runs hold, live or dead."""
        wanted = np.array(fragments, dtype=np.uint64)
        parts = [run.addresses[np.isin(run.addresses >> 32, wanted)] for run in self.runs]
        return np.concatenate([_NONE, *parts])

    def holds(self, fragment: int) -> bool:
        return any(fragment in run.fragments for run in self.runs)

    def dropping(self, fragments: np.ndarray) -> KeyIndex:
        runs = tuple(
            Run.merge([run], lambda held: ~np.isin(held >> 32, fragments)) for run in self.runs
        )
        return KeyIndex(runs, self.dead[~np.isin(self.dead >> 32, fragments)], self.marks)

    def reviving(self, fragments: Sequence[int]) -> KeyIndex:
        """Every row of these fragments that is held counts as live again."""
        if not fragments or not len(self.dead):
            return self
        wanted = np.array(fragments, dtype=np.uint64)
        return KeyIndex(self.runs, self.dead[~np.isin(self.dead >> 32, wanted)], self.marks)

    def _consolidated(self) -> KeyIndex:
        """Small runs are merged into one tail, the tail into the base when it is a quarter of
        it: amortised, and a lookup never searches more than a few runs."""
        if len(self.runs) < 8 and len(self.dead) < _TAIL:
            return self
        base, *tail = self.runs
        tail_size = sum(len(run.hashes) for run in tail)
        if tail_size + len(self.dead) > max(len(base.hashes) // 4, _TAIL):
            merged = Run.merge(self.runs, self._live)
            return KeyIndex((merged,), _NONE, self.marks)
        if len(tail) < 2:
            return self
        return KeyIndex((base, Run.merge(tail, self._live)), self.dead, self.marks)

    @cached_property
    def _fragments(self) -> np.ndarray:
        return np.fromiter(self.marks, np.uint64, len(self.marks))

    def _live(self, addresses: np.ndarray) -> np.ndarray:
        live: np.ndarray = np.isin(addresses >> 32, self._fragments)
        if len(self.dead):
            live &= ~np.isin(addresses, self.dead)
        return live

    @property
    def nbytes(self) -> int:
        return sum(run.nbytes for run in self.runs) + int(self.dead.nbytes)


class Lookups:
    """Finds rows by value, from memory where that is cheap, through Lance where it is not."""

    def __init__(self, *, rows: int, cache_bytes: int) -> None:
        self._rows = rows
        self._cache_bytes = cache_bytes
        self._lock = threading.Lock()
        self._spent: dict[tuple[str, tuple[str, ...]], int] = {}
        self._indexes: OrderedDict[tuple[str, tuple[str, ...], str], KeyIndex] = OrderedDict()

    def find(
        self, table: Table, columns: tuple[str, ...], texts: Sequence[str], ledger: Ledger
    ) -> tuple[np.ndarray, np.ndarray]:
        """Positions in `texts` and addresses of live rows whose columns have that text."""
        if not texts or not table.marks:
            return np.array([], dtype=np.int64), _NONE
        index = self._known(table, columns, ledger)
        if index is None and self._worth_building(table, columns, len(texts)):
            index = self._build(table, columns, ledger)
        if index is None:
            return _find_through_lance(table, columns, texts, ledger)
        return index.find(texts)

    def carry(self, old: Table, new: Table, rows: pa.Table | None, dead: np.ndarray) -> None:
        """After a commit of ours: what was written is known, so no index has to be read again.
        `rows` are the new rows in the order in which they were staged."""
        with self._lock:
            known = [k for k in self._indexes if k[0] == old.location and k[2] == old.version]
        fresh = [mark for number, mark in new.marks.items() if number not in old.marks]
        addresses = np.concatenate(
            [_NONE]
            + [
                (np.uint64(mark.id) << np.uint64(32)) + np.arange(mark.rows, dtype=np.uint64)
                for mark in sorted(fresh, key=lambda mark: mark.id)
            ]
        )
        for key in known:
            index = self._indexes.get(key)
            if index is None:
                continue
            stale = np.array([m.id for m in fresh if index.holds(m.id)], dtype=np.uint64)
            index = index.dropping(stale) if len(stale) else index
            added = None if rows is None else Run.build(key_texts(rows, key[1]), addresses)
            self._keep((new.location, key[1], new.version), index.derive(new.marks, added, dead))

    def follow(self, old: Table, new: Table, ledger: Ledger) -> None:
        """After maintenance: rows are where they were not before, so that what is known of a
        table is read anew from the fragments that were rewritten, and from no others."""
        with self._lock:
            known = [
                (k[1], index)
                for k, index in self._indexes.items()
                if k[0] == old.location and k[2] == old.version
            ]
        for columns, index in known:
            extended = self._extend(index, new, columns, ledger)
            self._keep((new.location, columns, new.version), extended)

    def _known(self, table: Table, columns: tuple[str, ...], ledger: Ledger) -> KeyIndex | None:
        key = (table.location, columns, table.version)
        with self._lock:
            if (index := self._indexes.get(key)) is not None:
                self._indexes.move_to_end(key)
                return index
            related = [
                index
                for (location, known_columns, _), index in reversed(self._indexes.items())
                if location == table.location and known_columns == columns
            ]
        for index in related[:4]:
            shared = sum(m.rows for n, m in table.marks.items() if index.marks.get(n) == m)
            if shared * 2 >= table.rows:
                return self._keep(key, self._extend(index, table, columns, ledger))
        return None

    def _extend(
        self, index: KeyIndex, table: Table, columns: tuple[str, ...], ledger: Ledger
    ) -> KeyIndex:
        """Reads only what differs: the keys of new fragments, and of fragments with another
        deletion file which rows are left."""
        differing = [n for n, mark in table.marks.items() if index.marks.get(n) != mark]
        same_rows = [
            n
            for n in differing
            if n in index.marks and index.marks[n].files == table.marks[n].files
        ]
        live = _read_addresses(table, ledger, same_rows) if same_rows else _NONE
        # On another branch rows may live that are gone here: they are not always still held.
        missing = np.unique(np.setdiff1d(live, index.held(same_rows)) >> 32).tolist()
        lost = {n for n in missing if index.marks[n].deletion is not None}
        kept = [n for n in same_rows if n not in lost]
        fresh = [n for n in differing if n not in kept]
        # Another branch may have given the same number to another fragment, also one that the
        # last version did not have: runs hold rows of every version that they come from.
        stale = np.array([n for n in fresh if index.holds(n)], dtype=np.uint64)
        trimmed = index.dropping(stale) if len(stale) else index
        trimmed = trimmed.reviving(kept)
        dead = np.setdiff1d(trimmed.held(kept), live)
        texts, addresses = _read_keys(table, columns, ledger, fragments=fresh)
        return trimmed.derive(table.marks, Run.build(texts, addresses), dead)

    def _worth_building(self, table: Table, columns: tuple[str, ...], count: int) -> bool:
        """Not for a few values of a column that has an index: the first look at a table reads a
        page of it. Who looks again and again pays for holding all values once those pages come
        to as much as the column, which for a table of some size is the second look."""
        if table.rows > self._rows:
            return False
        if count > _FEW or len(columns) != 1 or columns[0] not in table.indexed_columns:
            return True
        if not pa.types.is_string(table.schema.field(columns[0]).type):
            return True  # texts of other values are not what the index holds
        key = (table.location, columns)
        with self._lock:
            spent = self._spent.get(key, 0)
            self._spent[key] = spent + count * _PAGE_ROWS
        return spent > 0 and (table.rows <= _SMALL_TABLE or spent >= table.rows)

    def _build(self, table: Table, columns: tuple[str, ...], ledger: Ledger) -> KeyIndex:
        texts, addresses = _read_keys(table, columns, ledger, fragments=None)
        index = KeyIndex((Run.build(texts, addresses),), _NONE, table.marks)
        return self._keep((table.location, columns, table.version), index)

    def _keep(self, key: tuple[str, tuple[str, ...], str], index: KeyIndex) -> KeyIndex:
        with self._lock:
            self._indexes[key] = index
            self._indexes.move_to_end(key)
            # Versions of one table share their runs, so a few of each are enough and cheap.
            same = [k for k in self._indexes if k[:2] == key[:2]]
            for old in same[:-4]:
                del self._indexes[old]
            while len(self._indexes) > 1 and self._size() > self._cache_bytes:
                self._indexes.popitem(last=False)
        return index

    def _size(self) -> int:
        runs = {id(run): run.nbytes for index in self._indexes.values() for run in index.runs}
        return sum(runs.values())


def _read_addresses(table: Table, ledger: Ledger, fragments: list[int]) -> np.ndarray:
    """Live rows; costs the deletion files and no data."""
    batches = table.scan([], ledger, addresses=True, fragments=fragments, purpose="lookup")
    return np.concatenate([_NONE, *[batch.column(ADDRESS).to_numpy() for batch in batches]])


def _read_keys(
    table: Table, columns: tuple[str, ...], ledger: Ledger, *, fragments: list[int] | None
) -> tuple[list[str | None], np.ndarray]:
    batches = list(
        table.scan(columns, ledger, addresses=True, fragments=fragments, purpose="lookup")
    )
    if not batches:
        return [], _NONE
    rows = pa.Table.from_batches(batches)
    return key_texts(rows, columns), rows[ADDRESS].to_numpy()


def _find_through_lance(
    table: Table, columns: tuple[str, ...], texts: Sequence[str], ledger: Ledger
) -> tuple[np.ndarray, np.ndarray]:
    """For tables too large to hold: an IN-filter that an index can answer."""
    wanted: dict[str, list[int]] = {}
    for position, value in enumerate(texts):
        wanted.setdefault(value, []).append(position)
    text_column = len(columns) == 1 and pa.types.is_string(table.schema.field(columns[0]).type)
    condition = pc.field(columns[0]).isin(list(wanted)) if text_column else None
    # Rows that a filter for one value finds have that value: an index tells where they are, and
    # no data is read.
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
