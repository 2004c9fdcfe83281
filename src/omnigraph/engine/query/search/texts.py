"""Owns finding the rows of one type by the words of a property, wherever the index is.

Rows of a table version are searched through its index segments. Rows that no segment covers, and
rows that are pending in a transaction, are searched through a scratch index in memory, which splits
and scores texts as the segments do. So matches and scores are the same either way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np
import pyarrow as pa

from omnigraph.engine.query.guard import Guard
from omnigraph.engine.query.rows import TypeRows
from omnigraph.model.analysis import Analysis
from omnigraph.plan.query.explain import counted
from omnigraph.store.tables import Table
from omnigraph.store.text_search import (
    TEXT,
    AnyWord,
    Coverage,
    Fuzzy,
    TextQuery,
    allow_addresses,
    allow_fragments,
    build_scratch,
    coverage,
    find_texts,
)
from omnigraph.telemetry import Ledger

_SAME: Final = 2e-6
"""Scores with a smaller relative difference count as equal: the way Lance adds up words in single
precision differs by about a tenth of this."""
_MORE: Final = 8
_SCRATCH: Final = 4
"""The approximate size of a scratch index, as a multiple of the texts' size."""


@dataclass(frozen=True)
class Scratch:
    """`places` holds the position of each of its texts among the rows of the type. `nbytes` is its
    approximate size."""

    table: Table
    places: np.ndarray
    nbytes: int


@dataclass(frozen=True)
class Ranked:
    """Positions of rows, ascending, and their scores."""

    positions: np.ndarray
    scores: np.ndarray

    @property
    def nbytes(self) -> int:
        return self.positions.nbytes + self.scores.nbytes

    def scores_at(self, positions: np.ndarray) -> np.ndarray:
        """The scores of given rows, 0 for those that are not here."""
        if not len(self.positions):
            return np.zeros(len(positions))
        where = self._places(positions)
        return np.where(self.positions[where] == positions, self.scores[where], 0.0)

    def holds(self, positions: np.ndarray) -> bool:
        """Whether all given rows are here."""
        if not len(self.positions):
            return not len(positions)
        return bool((self.positions[self._places(positions)] == positions).all())

    def _places(self, positions: np.ndarray) -> np.ndarray:
        return np.minimum(np.searchsorted(self.positions, positions), len(self.positions) - 1)


class Texts:
    """The words of one property of one type."""

    def __init__(self, rows: TypeRows, name: str, analysis: Analysis, guard: Guard) -> None:
        self._rows = rows
        self._name = name
        self._analysis = analysis
        self._guard = guard
        self._column = rows.view.column_of(name)
        self._tails: dict[tuple[int, ...], Scratch] = {}
        self.scored = False
        """Whether a score was asked for."""
        self.narrowed = False
        """Whether the best will be looked for among what a match leaves."""
        self.among: int | None = None
        """How many candidates the best were looked for among, where not among all."""

    @cached_property
    def _coverage(self) -> Coverage | None:
        """None if a scratch index answers for everything."""
        if not self._rows.is_plain:
            return None
        return coverage(self._rows.view.table, self._column, self._analysis)

    @property
    def how(self) -> str:
        """By what means questions are answered, for `explain`."""
        return self._means + told_among(self.among, narrowed=self.narrowed)

    @property
    def _means(self) -> str:
        if self._is_mixed and not self.scored:
            pending = self._rows.capacity - self._rows.stored
            return f"{self._stored.how}, and {counted(pending, 'pending row')}"
        found = self._coverage
        if found is None:
            return "scratch index in memory"
        if not found.tail:
            return "index"
        rows = sum(self._rows.view.table.marks[n].rows for n in found.tail)
        return f"index, and {counted(rows, 'row')} that it does not cover yet"

    @property
    def _is_mixed(self) -> bool:
        """Whether rows are pending beside stored ones that can be asked on their own."""
        return not self._rows.is_plain and not self._rows.view.overlay.replaced

    @cached_property
    def _stored(self) -> Texts:
        return Texts(self._rows.with_nothing_pending(), self._name, self._analysis, self._guard)

    def matching(self, query: TextQuery) -> np.ndarray:
        """The positions of all rows that answer, ascending."""
        if not self._is_mixed:
            return self.all(query).positions
        stored = self._stored.all(query).positions
        stored = stored[np.isin(stored, self._rows.live)]
        if self._rows.capacity == self._rows.stored:
            return stored
        pending, _ = self._ask_scratch(self._pending, query, None, None)
        return np.concatenate([stored, np.sort(pending)])

    def all(self, query: TextQuery) -> Ranked:
        """Every row that matches."""
        self.scored = True
        positions, scores = self._asked(query, None, None)
        order = np.argsort(positions)
        return Ranked(positions[order], settled(scores)[order])

    def best(self, query: AnyWord, count: int, among: np.ndarray | None) -> Ranked:
        """At least this many of the best rows, with all that tie with the last of them, and fewer
        if no more match. `among` restricts the search to these positions."""
        self.scored = True
        if among is not None and len(among) == self._rows.count:
            among = None
        self.among = None if among is None else len(among)
        limit = 2 * count + 10
        while True:
            positions, scores = self._asked(query, among, limit)
            order = np.argsort(-scores, kind="stable")
            positions, scores = positions[order], settled(scores[order])
            if len(scores) < limit:
                break
            # The last group may go on beyond the limit.
            kept = int(np.searchsorted(-scores, -scores[-1], side="left"))
            if kept >= count:
                positions, scores = positions[:kept], scores[:kept]
                break
            limit *= _MORE
        order = np.argsort(positions)
        return Ranked(positions[order], scores[order])

    def _asked(
        self, query: TextQuery, among: np.ndarray | None, limit: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        self._guard.check()
        found = self._coverage
        if found is None:
            scratch = self._scratch
            return self._ask_scratch(scratch, query, among, limit)
        if not self._rows.view.table.marks:
            return np.array([], np.int64), np.array([], np.float64)
        table, ledger = self._rows.view.table, self._rows.ledger
        if among is None:
            allowed = allow_fragments(found.indexed + found.tail)
        else:
            allowed = allow_addresses(self._rows.addresses_of(among))
        hits = find_texts(
            table, self._column, query, allowed, ledger, limit=limit, has_tail=bool(found.tail)
        )
        positions = self._rows.positions_of(hits.addresses)
        scores = hits.scores.astype(np.float64)
        if isinstance(query, Fuzzy) and found.tail:
            more, beside = self._ask_scratch(self._tail(found.tail), query, among, limit)
            positions = np.concatenate([positions, more])
            scores = np.concatenate([scores, beside])
        return positions, scores

    # Scratch: booked by every query that uses one, whoever built it

    def _ask_scratch(
        self, scratch: Scratch, query: TextQuery, among: np.ndarray | None, limit: int | None
    ) -> tuple[np.ndarray, np.ndarray]:
        places = scratch.places
        if among is None:
            allowed = allow_fragments([0])
        else:
            allowed = allow_addresses(np.flatnonzero(np.isin(places, among)).astype(np.uint64))
        hits = find_texts(scratch.table, TEXT, query, allowed, Ledger(), limit=limit)
        return places[hits.addresses.astype(np.int64)], hits.scores.astype(np.float64)

    @cached_property
    def _scratch(self) -> Scratch:
        return self._kept("scratch", lambda: self._rows.live)

    @cached_property
    def _pending(self) -> Scratch:
        rows = self._rows
        return self._kept("pending", lambda: np.arange(rows.stored, rows.capacity, dtype=np.int64))

    def _kept(self, what: str, places: Callable[[], np.ndarray]) -> Scratch:
        """A scratch index that lasts as long as nothing else is written."""
        found: Scratch = self._rows.remember_with_pending(
            (self._column, self._analysis.name, what), lambda: self._built(places())
        )
        self._guard.hold(found.nbytes)
        return found

    def _tail(self, fragments: tuple[int, ...]) -> Scratch:
        if fragments in self._tails:
            return self._tails[fragments]
        key = (self._column, self._analysis.name, "scratch", fragments)

        def build() -> tuple[Scratch, int]:
            live = self._rows.live
            ordinals = np.searchsorted(self._rows.starts, live, side="right") - 1
            numbers = np.array([mark.id for mark in self._rows.marks], np.int64)
            return self._built(live[np.isin(numbers[ordinals], fragments)])

        found: Scratch = self._rows.remember(key, build)
        self._guard.hold(found.nbytes)
        self._tails[fragments] = found
        return found

    def _built(self, places: np.ndarray) -> tuple[Scratch, int]:
        texts: pa.Array = self._rows.take(self._name, places)
        size = _SCRATCH * texts.nbytes + places.nbytes
        self._guard.fits(size)
        return Scratch(build_scratch(texts, self._analysis), places, size), size


def told_among(among: int | None, *, narrowed: bool) -> str:
    """Of how many candidates, for `explain`."""
    if among is not None:
        return f", among {counted(among, 'candidate')}"
    return ", among what the match leaves" if narrowed else ""


def settled(scores: np.ndarray) -> np.ndarray:
    """The scores, with one value for those that differ by no more than rounding."""
    if not len(scores):
        return scores
    order = np.argsort(-scores, kind="stable")
    falling = scores[order]
    begins = np.concatenate([[True], falling[1:] < falling[:-1] * (1 - _SAME)])
    groups = np.cumsum(begins) - 1
    result = np.empty(len(scores))
    result[order] = falling[begins][groups]
    return result
