"""Owns traversals of many hops: which entities lie within bounds of the shortest distance."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from omnigraph.engine.query.entities import NONE
from omnigraph.engine.query.hops import Reached, TypedHop
from omnigraph.errors import MemoryLimit
from omnigraph.lang.gq.checked import MOST_STEPS
from omnigraph.model.catalog import GraphType

if TYPE_CHECKING:
    from omnigraph.engine.query.context import QueryContext

_BITS = 1 << 25


def within(
    run: QueryContext,
    hops: Sequence[TypedHop],
    numbers: np.ndarray,
    kinds: Sequence[GraphType],
    low: int,
    high: int,
) -> Iterator[Reached]:
    """Entities whose shortest distance from those of some kinds lies between the bounds, each once
    for each start."""
    distinct, inverse = np.unique(numbers, return_inverse=True)
    rows = [side for hop in hops for side in (hop.here, hop.there)]
    rows += [run.entities.rows(kind) for kind in kinds]
    base = min(side.base for side in rows)
    span = max(1, max(side.base + side.capacity for side in rows) - base)
    step = max(1, _BITS // span)
    order = np.argsort(inverse, kind="stable")
    ordered = inverse[order]
    for start in range(0, len(distinct), step):
        starts = distinct[start : start + step]
        found = _distances(run, hops, starts, base, span, low, high)
        # From distinct starts back to the rows that have them.
        left = np.searchsorted(ordered, start)
        right = np.searchsorted(ordered, start + len(starts))
        mine = ordered[left:right] - start
        by_start = np.argsort(found.places, kind="stable")
        bounds = np.searchsorted(found.places[by_start], np.arange(len(starts) + 1))
        counts = (bounds[1:] - bounds[:-1])[mine]
        rows_of = np.repeat(np.arange(len(mine)), counts)
        shift = np.repeat(bounds[:-1][mine] - (np.cumsum(counts) - counts), counts)
        entries = by_start[shift + np.arange(len(rows_of))]
        places = order[left:right][rows_of]
        yield Reached(places, found.targets[entries], None)


def _distances(
    run: QueryContext,
    hops: Sequence[TypedHop],
    starts: np.ndarray,
    base: int,
    span: int,
    low: int,
    high: int,
) -> Reached:
    seen = np.zeros(len(starts) * span, bool)
    codes = np.arange(len(starts)) * span + (starts - base)
    seen[codes] = True
    found = [codes] if low == 0 else []
    for distance in range(1, high + 1):
        if not len(codes):
            break
        check_steps(distance)
        run.guard.check()
        reached = run.expander.expand(hops, codes % span + base, edges=False)
        origins = (codes // span)[reached.places]
        fresh = origins * span + (reached.targets - base)
        if distance == 1 and low == 1:
            loops = reached.targets == starts[origins]
            found.append(fresh[loops])
        fresh = _unique(fresh[~seen[fresh]], len(seen))
        seen[fresh] = True
        codes = fresh
        if distance >= low:
            found.append(codes)
    joined = np.concatenate([NONE, *found])
    return Reached(joined // span, joined % span + base, None)


def check_steps(distance: int) -> None:
    """Ends a search without a bound that does not come to an end."""
    if distance > MOST_STEPS:
        raise MemoryLimit(
            f"A way without an upper bound is longer than {MOST_STEPS:,} steps.",
            limit="steps",
            help="Give it a bound, such as {1,100}, or ask from fewer nodes.",
        )


def _unique(codes: np.ndarray, size: int) -> np.ndarray:
    if len(codes) * 16 < size:
        return np.unique(codes)
    marks = np.zeros(size, bool)
    marks[codes] = True
    return np.flatnonzero(marks)
