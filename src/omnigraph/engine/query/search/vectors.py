"""Owns distances between vectors of one property of one type and a given vector.

A distance is always computed here, in double precision and row by row, so it depends on the two
vectors alone. Lance, or a product in single precision, only selects the rows for which it is
computed.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.engine.query.guard import Guard
from omnigraph.engine.query.rows import TypeRows
from omnigraph.engine.query.search.texts import Ranked, told_among
from omnigraph.model.indexes import EXACT_FLOATS
from omnigraph.model.types import VectorType
from omnigraph.plan.query.explain import counted
from omnigraph.store.text_search import allow_addresses, allow_fragments
from omnigraph.store.vector_search import (
    find_vectors,
    has_vector_index,
    without_vector_index,
)

_MARGIN: Final = 1e-5
"""The error of a distance in single precision is below this."""
_FEW: Final = 150
_HIDDEN: Final = 1000
"""Where a transaction hides more stored rows than this, an index would be asked for too many."""
_SHARE: Final = 50
_DIGITS: Final = 12
"""Decimals of a distance, so that distances that are equal on paper are equal."""
_SPARSE: Final = 4
"""Below this share of a column, the rows that are asked for are copied out of it."""
_CHUNK: Final = 1 << 20
"""How many numbers are compared at a time."""


class Vectors:
    def __init__(self, rows: TypeRows, name: str, guard: Guard) -> None:
        self._rows = rows
        self._name = name
        self._guard = guard
        self._column = rows.view.column_of(name)
        kind = next(p.type for p in rows.kind.properties if p.name == name)
        assert isinstance(kind, VectorType)
        self._dimension = kind.dimension
        self._ranked: dict[bytes, Ranked] = {}
        self.narrowed = False
        """Whether the best will be looked for among what a match leaves."""
        self.among: int | None = None
        """How many candidates the nearest were looked for among, where not among all."""

    @property
    def _is_indexed(self) -> bool:
        rows = self._rows
        return not rows.view.overlay.replaced and has_vector_index(rows.view.table, self._column)

    @property
    def is_exact(self) -> bool:
        return self._rows.stored * self._dimension <= EXACT_FLOATS

    @property
    def how(self) -> str:
        """By what means the nearest are found, for `explain`."""
        told = self._means + told_among(self.among, narrowed=self.narrowed)
        exact = self.is_exact or self.narrowed or self.among is not None or not self._uses_index
        return f"{told}, {'exact' if exact else 'approximate'}"

    @property
    def _uses_index(self) -> bool:
        return self._is_indexed and self._held is None

    @property
    def _means(self) -> str:
        if self._held is not None:
            return "all vectors in memory"
        if not self._is_indexed:
            return "all vectors"
        table, overlay = self._rows.view.table, self._rows.view.overlay
        told = "index"
        tail = sum(table.marks[n].rows for n in without_vector_index(table, self._column))
        if tail:
            told += f", and {counted(tail, 'row')} that it does not cover yet"
        if overlay.rows.num_rows:
            told += f", and {counted(overlay.rows.num_rows, 'pending row')}"
        return told

    def ranked(self, vector: np.ndarray, count: int, among: np.ndarray | None) -> Ranked:
        """The rows of `best` with their distances, which are kept for as long as the query runs."""
        positions = np.sort(self.best(vector, count, among))
        found = Ranked(positions, self.distances(positions, vector))
        self._guard.hold(found.nbytes)
        self._ranked[vector.tobytes()] = found
        return found

    def distances(self, positions: np.ndarray, vector: np.ndarray) -> np.ndarray:
        """The distance of each row, NaN if one of the two vectors has no direction."""
        known = self._ranked.get(vector.tobytes())
        if known is not None and known.holds(positions):
            return known.scores_at(positions)
        result = np.full(len(positions), np.nan)
        for part in self._blocks(len(positions)):
            result[part] = cosine_distances(self._taken(positions[part]), vector)
        return result

    def paired(self, positions: np.ndarray, vectors: np.ndarray) -> np.ndarray:
        """The distance of each row to the vector beside it."""
        return cosine_distances(self._taken(positions), vectors)

    def best(self, vector: np.ndarray, count: int, among: np.ndarray | None) -> np.ndarray:
        """Positions that include the nearest `count` rows. If there are fewer than `count`, no
        other row has a distance."""
        rows = self._rows
        if among is not None and self.is_exact and len(among) == rows.count:
            among = None
        self.among = None if among is None else len(among)
        if among is not None:
            few = len(among) <= _FEW or (
                not self._is_indexed and len(among) * _SHARE <= rows.stored
            )
            if few:
                return self._with_direction(among, vector)
        hidden = len(rows.view.overlay.hidden)
        if not self._is_indexed or hidden > _HIDDEN or self._held is not None:
            return self._worth(rows.live if among is None else among, vector, count)
        if not rows.is_plain:
            return self._best_of_both(vector, count, among)
        table = rows.view.table
        allowed = (
            allow_fragments(table.marks)
            if among is None
            else allow_addresses(rows.addresses_of(among))
        )
        exact = self.is_exact or among is not None
        wanted = count + 10
        while True:
            self._guard.check()
            addresses, near = find_vectors(
                table, self._column, vector, wanted, allowed, rows.ledger, exact=exact
            )
            enough = len(near) >= count and near[-1] > near[count - 1] + _MARGIN
            if len(near) < wanted or enough:
                return np.sort(rows.positions_of(addresses))
            wanted *= 8

    def _best_of_both(self, vector: np.ndarray, count: int, among: np.ndarray | None) -> np.ndarray:
        """Stored rows by index, as many more as pending ones hide; and all pending ones."""
        rows = self._rows
        stored = Vectors(rows.with_nothing_pending(), self._name, self._guard)
        if among is None:
            near = stored.best(vector, count + len(rows.view.overlay.hidden), None)
            near = near[np.isin(near, rows.live)]
            pending = np.arange(rows.stored, rows.capacity, dtype=np.int64)
        else:
            near = stored.best(vector, count, among[among < rows.stored])
            pending = among[among >= rows.stored]
        return np.concatenate([near, self._with_direction(pending, vector)])

    def _with_direction(self, positions: np.ndarray, vector: np.ndarray) -> np.ndarray:
        found: np.ndarray = positions[~np.isnan(self.distances(positions, vector))]
        return found

    def _worth(self, positions: np.ndarray, vector: np.ndarray, count: int) -> np.ndarray:
        """The rows among many that a quick estimate does not rule out."""
        single = (vector / np.linalg.norm(vector)).astype(np.float32)
        with np.errstate(all="ignore"):
            far = -self._cosines(positions, single)
        last = np.partition(far, count - 1)[count - 1] if len(far) > count else np.float32("nan")
        if np.isnan(last):  # NaN sorts last
            found: np.ndarray = positions[~np.isnan(far)]
            return found
        worth: np.ndarray = positions[far <= last + 2 * _MARGIN]
        return worth

    def _cosines(self, positions: np.ndarray, single: np.ndarray) -> np.ndarray:
        """The cosine of each row, in single precision, NaN if it has no direction. The positions
        ascend."""
        result = np.empty(len(positions), np.float32)
        held = self._held
        if held is None:
            for part in self._blocks(len(positions)):
                taken = self._taken(positions[part])
                result[part] = np.vecdot(taken, single) * inverse_lengths(taken)
            return result
        begins = np.searchsorted(positions, self._rows.starts)
        for ordinal, column in enumerate(held):
            there = slice(begins[ordinal], begins[ordinal + 1])
            offsets = positions[there] - self._rows.starts[ordinal]
            matrix, inverse = flat(column, self._dimension), self._inverse(ordinal, column)
            if len(offsets) * _SPARSE < len(column):
                products = np.empty(len(offsets), np.float32)
                for part in self._blocks(len(offsets)):
                    products[part] = np.vecdot(matrix[offsets[part]], single)
                result[there] = products * inverse[offsets]
                continue
            products = np.empty(len(column), np.float32)
            for part in self._blocks(len(column)):
                products[part] = np.vecdot(matrix[part], single)
            products *= inverse
            result[there] = products if len(offsets) == len(column) else products[offsets]
        return result

    @cached_property
    def _held(self) -> list[pa.Array] | None:
        """The vectors of each fragment, if all are in memory. Comparing them is quicker than an
        index that compares all of them, too, and needs no request."""
        usable = self._rows.is_plain and self.is_exact
        return self._rows.held(self._name) if usable else None

    def _inverse(self, ordinal: int, column: pa.Array) -> np.ndarray:
        def make() -> np.ndarray:
            result = np.empty(len(column), np.float32)
            for part in self._blocks(len(column)):
                result[part] = inverse_lengths(as_matrix(column[part], self._dimension))
            return result

        found: np.ndarray = self._rows.derived(self._name, ordinal, "inverse lengths", make)
        return found

    def _blocks(self, count: int) -> Iterator[slice]:
        step = max(1, _CHUNK // self._dimension)
        for start in range(0, count, step):
            self._guard.check()
            yield slice(start, min(start + step, count))

    def _taken(self, positions: np.ndarray) -> np.ndarray:
        return as_matrix(self._rows.take(self._name, positions), self._dimension)


def as_matrix(vectors: pa.Array, dimension: int) -> np.ndarray:
    """Vectors as the rows of a matrix. A null becomes a row of NaN."""
    if isinstance(vectors, pa.ChunkedArray):
        vectors = vectors.combine_chunks()
    held = flat(vectors, dimension)
    if not vectors.null_count:
        return np.asarray(held, np.float32)
    held = np.array(held, np.float32)
    held[vectors.is_null().to_numpy(zero_copy_only=False)] = np.nan
    return held


def flat(vectors: pa.Array, dimension: int) -> np.ndarray:
    """Vectors as the rows of a matrix, without a copy. The row of a null means nothing."""
    every = vectors.values.to_numpy(zero_copy_only=False).reshape(-1, dimension)
    rows: np.ndarray = every[vectors.offset : vectors.offset + len(vectors)]
    return rows


def inverse_lengths(vectors: np.ndarray) -> np.ndarray:
    """1 / length of each row, NaN if it has no direction."""
    with np.errstate(all="ignore"):
        found: np.ndarray = 1 / np.sqrt(np.vecdot(vectors, vectors))
    found[~np.isfinite(found)] = np.nan
    return found


def cosine_distances(vectors: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Computed row by row, in an order of additions that does not depend on the other rows. `other`
    is one vector, or one for each row."""
    left, right = vectors.astype(np.float64), np.atleast_2d(other).astype(np.float64)
    with np.errstate(all="ignore"):
        products = (left * right).sum(axis=1)
        lengths = np.sqrt((left * left).sum(axis=1)) * np.sqrt((right * right).sum(axis=1))
        found: np.ndarray = 1 - products / lengths
    found[~np.isfinite(found)] = np.nan
    return np.round(found, _DIGITS) + 0.0
