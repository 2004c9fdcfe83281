"""Owns named paths: the shortest way between two entities, or all shortest ways together, as the
ids of its nodes and edges.

Ways are searched for pairs, not kept while rows are matched: a way depends on its ends alone. The
search goes from each start in levels, and then back from the ends along the edges of these levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.engine.query.distances import check_steps
from omnigraph.engine.query.entities import NONE
from omnigraph.engine.query.hops import TypedHop
from omnigraph.lang.gq.checked import PathPart, Traversal
from omnigraph.model.catalog import GraphType
from omnigraph.plan.values.codes import ranks

if TYPE_CHECKING:
    from omnigraph.engine.query.context import QueryContext

_CODES = 1 << 22
"""Starts are searched from together as long as they have this many nodes to reach."""


@dataclass(frozen=True)
class Ways:
    """For each row, the ids along its way, and its length; null where there is no way."""

    nodes: pa.Array
    edges: pa.Array
    length: pa.Array

    def part(self, part: PathPart) -> pa.Array:
        return {"nodes": self.nodes, "edges": self.edges, "length": self.length}[part]


@dataclass(frozen=True)
class _SearchLevel:
    """The edges of the search that first reach a node, by the node that they reach."""

    befores: np.ndarray
    nodes: np.ndarray
    edges: np.ndarray


@dataclass(frozen=True)
class _OnWays:
    """Nodes or edges on ways: to which pair they belong, at which step, and their numbers."""

    pairs: np.ndarray
    steps: np.ndarray
    numbers: np.ndarray


def find_ways(
    run: QueryContext,
    traversal: Traversal,
    hops: Sequence[TypedHop],
    starts: np.ndarray,
    ends: np.ndarray,
    *,
    every: bool,
) -> Ways:
    """The ways between the entities of each row. A number below zero is null."""
    there = np.flatnonzero((starts >= 0) & (ends >= 0))
    pairs, places = np.unique(np.stack([starts[there], ends[there]]), axis=1, return_inverse=True)
    search = _WaySearch(run, traversal, hops, pairs[0], pairs[1], every=every)
    found = search.run_all()
    index = np.full(len(starts), -1, np.int64)
    index[there] = places.reshape(-1)
    index[index >= 0] = np.where(search.lengths[index[index >= 0]] < 0, -1, index[index >= 0])
    chosen = pa.array(index, mask=index < 0)
    nodes, edges = found
    return Ways(
        search.lists(nodes, search.node_kinds, once=False).take(chosen),
        search.lists(edges, search.edge_kinds, once=not every).take(chosen),
        pa.array(search.lengths).take(chosen),
    )


class _WaySearch:
    """One search for the distinct pairs of a frame, ordered by their starts."""

    def __init__(
        self,
        run: QueryContext,
        traversal: Traversal,
        hops: Sequence[TypedHop],
        starts: np.ndarray,
        ends: np.ndarray,
        *,
        every: bool,
    ) -> None:
        self.run = run
        self.traversal = traversal
        self.hops = hops
        self.starts = starts
        self.ends = ends
        self.every = every
        self.lengths = np.full(len(starts), -1, np.int64)
        kinds = [*run.kinds(traversal.source), *run.kinds(traversal.target)]
        kinds += [side.kind for hop in hops for side in (hop.here, hop.there)]
        self.node_kinds = _distinct(kinds)
        self.edge_kinds = _distinct([hop.edge.kind for hop in hops])
        sides = [run.entities.rows(kind) for kind in self.node_kinds]
        self.base = min(side.base for side in sides)
        self.span = max(1, max(side.base + side.capacity for side in sides) - self.base)

    def run_all(self) -> tuple[_OnWays, _OnWays]:
        nodes: list[_OnWays] = []
        edges: list[_OnWays] = []
        froms = np.unique(self.starts)
        size = max(1, _CODES // self.span)
        for begin in range(0, len(froms), size):
            low, high = np.searchsorted(
                self.starts, [froms[begin], froms[begin : begin + size][-1] + 1]
            )
            self._some(np.arange(low, high), froms[begin : begin + size], nodes, edges)
        return _joined(nodes), _joined(edges)

    def _some(
        self, pairs: np.ndarray, froms: np.ndarray, nodes: list[_OnWays], edges: list[_OnWays]
    ) -> None:
        """The ways of pairs from a few starts."""
        own = np.searchsorted(froms, self.starts[pairs])
        targets = own * self.span + (self.ends[pairs] - self.base)
        same = self.starts[pairs] == self.ends[pairs]
        if self.traversal.low == 0:
            at = pairs[same]
            self.lengths[at] = 0
            nodes.append(_OnWays(at, np.zeros(len(at), np.int64), self.starts[at]))
        elif same.any():
            self._loops(pairs[same], nodes, edges)
        pairs, targets = pairs[~same], targets[~same]
        distance, levels = self._levels(froms, targets)
        self.lengths[pairs] = distance[targets]
        found = self.lengths[pairs] > 0
        pairs, targets = pairs[found], targets[found]
        if self.every:
            self._every_way(pairs, targets, levels, nodes, edges)
        else:
            self._one_way(froms, pairs, targets, levels, nodes, edges)

    def _loops(self, pairs: np.ndarray, nodes: list[_OnWays], edges: list[_OnWays]) -> None:
        """A node is one step from itself by an edge of its own."""
        reached = self.run.expander.expand(self.hops, self.starts[pairs], edges=True)
        assert reached.edges is not None
        own = np.flatnonzero(reached.targets == self.starts[pairs][reached.places])
        at = pairs[reached.places[own]]
        self.lengths[at] = 1
        there = np.unique(at)
        nodes += [_OnWays(there, np.full(len(there), n), self.starts[there]) for n in (0, 1)]
        edges.append(_OnWays(at, np.ones(len(at), np.int64), reached.edges[own]))

    def _levels(
        self, froms: np.ndarray, targets: np.ndarray
    ) -> tuple[np.ndarray, list[_SearchLevel]]:
        """How far each node is, and the edges that reach the nodes of each distance first."""
        distance = np.full(len(froms) * self.span, -1, np.int32)
        codes = np.arange(len(froms)) * self.span + (froms - self.base)
        distance[codes] = 0
        levels: list[_SearchLevel] = []
        with self.run.guard.booking() as booked:
            booked.add(distance.nbytes)
            while len(codes) and (distance[targets] < 0).any():
                step = len(levels) + 1
                if step > self.traversal.high:
                    break
                check_steps(step)
                self.run.guard.check()
                reached = self.run.expander.expand(
                    self.hops, codes % self.span + self.base, edges=True
                )
                assert reached.edges is not None
                befores = codes[reached.places]
                nodes = befores // self.span * self.span + (reached.targets - self.base)
                fresh = np.flatnonzero(distance[nodes] < 0)
                fresh = fresh[np.argsort(nodes[fresh], kind="stable")]
                level = _SearchLevel(befores[fresh], nodes[fresh], reached.edges[fresh])
                levels.append(level)
                booked.add(3 * level.nodes.nbytes)
                codes = np.unique(level.nodes)
                distance[codes] = step
        return distance, levels

    def _number(self, codes: np.ndarray) -> np.ndarray:
        return codes % self.span + self.base

    def _every_way(
        self,
        pairs: np.ndarray,
        targets: np.ndarray,
        levels: list[_SearchLevel],
        nodes: list[_OnWays],
        edges: list[_OnWays],
    ) -> None:
        """Back from each end along every edge of the levels."""
        lengths = self.lengths[pairs]
        at, codes = NONE, NONE
        for step in range(len(levels), 0, -1):
            self.run.guard.check()
            ending = lengths == step
            at, codes = (
                np.concatenate([at, pairs[ending]]),
                np.concatenate([codes, targets[ending]]),
            )
            nodes.append(_OnWays(at, np.full(len(at), step), self._number(codes)))
            level = levels[step - 1]
            rows, entries = _matching(codes, level.nodes)
            edges.append(_OnWays(at[rows], np.full(len(rows), step), level.edges[entries]))
            before = np.unique(np.stack([at[rows], level.befores[entries]]), axis=1)
            at, codes = before[0], before[1]
        nodes.append(_OnWays(at, np.zeros(len(at), np.int64), self._number(codes)))

    def _one_way(
        self,
        froms: np.ndarray,
        pairs: np.ndarray,
        targets: np.ndarray,
        levels: list[_SearchLevel],
        nodes: list[_OnWays],
        edges: list[_OnWays],
    ) -> None:
        """The way whose ids come first. Each node goes back to the one before it whose own way
        comes first, so ways are compared by ranks within a level and never written out."""
        lengths = self.lengths[pairs]
        first = np.arange(len(froms)) * self.span + (froms - self.base)
        known, order = first, np.zeros(len(first), np.int64)
        before: list[tuple[np.ndarray, np.ndarray]] = []
        for level in levels[: int(lengths.max(initial=0))]:
            rank = order[np.searchsorted(known, level.befores)]
            best = np.lexsort([rank, level.nodes])
            reached, at = np.unique(level.nodes[best], return_index=True)
            back = level.befores[best][at]
            before.append((reached, back))
            ids = ranks(self.run.ids(self.node_kinds, self._number(reached)))
            sorted_ = np.lexsort([ids, rank[best][at], reached // self.span])
            order = np.empty(len(reached), np.int64)
            order[sorted_] = np.arange(len(reached))
            known = reached
        at, codes = NONE, NONE
        for step in range(len(before), 0, -1):
            ending = lengths == step
            at, codes = (
                np.concatenate([at, pairs[ending]]),
                np.concatenate([codes, targets[ending]]),
            )
            nodes.append(_OnWays(at, np.full(len(at), step), self._number(codes)))
            reached, back = before[step - 1]
            previous = back[np.searchsorted(reached, codes)]
            level = levels[step - 1]
            rows, entries = _matching(codes, level.nodes)
            own = np.flatnonzero(level.befores[entries] == previous[rows])
            edges.append(_OnWays(at[rows[own]], np.full(len(own), step), level.edges[entries[own]]))
            codes = previous
        nodes.append(_OnWays(at, np.zeros(len(at), np.int64), self._number(codes)))

    def lists(self, found: _OnWays, kinds: Sequence[GraphType], *, once: bool) -> pa.Array:
        """The ids of each pair, by step and id. `once` keeps the first of each step."""
        if not len(found.pairs):
            empty = pa.array(np.zeros(len(self.starts) + 1, np.int32))
            return pa.ListArray.from_arrays(empty, pa.array([], pa.string()))
        ids = self.run.ids(kinds, found.numbers)
        types = np.zeros(len(ids), np.int64)
        for place, kind in enumerate(sorted(kinds, key=lambda kind: kind.name)):
            types[self.run.entities.of_type(kind, found.numbers)] = place
        order = np.lexsort([types, ranks(ids), found.steps, found.pairs])
        pairs, steps = found.pairs[order], found.steps[order]
        if once:
            new = np.ones(len(order), bool)
            new[1:] = (pairs[1:] != pairs[:-1]) | (steps[1:] != steps[:-1])
            order, pairs = order[new], pairs[new]
        offsets = np.searchsorted(pairs, np.arange(len(self.starts) + 1)).astype(np.int32)
        return pa.ListArray.from_arrays(pa.array(offsets), ids.take(pa.array(order)))


def _distinct(kinds: Sequence[GraphType]) -> list[GraphType]:
    return list({kind.table_key: kind for kind in kinds}.values())


def _matching(codes: np.ndarray, held: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """All pairs of places with the same code; those held are sorted."""
    low = np.searchsorted(held, codes)
    counts = np.searchsorted(held, codes, side="right") - low
    rows = np.repeat(np.arange(len(codes)), counts)
    shift = np.repeat(low - (np.cumsum(counts) - counts), counts)
    return rows, shift + np.arange(len(rows))


def _joined(parts: list[_OnWays]) -> _OnWays:
    none = _OnWays(NONE, NONE, NONE)
    every = [none, *parts]
    return _OnWays(
        np.concatenate([part.pairs for part in every]),
        np.concatenate([part.steps for part in every]),
        np.concatenate([part.numbers for part in every]),
    )
