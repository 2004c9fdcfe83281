"""Owns the fast reading of load files: Arrow's JSON reader over all lines of one type at once.

It only ever says "these lines are sound" or "I cannot tell"; what it cannot tell goes to the exact
reader in `lines`. So both accept exactly the same, and messages have one maker. Arrow's reader
notices duplicate members, unknown members and wrong JSON types; what it lets through that the exact
reader would not (NaN, integers that a float cannot hold, null where absence means something else,
two objects on a line) is looked for here.
"""

from __future__ import annotations

import base64
import binascii
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from omnigraph.model import types
from omnigraph.model.arrow import arrow_type
from omnigraph.model.catalog import Catalog, EdgeType, GraphType
from omnigraph.plan.load.lines import BLOB_PREFIX, blob_columns

_START = re.compile(rb'\{\s*"(?P<word>type|edge)"\s*:\s*"(?P<name>[A-Za-z0-9_]+)"')
_BEGINNINGS = 256
_EXACT_INTEGERS = float(2**53)
_LARGEST = 2**31 - 2**20  # of a string array
_SMALLEST_BLOCK = 1 << 20

Indices = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class SoundLines:
    """Lines of one type that are sound JSON, as columns that only hold what was given; `lines`
    are their places in the chunk."""

    kind: GraphType
    table: pa.Table
    lines: Indices


@dataclass(frozen=True)
class ReadChunk:
    """`rest` are the places of lines that the exact reader has to look at."""

    sound: tuple[SoundLines, ...]
    rest: Indices


def line_offsets(chunk: bytes) -> Indices:
    """Where each line of a chunk begins, and after them where the last one ends."""
    ends = np.flatnonzero(np.frombuffer(chunk, dtype=np.uint8) == 0x0A) + 1
    if not len(ends) or ends[-1] != len(chunk):
        ends = np.append(ends, len(chunk))
    return np.concatenate([[0], ends])


def read_chunk(catalog: Catalog, chunk: bytes, offsets: Indices, *, complete: bool) -> ReadChunk:
    """The lines of a chunk by type. With `complete`, absent and null mean the same wherever a
    property has no default; otherwise lines that give different properties are kept apart."""
    count = len(offsets) - 1
    everything = np.arange(count)
    if len(chunk) > _LARGEST or not chunk.endswith(b"\n"):
        return ReadChunk((), everything)
    try:
        chunk.decode()
    except UnicodeDecodeError:
        return ReadChunk((), everything)
    data = pa.py_buffer(chunk)
    lines = pa.StringArray.from_buffers(count, pa.py_buffer(offsets.astype(np.int32)), data)
    codes, names = _types_of(lines, chunk, offsets)
    sound: list[SoundLines] = []
    rest = [np.flatnonzero(codes < 0)]
    for code, (word, name) in enumerate(names):
        kind = (catalog.edge_names if word == "edge" else catalog.node_names).get(name)
        places = np.flatnonzero(codes == code)
        parts = None
        if kind is not None:
            text = _joined(lines, data, places, count)
            parts = _read_type(kind, text, places, complete)
        if parts is None:
            rest.append(places)
        else:
            sound += parts
    return ReadChunk(tuple(sound), np.sort(np.concatenate(rest)))


def _types_of(
    lines: pa.StringArray, chunk: bytes, offsets: Indices
) -> tuple[Indices, list[tuple[str, str]]]:
    """For each line a number that stands for its type, -1 where it cannot be told; each such
    line begins with `{` and ends with `}`, so that no object reaches over lines.

    Lines mostly begin alike, so the beginning of the first that is not known yet is compared
    with all of them, and so on until none is left or there are too many beginnings."""
    codes = np.full(len(lines), -1, dtype=np.int64)
    raw = np.frombuffer(chunk, dtype=np.uint8)
    last = raw[np.maximum(offsets[1:] - 2, 0)]
    last = np.where(last == 0x0D, raw[np.maximum(offsets[1:] - 3, 0)], last)
    open_lines = last == ord("}")
    names: list[tuple[str, str]] = []
    for _ in range(_BEGINNINGS):
        first = int(np.argmax(open_lines)) if len(open_lines) else 0
        if not len(open_lines) or not open_lines[first]:
            break
        start, end = int(offsets[first]), int(offsets[first + 1])
        found = _START.match(chunk, start, end)
        if found is None:
            open_lines[first] = False
            continue
        beginning = chunk[start : found.end()].decode()
        same = pc.starts_with(lines, beginning).to_numpy(zero_copy_only=False) & open_lines
        name = (found["word"].decode(), found["name"].decode())
        if name not in names:
            names.append(name)
        codes[same] = names.index(name)
        open_lines &= ~same
    return codes, names


def _joined(lines: pa.StringArray, data: pa.Buffer, places: Indices, count: int) -> pa.Buffer:
    if len(places) == count:
        return data
    taken = lines.take(pa.array(places))
    return taken.buffers()[2].slice(0, pa.compute.sum(pc.binary_length(taken)).as_py())


@lru_cache(maxsize=256)
def _schema(kind: GraphType) -> pa.Schema:
    inner = [pa.field("id", pa.string())]
    inner += [pa.field(p.name, _read_as(p.type)) for p in kind.properties]
    edge = isinstance(kind, EdgeType)
    outer = ["edge", "id", "from", "to"] if edge else ["type", "id"]
    fields = [pa.field(name, pa.string()) for name in outer]
    return pa.schema([*fields, pa.field("data", pa.struct(inner))])


def _read_as(kind: types.PropertyType) -> pa.DataType:
    """Dates and blobs are read as text, floats at their widest; what they are follows later."""
    match kind:
        case types.ScalarType(base=base):
            return _scalar_as(base)
        case types.EnumType():
            return pa.string()
        case types.ListType(item=item):
            return pa.list_(_scalar_as(item))
        case types.VectorType():
            return pa.list_(pa.float64())


def _scalar_as(base: types.Base) -> pa.DataType:
    if base in types.FLOATS:
        return pa.float64()
    if base in (types.Base.DATE, types.Base.DATETIME, types.Base.BLOB):
        return pa.string()
    return arrow_type(types.ScalarType(base))


def _read_type(
    kind: GraphType, text: pa.Buffer, places: Indices, complete: bool
) -> list[SoundLines] | None:
    schema = _schema(kind)
    block = max(text.size // 2 + 1, _SMALLEST_BLOCK)
    try:
        table = pj.read_json(
            pa.BufferReader(text),
            read_options=pj.ReadOptions(use_threads=True, block_size=block),
            parse_options=pj.ParseOptions(
                explicit_schema=schema,
                newlines_in_values=False,
                unexpected_field_behavior="error",
            ),
        )
    except (pa.ArrowException, ValueError):
        return None
    if table.num_rows != len(places):
        return None
    columns = _columns(kind, table)
    if columns is None:
        return None
    nulls = b"null" in memoryview(text).tobytes() if text.size else False
    if complete:
        return _complete_rows(kind, columns, places, nulls)
    return None if nulls else _by_given(kind, columns, places)


_Columns = dict[str, pa.ChunkedArray]


def _columns(kind: GraphType, table: pa.Table) -> _Columns | None:
    """The columns of rows, or None if any holds what the exact reader should look at."""
    data = table["data"]
    columns: _Columns = {}
    for prop in kind.properties:
        column = pc.struct_field(data, prop.name)
        if not _unambiguous(column, prop.type):
            return None
        columns[prop.name] = column
    for name in blob_columns(kind):
        decoded = _decode_blobs(columns[name])
        if decoded is None:
            return None
        columns[name] = decoded
    inner, outer = pc.struct_field(data, "id"), table["id"]
    if inner.null_count < len(inner) and outer.null_count < len(outer):
        return None
    columns["id"] = outer if inner.null_count == len(inner) else inner
    if isinstance(kind, EdgeType):
        columns |= {"from": table["from"], "to": table["to"]}
        if table["from"].null_count or table["to"].null_count:
            return None
    return columns


def _unambiguous(column: pa.ChunkedArray, kind: types.PropertyType) -> bool:
    if isinstance(kind, types.ListType | types.VectorType):
        column = pc.list_flatten(column)
        if column.null_count:
            return False
    if not pa.types.is_floating(column.type) or not len(column):
        return True
    largest = pc.max(pc.abs(column)).as_py()
    if largest is None:
        return True
    # NaN hides from the maximum, so it is asked for by itself.
    return bool(largest < _EXACT_INTEGERS and pc.all(pc.is_finite(column)).as_py())


def _decode_blobs(column: pa.ChunkedArray) -> pa.ChunkedArray | None:
    decoded: list[bytes | None] = []
    for text in column.to_pylist():
        if text is None:
            decoded.append(None)
            continue
        if not text.startswith(BLOB_PREFIX):
            return None
        try:
            decoded.append(base64.b64decode(text[len(BLOB_PREFIX) :], validate=True))
        except (binascii.Error, ValueError):
            return None
    return pa.chunked_array([pa.array(decoded, pa.large_binary())])


def _complete_rows(
    kind: GraphType, columns: _Columns, places: Indices, nulls: bool
) -> list[SoundLines] | None:
    """Whole entities. What no line gives is left out; where some give it and others do not, they
    have null, which is right only if there is no default."""
    kept: _Columns = {}
    defaults = {p.name for p in kind.properties if p.default is not None}
    for name, column in columns.items():
        absent = column.null_count
        if absent and name in defaults and (nulls or absent < len(column)):
            return None
        if absent < len(column):
            kept[name] = column
    return [SoundLines(kind, _table(kept, len(places)), places)]


def _by_given(kind: GraphType, columns: _Columns, places: Indices) -> list[SoundLines]:
    """No line holds null, so what is null was not given."""
    names = [name for name, column in columns.items() if column.null_count < len(column)]
    pattern = np.zeros(len(places), dtype=object)
    if len(names) < 63:
        pattern = np.zeros(len(places), dtype=np.int64)
    for bit, name in enumerate(names):
        if columns[name].null_count:
            pattern += columns[name].is_valid().to_numpy().astype(pattern.dtype) * (1 << bit)
        else:
            pattern += 1 << bit
    found = []
    for value in np.unique(pattern).tolist():
        rows = np.flatnonzero(pattern == value)
        given = {name: columns[name] for bit, name in enumerate(names) if value >> bit & 1}
        if len(rows) < len(places):
            chosen = pa.array(rows)
            given = {name: column.take(chosen) for name, column in given.items()}
        found.append(SoundLines(kind, _table(given, len(rows)), places[rows]))
    return found


def _table(columns: _Columns, length: int) -> pa.Table:
    if not columns:  # a table without columns has no rows
        columns = {"id": pa.chunked_array([pa.nulls(length, pa.string())])}
    return pa.table(columns)
