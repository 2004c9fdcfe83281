"""Owns the algorithms themselves, over arrays: the number of nodes, and the numbers of both ends of
each edge. Parallel edges count each time, except where neighbours are counted. Pure."""

from __future__ import annotations

from typing import Any

import numpy as np

Ints = np.ndarray[Any, np.dtype[np.int64]]
Floats = np.ndarray[Any, np.dtype[np.float64]]
UNREACHED = -1
_AT_ONCE = 4_000_000


def degrees(count: int, src: Ints) -> Ints:
    """How many edges leave each node."""
    return np.bincount(src, minlength=count).astype(np.int64)


def pagerank(
    count: int,
    src: Ints,
    dst: Ints,
    home: Ints | None = None,
    *,
    damping: float = 0.85,
    tolerance: float = 1e-10,
    rounds: int = 200,
) -> tuple[Floats, int]:
    """The share of time that a random walker spends on each node, and the number of rounds. From a
    node without outgoing edges the walker goes anywhere; with `home`, to one of these nodes, and so
    does one who leaves off following edges. The ranks add up to 1."""
    if not count:
        return np.zeros(0), 0
    begin = np.full(count, 1.0 / count)
    if home is not None:
        chosen = np.unique(home)
        begin = np.zeros(count)
        begin[chosen] = 1.0 / len(chosen)
    out = np.bincount(src, minlength=count)
    share = np.divide(1.0, out, out=np.zeros(count), where=out > 0)
    stuck = out == 0
    rank = begin
    for done in range(1, rounds + 1):
        flow = np.bincount(dst, weights=(rank * share)[src], minlength=count)
        new = damping * (flow + rank[stuck].sum() * begin) + (1.0 - damping) * begin
        change = float(np.abs(new - rank).sum())
        rank = new
        if change < tolerance:
            return rank, done
    return rank, rounds


def connected_components(count: int, src: Ints, dst: Ints) -> tuple[Ints, int]:
    """For each node the smallest node that it is connected to, in either direction. In each round a
    node, and the node that its label names, take the smallest label of the neighbours. Then every
    label is replaced by its own label, so long paths shrink by half."""
    labels = np.arange(count, dtype=np.int64)
    for done in range(1, count + 2):
        left, right = labels[src], labels[dst]
        low = np.minimum(left, right)
        new = labels.copy()
        np.minimum.at(new, left, low)
        np.minimum.at(new, right, low)
        while True:
            shorter = new[new]
            if np.array_equal(shorter, new):
                break
            new = shorter
        if np.array_equal(new, labels):
            return labels, done
        labels = new
    return labels, count + 1


def label_propagation(count: int, src: Ints, dst: Ints, *, rounds: int = 10) -> tuple[Ints, int]:
    """Communities. In each round all nodes at once take the most frequent label of their
    neighbours, the smallest one if several tie. A node without neighbours keeps its own. Two halves
    that only know each other may swap labels for ever, so the number of rounds is limited."""
    labels = np.arange(count, dtype=np.int64)
    for done in range(1, rounds + 1):
        keys = dst.astype(np.int64) * max(count, 1) + labels[src]
        pairs, votes = np.unique(keys, return_counts=True)
        node, label = pairs // max(count, 1), pairs % max(count, 1)
        order = np.lexsort((label, -votes, node))
        node, label = node[order], label[order]
        first = np.ones(len(node), dtype=bool)
        np.not_equal(node[1:], node[:-1], out=first[1:])
        new = labels.copy()
        new[node[first]] = label[first]
        if np.array_equal(new, labels):
            return labels, done
        labels = new
    return labels, rounds


def triangle_count(count: int, src: Ints, dst: Ints) -> Ints:
    """The number of triangles that each node is part of. Directions, parallel edges and loops do
    not count."""
    other = src != dst
    low, high = np.minimum(src, dst)[other], np.maximum(src, dst)[other]
    pairs = np.unique(low.astype(np.int64) * max(count, 1) + high)
    low, high = pairs // max(count, 1), pairs % max(count, 1)
    # From the node with fewer neighbours to the one with more, so that no node keeps many.
    size = np.bincount(low, minlength=count) + np.bincount(high, minlength=count)
    turned = (size[low] > size[high]) | ((size[low] == size[high]) & (low > high))
    here, there = np.where(turned, high, low), np.where(turned, low, high)
    keys = np.sort(here * max(count, 1) + there)
    here, there = keys // max(count, 1), keys % max(count, 1)
    starts = np.searchsorted(here, np.arange(count + 1))
    found = np.zeros(count, dtype=np.int64)
    ways = starts[there + 1] - starts[there]
    ends = np.cumsum(ways)
    begin = 0
    while begin < len(here):
        stop = int(np.searchsorted(ends, (ends[begin - 1] if begin else 0) + _AT_ONCE)) + 1
        stop = min(max(stop, begin + 1), len(here))
        part = slice(begin, stop)
        counts = ways[part]
        edge = np.repeat(np.arange(begin, stop), counts)
        offset = np.arange(len(edge)) - np.repeat(np.cumsum(counts) - counts, counts)
        third = there[starts[there[edge]] + offset]
        wanted = here[edge] * max(count, 1) + third
        place = np.searchsorted(keys, wanted)
        closed = keys[np.minimum(place, len(keys) - 1)] == wanted
        for corner in (here[edge], there[edge], third):
            found += np.bincount(corner[closed], minlength=count)
        begin = stop
    return found


def core_numbers(count: int, src: Ints, dst: Ints) -> tuple[Ints, int]:
    """For each node the largest k for which it is in a part of the graph where each node has k
    neighbours in that part. Directions, parallel edges and loops do not count. Nodes with too few
    neighbours are taken away until none is left."""
    other = src != dst
    low, high = np.minimum(src, dst)[other], np.maximum(src, dst)[other]
    pairs = np.unique(low.astype(np.int64) * max(count, 1) + high)
    low, high = pairs // max(count, 1), pairs % max(count, 1)
    here, there = np.concatenate([low, high]), np.concatenate([high, low])
    order = np.argsort(here, kind="stable")
    ends = there[order]
    starts = np.searchsorted(here[order], np.arange(count + 1))
    left = np.diff(starts)
    core = np.zeros(count, dtype=np.int64)
    living = np.arange(count)
    k, rounds = 0, 0
    while len(living):
        k = max(k, int(left[living].min()))
        gone = living[left[living] <= k]
        while len(gone):
            rounds += 1
            core[gone] = k
            left[gone] = -1
            counts = starts[gone + 1] - starts[gone]
            shift = np.repeat(starts[gone] - (np.cumsum(counts) - counts), counts)
            touched = ends[shift + np.arange(int(counts.sum()))]
            touched = touched[left[touched] >= 0]
            np.subtract.at(left, touched, 1)
            near = np.unique(touched)
            gone = near[left[near] <= k]
        living = living[left[living] >= 0]
    return core, rounds


def shortest_paths(count: int, src: Ints, dst: Ints, sources: Ints) -> tuple[Ints, int]:
    """The number of edges from the nearest source to each node, UNREACHED if there is no path."""
    distance = np.full(count, UNREACHED, dtype=np.int64)
    order = np.argsort(src, kind="stable")
    ends = dst[order]
    starts = np.searchsorted(src[order], np.arange(count + 1))
    frontier = np.unique(sources)
    distance[frontier] = 0
    far = 0
    while len(frontier):
        far += 1
        counts = starts[frontier + 1] - starts[frontier]
        shift = np.repeat(starts[frontier] - (np.cumsum(counts) - counts), counts)
        reached = np.unique(ends[shift + np.arange(int(counts.sum()))])
        frontier = reached[distance[reached] == UNREACHED]
        distance[frontier] = far
    return distance, far
