"""Owns order: rows of a match by keys and ties, rows of a result by its columns, and offset and
limit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.engine.query.expand import CHUNK
from omnigraph.engine.query.frame import Frame, concat, handed_over
from omnigraph.engine.query.groups import argument_values, row_cost
from omnigraph.engine.query.leaves import FrameLeaves
from omnigraph.engine.query.shape import Rows, batch_of, shaped, take_rows
from omnigraph.engine.query.spill import Spill
from omnigraph.lang.gq.checked import (
    RANKS,
    Column,
    EdgeKind,
    Expression,
    KeyValue,
    NodeKind,
    OutputValue,
    Variable,
)
from omnigraph.model.catalog import GraphType
from omnigraph.plan.query import Plan
from omnigraph.plan.query.logical import pattern_variables
from omnigraph.plan.values.codes import ranks, sort_rows

if TYPE_CHECKING:
    from omnigraph.engine.query.context import QueryContext

_BATCH = 1 << 16
_RANKS = 24
"""Bytes per key of a row while rows are sorted: its rank, the negated rank, its place."""


def finished(
    run: QueryContext, plan: Plan, rows: Rows, schema: pa.Schema, offset: int, limit: int | None
) -> Iterator[pa.RecordBatch]:
    """Orders result rows by result columns, with ties broken by all columns in turn, applies offset
    and limit, and makes objects. The caller has booked the rows."""
    query = plan.query
    stop = rows.rows if limit is None else min(rows.rows, offset + limit)
    if query.order:
        if run.guard.is_bounded:
            run.guard.fits(rows.nbytes + _RANKS * rows.rows * (len(query.order) + 1))
        keys = [
            (_output_ranks(run, rows, plan, key.value.index, key.descending), key.descending)
            for key in query.order
            if isinstance(key.value, OutputValue)
        ]
        order = sort_rows(keys, rows.rows)
        if _has_ties(keys, order):
            ties = [
                (rank, False)
                for index in range(len(query.columns))
                for rank in _output_ties(run, rows, query.columns, index)
            ]
            order = sort_rows([*keys, *ties], rows.rows)
        rows = take_rows(rows, order[offset:stop])
    elif offset or stop < rows.rows:
        rows = take_rows(rows, np.arange(offset, max(offset, stop)))
    if not rows.rows:
        yield _made(run, query.columns, rows, schema)
        return
    for start in range(0, rows.rows, _BATCH):
        part = np.arange(start, min(start + _BATCH, rows.rows))
        yield _made(
            run, query.columns, rows if len(part) == rows.rows else take_rows(rows, part), schema
        )


def _made(
    run: QueryContext, columns: Sequence[Column], rows: Rows, schema: pa.Schema
) -> pa.RecordBatch:
    """A batch with objects in place of the numbers of entities."""
    arrays = []
    for index, column in enumerate(columns):
        value, kind = rows.values[index], column.type.kind
        if isinstance(value, np.ndarray) and isinstance(kind, NodeKind | EdgeKind):
            value = run.objects(kind, value)
        arrays.append(shaped(value, schema.field(index).type))
    return batch_of(arrays, schema, rows.rows)


def _output_ranks(
    run: QueryContext, rows: Rows, plan: Plan, index: int, descending: bool
) -> np.ndarray:
    value, column = rows.values[index], plan.query.columns[index]
    if isinstance(value, np.ndarray):
        kind = column.type.kind
        assert isinstance(kind, NodeKind | EdgeKind)
        return ranks(run.ids(kind.types, value))
    asked = column.value
    if isinstance(asked, KeyValue) and plan.query.group is not None:
        asked = plan.query.group.keys[asked.index]
    return ranks(unranked_last(asked, value, descending=descending))


def _output_ties(
    run: QueryContext, rows: Rows, columns: Sequence[Column], index: int
) -> Iterator[np.ndarray]:
    value = rows.values[index]
    if not isinstance(value, np.ndarray):
        yield ranks(value)
        return
    kind = columns[index].type.kind
    assert isinstance(kind, NodeKind | EdgeKind)
    for tie in _ties(run, kind.types, value):
        yield ranks(tie)


def _has_ties(keys: Sequence[tuple[np.ndarray, bool]], order: np.ndarray) -> bool:
    if len(order) < 2:
        return False
    same = np.ones(len(order) - 1, bool)
    for rank, _ in keys:
        ordered = rank[order]
        same &= ordered[1:] == ordered[:-1]
    return bool(same.any())


def sorted_frames(
    run: QueryContext, plan: Plan, frames: Iterator[Frame], offset: int, limit: int | None
) -> Iterator[Frame]:
    """Rows in the order of the keys. Ties are broken by the ids of the bound variables, in the
    order of their names."""
    wanted = None if limit is None else offset + limit
    held: list[Frame] = []
    size, cost = 0, 0
    pieces = chain.from_iterable(frame.pieces(CHUNK) for frame in frames)
    with run.guard.booking() as booked:
        for frame in pieces:
            run.guard.check()
            held.append(frame)
            size += frame.rows
            if wanted is not None and size > max(4 * wanted, min(1 << 20, run.rows_in_memory)):
                best = _order(run, plan, concat(held)).slice(0, wanted)
                held, size = [best], best.rows
            if run.guard.is_bounded and frame.rows:
                cost = cost or _sort_cost(run, plan, frame)
            if size > run.rows_in_memory or not booked.has_room(size * cost):
                booked.resize(0)  # duckdb takes them
                rest = chain(handed_over(held), pieces)
                yield from _sorted_by_duckdb(run, plan, rest, offset, limit)
                return
            booked.resize(sum(part.nbytes for part in held))
        if held:
            whole = _order(run, plan, concat(held))
            held.clear()
            booked.resize(whole.nbytes)
            stop = whole.rows if wanted is None else min(whole.rows, wanted)
            yield whole.slice(min(offset, stop), stop)


def _sort_cost(run: QueryContext, plan: Plan, frame: Frame) -> int:
    """The approximate size of a row while rows are sorted: its numbers three times, its keys, and a
    text and a rank for each entity that breaks ties."""
    keys = [
        plan.query.columns[key.value.index].value
        if isinstance(key.value, OutputValue)
        else key.value
        for key in plan.query.order
    ]
    numbers = 3 * frame.nbytes // frame.rows
    return numbers + row_cost(run, keys, frame) + _RANKS * 2 * len(_named(plan))


def _sorted_by_duckdb(
    run: QueryContext, plan: Plan, frames: Iterator[Frame], offset: int, limit: int | None
) -> Iterator[Frame]:
    named = _named(plan)
    first = next(frames)
    variables = list(first.columns)

    def batches() -> Iterator[list[pa.Array]]:
        small = (piece for frame in chain((first,), frames) for piece in frame.pieces(_BATCH))
        for frame in small:
            keys = _order_values(run, plan, frame)
            ties = [tie for v in named for tie in _ties(run, v.kind.types, frame.columns[v.id])]
            yield [*[pa.array(frame.columns[v]) for v in variables], *keys, *ties]

    descending = [key.descending for key in plan.query.order]
    spill = Spill(batches(), run.guard)
    ties = sum(2 if len(v.kind.types) > 1 else 1 for v in named)
    for columns in spill.sort(len(variables), descending, ties, offset, limit):
        numbers = {v: column.to_numpy() for v, column in zip(variables, columns, strict=True)}
        yield Frame(numbers, len(columns[0]))


def _order(run: QueryContext, plan: Plan, frame: Frame) -> Frame:
    values = _order_values(run, plan, frame)
    keys = [
        (ranks(value), key.descending) for value, key in zip(values, plan.query.order, strict=True)
    ]
    order = sort_rows(keys, frame.rows)
    if _has_ties(keys, order):
        order = sort_rows([*keys, *_id_ranks(run, plan, frame)], frame.rows)
    return frame.take(order)


def _order_values(run: QueryContext, plan: Plan, frame: Frame) -> list[pa.Array]:
    leaves = FrameLeaves(frame, run)
    found = []
    for key in plan.query.order:
        value = key.value
        if isinstance(value, OutputValue):
            value = plan.query.columns[value.index].value
        values = argument_values(run, value, frame, leaves)
        found.append(unranked_last(value, values, descending=key.descending))
    return found


def unranked_last(value: Expression, values: pa.Array, *, descending: bool) -> pa.Array:
    """The values to order by. Rows without a rank come after all rows with one, in either
    direction."""
    if descending or not isinstance(value, RANKS) or not values.null_count:
        return values
    return values.fill_null(float("inf"))


def _named(plan: Plan) -> list[Variable]:
    named = [v for v in pattern_variables(plan.query.pattern) if v.name is not None]
    return sorted(named, key=lambda v: v.name or "")


def _id_ranks(run: QueryContext, plan: Plan, frame: Frame) -> Iterator[tuple[np.ndarray, bool]]:
    for variable in _named(plan):
        numbers = frame.columns[variable.id]
        distinct, inverse = np.unique(numbers, return_inverse=True)
        for tie in _ties(run, variable.kind.types, distinct):
            yield ranks(tie)[inverse], False


def _ties(run: QueryContext, kinds: Sequence[GraphType], numbers: np.ndarray) -> Iterator[pa.Array]:
    """What distinguishes entities: their ids and, if two types have the same id, the name of the
    type."""
    yield run.ids(kinds, numbers)
    if len(kinds) > 1:
        names = sorted(kind.name for kind in kinds)
        place = np.full(len(numbers), -1, np.int64)
        for kind in kinds:
            place[run.entities.of_type(kind, numbers)] = names.index(kind.name)
        yield pa.array(place)
