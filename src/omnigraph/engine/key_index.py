"""Owns the key index of a table version: which row of which data file holds a value.

Rows are identified by file, never by fragment number: two branches, or a restore, can give one
number to two files. When an index first takes in some files, it gives them a number that no other
files ever get. An index derived from it keeps that number as long as it has the files. So entries
for files that a version does not have are never found in it.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import xxhash

from omnigraph.store.fragments import FragmentMark

_TAIL = 4096
_ONE_BY_ONE = 8
_MARK = 64
"""Bytes that an index takes for each fragment."""
_LOW = np.uint64(0xFFFFFFFF)
_HIGH = np.uint64(32)
NO_ROWS = np.array([], dtype=np.uint64)

_numbers = itertools.count(1)


def hash_texts(texts: Iterable[str], count: int) -> np.ndarray:
    digest = xxhash.xxh3_64_intdigest
    return np.fromiter((digest(text.encode()) for text in texts), np.uint64, count)


@dataclass(frozen=True)
class KeyRun:
    """The values of some rows with the place of each, sorted by hash."""

    hashes: np.ndarray
    places: np.ndarray
    texts: pa.Array

    @staticmethod
    def build(texts: Sequence[str | None], places: np.ndarray) -> KeyRun:
        if None in texts:
            kept = np.array([text is not None for text in texts])
            texts = [text for text in texts if text is not None]
            places = places[kept]
        hashes = hash_texts((text for text in texts if text is not None), len(texts))
        order = np.argsort(hashes, kind="stable")
        values = pa.array(texts, pa.large_string())
        return KeyRun(hashes[order], places[order], values.take(pa.array(order)))

    @staticmethod
    def merge(runs: Sequence[KeyRun], keep: Callable[[np.ndarray], np.ndarray]) -> KeyRun:
        hashes = np.concatenate([run.hashes for run in runs])
        places = np.concatenate([run.places for run in runs])
        texts = pa.chunked_array([run.texts for run in runs]).combine_chunks()
        live = np.flatnonzero(keep(places))
        order = live[np.argsort(hashes[live], kind="stable")]
        return KeyRun(hashes[order], places[order], texts.take(pa.array(order)))

    def find(self, text: str) -> int | None:
        """The place of a row with this value."""
        wanted = np.uint64(xxhash.xxh3_64_intdigest(text.encode()))
        slot = int(np.searchsorted(self.hashes, wanted, side="left"))
        while slot < len(self.hashes) and self.hashes[slot] == wanted:
            if self.texts[slot].as_py() == text:  # different values may share a hash
                return int(self.places[slot])
            slot += 1
        return None

    @cached_property
    def nbytes(self) -> int:
        return int(self.hashes.nbytes + self.places.nbytes + self.texts.nbytes)


@dataclass(frozen=True)
class Compared:
    """The fragments of a version, compared with an index, by file number if there is one. The index
    knows all about those in `same`. Of those in `moved` it does not know which rows are live. It
    does not know those in `fresh`."""

    same: dict[int, FragmentMark]
    moved: dict[int, FragmentMark]
    fresh: list[FragmentMark]


@dataclass(frozen=True)
class KeyIndex:
    """Where each value is in one table version. `marks` are its fragments by file number. A place
    combines such a number with the row's offset. `dead` are places that the runs still hold
    although the rows are gone."""

    runs: tuple[KeyRun, ...]
    dead: np.ndarray
    marks: dict[int, FragmentMark]

    @staticmethod
    def build(
        marks: Collection[FragmentMark], texts: Sequence[str | None], addresses: np.ndarray
    ) -> KeyIndex:
        numbered = number_files(marks)
        return KeyIndex((KeyRun.build(texts, places_of(numbered, addresses)),), NO_ROWS, numbered)

    # Asking

    def find(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Positions in `texts` with addresses, one pair for each row that holds the value."""
        if len(texts) <= _ONE_BY_ONE:
            return self._find_few(texts)
        wanted = hash_texts(texts, len(texts))
        positions, places = [], []
        for run in self.runs:
            low = np.searchsorted(run.hashes, wanted, side="left")
            high = np.searchsorted(run.hashes, wanted, side="right")
            for position in np.flatnonzero(high > low).tolist():
                for slot in range(int(low[position]), int(high[position])):
                    # Different values may share a hash.
                    if run.texts[slot].as_py() == texts[position]:
                        positions.append(position)
                        places.append(int(run.places[slot]))
        found = np.array(places, dtype=np.uint64)
        live = self._live(found)
        return np.array(positions, dtype=np.int64)[live], self._addresses(found[live])

    def _find_few(self, texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """The same for a few texts, where setting up arrays would take longer than the search."""
        positions, addresses = [], []
        dead = self.dead
        for position, text in enumerate(texts):
            wanted = np.uint64(xxhash.xxh3_64_intdigest(text.encode()))
            for run in self.runs:
                slot = int(run.hashes.searchsorted(wanted))
                while slot < len(run.hashes) and run.hashes[slot] == wanted:
                    place = int(run.places[slot])
                    mark = self.marks.get(place >> 32)
                    if mark is not None and run.texts[slot].as_py() == text:
                        at = int(dead.searchsorted(np.uint64(place))) if len(dead) else 0
                        if at >= len(dead) or int(dead[at]) != place:
                            positions.append(position)
                            addresses.append(mark.id << 32 | place & 0xFFFFFFFF)
                    slot += 1
        return np.array(positions, dtype=np.int64), np.array(addresses, dtype=np.uint64)

    def _addresses(self, places: np.ndarray) -> np.ndarray:
        """The addresses in this version of those rows that it has."""
        numbers, inverse = np.unique(places >> _HIGH, return_inverse=True)
        ids = np.array([self.marks[number].id for number in numbers.tolist()], np.uint64)
        addresses: np.ndarray = ids[inverse] << _HIGH | places & _LOW
        return addresses

    # Deriving

    @cached_property
    def numbers(self) -> dict[tuple[str, ...], int]:
        return {mark.files: number for number, mark in self.marks.items()}

    def compare(self, marks: Iterable[FragmentMark]) -> Compared:
        compared = Compared({}, {}, [])
        for mark in marks:
            number = self.numbers.get(mark.files)
            if number is None:
                compared.fresh.append(mark)
            elif self.marks[number].deletion == mark.deletion:
                compared.same[number] = mark
            else:
                compared.moved[number] = mark
        return compared

    def derive(
        self,
        marks: dict[int, FragmentMark],
        added: KeyRun | None = None,
        dead: np.ndarray = NO_ROWS,
    ) -> KeyIndex:
        """The index of a version that differs by these rows and these dead places."""
        runs = self.runs if added is None or not len(added.hashes) else (*self.runs, added)
        all_dead = np.union1d(self.dead, dead) if len(dead) else self.dead
        derived = KeyIndex(runs, all_dead, marks)
        return derived._consolidated()

    def held(self, numbers: Collection[int]) -> np.ndarray:
        """Every place in these files that the runs hold, live or dead."""
        if not numbers:
            return NO_ROWS
        wanted = np.array(list(numbers), dtype=np.uint64)
        parts = [run.places[np.isin(run.places >> _HIGH, wanted)] for run in self.runs]
        return np.concatenate([NO_ROWS, *parts])

    def reviving(self, numbers: Collection[int]) -> KeyIndex:
        """Counts every row that is held of these files as live again."""
        if not numbers or not len(self.dead):
            return self
        wanted = np.array(list(numbers), dtype=np.uint64)
        kept = self.dead[~np.isin(self.dead >> _HIGH, wanted)]
        return KeyIndex(self.runs, kept, self.marks)

    def _consolidated(self) -> KeyIndex:
        """Small runs are merged into one tail, and the tail into the base once it is a quarter of
        the base. The cost is amortised, and a lookup never searches more than a few runs."""
        if len(self.runs) < 8 and len(self.dead) < _TAIL:
            return self
        base, *tail = self.runs
        tail_size = sum(len(run.hashes) for run in tail)
        if tail_size + len(self.dead) > max(len(base.hashes) // 4, _TAIL):
            merged = KeyRun.merge(self.runs, self._live)
            return KeyIndex((merged,), NO_ROWS, self.marks)
        if len(tail) < 2:
            return self
        return KeyIndex((base, KeyRun.merge(tail, self._live)), self.dead, self.marks)

    @cached_property
    def _files(self) -> np.ndarray:
        return np.fromiter(self.marks, np.uint64, len(self.marks))

    def _live(self, places: np.ndarray) -> np.ndarray:
        live: np.ndarray = np.isin(places >> _HIGH, self._files)
        if len(self.dead):
            live &= ~np.isin(places, self.dead)
        return live


def number_files(marks: Iterable[FragmentMark]) -> dict[int, FragmentMark]:
    """Gives each file a number that no file had before."""
    return {next(_numbers): mark for mark in marks}


def places_of(marks: Mapping[int, FragmentMark], addresses: np.ndarray) -> np.ndarray:
    """The places of rows that have these addresses in a version. `marks` are its fragments, or the
    ones with these rows, by file number."""
    if not len(addresses):
        return NO_ROWS
    numbers = {mark.id: number for number, mark in marks.items()}
    ids, inverse = np.unique(addresses >> _HIGH, return_inverse=True)
    files = np.array([numbers[fragment] for fragment in ids.tolist()], np.uint64)
    places: np.ndarray = files[inverse] << _HIGH | addresses & _LOW
    return places


def size_of(indexes: Iterable[KeyIndex]) -> int:
    """The bytes of several indexes. Parts that they share count once."""
    runs: dict[int, int] = {}
    rest = 0
    for index in indexes:
        runs |= {id(run): run.nbytes for run in index.runs}
        rest += int(index.dead.nbytes) + _MARK * len(index.marks)
    return sum(runs.values()) + rest
