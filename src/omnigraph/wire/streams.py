"""Owns rows as a stream of bytes: lines of JSON or Arrow, with an end that says how it ended.

A stream of lines is whole if its last line is no `@error` and the connection ended as it should; an
Arrow stream is whole only with its end mark. pyarrow takes a stream without one for a whole one, so
a reader looks for the mark itself.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import IO, Any, Protocol

import msgspec
import pyarrow as pa

from omnigraph.errors import OmnigraphError
from omnigraph.wire.columns import json_rows, row_bytes
from omnigraph.wire.media import Form, Shape
from omnigraph.wire.remote_errors import error_of

LINE_ROWS = 4096
ARROW_ROWS = 8192
ERROR_KEY = b"omnigraph.error"
END_MARK = b"\xff\xff\xff\xff\x00\x00\x00\x00"


class RowWriter(Protocol):
    """Bytes of a stream, piece by piece. `rows` is how many rows a piece has at most."""

    rows: int

    def begin(self) -> bytes: ...

    def write(self, batch: pa.RecordBatch) -> bytes: ...

    def fail(self, problem: dict[str, Any]) -> bytes: ...

    def end(self) -> bytes: ...


class LineWriter:
    """A line of JSON for each row."""

    rows = LINE_ROWS

    def __init__(self, *, whole_as_text: bool = False) -> None:
        self._whole_as_text = whole_as_text

    def begin(self) -> bytes:
        return b""

    def write(self, batch: pa.RecordBatch) -> bytes:
        rows = json_rows(batch, whole_as_text=self._whole_as_text)
        return b"".join(row_bytes(row) + b"\n" for row in rows)

    def fail(self, problem: dict[str, Any]) -> bytes:
        return msgspec.json.encode({"@error": problem}) + b"\n"

    def end(self) -> bytes:
        return b""


class ArrowWriter:
    """An Arrow IPC stream."""

    rows = ARROW_ROWS

    def __init__(self, schema: pa.Schema, compression: str | None = None) -> None:
        self._schema = schema
        self._sink = ByteSink()
        options = pa.ipc.IpcWriteOptions(compression=compression)
        self._writer = pa.ipc.new_stream(self._sink, schema, options=options)

    def begin(self) -> bytes:
        return self._sink.taken()

    def write(self, batch: pa.RecordBatch) -> bytes:
        self._writer.write_batch(batch)
        return self._sink.taken()

    def fail(self, problem: dict[str, Any]) -> bytes:
        """An empty batch that carries the problem; no end mark follows."""
        empty = pa.RecordBatch.from_pylist([], schema=self._schema)
        told = pa.KeyValueMetadata({ERROR_KEY: msgspec.json.encode(problem)})
        self._writer.write_batch(empty, custom_metadata=told)
        return self._sink.taken()

    def end(self) -> bytes:
        self._writer.close()
        return self._sink.taken()


class ByteSink(io.RawIOBase):
    """Keeps what is written until it is taken."""

    def __init__(self) -> None:
        self._held: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any, /) -> int:
        self._held.append(bytes(data))
        return len(self._held[-1])

    def taken(self) -> bytes:
        held, self._held = self._held, []
        return b"".join(held)


def writer_of(form: Form, schema: pa.Schema) -> RowWriter:
    if form.shape is Shape.ARROW:
        return ArrowWriter(schema, form.compression)
    return LineWriter(whole_as_text=form.whole_as_text)


class Interrupted(ConnectionError):
    """A stream ended before its end."""


class WholeArrow:
    """An Arrow stream that is read from a connection, and is whole or an error."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = _Tail(source)
        try:
            self._reader = pa.ipc.open_stream(self._source)
        except (pa.ArrowException, OSError, OverflowError) as error:
            raise Interrupted(f"The stream broke at its beginning: {error}") from error

    @property
    def schema(self) -> pa.Schema:
        return self._reader.schema

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        while True:
            try:
                read = self._reader.read_next_batch_with_custom_metadata()
            except StopIteration:
                break
            except (pa.ArrowException, OSError, OverflowError) as error:
                raise Interrupted(f"The stream broke: {error}") from error
            try:
                read.batch.validate(full=True)  # it may come from anybody
            except pa.ArrowException as error:
                raise Interrupted(f"The stream has a column that is unsound: {error}") from error
            told = read.custom_metadata
            if told is not None and ERROR_KEY in told:
                raise _error_in(told[ERROR_KEY])
            yield read.batch
        if self._source.tail != END_MARK:
            raise Interrupted("The stream ended without its end mark.")


def _error_in(data: bytes) -> OmnigraphError:
    try:
        return error_of(msgspec.json.decode(data, type=dict[str, Any]))
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Interrupted("The stream ended with an error that cannot be read.") from error


class _Tail(io.RawIOBase):
    """Another source, of which the last bytes that were read are kept."""

    def __init__(self, source: IO[bytes]) -> None:
        self._source = source
        self.tail = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1, /) -> bytes:
        data = self._source.read(size)
        self.tail = (self.tail + data[-len(END_MARK) :])[-len(END_MARK) :]
        return data


def read_line(line: bytes) -> dict[str, Any]:
    """A row of a stream of lines; the error that the stream ends with is raised."""
    row: dict[str, Any] = msgspec.json.decode(line)
    if isinstance(row, dict) and "@error" in row and len(row) == 1:
        raise error_of(msgspec.convert(row["@error"], dict[str, Any]))
    return row
