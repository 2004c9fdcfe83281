"""Owns what follows the match: groups, distinct rows, order, limit, and the result's batches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.query.frame import Frame, concat
from omnigraph.engine.query.leaves import FrameLeaves, entity_type
from omnigraph.engine.query.spill import Spill
from omnigraph.errors import InvalidParameters, ValueOutOfRange
from omnigraph.lang.gq.checked import (
    Aggregate,
    AggregateValue,
    Column,
    EdgeKind,
    EntityListKind,
    EntityValue,
    Expression,
    KeyValue,
    Kind,
    NodeKind,
    OutputValue,
    ParameterValue,
    Variable,
)
from omnigraph.lang.gq.walk import used_variables
from omnigraph.plan.query import Plan
from omnigraph.plan.query.logical import inner_patterns, pattern_variables
from omnigraph.plan.values import arrow_kind, evaluate_array
from omnigraph.plan.values.aggregates import aggregate, collect
from omnigraph.plan.values.codes import code_values, combine, ranks, sort_rows
from omnigraph.plan.values.kinds import Value

if TYPE_CHECKING:
    from omnigraph.engine.query.run import Run

_BATCH = 1 << 16


# The shape of the result


def column_type(kind: Kind) -> pa.DataType:
    if isinstance(kind, NodeKind | EdgeKind):
        return entity_type(kind)
    if isinstance(kind, EntityListKind):
        return pa.list_(pa.field("item", entity_type(kind.item), nullable=False))
    return arrow_kind(kind)


def result_schema(columns: Sequence[Column]) -> pa.Schema:
    return pa.schema(
        [
            pa.field(column.name, column_type(column.type.kind), nullable=column.type.nullable)
            for column in columns
        ]
    )


def schema_of(plan: Plan) -> pa.Schema:
    if plan.derived.schema is None:
        plan.derived.schema = result_schema(plan.query.columns)
    schema: pa.Schema = plan.derived.schema
    return schema


def amount(value: int | ParameterValue | None, run: Run, what: str) -> int | None:
    if not isinstance(value, ParameterValue):
        return value
    given: int | None = run.parameters[value.name]
    if given is not None and given < 0:
        raise InvalidParameters(f"${value.name} is {given}, and a {what} is not below zero.")
    return given


# From frames to batches


def batches(run: Run, plan: Plan, frames: Iterator[Frame]) -> Iterator[pa.RecordBatch]:
    query = plan.query
    offset = amount(query.offset, run, "offset") or 0
    limit = amount(query.limit, run, "limit")
    schema = schema_of(plan)
    if query.group is not None:
        held, rest = _some(run, frames)
        if rest is None:
            rows = _grouped(run, plan, concat(held) if held else None)
        else:
            rows = _grouped_by_duckdb(run, plan, chain(held, rest))
        yield from _finished(run, plan, rows, schema, offset, limit)
    elif query.distinct:
        yield from _finished(run, plan, _distinct(run, plan, frames), schema, offset, limit)
    elif query.order:
        for frame in _sorted(run, plan, frames, offset, limit):
            for start in range(0, frame.rows, _BATCH):
                yield _project(run, query.columns, frame.slice(start, start + _BATCH), schema)
    else:
        yield from _streamed(run, query.columns, frames, schema, offset, limit)


def _streamed(
    run: Run,
    columns: Sequence[Column],
    frames: Iterator[Frame],
    schema: pa.Schema,
    offset: int,
    limit: int | None,
) -> Iterator[pa.RecordBatch]:
    left = limit
    if left == 0:
        return
    for frame in frames:
        run.guard.check()
        frame = frame.expanded()
        if offset:
            skipped = min(offset, frame.rows)
            offset -= skipped
            frame = frame.slice(skipped, frame.rows)
        if left is not None:
            frame = frame.slice(0, min(left, frame.rows))
            left -= frame.rows
        for start in range(0, frame.rows, _BATCH):
            yield _project(run, columns, frame.slice(start, start + _BATCH), schema)
        if left == 0:
            return


def _project(
    run: Run, columns: Sequence[Column], frame: Frame, schema: pa.Schema
) -> pa.RecordBatch:
    leaves = FrameLeaves(frame, run)
    arrays = [
        shaped(evaluate_array(column.value, leaves), schema.field(i).type)
        for i, column in enumerate(columns)
    ]
    return _batch(arrays, schema, frame.rows)


def _batch(arrays: list[pa.Array], schema: pa.Schema, rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_struct_array(
        pa.StructArray.from_arrays(arrays, fields=list(schema))
        if arrays
        else pa.array([{}] * rows, pa.struct([]))
    )


def shaped(values: pa.Array, target: pa.DataType) -> pa.Array:
    if values.type == target:
        return values
    if pa.types.is_struct(target):
        fields = [target.field(i) for i in range(target.num_fields)]
        arrays = [values.field(i) for i in range(values.type.num_fields)]
        mask = values.is_null()
        return pa.StructArray.from_arrays(arrays, fields=fields, mask=mask)
    if pa.types.is_list(target):
        inner = shaped(values.flatten(), target.value_type)
        lengths = values.value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
        return pa.ListArray.from_arrays(offsets, inner, type=target, mask=values.is_null())
    return values.cast(target)


def _some(run: Run, frames: Iterator[Frame]) -> tuple[list[Frame], Iterator[Frame] | None]:
    """All frames, if their rows fit in memory; else the first ones and the rest."""
    held: list[Frame] = []
    rows = 0
    for frame in frames:
        run.guard.check()
        held.append(frame)
        rows += frame.rows
        if rows > run.rows_in_memory:
            return held, frames
        run.guard.fits(sum(part.nbytes for part in held))
    return held, None


# Groups


@dataclass
class Rows:
    """Rows of the result, before order and limit: a column each, as values or, for entities, as
    numbers that become objects at the end."""

    values: list[Value]
    rows: int


def _grouped(run: Run, plan: Plan, frame: Frame | None) -> Rows:
    group = plan.query.group
    assert group is not None
    if frame is None:
        frame = Frame({v.id: np.array([], np.int64) for v in plan.variables.values()}, 0)
        if group.keys:
            return Rows([_nothing(column) for column in plan.query.columns], 0)
    leaves = FrameLeaves(frame, run)
    codes, first = combine([_key_codes(run, key, frame) for key in group.keys], frame.rows)
    count = len(first) if group.keys else 1
    firsts = FrameLeaves(frame.take(first), run)
    keys = [_key_value(key, firsts) for key in group.keys]
    found: list[Value] = []
    for one in group.aggregates:
        if isinstance(one.argument, EntityValue):
            found.append(_of_entities(run, one, one.argument, frame, codes, count))
            continue
        values = _argument(run, one.argument, frame, leaves)
        counts = frame.counts
        result = aggregate(one.function, values, codes, count, counts, distinct=one.distinct)
        found.append(result)
    groups = GroupLeaves(keys, found, count)
    return Rows([_group_value(c.value, groups) for c in plan.query.columns], count)


def _grouped_by_duckdb(run: Run, plan: Plan, frames: Iterator[Frame]) -> Rows:
    group = plan.query.group
    assert group is not None
    lists = any(one.function == "collect" for one in group.aggregates)
    values = [*group.keys, *[one.argument for one in group.aggregates]]

    def batches() -> Iterator[list[pa.Array]]:
        for frame in frames:
            frame = frame.expanded() if lists else frame
            leaves = FrameLeaves(frame, run)
            arrays = [
                _numbers(value, frame)
                if isinstance(value, EntityValue)
                else _argument(run, value, frame, leaves)
                for value in values
            ]
            yield [*arrays, pa.array(frame.multiplicity)]

    wanted = [(one.function, one.distinct) for one in group.aggregates]
    columns = Spill(batches(), run.guard).group(len(group.keys), wanted)
    count = len(columns[0])
    keys = [
        _from_numbers(column)
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
    groups = GroupLeaves(keys, found, count)
    return Rows([_group_value(c.value, groups) for c in plan.query.columns], count)


def _numbers(value: EntityValue, frame: Frame) -> pa.Array:
    numbers = frame.columns[value.variable]
    return pa.array(numbers, mask=numbers < 0)


def _from_numbers(column: pa.Array) -> np.ndarray:
    numbers: np.ndarray = pc.fill_null(column, -1).to_numpy(zero_copy_only=False)
    return numbers.astype(np.int64)


def _fitting(one: Aggregate, column: pa.Array) -> pa.Array:
    """What duckdb computed in a wider type, in that of the result."""
    target = column_type(one.type.kind)
    try:
        return column.cast(target)
    except pa.ArrowInvalid:
        raise ValueOutOfRange(
            "A sum does not fit 64 bits.", help="Add floats instead: sum($x.p * 1.0)."
        ) from None


def _nothing(column: Column) -> Value:
    if isinstance(column.type.kind, NodeKind | EdgeKind):
        return np.array([], np.int64)
    return pa.array([], column_type(column.type.kind))


def _of_entities(
    run: Run,
    one: Aggregate,
    argument: EntityValue,
    frame: Frame,
    codes: np.ndarray,
    count: int,
) -> Value:
    numbers = frame.columns[argument.variable]
    values = pa.array(numbers, mask=numbers < 0)
    listed = aggregate(one.function, values, codes, count, frame.counts, distinct=one.distinct)
    if one.function == "count":
        return listed
    return _listed_objects(run, argument, listed)


def _listed_objects(run: Run, argument: EntityValue, listed: pa.Array) -> pa.Array:
    """Lists of numbers as lists of entities."""
    kind = argument.type.kind
    assert isinstance(kind, NodeKind | EdgeKind)
    objects = run.objects(kind, listed.values.to_numpy(zero_copy_only=False).astype(np.int64))
    held = shaped(objects, entity_type(kind))
    field = pa.field("item", held.type, nullable=False)
    return pa.ListArray.from_arrays(listed.offsets, held, type=pa.list_(field))


def _key_codes(run: Run, key: Expression, frame: Frame) -> tuple[np.ndarray, int]:
    if isinstance(key, EntityValue):
        distinct, inverse = np.unique(frame.columns[key.variable], return_inverse=True)
        return inverse, max(1, len(distinct))
    once = _once(run, key, frame)
    if once is None:
        return code_values(evaluate_array(key, FrameLeaves(frame, run)))
    values, places = once
    codes, size = code_values(values)
    return codes[places], size


def _argument(run: Run, value: Expression, frame: Frame, leaves: FrameLeaves) -> pa.Array:
    once = _once(run, value, frame)
    if once is None:
        return evaluate_array(value, leaves)
    values, places = once
    return values.take(pa.array(places))


def _once(run: Run, value: Expression, frame: Frame) -> tuple[pa.Array, np.ndarray] | None:
    """The value for each distinct entity, where that is cheaper than for each row: the values, and
    for each row where its value is."""
    used = used_variables(value)
    if len(used) != 1 or frame.rows < 4096 or any(inner_patterns(value)):
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
    """The keys and aggregates of groups, for what is computed from them."""

    def __init__(self, keys: Sequence[Value], found: Sequence[Value], rows: int) -> None:
        self._keys = keys
        self._found = found
        self.rows = rows

    def leaf(self, expression: Expression) -> Value:
        match expression:
            case KeyValue(index=index):
                return self._keys[index]
            case AggregateValue(index=index):
                return self._found[index]
            case _:
                raise TypeError(f"{type(expression).__name__} has no value in a group")


def _group_value(value: Expression, groups: GroupLeaves) -> Value:
    if isinstance(value, KeyValue | AggregateValue):
        return groups.leaf(value)
    return evaluate_array(value, groups)


# Distinct rows


def _distinct(run: Run, plan: Plan, frames: Iterator[Frame]) -> Rows:
    held: Rows | None = None
    parts = (_output_values(run, plan, frame) for frame in frames)
    for rows in parts:
        run.guard.check()
        held = _unique_rows(rows if held is None else _joined(held, rows))
        run.guard.fits(sum(value.nbytes for value in held.values))
        if held.rows > run.rows_in_memory:
            return _distinct_by_duckdb(run, plan, chain((held,), parts))
    if held is None:
        return Rows([_nothing(column) for column in plan.query.columns], 0)
    return held


def _distinct_by_duckdb(run: Run, plan: Plan, parts: Iterator[Rows]) -> Rows:
    batches = (
        [pa.array(v) if isinstance(v, np.ndarray) else v for v in part.values] for part in parts
    )
    columns = Spill(batches, run.guard).distinct()
    values: list[Value] = [
        _from_numbers(array)
        if isinstance(column.value, EntityValue)
        else array.cast(column_type(column.type.kind))
        for column, array in zip(plan.query.columns, columns, strict=True)
    ]
    return Rows(values, len(columns[0]))


def _output_values(run: Run, plan: Plan, frame: Frame) -> Rows:
    leaves = FrameLeaves(frame, run)
    values = [
        frame.columns[c.value.variable]
        if isinstance(c.value, EntityValue)
        else evaluate_array(c.value, leaves)
        for c in plan.query.columns
    ]
    return Rows(values, frame.rows)


def _joined(left: Rows, right: Rows) -> Rows:
    values = [
        np.concatenate([a, b]) if isinstance(a, np.ndarray) else pa.concat_arrays([a, b])
        for a, b in zip(left.values, right.values, strict=True)
    ]
    return Rows(values, left.rows + right.rows)


def _unique_rows(rows: Rows) -> Rows:
    parts = [
        code_values(pa.array(value) if isinstance(value, np.ndarray) else value)
        for value in rows.values
    ]
    _, first = combine(parts, rows.rows)
    return _take(rows, np.sort(first))


def _take(rows: Rows, indices: np.ndarray) -> Rows:
    values = [
        value[indices] if isinstance(value, np.ndarray) else value.take(pa.array(indices))
        for value in rows.values
    ]
    return Rows(values, len(indices))


# Order and limit


def _finished(
    run: Run, plan: Plan, rows: Rows, schema: pa.Schema, offset: int, limit: int | None
) -> Iterator[pa.RecordBatch]:
    """Orders result rows by result columns, ties by all columns in turn; cuts; makes objects."""
    query = plan.query
    stop = rows.rows if limit is None else min(rows.rows, offset + limit)
    if query.order:
        keys = [
            (_output_ranks(run, rows, query.columns, key.value.index), key.descending)
            for key in query.order
            if isinstance(key.value, OutputValue)
        ]
        order = sort_rows(keys, rows.rows)
        if _has_ties(keys, order):
            ties = [
                (_output_ranks(run, rows, query.columns, index), False)
                for index in range(len(query.columns))
            ]
            order = sort_rows([*keys, *ties], rows.rows)
        rows = _take(rows, order[offset:stop])
    elif offset or stop < rows.rows:
        rows = _take(rows, np.arange(offset, max(offset, stop)))
    arrays = []
    for index, column in enumerate(query.columns):
        value, kind = rows.values[index], column.type.kind
        if isinstance(value, np.ndarray) and isinstance(kind, NodeKind | EdgeKind):
            value = run.objects(kind, value)
        arrays.append(shaped(value, schema.field(index).type))
    whole = _batch(arrays, schema, rows.rows)
    for start in range(0, whole.num_rows, _BATCH):
        yield whole.slice(start, _BATCH)


def _output_ranks(run: Run, rows: Rows, columns: Sequence[Column], index: int) -> np.ndarray:
    value = rows.values[index]
    if isinstance(value, np.ndarray):
        kind = columns[index].type.kind
        assert isinstance(kind, NodeKind | EdgeKind)
        return ranks(run.ids(kind.types, value))
    return ranks(value)


def _has_ties(keys: Sequence[tuple[np.ndarray, bool]], order: np.ndarray) -> bool:
    if len(order) < 2:
        return False
    same = np.ones(len(order) - 1, bool)
    for rank, _ in keys:
        ordered = rank[order]
        same &= ordered[1:] == ordered[:-1]
    return bool(same.any())


def _sorted(
    run: Run, plan: Plan, frames: Iterator[Frame], offset: int, limit: int | None
) -> Iterator[Frame]:
    """Rows by the order keys, ties by the ids of the bound variables in the order of names."""
    wanted = None if limit is None else offset + limit
    held: list[Frame] = []
    size = 0
    for frame in frames:
        run.guard.check()
        held.append(frame.expanded())
        size += held[-1].rows
        if wanted is not None and size > max(4 * wanted, min(1 << 20, run.rows_in_memory)):
            best = _order(run, plan, concat(held)).slice(0, wanted)
            held, size = [best], best.rows
        if size > run.rows_in_memory:
            yield from _sorted_by_duckdb(run, plan, chain(held, frames), offset, limit)
            return
        run.guard.fits(sum(part.nbytes for part in held))
    if held:
        whole = _order(run, plan, concat(held))
        stop = whole.rows if wanted is None else min(whole.rows, wanted)
        yield whole.slice(min(offset, stop), stop)


def _sorted_by_duckdb(
    run: Run, plan: Plan, frames: Iterator[Frame], offset: int, limit: int | None
) -> Iterator[Frame]:
    named = _named(plan)
    first = next(frames)
    variables = list(first.columns)

    def batches() -> Iterator[list[pa.Array]]:
        for frame in chain((first,), frames):
            frame = frame.expanded()
            keys = _order_values(run, plan, frame)
            ties = [tie for v in named for tie in _ties(run, v, frame.columns[v.id])]
            yield [*[pa.array(frame.columns[v]) for v in variables], *keys, *ties]

    descending = [key.descending for key in plan.query.order]
    spill = Spill(batches(), run.guard)
    ties = sum(2 if len(v.kind.types) > 1 else 1 for v in named)
    for columns in spill.sort(len(variables), descending, ties, offset, limit):
        numbers = {v: column.to_numpy() for v, column in zip(variables, columns, strict=True)}
        yield Frame(numbers, len(columns[0]))


def _order(run: Run, plan: Plan, frame: Frame) -> Frame:
    values = _order_values(run, plan, frame)
    keys = [
        (ranks(value), key.descending) for value, key in zip(values, plan.query.order, strict=True)
    ]
    order = sort_rows(keys, frame.rows)
    if _has_ties(keys, order):
        order = sort_rows([*keys, *_id_ranks(run, plan, frame)], frame.rows)
    return frame.take(order)


def _order_values(run: Run, plan: Plan, frame: Frame) -> list[pa.Array]:
    leaves = FrameLeaves(frame, run)
    found = []
    for key in plan.query.order:
        value = key.value
        if isinstance(value, OutputValue):
            value = plan.query.columns[value.index].value
        found.append(_argument(run, value, frame, leaves))
    return found


def _named(plan: Plan) -> list[Variable]:
    named = [v for v in pattern_variables(plan.query.pattern) if v.name is not None]
    return sorted(named, key=lambda v: v.name or "")


def _id_ranks(run: Run, plan: Plan, frame: Frame) -> Iterator[tuple[np.ndarray, bool]]:
    for variable in _named(plan):
        numbers = frame.columns[variable.id]
        distinct, inverse = np.unique(numbers, return_inverse=True)
        for tie in _ties(run, variable, distinct):
            yield ranks(tie)[inverse], False


def _ties(run: Run, variable: Variable, numbers: np.ndarray) -> Iterator[pa.Array]:
    """What tells entities apart: their ids, and for the same id in two types the type's name."""
    yield run.ids(variable.kind.types, numbers)
    if len(variable.kind.types) > 1:
        names = sorted(kind.name for kind in variable.kind.types)
        place = np.full(len(numbers), -1, np.int64)
        for kind in variable.kind.types:
            place[run.entities.of_type(kind, numbers)] = names.index(kind.name)
        yield pa.array(place)


def pattern_aggregate(
    function: str,
    groups: np.ndarray,
    values: pa.Array | None,
    counts: np.ndarray | None,
    rows: int,
) -> pa.Array:
    """An aggregate over the solutions of a pattern, for each row that it was asked for."""
    if values is None:
        values = pa.array(groups)
    if function == "collect":
        return collect(values, groups, rows, counts)
    return aggregate(function, values, groups, rows, counts, distinct=False)
