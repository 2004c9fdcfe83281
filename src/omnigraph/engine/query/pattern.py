"""Owns running the steps of a pattern: each takes frames and yields frames, a bounded batch at a
time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np

from omnigraph.engine.query.distances import within
from omnigraph.engine.query.expand import CHUNK
from omnigraph.engine.query.frame import Frame, concat, merge_alike, rows_repeat
from omnigraph.engine.query.guard import Booking
from omnigraph.engine.query.hops import Reached, TypedHop
from omnigraph.engine.query.leaves import FrameLeaves
from omnigraph.engine.query.scan import find_by_key, scan_type
from omnigraph.errors import MemoryLimit
from omnigraph.lang.gq.checked import Expression, TextSearch, Traversal, Variable
from omnigraph.lang.gq.walk import used_variables
from omnigraph.plan.query import ROW, PatternPlan, Step
from omnigraph.plan.query.steps import (
    Check,
    Degrees,
    Expand,
    Keep,
    Optional,
    Scan,
    ScanEdges,
    Seek,
    Test,
)
from omnigraph.plan.values import holds

if TYPE_CHECKING:
    from omnigraph.engine.query.context import QueryContext

_FIRST: Final = 1024
_MERGE: Final = 1 << 16
_LOOSE: Final = 512
"""Up to this many rows are not merged: comparing them would take longer."""
_PRODUCT: Final = 500_000_000
_MERGING: Final = 4
"""While rows are merged they take this many times their size: codes, order, sums, rows."""


def run_pattern(run: QueryContext, plan: PatternPlan, start: Frame) -> Iterator[Frame]:
    """The rows of a pattern. It starts from rows that bind the variables it uses from outside."""
    frames: Iterator[Frame] = iter((start,))
    for step, after in zip(plan.steps, (*plan.steps[1:], None), strict=True):
        frames = run.observed(step, _apply(run, step, frames, after))
    return frames


def _apply(
    run: QueryContext, step: Step, frames: Iterator[Frame], after: Step | None
) -> Iterator[Frame]:
    match step:
        case Seek() | Scan():
            return _bind(run, step, frames)
        case ScanEdges():
            return _scan_edges(run, step, frames)
        case Expand():
            # Variables that the next step drops are not carried along.
            wanted = after.variables if isinstance(after, Keep) and not step.tests else None
            return _expand(run, step, frames, wanted)
        case Degrees():
            return _degrees(run, step, frames)
        case Check():
            return _check(run, step, frames)
        case Test(conditions=conditions):
            return _test(run, conditions, frames)
        case Keep(variables=variables):
            return _keep(run, variables, frames)
        case Optional(block=block):
            return _optional(run, block, frames)


# Beginning


def _bind(run: QueryContext, step: Seek | Scan, frames: Iterator[Frame]) -> Iterator[Frame]:
    with run.guard.booking() as booked:
        yield from _bound_to_each(run, step, frames, booked)


def _bound_to_each(
    run: QueryContext, step: Seek | Scan, frames: Iterator[Frame], booked: Booking
) -> Iterator[Frame]:
    """Combines every candidate with every row. The candidates are booked."""
    found: np.ndarray | None = None
    before = 0
    for frame in frames:
        if found is None:
            found = _candidates(run, step)
            booked.resize(found.nbytes)
        if not frame.rows or not len(found):
            continue
        if not run.is_lazy:  # it is known which columns will be needed
            _check_product(before + frame.rows, len(found))
        if frame.rows == 1:
            yield from _spread(run, frame, step.variable, found)
            before += 1
            continue
        rows = max(1, CHUNK // len(found))
        for start in range(0, frame.rows, rows):
            part = frame.slice(start, start + rows)
            before += part.rows
            _check_product(before, len(found))
            run.guard.fits(part.rows * len(found) * 8 * (len(part.columns) + 2))
            repeated = part.take(np.repeat(np.arange(part.rows), len(found)))
            yield _fitting(run, repeated.adding(step.variable.id, np.tile(found, part.rows)))


def _candidates(run: QueryContext, step: Seek | Scan) -> np.ndarray:
    variable = step.variable
    parts = []
    for kind in variable.kind.types:
        rows = run.entities.rows(kind)
        if isinstance(step, Seek):
            positions, tests = find_by_key(run, rows, step.key), step.tests
        else:
            positions, tests = scan_type(run, rows, variable, step.tests)
        numbers = positions + rows.base
        if tests and len(numbers):
            numbers = numbers[passing(run, tests, Frame({variable.id: numbers}, len(numbers)))]
        parts.append(numbers)
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _spread(
    run: QueryContext, frame: Frame, variable: Variable, found: np.ndarray
) -> Iterator[Frame]:
    """One row becomes many. Batches start small, so that a limit is reached soon."""
    start, size = 0, _FIRST if run.is_lazy else CHUNK
    while start < len(found):
        run.guard.check()
        numbers = found[start : start + size]
        repeated = frame if not frame.columns and frame.counts is None else None
        if repeated is None:
            repeated = frame.take(np.zeros(len(numbers), np.int64))
        grown = Frame(repeated.columns | {variable.id: numbers}, len(numbers), repeated.counts)
        yield _fitting(run, grown)
        start += size
        size = min(CHUNK, size * 4)


def _fitting(run: QueryContext, frame: Frame) -> Frame:
    if run.guard.memory_limit is not None:
        run.guard.fits(frame.nbytes)
    return frame


def _check_product(left: int, right: int) -> None:
    if left > 1 and left * right > _PRODUCT:
        raise MemoryLimit(
            f"Two parts of the pattern that nothing joins have {left:,} times {right:,} rows "
            "or more.",
            limit="rows",
            help="Join them by a traversal or a filter; lint calls this L203.",
        )


# Along edges


def _hops(run: QueryContext, traversal: Traversal, *, backward: bool) -> list[TypedHop]:
    here, there = traversal.source, traversal.target
    if backward:
        here, there = there, here
    return run.expander.legs_of(
        traversal, backward=backward, here=run.kinds(here), there=run.kinds(there)
    )


def _scan_edges(run: QueryContext, step: ScanEdges, frames: Iterator[Frame]) -> Iterator[Frame]:
    expand = step.expand
    traversal = expand.traversal
    assert traversal.edge is not None
    for frame in frames:
        hops = _hops(run, traversal, backward=expand.backward)
        found = run.expander.all_edges(hops[0]) if len(hops) == 1 and frame.rows == 1 else None
        if found is None:
            yield from _expand(run, expand, _bind(run, step.scan, iter((frame,))))
            continue
        for start in range(0, len(found.targets), CHUNK):
            run.guard.check()
            part = slice(start, start + CHUNK)
            numbers = found.targets[part]
            columns = {
                expand.start: found.places[part],
                expand.target.id: numbers,
                traversal.edge: found.edges[part] if found.edges is not None else numbers,
            }
            grown = frame.take(np.zeros(len(numbers), np.int64))
            grown = Frame(grown.columns | columns, len(numbers), grown.counts)
            if expand.tests:
                grown = grown.take(np.flatnonzero(passing(run, expand.tests, grown)))
            if grown.rows:
                yield grown


def _expand(
    run: QueryContext, step: Expand, frames: Iterator[Frame], wanted: frozenset[int] | None = None
) -> Iterator[Frame]:
    traversal = step.traversal
    for frame in frames:
        frame = _bound(run, frame, step.start)
        if not frame.rows:
            continue
        hops = _hops(run, traversal, backward=step.backward)
        for part, reached in _reached(run, frame, step.start, traversal, hops):
            left = part if wanted is None else part.only(wanted)
            grown = left.take(reached.places).adding(step.target.id, reached.targets)
            if traversal.edge is not None and reached.edges is not None:
                grown = grown.adding(traversal.edge, reached.edges)
            _fitting(run, grown)
            if step.target.id == step.start:
                grown = grown.take(np.flatnonzero(reached.targets == part.columns[step.start]))
            if step.tests:
                grown = grown.take(np.flatnonzero(passing(run, step.tests, grown)))
            if grown.rows:
                yield grown


def _reached(
    run: QueryContext, frame: Frame, start: int, traversal: Traversal, hops: Sequence[TypedHop]
) -> Iterator[tuple[Frame, Reached]]:
    """The neighbours of a frame's rows, a range of rows at a time."""
    numbers = frame.columns[start]
    if (traversal.low, traversal.high) == (1, 1):
        for low, high in run.expander.chunks(hops, numbers):
            part = frame if (low, high) == (0, frame.rows) else frame.slice(low, high)
            yield (
                part,
                run.expander.expand(hops, numbers[low:high], edges=traversal.edge is not None),
            )
        return
    kinds = run.kinds(start)
    end = traversal.source if start == traversal.target else traversal.target
    ends = run.kinds(end)
    strays = traversal.low == 0 and not {k.name for k in kinds} <= {k.name for k in ends}
    for reached in within(run, hops, numbers, kinds, traversal.low, traversal.high):
        if strays:  # distance 0 is the start itself, which may have another type
            fits = np.zeros(len(reached.targets), bool)
            for kind in ends:
                fits |= run.entities.of_type(kind, reached.targets)
            reached = Reached(reached.places[fits], reached.targets[fits], None)
        yield frame, reached


def _bound(run: QueryContext, frame: Frame, *variables: int) -> Frame:
    """The rows in which these variables are not null."""
    for variable in variables:
        if not run.plan.variables[variable].optional:
            continue
        numbers = frame.columns[variable]
        if len(numbers) and numbers.min() < 0:
            frame = frame.take(np.flatnonzero(numbers >= 0))
    return frame


def _degrees(run: QueryContext, step: Degrees, frames: Iterator[Frame]) -> Iterator[Frame]:
    edges = step.traversal.edge is not None
    for frame in frames:
        frame = _bound(run, frame, step.start)
        hops = _hops(run, step.traversal, backward=step.backward)
        if not hops or not frame.rows:
            continue
        counts = run.expander.degrees(hops[0], frame.columns[step.start], edges=edges)
        some = np.flatnonzero(counts)
        if len(some) < frame.rows:
            frame, counts = frame.take(some), counts[some]
        if frame.rows:
            yield frame.times(counts)


def _check(run: QueryContext, step: Check, frames: Iterator[Frame]) -> Iterator[Frame]:
    traversal = step.traversal
    for frame in frames:
        frame = _bound(run, frame, traversal.source, traversal.target)
        if not frame.rows:
            continue
        hops = _hops(run, traversal, backward=False)
        for kept in _joined(run, frame, traversal, hops):
            if step.tests and kept.rows:
                kept = kept.take(np.flatnonzero(passing(run, step.tests, kept)))
            if kept.rows:
                yield kept


def _joined(
    run: QueryContext, frame: Frame, traversal: Traversal, hops: Sequence[TypedHop]
) -> Iterator[Frame]:
    targets = frame.columns[traversal.target]
    single = (traversal.low, traversal.high) == (1, 1)
    if single and len(hops) == 1:
        pairs = run.expander.joined(hops[0], frame.columns[traversal.source], targets)
        if pairs is not None:
            places, edges = pairs
            if traversal.edge is None:
                yield frame.take(np.unique(places))
            else:
                yield frame.take(places).adding(traversal.edge, edges)
            return
    for part, reached in _reached(run, frame, traversal.source, traversal, hops):
        same = np.flatnonzero(part.columns[traversal.target][reached.places] == reached.targets)
        kept = part.take(reached.places[same])
        if traversal.edge is not None and reached.edges is not None:
            kept = kept.adding(traversal.edge, reached.edges[same])
        yield kept


# Conditions


def passing(run: QueryContext, tests: Sequence[Expression], frame: Frame) -> np.ndarray:
    """The rows that pass all tests."""
    mask: np.ndarray | None = None
    leaves = FrameLeaves(frame, run)
    for test in tests:
        passed = _passing_one(run, test, frame, leaves)
        mask = passed if mask is None else mask & passed
    return np.ones(frame.rows, bool) if mask is None else mask


def _passing_one(
    run: QueryContext, test: Expression, frame: Frame, leaves: FrameLeaves
) -> np.ndarray:
    used = used_variables(test)
    if isinstance(test, TextSearch):
        return run.searches.passing(test, leaves)
    if len(used) == 1:
        (variable,) = used
        numbers = frame.columns[variable]
        distinct = np.unique(numbers) if frame.rows > 4 * CHUNK // 8 else numbers
        if len(distinct) * 4 < frame.rows:  # many rows, few entities
            once = FrameLeaves(Frame({variable: distinct}, len(distinct)), run)
            known: np.ndarray = holds(test, once).to_numpy(zero_copy_only=False)
            return known[np.searchsorted(distinct, numbers)]
    found: np.ndarray = holds(test, leaves).to_numpy(zero_copy_only=False)
    return found


def _test(
    run: QueryContext, conditions: tuple[Expression, ...], frames: Iterator[Frame]
) -> Iterator[Frame]:
    for frame in frames:
        run.guard.check()
        if not frame.rows:
            continue
        kept = np.flatnonzero(passing(run, conditions, frame))
        if len(kept):
            yield frame if len(kept) == frame.rows else frame.take(kept)


# Counting


def _keep(run: QueryContext, variables: frozenset[int], frames: Iterator[Frame]) -> Iterator[Frame]:
    """Merges the rows so far whenever their number has doubled. The size is bounded by the number
    of distinct rows."""
    held: list[Frame] = []
    size, settled, loose = 0, 0, 0
    with run.guard.booking() as booked:
        for frame in frames:
            run.guard.check()
            few = bool(variables) and loose + frame.rows <= _LOOSE
            if not size and (few or not rows_repeat(frame, variables)):
                loose += frame.rows
                yield frame.only(variables)
                continue
            merged = merge_alike(frame, variables)
            held.append(merged)
            size += merged.rows
            booked.add(merged.nbytes)
            if size > max(_MERGE, 2 * settled):
                together = merge_alike(concat(held), variables)
                held, size, settled = [together], together.rows, together.rows
                booked.resize(together.nbytes)
                run.guard.fits((_MERGING - 1) * together.nbytes)
        if held:
            yield held[0] if len(held) == 1 else merge_alike(concat(held), variables)


# Optional blocks


def _optional(run: QueryContext, block: PatternPlan, frames: Iterator[Frame]) -> Iterator[Frame]:
    names = [variable.id for variable in block.brings]
    for frame in frames:
        run.guard.check()
        mark = min(ROW, *frame.columns, 0) - 1  # blocks may contain blocks
        numbered = frame.adding(mark, np.arange(frame.rows))
        found = np.zeros(frame.rows, bool)
        for part in run_pattern(run, block, numbered):
            found[part.columns[mark]] = True
            kept = {k: v for k, v in part.columns.items() if k in frame.columns or k in names}
            if part.rows:
                yield Frame(kept, part.rows, part.counts)
        rest = frame.take(np.flatnonzero(~found))
        for name in names:
            rest = rest.adding(name, np.full(rest.rows, -1, np.int64))
        if rest.rows:
            yield rest


def exists(run: QueryContext, plan: PatternPlan, start: Frame) -> np.ndarray:
    """Which of the numbered rows have a solution."""
    found = np.zeros(start.rows, bool)
    for part in run_pattern(run, plan, start):
        found[part.columns[ROW]] = True
        if found.all():
            break
    return found
