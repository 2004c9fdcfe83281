"""Owns `distinct` rows, in memory or by duckdb."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from omnigraph.engine.query.frame import Frame
from omnigraph.engine.query.guard import Booking
from omnigraph.engine.query.leaves import FrameLeaves
from omnigraph.engine.query.shape import Rows, column_type, from_numbers, nothing_of, take_rows
from omnigraph.engine.query.spill import Spill
from omnigraph.lang.gq.checked import EntityValue
from omnigraph.plan.query import Plan
from omnigraph.plan.values import evaluate_array
from omnigraph.plan.values.codes import code_values, combine
from omnigraph.plan.values.kinds import Value

if TYPE_CHECKING:
    from omnigraph.engine.query.context import QueryContext

_CODES = 24
"""Bytes per value while rows are compared: its code, its place, its first row."""
_PIECE = 1 << 16


def distinct_rows(run: QueryContext, plan: Plan, frames: Iterator[Frame], booked: Booking) -> Rows:
    """Each distinct row once. The rows are booked."""
    held: Rows | None = None
    parts = (
        _output_values(run, plan, frame.slice(start, start + _PIECE))
        for frame in frames
        for start in range(0, frame.rows, _PIECE)
    )
    for rows in parts:
        run.guard.check()
        held = _unique_rows(rows if held is None else _joined(held, rows))
        if held.rows > run.rows_in_memory or not _has_room(run, held, booked):
            booked.resize(0)  # duckdb takes them
            held = _distinct_by_duckdb(run, plan, chain((held,), parts))
            booked.resize(held.nbytes)
            return held
        booked.resize(held.nbytes)
    if held is None:
        return Rows([nothing_of(column) for column in plan.query.columns], 0)
    return held


def _has_room(run: QueryContext, held: Rows, booked: Booking) -> bool:
    """Whether the rows held so far can be joined with more, coded and compared."""
    if not run.guard.is_bounded:
        return True
    return booked.has_room(3 * held.nbytes + _CODES * held.rows * (len(held.values) + 1))


def _distinct_by_duckdb(run: QueryContext, plan: Plan, parts: Iterator[Rows]) -> Rows:
    batches = (
        [pa.array(v) if isinstance(v, np.ndarray) else v for v in part.values] for part in parts
    )
    columns = Spill(batches, run.guard).distinct()
    values: list[Value] = [
        from_numbers(array)
        if isinstance(column.value, EntityValue)
        else array.cast(column_type(column.type.kind))
        for column, array in zip(plan.query.columns, columns, strict=True)
    ]
    return Rows(values, len(columns[0]))


def _output_values(run: QueryContext, plan: Plan, frame: Frame) -> Rows:
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
    return take_rows(rows, np.sort(first))
