"""Owns the functions of the language as kernels: one entry for each row of the table.

Every engine evaluates them here, Spark in its executors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, TypeAlias

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.plan.values.arithmetic import absolute, calculate, rounded
from omnigraph.plan.values.kinds import I64, Value, cast, is_array
from omnigraph.plan.values.texts import (
    change_text,
    match_pattern,
    part_of_text,
    replace_text,
    split_text,
    text_of,
)
from omnigraph.plan.values.times import part_of, to_date, to_instant

Kernel: TypeAlias = Callable[[Sequence[Value], pa.DataType], Value]
"""The result for arguments, none of which is the literal null, in a type."""


def _of_one(change: Callable[[Value], Value]) -> Kernel:
    return lambda values, _: change(values[0])


def _length(value: Value) -> Value:
    if pa.types.is_string(value.type):
        found = pc.utf8_length(value)
    elif is_array(value):
        found = pc.list_value_length(value)
    else:
        found = pa.scalar(len(value.values) if value.is_valid else None, I64)
    return cast(found, I64)


def _rounded(function: str) -> Kernel:
    return lambda values, kind: rounded(function, values[0], kind)


KERNELS: Final[dict[str, Kernel]] = {
    "lower": _of_one(partial(change_text, "lower")),
    "upper": _of_one(partial(change_text, "upper")),
    "trim": _of_one(partial(change_text, "trim")),
    "length": _of_one(_length),
    "abs": lambda values, kind: absolute(values[0], kind),
    "round": _rounded("round"),
    "floor": _rounded("floor"),
    "ceil": _rounded("ceil"),
    "year": _of_one(partial(part_of, "year")),
    "month": _of_one(partial(part_of, "month")),
    "day": _of_one(partial(part_of, "day")),
    "date": _of_one(to_date),
    "datetime": _of_one(to_instant),
    "toString": _of_one(text_of),
    "replace": lambda values, _: replace_text(*values),
    "size": _of_one(_length),
    "split": lambda values, _: split_text(*values),
    "substring": lambda values, _: part_of_text(*values),
    "matches": lambda values, _: match_pattern(*values),
    "weeks": lambda values, _: calculate("*", values[0], pa.scalar(7, I64), I64),
    "days": lambda values, _: cast(values[0], I64),
    "hours": lambda values, _: calculate("*", values[0], pa.scalar(3_600_000, I64), I64),
    "minutes": lambda values, _: calculate("*", values[0], pa.scalar(60_000, I64), I64),
    "seconds": lambda values, _: calculate("*", values[0], pa.scalar(1000, I64), I64),
}


def call(function: str, values: Sequence[Value], kind: pa.DataType) -> Value:
    if any(pa.types.is_null(value.type) for value in values):
        return pa.scalar(None, kind)
    return KERNELS[function](values, kind)
