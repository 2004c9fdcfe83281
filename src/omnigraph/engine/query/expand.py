"""Owns expansion: from entities along edges to their neighbours, by one of two kernels that give
the same rows. *indexed* asks Lance for the edges of the entities at hand; *adjacency* looks them
up in arrays that are built once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.query.adjacency.arrays import Way
from omnigraph.engine.query.adjacency.cache import Adjacencies
from omnigraph.engine.query.entities import NONE, Entities
from omnigraph.engine.query.guard import Guard
from omnigraph.engine.query.hops import Arrays, Reached, TypedHop
from omnigraph.engine.query.rows import TypeRows
from omnigraph.lang.gq.checked import Direction, EdgeStep, Traversal
from omnigraph.model.catalog import Catalog, GraphType

Kernel = Literal["auto", "indexed", "adjacency"]

CHUNK = 1 << 18
_FEW = 1024
_LARGE = 100_000
_TOUCHES = 3
_LEGS = 1024


class Expander:
    def __init__(
        self,
        entities: Entities,
        adjacencies: Adjacencies,
        catalog: Catalog,
        guard: Guard,
        kernel: Kernel,
    ) -> None:
        self._entities = entities
        self._adjacencies = adjacencies
        self._catalog = catalog
        self._guard = guard
        self._kernel = kernel
        self._arrays: dict[tuple[str, str], Arrays] = {}
        self._hops: dict[tuple[int, bool], tuple[Traversal, list[TypedHop]]] = {}
        self.used: set[str] = set()

    def go_on(self, guard: Guard) -> None:
        """The arrays that one query used serve another one, within the limits of that query."""
        self._guard = guard
        self.used = set()

    # Hops of a traversal

    def legs_of(
        self,
        traversal: Traversal,
        *,
        backward: bool,
        here: Sequence[GraphType],
        there: Sequence[GraphType],
    ) -> list[TypedHop]:
        """The hops of a traversal, worked out once; held together with it, because its `id()` is
        its own only while it lives."""
        key = (id(traversal), backward)
        held = self._hops.get(key)
        if held is None:
            if len(self._hops) >= _LEGS:
                self._hops.clear()
            hops = self.hops(traversal.steps, backward=backward, here=here, there=there)
            held = self._hops[key] = (traversal, hops)
        return held[1]

    def hops(
        self,
        steps: Sequence[EdgeStep],
        *,
        backward: bool,
        here: Sequence[GraphType],
        there: Sequence[GraphType],
    ) -> list[TypedHop]:
        """The steps that can lead from one kind to the other."""
        nodes = self._catalog.node_names
        starts, ends = {t.name for t in here}, {t.name for t in there}
        found = []
        for step in steps:
            forward = (step.direction is Direction.FORWARD) != backward
            way: Way = "out" if forward else "in"
            if step.direction is Direction.EITHER:
                way, forward = "both", True
            start, end = step.edge.source, step.edge.target
            if not forward:
                start, end = end, start
            if start in starts and end in ends:
                found.append(
                    TypedHop(
                        self._entities.rows(step.edge),
                        self._entities.rows(nodes[start]),
                        self._entities.rows(nodes[end]),
                        way,
                        len(here) == 1,
                    )
                )
        return found

    # One hop

    def expand(self, hops: Sequence[TypedHop], numbers: np.ndarray, *, edges: bool) -> Reached:
        """All neighbours. Without edges, each neighbour once for each start, however many edges
        lead there."""
        parts = [self._along(hop, numbers, edges=edges) for hop in hops]
        if len(parts) == 1:
            return parts[0]
        if not parts:
            return Reached(NONE, NONE, NONE if edges else None)
        places = np.concatenate([part.places for part in parts])
        targets = np.concatenate([part.targets for part in parts])
        if not edges:
            return _distinct(places, targets)
        joined = np.concatenate([part.edges for part in parts if part.edges is not None])
        return Reached(places, targets, joined)

    def chunks(self, hops: Sequence[TypedHop], numbers: np.ndarray) -> Iterator[tuple[int, int]]:
        """Ranges of the numbers whose neighbours together are about a chunk."""
        if len(numbers) * 8 <= CHUNK and self.estimate(hops) * len(numbers) <= CHUNK:
            yield 0, len(numbers)
            return
        counts = np.ones(len(numbers), np.int64)
        for hop in hops:
            if self._by_adjacency(hop, len(numbers)):
                where, positions = self._at(hop, numbers)
                degrees = self._degrees(hop, positions, distinct=False)
                if where is None:
                    counts += degrees
                else:
                    counts[where] += degrees
            else:
                counts += 256
        sums = np.cumsum(counts)
        start = 0
        while start < len(numbers):
            before = sums[start - 1] if start else 0
            stop = max(start + 1, int(np.searchsorted(sums, before + CHUNK, side="right")))
            yield start, stop
            start = stop

    @staticmethod
    def estimate(hops: Sequence[TypedHop]) -> float:
        return sum(hop.edge.count / max(1, hop.here.count) for hop in hops) * 4

    def degrees(self, hop: TypedHop, numbers: np.ndarray, *, edges: bool) -> np.ndarray:
        """How many neighbours (or edges) each entity has."""
        if self._by_adjacency(hop, len(numbers)):
            where, positions = self._at(hop, numbers)
            found = self._degrees(hop, positions, distinct=not edges)
            if where is None:
                return found
            counts = np.zeros(len(numbers), np.int64)
            counts[where] = found
            return counts
        reached = self._along(hop, numbers, edges=edges)
        return np.bincount(reached.places, minlength=len(numbers))

    def joined(
        self, hop: TypedHop, numbers: np.ndarray, others: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray] | None:
        """For pairs of entities: the indexes of those joined by an edge, once for each edge, and
        the edges. None if the kernel cannot answer this directly."""
        if not self._by_adjacency(hop, len(numbers)):
            return None
        there = self._entities.of_type(hop.there.kind, others)
        where = np.flatnonzero(self._entities.of_type(hop.here.kind, numbers) & there)
        arrays = self._way(hop)
        way = arrays.entries
        ends = self._adjacencies.vertex_of(hop.there, self._entities.ledger)
        low, counts = way.between(
            arrays.vertices(numbers[where] - hop.here.base), ends[others[where] - hop.there.base]
        )
        places = np.repeat(where, counts)
        entries = np.repeat(low - (np.cumsum(counts) - counts), counts) + np.arange(len(places))
        return places, way.edges[entries] + hop.edge.base

    def all_edges(self, hop: TypedHop) -> Reached | None:
        """Both ends of every edge, the near one in `places`. None if the kernel has no arrays of
        them."""
        if not self._by_adjacency(hop, hop.here.count):
            return None
        ledger = self._entities.ledger
        source, target = (hop.here, hop.there) if hop.way != "in" else (hop.there, hop.here)
        adjacency = self._adjacencies.of(hop.edge, source, target, ledger)
        live = adjacency.live
        near, far = adjacency.src, adjacency.dst
        if hop.way == "in":
            near, far = far, near
        if len(live) != len(near):
            near, far = near[live], far[live]
        here = self._adjacencies.position_of(hop.here, ledger)[near] + hop.here.base
        there = self._adjacencies.position_of(hop.there, ledger)[far] + hop.there.base
        return Reached(here, there, live + hop.edge.base)

    # Kernels

    def _by_adjacency(self, hop: TypedHop, count: int) -> bool:
        if hop.key in self._arrays:
            self.used.add("adjacency")
            return True
        if self._kernel != "auto":
            by_adjacency = self._kernel == "adjacency"
        elif not self._adjacencies.fits(hop.edge):
            by_adjacency = False
        elif self._adjacencies.is_near(hop.edge) or hop.edge.stored <= _LARGE or count > _FEW:
            by_adjacency = True
        else:
            end = "src" if hop.way == "out" else "dst"
            indexed = end in hop.edge.view.table.indexed_columns
            by_adjacency = not indexed or self._adjacencies.touch(hop.edge) > _TOUCHES
        self.used.add("adjacency" if by_adjacency else "indexed")
        return by_adjacency

    def _at(self, hop: TypedHop, numbers: np.ndarray) -> tuple[np.ndarray | None, np.ndarray]:
        """Where the entities of the hop's type are (None: everywhere), and their positions."""
        if hop.only:
            return None, numbers - hop.here.base if hop.here.base else numbers
        where = np.flatnonzero(self._entities.of_type(hop.here.kind, numbers))
        return where, numbers[where] - hop.here.base

    def _way(self, hop: TypedHop) -> Arrays:
        found = self._arrays.get(hop.key)
        if found is None:
            ledger = self._entities.ledger
            source, target = (hop.here, hop.there) if hop.way != "in" else (hop.there, hop.here)
            adjacency = self._adjacencies.of(hop.edge, source, target, ledger)
            found = self._arrays[hop.key] = Arrays(
                adjacency.way(hop.way),
                self._adjacencies.vertices_unless_same(hop.here, ledger),
                self._adjacencies.positions_unless_same(hop.there, ledger),
            )
        return found

    def _degrees(self, hop: TypedHop, positions: np.ndarray, *, distinct: bool) -> np.ndarray:
        arrays = self._way(hop)
        chosen = arrays.entries.distinct if distinct else arrays.entries
        _, counts = chosen.bounds(arrays.vertices(positions))
        return counts

    def _along(self, hop: TypedHop, numbers: np.ndarray, *, edges: bool) -> Reached:
        self._guard.check()
        if self._by_adjacency(hop, len(numbers)):
            return self._by_arrays(hop, numbers, edges=edges)
        return self._by_index(hop, numbers, edges=edges)

    def _by_arrays(self, hop: TypedHop, numbers: np.ndarray, *, edges: bool) -> Reached:
        where, positions = self._at(hop, numbers)
        arrays = self._way(hop)
        chosen = arrays.entries if edges else arrays.entries.distinct
        rows, entries = chosen.expand(arrays.vertices(positions))
        targets = arrays.positions(chosen.ends[entries])
        if hop.there.base:
            targets = targets + hop.there.base
        held = chosen.edges[entries] + hop.edge.base if edges else None
        return Reached(rows if where is None else where[rows], targets, held)

    def _by_index(self, hop: TypedHop, numbers: np.ndarray, *, edges: bool) -> Reached:
        """The edges of these entities, found by a filter that an index on the end can answer."""
        where, positions = self._at(hop, numbers)
        if where is None:
            where = np.arange(len(numbers))
        if not len(where):
            return Reached(NONE, NONE, NONE if edges else None)
        distinct, inverse = np.unique(positions, return_inverse=True)
        ids = hop.here.take("id", distinct)
        ends = {"out": ("src",), "in": ("dst",), "both": ("src", "dst")}[hop.way]
        found: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []
        for near in ends:
            far = "dst" if near == "src" else "src"
            rows, places = hop.edge.touching(near, far, ids)
            if len(ends) == 2 and near == "dst":
                other = pc.not_equal(rows["src"], rows["dst"])  # a self-loop counts once
                rows, places = rows.filter(other), places[other.to_numpy(zero_copy_only=False)]
            near_places = pc.index_in(rows[near], value_set=ids).to_numpy()
            found.append((near_places, self._positions_of_ids(hop.there, rows[far]), places))
        near_places = np.concatenate([part[0] for part in found]).astype(np.int64)
        targets = np.concatenate([part[1] for part in found])
        held = np.concatenate([part[2] for part in found])
        # Each entity at hand may stand in many places.
        order = np.argsort(near_places, kind="stable")
        starts = np.searchsorted(near_places[order], np.arange(len(distinct) + 1))
        counts = (starts[1:] - starts[:-1])[inverse]
        places = np.repeat(np.arange(len(inverse)), counts)
        shift = np.repeat(starts[:-1][inverse] - (np.cumsum(counts) - counts), counts)
        entries = order[shift + np.arange(len(places))]
        reached = targets[entries] + hop.there.base
        if edges:
            return Reached(where[places], reached, held[entries] + hop.edge.base)
        return _distinct(where[places], reached)

    def _positions_of_ids(self, rows: TypeRows, ids: pa.ChunkedArray) -> np.ndarray:
        encoded = ids.combine_chunks().dictionary_encode()
        texts = encoded.dictionary.to_pylist()
        which, positions = rows.find(("id",), texts)
        by_text = np.full(len(texts), -1, np.int64)
        by_text[which] = positions
        found: np.ndarray = by_text[encoded.indices.to_numpy(zero_copy_only=False)]
        return found


def _distinct(places: np.ndarray, targets: np.ndarray) -> Reached:
    if not len(places):
        return Reached(places, targets, None)
    span = int(targets.max()) + 1
    codes = np.unique(places * span + targets)
    return Reached(codes // span, codes % span, None)
