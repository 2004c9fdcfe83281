"""Owns adjacency: the neighbours of every vertex along one edge table version, and how to derive it
from that of a related version."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from omnigraph.engine.query.adjacency.neighbours import Neighbours
from omnigraph.engine.query.rows import TypeRows
from omnigraph.store.fragments import FragmentMark

Way = Literal["out", "in", "both"]

NOTHING = np.array([], np.int64)
_SHARE = 8
"""If more than one edge in this many differs, the adjacency is built anew."""


@dataclass(frozen=True)
class Adjacency:
    """The adjacency of one edge table version. Each direction is computed when it is first
    needed."""

    marks: tuple[FragmentMark, ...]
    live: np.ndarray
    src: np.ndarray
    dst: np.ndarray
    """Vertices by position. The values for deleted rows mean nothing."""
    count: int
    grew: Callable[[], None]
    """Called when a direction, or more of one, was computed."""
    ways: dict[str, Neighbours] = field(default_factory=dict)

    def way(self, way: Way) -> Neighbours:
        found = self.ways.get(way)
        if found is None:
            found = self.ways[way] = self._build(way)
            self.grew()
        return found

    def _build(self, way: Way) -> Neighbours:
        src, dst, edges = self.src[self.live], self.dst[self.live], self.live
        if way == "out":
            return Neighbours.build(src, dst, edges, self.count, self.grew)
        if way == "in":
            return Neighbours.build(dst, src, edges, self.count, self.grew)
        other = src != dst  # a self-loop counts once
        return Neighbours.build(
            np.concatenate([src, dst[other]]),
            np.concatenate([dst, src[other]]),
            np.concatenate([edges, edges[other]]),
            self.count,
            self.grew,
        )

    def arrays(self) -> Iterator[np.ndarray]:
        """All that is held."""
        yield from (self.live, self.src, self.dst)
        for way in list(self.ways.values()):
            yield from way.arrays()


def no_edges(grew: Callable[[], None]) -> Adjacency:
    none = np.array([], np.int32)
    return Adjacency((), NOTHING, none, none, 0, grew)


def derive(
    parent: Adjacency, edge: TypeRows, src: np.ndarray, dst: np.ndarray, count: int
) -> Adjacency | None:
    """The adjacency of a version, from that of a relative that shares its first files, if they
    differ by little."""
    marks = tuple(edge.marks)
    shared = 0
    for old, new in zip(parent.marks, marks, strict=False):
        if old.files != new.files:
            break
        shared += 1
    if not shared:
        return None
    live = edge.with_nothing_pending().live
    end = int(edge.starts[shared])
    before = parent.live
    if all(o.deletion == n.deletion for o, n in zip(parent.marks, marks, strict=False)):
        gone = before[np.searchsorted(before, end) :]
        added = live[np.searchsorted(live, end) :]
    else:
        was = np.zeros(max(len(parent.src), len(src)), bool)
        now = np.zeros(len(was), bool)
        was[before] = True
        now[live] = True
        same = was & now
        same[end:] = False
        gone = np.flatnonzero(was & ~same)
        added = np.flatnonzero(now & ~same)
    if (len(gone) + len(added)) * _SHARE > max(len(live), 1):
        return None
    return changed(parent, marks, gone, added, src, dst, count, live)


def changed(
    parent: Adjacency,
    marks: tuple[FragmentMark, ...],
    gone: np.ndarray,
    added: np.ndarray,
    src: np.ndarray,
    dst: np.ndarray,
    count: int,
    live: np.ndarray | None = None,
) -> Adjacency:
    if live is None:
        kept = parent.live[~np.isin(parent.live, gone)] if len(gone) else parent.live
        live = np.concatenate([kept, added])
    ways: dict[str, Neighbours] = {}
    capacity = max(len(parent.src), len(src))
    for name, way in list(parent.ways.items()):
        trimmed = way.without(gone, capacity)
        here, there = (src, dst) if name != "in" else (dst, src)
        froms, tos, edges = here[added], there[added], added
        if name == "both":
            other = froms != tos
            froms, tos = (
                np.concatenate([froms, tos[other]]),
                np.concatenate([tos, froms[other]]),
            )
            edges = np.concatenate([edges, edges[other]])
        ways[name] = trimmed.adding(froms, tos, edges, max(count, trimmed.count))
    return Adjacency(marks, live, src, dst, count, parent.grew, ways)
