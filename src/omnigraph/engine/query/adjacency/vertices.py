"""Owns the numbers of ids. Each id of a node table gets a number when it is first seen and keeps it
through every version and branch, so that structures built on numbers can be shared and extended."""

from __future__ import annotations

import itertools
import threading

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.key_index import KeyRun

_FEW = 1000
_LARGE = 20_000
_RUNS = 8

_serials = itertools.count()


class Vertices:
    """`serial` is part of the key of everything built on these numbers. If the numbers are dropped
    and the ids numbered again, nothing that was built on the old numbers can be mistaken for
    new."""

    def __init__(self) -> None:
        self.serial = next(_serials)
        self._lock = threading.Lock()
        self._ids: pa.Array = pa.array([], pa.large_string())
        self._fresh: list[pa.Array] = []
        self._runs: list[KeyRun] = []
        self.count = 0

    def encode(self, ids: pa.Array) -> np.ndarray:
        """The number of each id. New ids get the next numbers."""
        encoded = pc.dictionary_encode(ids.cast(pa.large_string()))
        distinct = encoded.dictionary
        with self._lock:
            few = len(distinct) <= _FEW and self.count > _LARGE
            numbers = self._search(distinct) if few else self._join(distinct)
            unknown = np.flatnonzero(numbers < 0)
            if len(unknown):
                numbers[unknown] = np.arange(self.count, self.count + len(unknown))
                self._add(distinct.take(pa.array(unknown)))
        indices = encoded.indices.to_numpy(zero_copy_only=False)
        found: np.ndarray = numbers[indices].astype(np.int32)
        return found

    def ids(self, numbers: np.ndarray) -> pa.Array:
        """The ids that have these numbers."""
        with self._lock:
            self._settle()
            return self._ids.take(pa.array(numbers))

    @property
    def nbytes(self) -> int:
        with self._lock:
            texts = int(self._ids.nbytes) + sum(int(ids.nbytes) for ids in self._fresh)
            return texts + sum(run.nbytes for run in self._runs)

    def _join(self, distinct: pa.Array) -> np.ndarray:
        self._settle()
        if not self.count:
            return np.full(len(distinct), -1, np.int64)
        found = pc.index_in(distinct, value_set=self._ids)
        numbers: np.ndarray = pc.fill_null(found, -1).to_numpy(zero_copy_only=False)
        return numbers.astype(np.int64)

    def _search(self, distinct: pa.Array) -> np.ndarray:
        """Finds a few among many by hash, without scanning all of them."""
        if not self._runs:
            self._settle()
            self._runs = [
                KeyRun.build(self._ids.to_pylist(), np.arange(self.count, dtype=np.uint64))
            ]
        numbers = np.full(len(distinct), -1, np.int64)
        for place, text in enumerate(distinct.to_pylist()):
            for run in self._runs:
                if (number := run.find(text)) is not None:
                    numbers[place] = number
                    break
        return numbers

    def _add(self, ids: pa.Array) -> None:
        numbers = np.arange(self.count, self.count + len(ids), dtype=np.uint64)
        self.count += len(ids)
        self._fresh.append(ids)
        if self._runs:
            self._runs.append(KeyRun.build(ids.to_pylist(), numbers))
            if len(self._runs) > _RUNS:
                base, *rest = self._runs
                everything = lambda held: np.ones(len(held), bool)  # noqa: E731
                merged = KeyRun.merge(rest, everything)
                larger = len(merged.hashes) * 4 > len(base.hashes)
                self._runs = (
                    [KeyRun.merge([base, merged], everything)] if larger else [base, merged]
                )

    def _settle(self) -> None:
        if self._fresh:
            self._ids = pa.concat_arrays([self._ids, *self._fresh])
            self._fresh = []
