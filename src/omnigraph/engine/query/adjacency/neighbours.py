"""Owns the adjacency arrays (compressed sparse rows) of one direction, and their extension."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np


def _unwatched() -> None:
    pass


@dataclass
class _Derived:
    distinct: Neighbours | None = None
    keys: np.ndarray | None = None


@dataclass(frozen=True)
class Neighbours:
    """The entries of vertex v are those from `starts[v]` to `starts[v + 1]`: the vertex at the
    other end, ascending, and the position of the edge. A vertex beyond the last has no entries.
    `grew` is called when more is computed and kept."""

    starts: np.ndarray
    ends: np.ndarray
    edges: np.ndarray
    grew: Callable[[], None] = field(default=_unwatched, compare=False, repr=False)
    _derived: _Derived = field(default_factory=_Derived, init=False, compare=False, repr=False)

    @staticmethod
    def build(
        here: np.ndarray,
        there: np.ndarray,
        edges: np.ndarray,
        count: int,
        grew: Callable[[], None] = _unwatched,
    ) -> Neighbours:
        keys = here.astype(np.int64) << 32 | there
        order = np.argsort(keys)
        starts = np.zeros(count + 1, np.int64)
        np.cumsum(np.bincount(here, minlength=count), out=starts[1:])
        return Neighbours(starts, there[order].astype(np.int32), edges[order], grew)

    @property
    def count(self) -> int:
        return len(self.starts) - 1

    def arrays(self) -> Iterator[np.ndarray]:
        """All arrays, including those computed later."""
        yield from (self.starts, self.ends, self.edges)
        if self._derived.keys is not None:
            yield self._derived.keys
        distinct = self._derived.distinct
        if distinct is not None and distinct is not self:
            yield from distinct.arrays()

    @property
    def distinct(self) -> Neighbours:
        """Without parallel edges; the same object if there are none."""
        found = self._derived.distinct
        if found is None:
            found = self._derived.distinct = self._without_parallels()
            self.grew()
        return found

    def _without_parallels(self) -> Neighbours:
        keys = self.keys
        first = np.ones(len(keys), bool)
        np.not_equal(keys[1:], keys[:-1], out=first[1:])
        if first.all():
            return self
        kept = np.concatenate([[0], np.cumsum(first)])
        return Neighbours(kept[self.starts], self.ends[first], self.edges[first], self.grew)

    @property
    def keys(self) -> np.ndarray:
        """Each entry as one number, ascending: its vertex in the upper bits, the other end in the
        lower ones."""
        found = self._derived.keys
        if found is None:
            here = np.repeat(np.arange(self.count, dtype=np.int64), np.diff(self.starts))
            found = self._derived.keys = here << 32 | self.ends
            self.grew()
        return found

    # Asking

    def bounds(self, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the entries of each vertex begin, and how many there are."""
        try:
            high = self.starts[vertices + 1]
        except IndexError:
            known = np.minimum(vertices, self.count)
            low = self.starts[known]
            return low, self.starts[np.minimum(known + 1, self.count)] - low
        low = self.starts[vertices]
        return low, high - low

    def expand(self, vertices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """For each entry of each vertex, the index of the vertex and of the entry."""
        if len(vertices) == 1 and (vertex := int(vertices[0])) < self.count:
            first, last = int(self.starts[vertex]), int(self.starts[vertex + 1])
            return np.zeros(last - first, np.int64), np.arange(first, last)
        low, counts = self.bounds(vertices)
        rows = np.repeat(np.arange(len(vertices)), counts)
        total = len(rows)
        shift = np.repeat(low - (np.cumsum(counts) - counts), counts)
        return rows, shift + np.arange(total)

    def between(self, here: np.ndarray, there: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Where the entries from one vertex to another begin, and how many there are."""
        keys = here.astype(np.int64) << 32 | there
        low = np.searchsorted(self.keys, keys, side="left")
        return low, np.searchsorted(self.keys, keys, side="right") - low

    # Changing

    def without(self, edges: np.ndarray, capacity: int) -> Neighbours:
        """The same arrays without the entries of edges at these positions."""
        if not len(edges):
            return self
        gone = np.zeros(capacity, bool)
        gone[edges] = True
        kept = ~gone[self.edges]
        before = np.concatenate([[0], np.cumsum(kept)])
        return Neighbours(before[self.starts], self.ends[kept], self.edges[kept], self.grew)

    def adding(
        self, here: np.ndarray, there: np.ndarray, edges: np.ndarray, count: int
    ) -> Neighbours:
        """Inserts entries where they belong. This costs a copy, not a sort."""
        if not len(here):
            return self
        starts = self.starts
        if count > self.count:
            starts = np.concatenate([starts, np.full(count - self.count, starts[-1])])
        order = np.lexsort((there, here))
        here, there, edges = here[order], there[order], edges[order]
        places = np.empty(len(here), np.int64)
        for index, (vertex, end) in enumerate(zip(here.tolist(), there.tolist(), strict=True)):
            low, high = starts[vertex], starts[vertex + 1]
            places[index] = low + np.searchsorted(self.ends[low:high], end, side="right")
        grown = starts + np.concatenate([[0], np.cumsum(np.bincount(here, minlength=count))])
        ends = np.insert(self.ends, places, there)
        return Neighbours(grown, ends, np.insert(self.edges, places, edges), self.grew)
