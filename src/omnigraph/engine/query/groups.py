"""Owns groups: the rows of a match become one row for each key, in memory or by duckdb."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.engine.query.frame import Frame, concat, handed_over
from omnigraph.engine.query.guard import Booking
from omnigraph.engine.query.leaves import FrameLeaves, entity_type
from omnigraph.engine.query.shape import Rows, column_type, from_numbers, nothing_of, shaped
from omnigraph.engine.query.spill import Spill
from omnigraph.errors import ValueOutOfRange
from omnigraph.lang.gq.checked import (
    Aggregate,
    AggregateValue,
    Constant,
    EdgeKind,
    EntityValue,
    Expression,
    FunctionCall,
    KeyValue,
    NodeKind,
    ParameterValue,
)
from omnigraph.lang.gq.walk import used_variables
from omnigraph.plan.query import Plan
from omnigraph.plan.query.logical import inner_patterns
from omnigraph.plan.values import evaluate_array
from omnigraph.plan.values.aggregates import aggregate, tally
from omnigraph.plan.values.codes import code_values, combine
from omnigraph.plan.values.kinds import Value

if TYPE_CHECKING:
    from omnigraph.engine.query.context import QueryContext

_SAMPLE = 256
_PIECE = 1 << 16
_NUMBER = 8
_LONGEST = 2**31 - 1
_MARKS = 1 << 22
"""Bytes that may be spent on marking entities that were counted."""


def grouped_rows(run: QueryContext, plan: Plan, frames: Iterator[Frame], booked: Booking) -> Rows:
    """One row for each group. The rows are booked."""
    held, rest = _some(run, plan, frames, booked)
    if rest is None:
        rows = _grouped(run, plan, concat(held) if held else None)
        held.clear()
    else:
        booked.resize(0)  # duckdb takes them
        rows = _grouped_by_duckdb(run, plan, chain(handed_over(held), rest))
    booked.resize(rows.nbytes)
    return rows


def _some(
    run: QueryContext, plan: Plan, frames: Iterator[Frame], booked: Booking
) -> tuple[list[Frame], Iterator[Frame] | None]:
    """All frames, booked, if their rows fit in memory. Otherwise the first ones, and an iterator
    over the rest."""
    held: list[Frame] = []
    rows, size, cost, kept = 0, 0, 0, 0
    for frame in frames:
        run.guard.check()
        held.append(frame)
        rows += frame.rows
        if rows > run.rows_in_memory:
            return held, frames
        if run.guard.is_bounded and frame.rows:
            cost = cost or _group_cost(run, plan, frame)
            often = frame.total if _lists(plan) else frame.rows
            kept += 2 * frame.nbytes  # once more when they are joined
            size += cost * often
            if not booked.has_room(kept + size):
                return held, frames
            booked.resize(kept)
    return held, None


def _lists(plan: Plan) -> bool:
    assert plan.query.group is not None
    return any(one.function == "collect" for one in plan.query.group.aggregates)


def _group_cost(run: QueryContext, plan: Plan, frame: Frame) -> int:
    """The approximate size of a row until it is in its group."""
    group = plan.query.group
    assert group is not None
    return row_cost(run, [*group.keys, *[one.argument for one in group.aggregates]], frame)


def row_cost(run: QueryContext, values: Sequence[Expression], frame: Frame) -> int:
    """The approximate size of a row while these values of it are compared, estimated from the first
    rows: each value twice, with its code and its place."""
    head = frame.slice(0, min(_SAMPLE, frame.rows))
    leaves = FrameLeaves(head, run)
    size = 0
    for value in values:
        if isinstance(value, EntityValue):
            size += _NUMBER * head.rows
        else:
            size += evaluate_array(value, leaves).nbytes
    return 2 * size // head.rows + 3 * _NUMBER * (len(values) + 1)


def _grouped(run: QueryContext, plan: Plan, frame: Frame | None) -> Rows:
    group = plan.query.group
    assert group is not None
    if frame is None:
        frame = Frame({v.id: np.array([], np.int64) for v in plan.variables.values()}, 0)
        if group.keys:
            return Rows([nothing_of(column) for column in plan.query.columns], 0)
    leaves = FrameLeaves(frame, run)
    codes, first = combine([_key_codes(run, key, frame) for key in group.keys], frame.rows)
    count = len(first) if group.keys else 1
    keys: list[Value] = []
    if group.keys:
        firsts = FrameLeaves(frame.take(first), run)
        keys = [_key_value(key, firsts) for key in group.keys]
    found: list[Value] = []
    with run.guard.booking() as booked:
        for one in group.aggregates:
            found.append(_aggregated(run, one, frame, leaves, codes, count))
            booked.add(found[-1].nbytes)
    groups = GroupLeaves(run, keys, found, count)
    return Rows([_group_value(c.value, groups) for c in plan.query.columns], count)


def _aggregated(
    run: QueryContext,
    one: Aggregate,
    frame: Frame,
    leaves: FrameLeaves,
    codes: np.ndarray,
    count: int,
) -> Value:
    if isinstance(one.argument, EntityValue):
        return _of_entities(run, one, one.argument, frame, codes, count)
    if _counts_rows(one):
        return pa.array(tally(codes, count, frame.counts))
    values = argument_values(run, one.argument, frame, leaves)
    if one.function == "collect":
        _check_list(run, frame, values)
    return aggregate(one.function, values, codes, count, frame.counts, distinct=one.distinct)


def _check_list(run: QueryContext, frame: Frame, values: pa.Array) -> None:
    """Checks the size before every value is repeated as often as its row occurs."""
    if frame.total > _LONGEST:
        raise ValueOutOfRange(
            f"`collect` has {frame.total:,} values here, and {_LONGEST:,} are the most.",
            help="Collect fewer: filter, or group by more.",
        )
    a_row = values.nbytes // max(1, frame.rows)
    run.guard.fits(frame.total * (2 * a_row + 3 * _NUMBER))


def _counts_rows(one: Aggregate) -> bool:
    """Whether it counts a value that is the same in every row and not null."""
    constant = isinstance(one.argument, Constant) and one.argument.value is not None
    return constant and one.function == "count" and not one.distinct


def _grouped_by_duckdb(run: QueryContext, plan: Plan, frames: Iterator[Frame]) -> Rows:
    group = plan.query.group
    assert group is not None
    lists = _lists(plan)
    values = [*group.keys, *[one.argument for one in group.aggregates]]

    def batches() -> Iterator[list[pa.Array]]:
        for frame in _apart(frames, lists=lists):
            leaves = FrameLeaves(frame, run)
            arrays = [
                _numbers(value, frame)
                if isinstance(value, EntityValue)
                else argument_values(run, value, frame, leaves)
                for value in values
            ]
            yield [*arrays, pa.array(frame.multiplicity)]

    wanted = [(one.function, one.distinct) for one in group.aggregates]
    columns = Spill(batches(), run.guard).group(len(group.keys), wanted)
    count = len(columns[0])
    keys = [
        from_numbers(column)
        if isinstance(key, EntityValue)
        else column.cast(column_type(key.type.kind))
        for key, column in zip(group.keys, columns, strict=False)
    ]
    found: list[Value] = []
    for one, column in zip(group.aggregates, columns[len(group.keys) :], strict=True):
        if isinstance(one.argument, EntityValue) and one.function == "collect":
            found.append(_listed_objects(run, one.argument, column))
        else:
            found.append(_fitting(one, column))
    groups = GroupLeaves(run, keys, found, count)
    return Rows([_group_value(c.value, groups) for c in plan.query.columns], count)


def _apart(frames: Iterator[Frame], *, lists: bool) -> Iterator[Frame]:
    """Few rows at a time, because the values are larger than numbers; rows of lists are
    repeated."""
    for frame in frames:
        if lists:
            yield from frame.pieces(_PIECE)
            continue
        for start in range(0, frame.rows, _PIECE):
            yield frame.slice(start, start + _PIECE)


def _numbers(value: EntityValue, frame: Frame) -> pa.Array:
    numbers = frame.columns[value.variable]
    return pa.array(numbers, mask=numbers < 0)


def _fitting(one: Aggregate, column: pa.Array) -> pa.Array:
    """Converts what duckdb computed in a wider type to the type of the result."""
    target = column_type(one.type.kind)
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        raise ValueOutOfRange(
            "A sum does not fit 64 bits.", help="Add floats instead: sum($x.p * 1.0)."
        ) from None


def _of_entities(
    run: QueryContext,
    one: Aggregate,
    argument: EntityValue,
    frame: Frame,
    codes: np.ndarray,
    count: int,
) -> Value:
    numbers = frame.columns[argument.variable]
    if one.function == "count" and one.distinct:
        return pa.array(_distinct_entities(numbers, codes, count))
    values = pa.array(numbers, mask=numbers < 0)
    if one.function == "collect":
        _check_list(run, frame, values)
    listed = aggregate(one.function, values, codes, count, frame.counts, distinct=one.distinct)
    if one.function == "count":
        return listed
    return _listed_objects(run, argument, listed)


def _distinct_entities(numbers: np.ndarray, codes: np.ndarray, count: int) -> np.ndarray:
    """How many distinct entities each group has."""
    if len(numbers) and int(numbers.min()) < 0:
        there = np.flatnonzero(numbers >= 0)
        numbers, codes = numbers[there], codes[there]
    if not len(numbers):
        return np.zeros(count, np.int64)
    low = int(numbers.min())
    span = int(numbers.max()) - low + 1
    pairs = codes * span + (numbers - low)
    if span * count <= _MARKS:
        marks = np.zeros(span * count, bool)
        marks[pairs] = True
        found: np.ndarray = np.count_nonzero(marks.reshape(count, span), axis=1)
        return found
    return np.bincount(np.unique(pairs) // span, minlength=count)


def _listed_objects(run: QueryContext, argument: EntityValue, listed: pa.Array) -> pa.Array:
    """Turns lists of numbers into lists of entities."""
    kind = argument.type.kind
    assert isinstance(kind, NodeKind | EdgeKind)
    objects = run.objects(kind, listed.values.to_numpy(zero_copy_only=False).astype(np.int64))
    held = shaped(objects, entity_type(kind))
    field = pa.field("item", held.type, nullable=False)
    return pa.ListArray.from_arrays(listed.offsets, held, type=pa.list_(field))


def _key_codes(run: QueryContext, key: Expression, frame: Frame) -> tuple[np.ndarray, int]:
    if isinstance(key, EntityValue):
        distinct, inverse = np.unique(frame.columns[key.variable], return_inverse=True)
        return inverse, max(1, len(distinct))
    once = _once(run, key, frame)
    if once is None:
        return code_values(evaluate_array(key, FrameLeaves(frame, run)))
    values, places = once
    codes, size = code_values(values)
    return codes[places], size


def argument_values(
    run: QueryContext, value: Expression, frame: Frame, leaves: FrameLeaves
) -> pa.Array:
    """The value in each row. With a memory limit the size is checked while values are made, because
    the length of texts is not known before."""
    if not run.guard.is_bounded or frame.rows <= _PIECE:
        found = _values(run, value, frame, leaves)
        run.guard.fits(found.nbytes)
        return found
    parts: list[pa.Array] = []
    size = 0
    for start in range(0, frame.rows, _PIECE):
        part = frame.slice(start, start + _PIECE)
        parts.append(_values(run, value, part, FrameLeaves(part, run)))
        size += parts[-1].nbytes
        run.guard.fits(2 * size)  # the parts, and then the whole
    return pa.concat_arrays(parts)


def _values(run: QueryContext, value: Expression, frame: Frame, leaves: FrameLeaves) -> pa.Array:
    once = _once(run, value, frame)
    if once is None:
        return evaluate_array(value, leaves)
    values, places = once
    return values.take(pa.array(places))


def _once(run: QueryContext, value: Expression, frame: Frame) -> tuple[pa.Array, np.ndarray] | None:
    """Computes the value once for each distinct entity, where that is cheaper than once for each
    row. Returns the values, and for each row the index of its value."""
    if frame.rows < 4096:
        return None
    used = used_variables(value)
    if len(used) != 1 or any(inner_patterns(value)):
        return None
    (variable,) = used
    numbers = frame.columns[variable]
    low = int(numbers.min())
    span = int(numbers.max()) - low + 1
    if span * 2 > frame.rows:
        return None
    there = np.zeros(span, bool)
    there[numbers - low] = True
    distinct = np.flatnonzero(there)
    places = np.cumsum(there) - 1
    small = Frame({variable: distinct + low}, len(distinct))
    return evaluate_array(value, FrameLeaves(small, run)), places[numbers - low]


def _key_value(key: Expression, firsts: FrameLeaves) -> Value:
    if isinstance(key, EntityValue):
        return firsts.frame.columns[key.variable]
    return evaluate_array(key, firsts)


class GroupLeaves:
    """The keys and aggregates of groups, for expressions over them. Parameters and the time are
    the same for all groups."""

    def __init__(
        self, run: QueryContext, keys: Sequence[Value], found: Sequence[Value], rows: int
    ) -> None:
        self._fixed = FrameLeaves(Frame({}, rows), run)
        self._keys = keys
        self._found = found
        self.rows = rows

    def leaf(self, expression: Expression) -> Value:
        match expression:
            case KeyValue(index=index):
                return self._keys[index]
            case AggregateValue(index=index):
                return self._found[index]
            case ParameterValue() | FunctionCall():
                return self._fixed.leaf(expression)
            case _:
                raise TypeError(f"{type(expression).__name__} has no value in a group")


def _group_value(value: Expression, groups: GroupLeaves) -> Value:
    if isinstance(value, KeyValue | AggregateValue):
        return groups.leaf(value)
    return evaluate_array(value, groups)


def pattern_aggregate(
    function: str,
    groups: np.ndarray,
    values: pa.Array | None,
    counts: np.ndarray | None,
    rows: int,
) -> pa.Array:
    """An aggregate over the solutions of a pattern, for each row that it belongs to."""
    if values is None:
        values = pa.array(groups)
    return aggregate(function, values, groups, rows, counts, distinct=False)
