"""Owns arithmetic. An integer overflow is an error, division gives F64, and division by zero gives
null."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import ValueOutOfRange
from omnigraph.plan.values.kinds import F64, I64, U64, Value, broadcast, cast, is_array

_CHECKED: dict[str, Callable[[Value, Value], Value]] = {
    "+": pc.add_checked,
    "-": pc.subtract_checked,
    "*": pc.multiply_checked,
}
_FLOATING: dict[str, Callable[[Value, Value], Value]] = {
    "+": pc.add,
    "-": pc.subtract,
    "*": pc.multiply,
}
_LARGEST_MAGNITUDE = 2**63


def calculate(operator: str, left: Value, right: Value, kind: pa.DataType) -> Value:
    """`left operator right` in the type of the result."""
    if operator == "/":
        return _divide(cast(left, F64), cast(right, F64))
    left, right = cast(left, kind), cast(right, kind)
    if operator == "%":
        return _remainder(left, right)
    if pa.types.is_floating(kind):
        return _FLOATING[operator](left, right)
    try:
        return _CHECKED[operator](left, right)
    except pa.ArrowInvalid:
        raise _overflow(f"{operator!r}") from None


def _divide(left: Value, right: Value) -> Value:
    divisor = pc.if_else(pc.equal(right, pa.scalar(0.0)), pa.scalar(None, F64), right)
    return pc.divide(left, divisor)


def _remainder(left: Value, right: Value) -> Value:
    if not is_array(left) and not is_array(right):
        return _remainder(broadcast(left, 1), broadcast(right, 1))[0]
    rows = len(left) if is_array(left) else len(right)
    left, right = broadcast(left, rows), broadcast(right, rows)
    divisor = pc.fill_null(right, pa.scalar(0, right.type)).to_numpy(zero_copy_only=False)
    dividend = pc.fill_null(left, pa.scalar(0, left.type)).to_numpy(zero_copy_only=False)
    nothing = divisor == 0
    mask = nothing | _nulls(left) | _nulls(right)
    one = np.ones(1, divisor.dtype)
    with np.errstate(all="ignore"):
        rest = np.fmod(dividend, np.where(nothing, one, divisor))
    return pa.array(rest, left.type, mask=mask)


def _nulls(values: pa.Array) -> np.ndarray:
    found: np.ndarray = values.is_null().to_numpy(zero_copy_only=False)
    return found


def negate(value: Value, kind: pa.DataType) -> Value:
    if value.type == U64:
        return _negate_unsigned(value)
    try:
        held = cast(value, kind)
        return pc.negate(held) if pa.types.is_floating(kind) else pc.negate_checked(held)
    except pa.ArrowInvalid:
        raise _overflow("'-'") from None


def _negate_unsigned(value: Value) -> Value:
    """2^63 is no I64, but its negative is."""
    if not is_array(value):
        return _negate_unsigned(broadcast(value, 1))[0]
    negated: list[Any] = [None if v is None else -v for v in value.to_pylist()]
    if any(v is not None and v < -_LARGEST_MAGNITUDE for v in negated):
        raise _overflow("'-'")
    return pa.array(negated, I64)


def absolute(value: Value, kind: pa.DataType) -> Value:
    held = cast(value, kind)
    try:
        return pc.abs(held) if not pa.types.is_signed_integer(kind) else pc.abs_checked(held)
    except pa.ArrowInvalid:
        raise _overflow("abs") from None


def rounded(function: str, value: Value, kind: pa.DataType) -> Value:
    """`round`, `floor` and `ceil` change only floats."""
    held = cast(value, kind)
    if not pa.types.is_floating(kind):
        return held
    if function == "round":
        return pc.round(held, round_mode="half_towards_infinity")
    return pc.floor(held) if function == "floor" else pc.ceil(held)


def _overflow(operation: str) -> ValueOutOfRange:
    return ValueOutOfRange(
        f"The result of {operation} does not fit 64 bits.",
        help="Compute with floats, or leave out the rows where it overflows.",
    )
