"""Owns reading sources, a batch at a time: bytes to chunks of lines, files to tables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pcsv
import pyarrow.parquet as pq

from omnigraph.engine.load.chunks import LongLine, cut_lines
from omnigraph.engine.load.sources import InputSource
from omnigraph.errors import InvalidArgument, InvalidData
from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.model.violation import Violation
from omnigraph.plan.arrow_checks import Unsound, reason_of, require_names, require_sound
from omnigraph.plan.load.csv_values import read_texts
from omnigraph.plan.load.jsonl import shape_jsonl
from omnigraph.plan.load.lines import Fault, read_entry
from omnigraph.plan.load.places import Reject, SourceName, first_place, places
from omnigraph.plan.load.shaping import (
    NewIds,
    Portion,
    ShapedPortion,
    WholeSourceError,
    shape_portion,
    show_row,
)

_BATCH_ROWS = 128 * 1024
_BOM = b"\xef\xbb\xbf"
_ARROW_FILE = b"ARROW1"  # anything that begins otherwise is a stream
_READ_ERRORS = (OSError, EOFError, ValueError, MemoryError, pa.ArrowException, Unsound)


@dataclass(frozen=True)
class SourceReader:
    """How to read: whether rows are whole entities or parts of them, and whether every error is
    reported."""

    catalog: Catalog
    names: Sequence[SourceName]
    complete: bool
    every: bool
    new_ids: NewIds
    chunk_bytes: int
    seen: Callable[[int], None]
    line_bytes: int = 64 << 20

    def read(self, number: int, source: InputSource) -> Iterator[ShapedPortion]:
        """The typed rows of one source. An error of the source as a whole ends the load."""
        kind = source.kind(self.catalog)
        try:
            if source.format == "jsonl":
                yield from self._read_lines(number, source, kind)
            elif source.format == "rows" and kind is None:
                yield from self._read_entries(number, source.rows)
            else:
                assert kind is not None
                for rows, at in self._tables(number, source, kind):
                    yield self._shape(Portion(kind, rows, at))
        except WholeSourceError as error:
            found = error.violation
            raise InvalidData(f"{source.name}: {found.message}", violations=[found]) from None

    def _shape(self, portion: Portion) -> ShapedPortion:
        return shape_portion(
            portion,
            self.names,
            complete=self.complete,
            new_ids=self.new_ids,
            every=self.every,
        )

    # Lines

    def _read_lines(
        self, number: int, source: InputSource, kind: GraphType | None
    ) -> Iterator[ShapedPortion]:
        line = 1
        chunks = self._chunks(source)
        while True:
            try:
                chunk = next(chunks, None)
            except _READ_ERRORS as error:
                raise _unreadable(source, f"line {line}", error) from error
            if chunk is None:
                return
            if isinstance(chunk, LongLine):
                yield self._refuse(number, line, chunk)
                line += 1
                continue
            shaped, count = shape_jsonl(
                self.catalog,
                chunk,
                first_place(number, line),
                self.names,
                kind=kind,
                complete=self.complete,
                new_ids=self.new_ids,
                every=self.every,
            )
            line += count
            yield shaped

    def _chunks(self, source: InputSource) -> Iterator[bytes | LongLine]:
        first = True

        def read(size: int) -> bytes:
            nonlocal first
            data = _bytes_of(file.read(size))
            self.seen(len(data))
            if first:
                first = False
                return read(size) if data == _BOM else data.removeprefix(_BOM)
            return data

        with source.open() as file:
            yield from cut_lines(read, self.chunk_bytes, self.line_bytes)

    def _refuse(self, number: int, line: int, long: LongLine) -> ShapedPortion:
        reason = (
            f"this line is {long.size:,} bytes long, and at most {self.line_bytes:,} can be read "
            "at a stretch; raise the setting load_memory, or give large values as Parquet."
        )
        reject = Reject(
            source=self.names[number].name,
            line=line,
            type="",
            rule="line",
            reason=reason,
            row=long.head.decode(errors="replace") + "…",
        )
        return ShapedPortion([], [reject], 0)

    # Entries that are given as dicts

    def _read_entries(self, number: int, rows: Any) -> Iterator[ShapedPortion]:
        try:
            given = iter([rows] if isinstance(rows, dict) else rows)
        except TypeError:
            raise InvalidArgument(f"Rows cannot be read from {type(rows).__name__}.") from None
        by_type: dict[str, tuple[GraphType, list[Any], list[int]]] = {}
        rejects, held = [], 0
        for position, value in enumerate(given, 1):
            entry = read_entry(self.catalog, value)
            if isinstance(entry, Fault):
                rejects.append(
                    Reject(
                        source=self.names[number].name,
                        line=position,
                        type=entry.type,
                        rule=entry.rule,
                        reason=entry.message,
                        row=show_row(value),
                    )
                )
                continue
            _, found, at = by_type.setdefault(entry.kind.table_key, (entry.kind, [], []))
            found.append(entry.row)
            at.append(first_place(number, position))
            held += 1
            if held == _BATCH_ROWS:
                yield from self._entries(by_type, rejects)
                by_type, rejects, held = {}, [], 0
        yield from self._entries(by_type, rejects)

    def _entries(self, by_type: Any, rejects: list[Reject]) -> Iterator[ShapedPortion]:
        yield ShapedPortion([], rejects)
        for kind, rows, at in by_type.values():
            yield self._shape(Portion(kind, rows, np.array(at, dtype=np.int64)))

    # Tables

    def _tables(
        self, number: int, source: InputSource, kind: GraphType
    ) -> Iterator[tuple[Any, Any]]:
        done = 0
        first = 2 if source.format == "csv" else 1  # a CSV file begins with the names
        batches = self._batches(source, kind)
        while True:
            try:
                rows = next(batches, None)
            except _READ_ERRORS as error:
                raise _unreadable(source, f"row {done + 1}", error) from error
            if rows is None:
                return
            lines = _line_numbers(rows) if source.format == "csv" else None
            count = len(rows)
            if lines is None:
                at = places(number, done + first, count)
                done += count
            else:
                at = first_place(number, done + first) + lines[:-1]
                done += int(lines[-1])
            if source.format == "csv":
                rows = read_texts(kind, rows)
            yield rows, at

    def _batches(self, source: InputSource, kind: GraphType) -> Iterator[Any]:
        match source.format:
            case "csv":
                batches = self._csv(source)
            case "parquet":
                batches = _parquet(source)
            case "arrow":
                batches = _arrow(source)
            case _:
                yield from _in_memory(source.rows)
                return
        for batch in batches:
            table = _sound(batch)
            self.seen(table.nbytes)
            yield _renamed(table, source, kind)

    def _csv(self, source: InputSource) -> Iterator[pa.RecordBatch]:
        first = _first_line(source, self.line_bytes)
        header = pcsv.open_csv(
            pa.BufferReader(first),
            read_options=pcsv.ReadOptions(block_size=len(first) + 1),
            convert_options=pcsv.ConvertOptions(strings_can_be_null=True),
        ).schema
        try:
            names = header.names
        except UnicodeDecodeError:
            raise InvalidData(f"{source.name} line 1: the header is not UTF-8.") from None
        yield from pcsv.open_csv(
            source.open_natively(),
            read_options=pcsv.ReadOptions(block_size=max(self.chunk_bytes, 2 * len(first))),
            parse_options=pcsv.ParseOptions(newlines_in_values=True),
            convert_options=pcsv.ConvertOptions(
                column_types=dict.fromkeys(names, pa.string()),
                null_values=[""],
                strings_can_be_null=True,
                quoted_strings_can_be_null=False,
            ),
        )


def _bytes_of(data: Any) -> bytes:
    if isinstance(data, str):
        raise InvalidArgument("A stream must give bytes; open the file with mode 'rb'.")
    return bytes(data)


def _first_line(source: InputSource, longest: int) -> bytes:
    """The names in a CSV file, so that every column can be read as text."""
    if source.path is None:
        raise InvalidArgument("CSV is read from files, not from streams.")
    pieces: list[bytes] = []
    held = 0
    with source.open() as file:
        while data := file.read(1 << 16):
            pieces.append(data)
            held += len(data)
            if b"\n" in data or b"\r" in data:
                break
            if held > longest:
                raise Unsound(f"its first line is longer than {longest:,} bytes")
    head = b"".join(pieces)
    return head.replace(b"\r", b"\n").split(b"\n", 1)[0] + b"\n"


def _line_numbers(table: pa.Table) -> Any:
    """The line, from 0, on which each row begins; values may contain line breaks. The last number
    is where the next batch begins."""
    lines = np.ones(table.num_rows, dtype=np.int64)
    for column in table.columns:
        breaks = pa.compute.count_substring(column, "\n").fill_null(0)
        lines += breaks.to_numpy()
    return np.concatenate([[0], np.cumsum(lines)])


def _parquet(source: InputSource) -> Iterator[pa.RecordBatch]:
    with pq.ParquetFile(source.path) as file:
        require_names(file.schema_arrow)
        names = list(source.columns.values()) or None
        if names is not None:
            names = [n for n in dict.fromkeys(names) if n in file.schema_arrow.names]
        groups = None if source.row_groups is None else list(source.row_groups)
        yield from file.iter_batches(_BATCH_ROWS, row_groups=groups, columns=names)


def _arrow(source: InputSource) -> Iterator[pa.RecordBatch]:
    """Read, not mapped: if somebody truncates a mapped file meanwhile, the process dies."""
    with pa.OSFile(str(source.path), "rb") as file:
        begins = file.read(len(_ARROW_FILE))
        file.seek(0)
        if begins != _ARROW_FILE:
            reader = pa.ipc.open_stream(file)
            require_names(reader.schema)
            yield from reader
            return
        reader = pa.ipc.open_file(file)
        require_names(reader.schema)
        for number in range(reader.num_record_batches):
            yield reader.get_batch(number)


def _renamed(table: pa.Table, source: InputSource, kind: GraphType) -> pa.Table:
    """The columns that the mapping names, renamed to the properties."""
    if not source.columns:
        return table
    for name, column in source.columns.items():
        if column not in table.column_names:
            message = (
                f"{source.name} has no column {column!r}, which the mapping gives as "
                f"`{name}` of {kind.name}."
            )
            found = Violation(type=kind.name, rule="unknown_property", message=message)
            raise InvalidData(message, violations=[found])
    return pa.table({name: table[column] for name, column in source.columns.items()})


def _in_memory(rows: Any) -> Iterator[Any]:
    if type(rows).__name__ == "DataFrame" and type(rows).__module__.startswith("pandas."):
        for start in range(0, max(len(rows), 1), _BATCH_ROWS):
            yield rows.iloc[start : start + _BATCH_ROWS]
        return
    reader = _stream_of(rows)
    if reader is not None:
        for batch in reader:
            yield _sound(batch)
        return
    try:
        given = iter([rows] if isinstance(rows, dict) else rows)
    except TypeError:
        raise InvalidArgument(f"Rows cannot be read from {type(rows).__name__}.") from None
    while held := list(islice(given, _BATCH_ROWS)):
        yield held


def _stream_of(rows: Any) -> pa.RecordBatchReader | None:
    """Anything that speaks Arrow: tables, batches, streams, polars, results of DuckDB."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if isinstance(rows, pa.RecordBatch):
        rows = pa.Table.from_batches([rows])
    if isinstance(rows, pa.Table):
        return rows.to_reader(_BATCH_ROWS)
    if hasattr(rows, "__arrow_c_stream__"):
        return pa.RecordBatchReader.from_stream(rows)
    return None


def _sound(batch: pa.RecordBatch) -> pa.Table:
    """Checks the data first: even the size of a batch is computed from offsets that may be
    wrong."""
    require_sound(batch)
    return pa.Table.from_batches([batch])


def _unreadable(source: InputSource, where: str, error: BaseException) -> InvalidData:
    reason = reason_of(error)
    if "straddling object" in reason:
        reason = (
            "a row is longer than can be read at a stretch, or a quote is not closed; raise the "
            "setting load_memory, or give large values as Parquet"
        )
    message = f"{source.name} cannot be read from {where} on: {reason}."
    found = Violation(type="", rule="source", message=message)
    return InvalidData(message, violations=[found])
