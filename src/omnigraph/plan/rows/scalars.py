"""Owns how Python values become a typed scalar column: strictly, and naming every misfit.

A value that does not fit becomes null in the column and is listed, so that all mistakes of an
input are found at once. Nothing here knows names of types or properties.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import date, datetime
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from omnigraph.model.arrow import arrow_type
from omnigraph.model.temporal import (
    checked_day,
    checked_ms,
    millisecond_of,
    parse_date,
    parse_instant,
)
from omnigraph.model.types import FLOATS, INTEGER_RANGES, Base, ScalarType
from omnigraph.model.violation import show_value

DESCRIBED = 100  # misfits of one column that are described; the rest is only counted
_NONE = type(None)
_NO_ROWS = np.empty(0, dtype=np.int64)
ARROW_REFUSALS = (ValueError, TypeError, OverflowError, pa.ArrowException)


class Misfit(NamedTuple):
    """Why the value in row `at` does not fit, in words that continue "…, but ".

    `item` is the place in the list or vector, if it is only an item that does not fit.
    """

    at: int
    problem: str
    value: object
    item: int | None = None


class Converted(NamedTuple):
    """A typed column; `bad` are all rows with a misfit, `misfits` the first of them described.

    `whole` is set when the column as a whole has the wrong type: then it is one problem, not one
    for each row.
    """

    array: pa.Array | pa.ChunkedArray
    misfits: Sequence[Misfit] = ()
    bad: np.ndarray[Any, np.dtype[np.int64]] = _NO_ROWS
    whole: bool = False


def is_missing(value: object) -> bool:
    """None, and the markers that pandas and numpy have for "no value here"."""
    if value is None:
        return True
    if isinstance(value, np.datetime64):
        return bool(np.isnat(value))
    kind = type(value)
    return kind.__name__ in ("NAType", "NaTType") and kind.__module__.startswith("pandas")


# Scalars: a column of the usual Python types is built in one step, anything else value by value.

_PLAIN: dict[Base, frozenset[type]] = {
    Base.STRING: frozenset({str, _NONE}),
    Base.BOOL: frozenset({bool, _NONE}),
    **{base: frozenset({int, _NONE}) for base in INTEGER_RANGES},
    **{base: frozenset({int, float, _NONE}) for base in FLOATS},
    Base.DATE: frozenset({date, _NONE}),
    Base.DATETIME: frozenset({datetime, _NONE}),
    Base.BLOB: frozenset({bytes, _NONE}),
}
SCALAR_ARROW = {base: arrow_type(ScalarType(base)) for base in Base}
_MICROSECONDS = pa.timestamp("us", tz="UTC")


def convert_scalars(values: Sequence[object], base: Base) -> Converted:
    """A column of this type from Python values; None is null."""
    if _PLAIN[base].issuperset(map(type, values)):
        try:
            return Converted(_build_plain(values, base))
        except ARROW_REFUSALS:
            pass  # some value does not fit: find out which
    return _convert_one_by_one(values, base)


def _build_plain(values: Sequence[object], base: Base) -> pa.Array:
    if base is Base.DATETIME:  # built finer and cast safely, because Arrow would truncate
        return pa.array(values, _MICROSECONDS).cast(SCALAR_ARROW[base])
    if base is Base.F32:
        wide = pa.array(values, pa.float64())
        if overflows_f32(wide).any():
            raise OverflowError
        return wide.cast(pa.float32())
    return pa.array(values, SCALAR_ARROW[base])


def overflows_f32(wide: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Finite numbers that F32 would turn into infinity."""
    numbers = wide.to_numpy(zero_copy_only=False)
    with np.errstate(over="ignore", invalid="ignore"):
        result: np.ndarray[Any, np.dtype[np.bool_]] = np.isinf(
            numbers.astype(np.float32)
        ) & np.isfinite(numbers)
    return result


def _convert_one_by_one(values: Sequence[object], base: Base) -> Converted:
    fit, fitted, misfits, bad = _FIT[base], [], [], []
    for index, value in enumerate(values):
        result = None
        if not is_missing(value):
            try:
                result = fit(_plain_python(value))
            except _UnfitError as unfit:
                bad.append(index)
                if len(bad) <= DESCRIBED:
                    misfits.append(Misfit(index, f"{show_value(value)} {unfit}", value))
            except ARROW_REFUSALS:
                bad.append(index)
                if len(bad) <= DESCRIBED:
                    misfits.append(Misfit(index, is_a(value), value))
        fitted.append(result)
    storage = {Base.DATE: pa.int32(), Base.DATETIME: pa.int64(), Base.F32: pa.float64()}
    array = pa.array(fitted, storage.get(base, SCALAR_ARROW[base])).cast(SCALAR_ARROW[base])
    return Converted(array, misfits, np.array(bad, dtype=np.int64))


class _UnfitError(Exception):
    """The value has a right type but not a right value; the text says why."""


def is_a(value: object) -> str:
    shown, name = show_value(value), type(value).__name__
    return f"it is {shown}" if shown.endswith(f" {name}") else f"it is {shown} ({name})"


def _plain_python(value: object) -> object:
    """numpy scalars as the Python value that they stand for."""
    if isinstance(value, np.datetime64):
        if np.datetime_data(value.dtype)[0] in ("Y", "M", "W", "D"):
            return value.astype("datetime64[D]").item()
        if value.astype("datetime64[ms]") != value:
            raise _UnfitError("has digits below a millisecond, which would be lost")
        return value.astype("datetime64[ms]").item()
    return value.item() if isinstance(value, np.generic) else value


def _fit_string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    text = str.__str__(value)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise _UnfitError("holds half of a surrogate pair, which is not Unicode text") from None
    return text


def _fit_bool(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


def _fit_integer(base: Base) -> Callable[[object], int]:
    low, high = INTEGER_RANGES[base]

    def fit(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int):
            raise TypeError
        number = int.__index__(value)
        if not low <= number <= high:
            raise _UnfitError("is out of range")
        return number

    return fit


def _fit_float(value: object) -> float:
    if isinstance(value, float):
        return float.__pos__(value)
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError
    try:
        number = float(int.__index__(value))
    except OverflowError:
        raise _UnfitError("is out of range") from None
    if int(number) != value:
        raise _UnfitError("has no exact floating-point form")
    return number


def _fit_f32(value: object) -> float:
    number = _fit_float(value)
    with np.errstate(over="ignore"):
        if np.isfinite(number) and np.isinf(np.float32(number)):
            raise _UnfitError("is out of range")
    return number


def _fit_day(value: object) -> int:
    try:
        if isinstance(value, str):
            return parse_date(value).toordinal() - _EPOCH_ORDINAL
        if isinstance(value, int) and not isinstance(value, bool):
            return checked_day(value)
    except ValueError as wrong:
        raise _UnfitError(str(wrong)) from None
    if isinstance(value, datetime) or not isinstance(value, date):
        raise TypeError
    return value.toordinal() - _EPOCH_ORDINAL


def _fit_millisecond(value: object) -> int:
    try:
        if isinstance(value, str):
            return parse_instant(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return checked_ms(value)
        if isinstance(value, datetime):
            return millisecond_of(value)
    except ValueError as wrong:
        raise _UnfitError(str(wrong)) from None
    raise TypeError


def _fit_blob(value: object) -> bytes:
    if not isinstance(value, bytes | bytearray | memoryview):
        raise TypeError
    return bytes(value)


_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_FIT: dict[Base, Callable[[object], object]] = {
    Base.STRING: _fit_string,
    Base.BOOL: _fit_bool,
    **{base: _fit_integer(base) for base in INTEGER_RANGES},
    Base.F32: _fit_f32,
    Base.F64: _fit_float,
    Base.DATE: _fit_day,
    Base.DATETIME: _fit_millisecond,
    Base.BLOB: _fit_blob,
}
