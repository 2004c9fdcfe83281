"""Owns the steps after the match: from frames to the batches of the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.engine.query.distinct import distinct_rows
from omnigraph.engine.query.frame import Frame
from omnigraph.engine.query.groups import grouped_rows
from omnigraph.engine.query.leaves import FrameLeaves
from omnigraph.engine.query.ordering import finished, sorted_frames
from omnigraph.engine.query.shape import batch_of, schema_of, shaped
from omnigraph.errors import InvalidParameters
from omnigraph.lang.gq.checked import (
    Column,
    ParameterValue,
)
from omnigraph.plan.query import Plan
from omnigraph.plan.values import evaluate_array

if TYPE_CHECKING:
    from omnigraph.engine.query.context import QueryContext

_BATCH = 1 << 16


def batches(run: QueryContext, plan: Plan, frames: Iterator[Frame]) -> Iterator[pa.RecordBatch]:
    query = plan.query
    offset = amount(query.offset, run.parameters, "offset") or 0
    limit = amount(query.limit, run.parameters, "limit")
    schema = schema_of(plan)
    if query.group is not None or query.distinct:
        make = distinct_rows if query.group is None else grouped_rows
        with run.guard.booking() as booked:
            rows = make(run, plan, frames, booked)
            yield from finished(run, plan, rows, schema, offset, limit)
    else:
        for frame in _chosen(run, plan, frames, offset, limit):
            if 0 < frame.rows <= _BATCH:
                yield _project(run, query.columns, frame, schema)
                continue
            for start in range(0, frame.rows, _BATCH):
                yield _project(run, query.columns, frame.slice(start, start + _BATCH), schema)


def chosen_frames(run: QueryContext, plan: Plan, frames: Iterator[Frame]) -> Iterator[Frame]:
    """The rows of the match that the result needs. For groups and distinct rows these are all rows,
    otherwise those that order, offset and limit leave."""
    query = plan.query
    if query.group is not None or query.distinct:
        return frames
    offset = amount(query.offset, run.parameters, "offset") or 0
    return _chosen(run, plan, frames, offset, amount(query.limit, run.parameters, "limit"))


def _chosen(
    run: QueryContext, plan: Plan, frames: Iterator[Frame], offset: int, limit: int | None
) -> Iterator[Frame]:
    if plan.query.order:
        return sorted_frames(run, plan, frames, offset, limit)
    return _cut(run, frames, offset, limit)


def _cut(
    run: QueryContext, frames: Iterator[Frame], offset: int, limit: int | None
) -> Iterator[Frame]:
    left = limit
    if left == 0:
        return
    for frame in chain.from_iterable(frame.pieces(_BATCH) for frame in frames):
        run.guard.check()
        if offset:
            skipped = min(offset, frame.rows)
            offset -= skipped
            frame = frame.slice(skipped, frame.rows)
        if left is not None:
            frame = frame.slice(0, min(left, frame.rows))
            left -= frame.rows
        yield frame
        if left == 0:
            return


def _project(
    run: QueryContext, columns: Sequence[Column], frame: Frame, schema: pa.Schema
) -> pa.RecordBatch:
    leaves = FrameLeaves(frame, run)
    arrays = [
        shaped(evaluate_array(column.value, leaves), schema.field(i).type)
        for i, column in enumerate(columns)
    ]
    return batch_of(arrays, schema, frame.rows)


def amount(
    value: int | ParameterValue | None, parameters: Mapping[str, Any], what: str
) -> int | None:
    if not isinstance(value, ParameterValue):
        return value
    given: int | None = parameters[value.name]
    if given is not None and given < 0:
        raise InvalidParameters(f"${value.name} is {given}, and a {what} is not below zero.")
    return given
