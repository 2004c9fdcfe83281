"""Owns what a row rule is worth: for each row of a batch, whether it may be seen.

A property without a value makes a test false. A policy asks `has` before it looks at one, so that
this is never seen, and no row is shown by a test that has no answer.
"""

from __future__ import annotations

import operator
import re
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.row_rule import (
    AllOf,
    AnyOf,
    ColumnOf,
    Compares,
    EveryRow,
    Holds,
    IsOneOf,
    IsThere,
    IsTrue,
    Negated,
    NoRow,
    Operand,
    Resembles,
    RowRule,
    RowTest,
)

_COMPARE = {"==": pc.equal, "<": pc.less, "<=": pc.less_equal}
_PLAIN = {"==": operator.eq, "<": operator.lt, "<=": operator.le}


def visible_rows(rule: RowRule, rows: pa.RecordBatch) -> np.ndarray:
    """A truth value for each row."""
    match rule:
        case EveryRow():
            return np.ones(rows.num_rows, dtype=bool)
        case NoRow():
            return np.zeros(rows.num_rows, dtype=bool)
        case AllOf(parts=parts):
            return _fold(np.logical_and, parts, rows)
        case AnyOf(parts=parts):
            return _fold(np.logical_or, parts, rows)
        case Negated(part=part):
            return ~visible_rows(part, rows)
        case _:
            return _tested(rule, rows)


def _tested(test: RowTest, rows: pa.RecordBatch) -> np.ndarray:
    match test:
        case Compares(op=op, left=left, right=right):
            if not isinstance(left, ColumnOf) and not isinstance(right, ColumnOf):
                return np.full(rows.num_rows, bool(_PLAIN[op](left, right)))
            return _truth(_COMPARE[op](_read(left, rows), _read(right, rows)))
        case IsTrue(column=column):
            return _truth(_read(column, rows))
        case IsThere(column=column):
            return _truth(pc.is_valid(_read(column, rows)))
        case Resembles(column=column, pattern=pattern):
            told = "".join("(?s:.*)" if one is None else re.escape(one) for one in pattern)
            return _truth(pc.match_substring_regex(_read(column, rows), rf"\A{told}\z"))
        case IsOneOf(column=column, values=values):
            held = _read(column, rows)
            return _truth(pc.is_in(held, value_set=pa.array(list(values), held.type)))
        case Holds(column=column, value=value):
            return _holds(_read(column, rows), value, rows)


def _fold(how: np.ufunc, parts: tuple[RowRule, ...], rows: pa.RecordBatch) -> np.ndarray:
    found: np.ndarray = how.reduce([visible_rows(part, rows) for part in parts])
    return found


def _read(operand: Operand, rows: pa.RecordBatch) -> Any:
    if not isinstance(operand, ColumnOf):
        return pa.scalar(operand)
    column = rows.column(operand.name)
    return column.cast(pa.int64()) if pa.types.is_integer(column.type) else column


def _truth(found: Any) -> np.ndarray:
    truth: np.ndarray = pc.fill_null(found, False).to_numpy(zero_copy_only=False)
    return truth


def _holds(lists: pa.Array, value: Operand, rows: pa.RecordBatch) -> np.ndarray:
    found = np.zeros(len(lists), dtype=bool)
    items, places = pc.list_flatten(lists), pc.list_parent_indices(lists)
    if pa.types.is_integer(items.type):
        items = items.cast(pa.int64())
    wanted = _read(value, rows)
    wanted = wanted.take(places) if isinstance(value, ColumnOf) else wanted
    found[places.to_numpy()[_truth(pc.equal(items, wanted))]] = True
    return found
