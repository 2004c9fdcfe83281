"""Owns the versions from which a writer can continue, and which pairs of them to compare. Pure.

Any two of them may be merged one day, but most pairs reveal nothing new. If one version of a pair
contains the other, the base is the contained one. On two chains that merge each other, only
versions made side by side remain, and these follow each other in the order of both. Branches that
took in nothing but what they were forked from share what the older fork has.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterator

from omnigraph.model.version import GraphVersion, chain_key

_Chains = dict[str, list[GraphVersion]]


class Points:
    """Those with one origin and nothing else are kept apart by it, the others below None."""

    def __init__(self) -> None:
        self._seen: dict[tuple[str, tuple[tuple[str, int], ...]], int] = {}
        self._by_origin: dict[str | None, _Chains] = {}
        self._newest: dict[str, GraphVersion] = {}

    def add(self, point: GraphVersion) -> bool:
        """Whether it may have other bases than those that are known. Where versions of one chain
        took in the same of other chains, the newest represents them all: the older ones are in
        its past."""
        chain, taken_in = chain_key(point), tuple(sorted(point.ancestry.items()))
        if self._seen.get((chain, taken_in), 0) >= point.version:
            return False
        self._seen[chain, taken_in] = point.version
        chains = self._by_origin.setdefault(_only_origin(point), {})
        insort(chains.setdefault(chain, []), point, key=_number)
        return True

    def beside(self, point: GraphVersion) -> Iterator[GraphVersion]:
        """Those on other chains that neither contain the point, which was added, nor are
        contained in it. Where several share only one origin with it, this gives the one that
        contains most of that origin."""
        own, origin = chain_key(point), _only_origin(point)
        if origin is not None:
            newest = self._newest.get(origin)
            if newest is not None and chain_key(newest) != own:
                yield newest
            if newest is None or newest.ancestry[origin] <= point.ancestry[origin]:
                self._newest[origin] = point
        for other, chains in self._by_origin.items():
            if other is None or other != origin:
                for name, some in chains.items():
                    if name != own:
                        yield from _concurrent(point, own, name, some)


def _concurrent(
    point: GraphVersion, own: str, name: str, some: list[GraphVersion]
) -> Iterator[GraphVersion]:
    """The versions of another chain, oldest first, that come after what the point contains of
    it, and before the first version that contains the point."""
    low = bisect_right(some, point.ancestry.get(name, 0), key=_number)
    high = bisect_left(some, point.version, key=lambda one: one.ancestry.get(own, 0))
    return iter(some[low:high])


def _only_origin(point: GraphVersion) -> str | None:
    return next(iter(point.ancestry)) if len(point.ancestry) == 1 else None


def _number(point: GraphVersion) -> int:
    return point.version
