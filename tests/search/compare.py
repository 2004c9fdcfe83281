"""Owns how an answer is compared with the oracle's: rows, order, values, as far as promised."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any, Final

from tests.search.oracle import TIE, in_order
from tests.search.questions import Question, Rank, Rows

SCORE: Final = 1e-5
DISTANCE: Final = 1e-6
ROUNDING: Final = 1e-12
"""Sums that double precision cannot tell apart."""
Ranked = tuple[float | None, tuple[str, ...]]


def mismatch(
    question: Question, rows: Rows, found: Sequence[dict[str, Any]], *, exact: bool
) -> str | None:
    """Where an answer parts from the oracle's; None if it does not. While rows under a segment are
    dead (not `exact`) scores may differ, and with them the order, which then follows the scores."""
    wanted = question.answer(rows)
    names = sorted(question.pattern.variables)
    got = [tuple(row[name] for name in names) for row in found]
    by_ids = {ids: (key, values) for key, ids, values in wanted}
    assert len(by_ids) == len(wanted), "the oracle's rows are told apart by their ids"
    if len(set(got)) != len(got) or not set(got) <= by_ids.keys():
        return f"rows {sorted(map(str, got))}, expected {sorted(map(str, by_ids))}"
    left = max(len(wanted) - question.offset, 0)
    count = left if question.limit is None else min(left, question.limit)
    if len(got) != count:
        return f"{len(got)} rows, expected {count} of {sorted(map(str, by_ids))}"
    for ids, row in zip(got, found, strict=True):
        for place, rank in enumerate(question.ranks):
            value, want = row[f"s{place}"], by_ids[ids][1][place]
            if not _alike(rank, value, want, exact=exact):
                return f"{rank.text} of {ids} is {value}, expected {want}"
    if question.order is None:
        return None
    if question.order.counts and not exact:
        return _follows_itself(question, got, found, by_ids)
    ordered = in_order(
        [(key, _sortable(ids)) for key, ids, _ in wanted],
        descending=question.descending,
        tie=_tie(question.order),
    )
    shown = ordered[question.offset : question.offset + count]
    same = [ids for _, ids in shown] == [_sortable(ids) for ids in got]
    ranked = [(by_ids[ids][0], _sortable(ids)) for ids in got]
    if same or (question.order.text.startswith("rrf") and _rounded(shown, ranked)):
        return None
    return f"order {got}, expected {shown}"


def _rounded(shown: Sequence[Ranked], got: Sequence[Ranked]) -> bool:
    """Whether rows only changed places where sums differ by no more than rounding; equal ones
    still go by their ids."""
    for (wanted, _), (value, _) in zip(shown, got, strict=True):
        if wanted is None or value is None:
            if value is not wanted:
                return False
        elif abs(wanted - value) > ROUNDING:
            return False
    pairs = itertools.pairwise(got)
    return all(one[1] < other[1] for one, other in pairs if one[0] == other[0])


def _tie(rank: Rank) -> float:
    return TIE if rank.text.startswith("bm25") else 0.0


def _sortable(ids: tuple[Any, ...]) -> tuple[str, ...]:
    """Null comes first."""
    return tuple("" if one is None else one for one in ids)


def _alike(rank: Rank, value: Any, want: float | None, *, exact: bool) -> bool:
    if value is None or want is None:
        return value is want
    if not rank.counts:
        return math.isclose(value, want, rel_tol=DISTANCE, abs_tol=DISTANCE)
    if exact:
        return math.isclose(value, want, rel_tol=SCORE, abs_tol=0)
    return "rrf" in rank.text or (value > 0) is (want > 0)


def _follows_itself(
    question: Question,
    got: list[tuple[Any, ...]],
    found: Sequence[dict[str, Any]],
    by_ids: dict[tuple[Any, ...], Any],
) -> str | None:
    """What is ordered by a score that is also shown is in the order of what is shown."""
    assert question.order is not None
    missing = [by_ids[ids][0] is None for ids in got]
    if missing != sorted(missing):
        return f"rows without a rank are not last: {got}"
    if question.order not in question.ranks:
        return None
    column = f"s{question.ranks.index(question.order)}"
    shown = [(row[column], _sortable(ids)) for ids, row in zip(got, found, strict=True)]
    ordered = in_order(shown, descending=question.descending, tie=_tie(question.order))
    return None if shown == ordered else f"order {shown}, expected {ordered}"
