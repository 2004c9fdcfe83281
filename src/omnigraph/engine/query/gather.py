"""Owns what follows the match: frames to the batches of the result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.engine.query.distinct import distinct_rows
from omnigraph.engine.query.frame import Frame, concat
from omnigraph.engine.query.groups import _grouped, _grouped_by_duckdb, _some
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
    from omnigraph.engine.query.run import Run

_BATCH = 1 << 16


def batches(run: Run, plan: Plan, frames: Iterator[Frame]) -> Iterator[pa.RecordBatch]:
    query = plan.query
    offset = amount(query.offset, run.parameters, "offset") or 0
    limit = amount(query.limit, run.parameters, "limit")
    schema = schema_of(plan)
    if query.group is not None:
        held, rest = _some(run, frames)
        if rest is None:
            rows = _grouped(run, plan, concat(held) if held else None)
        else:
            rows = _grouped_by_duckdb(run, plan, chain(held, rest))
        yield from finished(run, plan, rows, schema, offset, limit)
    elif query.distinct:
        yield from finished(run, plan, distinct_rows(run, plan, frames), schema, offset, limit)
    elif query.order:
        for frame in sorted_frames(run, plan, frames, offset, limit):
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
        if 0 < frame.rows <= _BATCH:
            yield _project(run, columns, frame, schema)
        else:
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
