"""Owns which objects can be rows and in which form: records with names, or a frame of columns.

Libraries of data frames are recognised by name and never imported.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.plan.arrow_checks import Unsound, reason_of, require_columns, require_sound

RawColumn: TypeAlias = list[object] | pa.ChunkedArray
_NOT_ROWS = (str, bytes, bytearray, memoryview)


@dataclass(frozen=True)
class Records:
    """Dicts with their positions. `refused` are the positions of other objects."""

    rows: list[Mapping[Any, object]]
    positions: np.ndarray[Any, np.dtype[np.int64]]
    refused: tuple[tuple[int, object], ...] = ()


@dataclass(frozen=True)
class ColumnFrame:
    """Columns of equal length. `whole_floats` means that its integers may have become floats."""

    names: tuple[Hashable, ...]
    columns: tuple[RawColumn, ...]
    length: int
    whole_floats: bool = False


def read_input(rows: object) -> Records | ColumnFrame | None:
    """The rows in one of two forms, or None if the object is not rows at all. Raises `Unsound` if
    the buffers of Arrow columns are inconsistent."""
    if type(rows) is list:
        return _records(rows)
    if isinstance(rows, Mapping):
        return _records([rows])
    if isinstance(rows, pa.Table):
        return _frame(rows)
    if isinstance(rows, pa.RecordBatch):
        return _frame(pa.Table.from_batches([rows]))
    if isinstance(rows, pa.RecordBatchReader):
        return _frame(_read_all(rows))
    if type(rows).__name__ == "DataFrame" and type(rows).__module__.startswith("pandas."):
        return _pandas_frame(rows)
    if hasattr(rows, "__arrow_c_stream__") or hasattr(rows, "__arrow_c_array__"):
        return _foreign_frame(rows)
    if isinstance(rows, _NOT_ROWS) or not isinstance(rows, Iterable):
        return None
    return _records(list(rows))


def _records(rows: list[Any]) -> Records:
    positions = np.arange(len(rows), dtype=np.int64)
    if {dict}.issuperset(map(type, rows)):
        return Records(rows, positions)
    kept = [i for i, row in enumerate(rows) if isinstance(row, Mapping)]
    refused = [(i, row) for i, row in enumerate(rows) if not isinstance(row, Mapping)]
    return Records([rows[i] for i in kept], np.array(kept, dtype=np.int64), tuple(refused))


def _frame(table: pa.Table) -> ColumnFrame:
    require_sound(table)
    return ColumnFrame(tuple(table.column_names), tuple(table.columns), table.num_rows)


def _foreign_frame(rows: object) -> ColumnFrame | None:
    """Anything with the Arrow C interface: polars, DuckDB results, other Arrow libraries."""
    try:
        if hasattr(rows, "__arrow_c_stream__"):
            reader = pa.RecordBatchReader.from_stream(rows)
        else:
            reader = pa.Table.from_batches([pa.record_batch(rows)]).to_reader()
    except (TypeError, ValueError):  # a single column, not a table
        return None
    return _frame(_read_all(reader))


def _read_all(reader: pa.RecordBatchReader) -> pa.Table:
    try:
        return reader.read_all()
    except (pa.ArrowException, ValueError) as error:
        raise Unsound(f"reading its stream failed: {reason_of(error)}") from error


def _pandas_frame(frame: Any) -> ColumnFrame:
    """A pandas frame without its index. pandas writes NaN for "missing", so NaN is null here."""
    columns = tuple(_pandas_column(frame.iloc[:, i]) for i in range(frame.shape[1]))
    require_columns(frame.columns, columns)
    return ColumnFrame(tuple(frame.columns), columns, len(frame), whole_floats=True)


def _pandas_column(series: Any) -> RawColumn:
    if series.dtype != object:
        try:
            array = pa.array(series, from_pandas=True)
        except (TypeError, ValueError, pa.ArrowException):
            pass  # a type that Arrow does not know: its values are used
        else:
            return array if isinstance(array, pa.ChunkedArray) else pa.chunked_array([array])
    return [None if isinstance(v, float) and v != v else v for v in series.tolist()]
