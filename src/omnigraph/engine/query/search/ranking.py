"""Owns which rows of a match can be among the best, before any of them is sorted.

A query that is ordered by a rank and has a limit needs only the best entities of one variable, and
those that tie with the last of them. Only these are asked for, instead of scoring every row.
Sorting the remaining rows follows all rules of order. `rrf` is decided here, too, because its ranks
depend on all rows of the match.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph.engine.query.frame import Frame, concat
from omnigraph.engine.query.guard import Booking
from omnigraph.engine.query.leaves import FrameLeaves
from omnigraph.engine.query.rows import TypeRows
from omnigraph.engine.query.search.searches import Searches, fixed_value, text_query
from omnigraph.engine.query.search.texts import Ranked
from omnigraph.lang.gq.checked import (
    Bm25,
    Expression,
    Nearest,
    OutputValue,
    PropertyValue,
    Rrf,
    TextSearch,
)
from omnigraph.lang.gq.walk import used_variables, walk
from omnigraph.model.analysis import analysis_of
from omnigraph.model.catalog import Property
from omnigraph.plan.query import Plan
from omnigraph.plan.query.logical import outputs
from omnigraph.plan.query.steps import Scan
from omnigraph.plan.values.codes import ranks, sort_rows
from omnigraph.store.text_search import AnyWord, TextQuery

if TYPE_CHECKING:
    from omnigraph.engine.query.context import QueryContext

WINDOW: Final = 1000
"""How many places each rank assigns within `rrf`."""
_OTHERS: Final = 8
"""As many entities as a search by index is worth for, each with a vector of its own."""
Rank = Nearest | Bm25


def deciding_rank(plan: Plan) -> Nearest | Bm25 | Rrf | None:
    """The rank that the rows are ordered by, best first, if there is a limit."""
    query = plan.query
    if query.group is not None or query.distinct or query.limit is None or not query.order:
        return None
    key = query.order[0]
    value = key.value
    if isinstance(value, OutputValue):
        value = query.columns[value.index].value
    match value:
        case Nearest(target=target, query=looked_for):
            others = used_variables(looked_for)
            fits = not key.descending and len(others) < 2 and target.variable not in others
        case Bm25(words=looked_for):
            fits = key.descending and not used_variables(looked_for)
        case Rrf():
            fits = key.descending
        case _:
            return None
    return value if fits else None


def fusions(plan: Plan) -> list[Rrf]:
    """Every `rrf` whose value is needed."""
    found = [part for value in outputs(plan.query) for part in walk(value)]
    return [part for part in found if isinstance(part, Rrf)]


def narrowed(plan: Plan) -> set[PropertyValue]:
    """The properties whose best are looked for among what the match leaves, not among all."""
    rank = deciding_rank(plan)
    legs = [leg for one in fusions(plan) for leg in one.ranks]
    if rank is not None and not isinstance(rank, Rrf):
        legs.append(rank)
    return set() if _is_whole(plan, rank) else {leg.target for leg in legs}


def best_rows(
    run: QueryContext, searches: Searches, frames: Iterator[Frame], wanted: int | None
) -> Iterator[Frame]:
    """The rows that can be among the first `wanted` ones (None: all), each as often as before."""
    plan = run.plan
    rank, legs = deciding_rank(plan), [leg for one in fusions(plan) for leg in one.ranks]
    if rank is None and not legs:
        yield from frames
        return
    if wanted == 0:
        return
    whole: Frame | None = None  # for every entity of the type
    with run.guard.booking() as booked:
        if not _is_whole(plan, rank):
            whole = _gathered(run, frames, booked)
            frames = iter(()) if whole is None else iter((whole,))
            if whole is None:
                searches.places |= dict.fromkeys(legs, _NOWHERE)
                return
        searches.places |= {leg: _places(run, searches, leg, whole) for leg in legs}
        best = None
        if isinstance(rank, Nearest) and used_variables(rank.query):
            if whole is not None and wanted is not None:
                frames = iter((_beside(run, searches, rank, wanted, whole),))
        elif rank is not None and wanted is not None:
            best = _best_entities(run, searches, rank, wanted, whole)
        if best is None:
            yield from frames
            return
        variable, numbers = best
        if whole is None:
            chosen = Frame({variable: numbers}, len(numbers))
        else:
            chosen = whole.take(np.flatnonzero(np.isin(whole.columns[variable], numbers)))
            whole, frames = None, iter(())
        booked.resize(chosen.nbytes)
        yield chosen


def _beside(
    run: QueryContext, searches: Searches, rank: Nearest, wanted: int, whole: Frame
) -> Frame:
    """The rows that can be the best where the vector is another entity's: for each of these, if
    they are few, the best beside it; all rows if too few have a distance."""
    (other,) = used_variables(rank.query)
    column, targets = whole.columns[other], whole.columns[rank.target.variable]
    others = np.unique(column)
    if len(others) > _OTHERS:
        return whole
    chosen = np.zeros(whole.rows, bool)
    for number in others.tolist():
        here = np.flatnonzero(column == number)
        among = np.unique(targets[here])
        leaves = FrameLeaves(whole.take(here[:1]), run)
        for rows, _, _, ranked in _best(run, searches, rank, wanted, among[among >= 0], leaves):
            chosen[here] |= np.isin(targets[here], ranked.positions + rows.base)
    return whole.take(np.flatnonzero(chosen)) if np.count_nonzero(chosen) >= wanted else whole


def _best_entities(
    run: QueryContext,
    searches: Searches,
    rank: Nearest | Bm25 | Rrf,
    wanted: int,
    whole: Frame | None,
) -> tuple[int, np.ndarray] | None:
    """A variable, and the numbers of entities that only the best rows have. None means that all
    rows may be among them, because too few have a rank."""
    if not isinstance(rank, Rrf):
        variable = rank.target.variable
        numbers = _best_numbers(run, searches, rank, wanted, _distinct(whole, variable))
    elif len({leg.target.variable for leg in rank.ranks}) > 1:
        return None
    else:
        variable = rank.ranks[0].target.variable
        numbers = np.unique(np.concatenate([searches.places[leg][0] for leg in rank.ranks]))
    return (variable, numbers) if len(numbers) >= wanted else None


_NOWHERE: Final = (np.array([], np.int64), np.array([], np.int64))


def _is_whole(plan: Plan, rank: Nearest | Bm25 | Rrf | None) -> bool:
    """Whether the match consists of all entities of one variable, or of all that the rank
    scores, where no `rrf` gives places among them."""
    steps = plan.pattern.steps
    if len(steps) != 1 or not isinstance(steps[0], Scan):
        return False
    tests = steps[0].tests
    if not tests:
        return True
    return (
        isinstance(rank, Bm25)
        and not fusions(plan)
        and all(_is_implied(test, rank) for test in tests)
    )


def _is_implied(test: Expression, rank: Bm25) -> bool:
    """Whether every row that the rank scores passes the test, because the test looks for the same
    words."""
    return (
        isinstance(test, TextSearch)
        and test.function == "search"
        and test.target == rank.target
        and test.words == rank.words
    )


def _gathered(run: QueryContext, frames: Iterator[Frame], booked: Booking) -> Frame | None:
    """All rows in one frame, which is booked."""
    held: list[Frame] = []
    for frame in frames:
        run.guard.check()
        if frame.rows:
            held.append(frame)
            booked.add(2 * frame.nbytes)  # once more when they are joined
    if not held:
        return None
    whole = concat(held)
    booked.resize(whole.nbytes)
    return whole


def _distinct(whole: Frame | None, variable: int) -> np.ndarray | None:
    """The distinct entities in the match, or None for all."""
    if whole is None:
        return None
    numbers = np.unique(whole.columns[variable])
    return numbers[numbers >= 0]


def _best(
    run: QueryContext,
    searches: Searches,
    rank: Rank,
    count: int,
    among: np.ndarray | None,
    leaves: FrameLeaves | None = None,
) -> Iterator[tuple[TypeRows, Property, TextQuery | None, Ranked]]:
    """For each type, the rows that contain its `count` best and all that tie with the last of
    these."""
    fixed = FrameLeaves(Frame({}, 1), run) if leaves is None else leaves
    looked_for = fixed_value(rank.query if isinstance(rank, Nearest) else rank.words, fixed)
    if looked_for is None:
        return
    for place, kind in enumerate(run.kinds(rank.target.variable)):
        rows, prop = run.entities.rows(kind), rank.target.properties[place]
        here = None
        if among is not None:
            here = among[run.entities.of_type(kind, among)] - rows.base
            if not len(here):
                continue
        if isinstance(rank, Nearest):
            vector = searches.vector(looked_for, prop)
            if vector is None:
                continue
            yield rows, prop, None, searches.vectors(rows, prop).ranked(vector, count, here)
            continue
        query = text_query("search", looked_for, None, analysis_of(prop))
        if isinstance(query, AnyWord):
            yield rows, prop, query, searches.texts(rows, prop).best(query, count, here)


def _best_numbers(
    run: QueryContext, searches: Searches, rank: Rank, wanted: int, among: np.ndarray | None
) -> np.ndarray:
    """Numbers of entities that include the best. If there are enough of them, the others are
    ignored, so their scores need not be known."""
    best = list(_best(run, searches, rank, wanted, among))
    if not best:
        return np.array([], np.int64)
    numbers = np.concatenate([ranked.positions + rows.base for rows, _, _, ranked in best])
    if len(numbers) < wanted:
        return numbers
    for rows, prop, query, ranked in best:
        if query is not None:
            searches.keep(rows, prop, query, ranked)
    values = np.concatenate([ranked.scores for _, _, _, ranked in best])
    if isinstance(rank, Bm25):
        values = -values
    last = np.partition(values, wanted - 1)[wanted - 1]
    return np.sort(numbers[values <= last])


def _places(
    run: QueryContext, searches: Searches, leg: Rank, whole: Frame | None
) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of entities, ascending, and the place that a rank gives each."""
    among = _distinct(whole, leg.target.variable)
    best = list(_best(run, searches, leg, WINDOW, among))
    if not best:
        return _NOWHERE
    numbers = np.concatenate([ranked.positions + rows.base for rows, _, _, ranked in best])
    values = np.concatenate([ranked.scores for _, _, _, ranked in best])
    kinds = run.kinds(leg.target.variable)
    distinct, value_ranks = np.unique(values, return_inverse=True)
    keys = [(value_ranks, isinstance(leg, Bm25))]
    if len(distinct) < len(values):
        keys.append((ranks(run.ids(kinds, numbers)), False))
    if len(kinds) > 1:
        names = sorted(kind.name for kind in kinds)
        owner = np.zeros(len(numbers), np.int64)
        for kind in kinds:
            owner[run.entities.of_type(kind, numbers)] = names.index(kind.name)
        keys.append((owner, False))
    chosen = sort_rows(keys, len(numbers))[:WINDOW]
    order = np.argsort(numbers[chosen])
    return numbers[chosen][order], order.astype(np.int64)
