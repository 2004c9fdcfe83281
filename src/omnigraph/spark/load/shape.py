"""Owns the first stage of a load on executors: a part of a source becomes pieces of typed rows, by
the same functions as in a load in one process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.engine.load.reading import SourceReader
from omnigraph.engine.load.rejected import RejectedFile, RejectedShelf
from omnigraph.engine.load.sources import InputSource
from omnigraph.engine.load.spool import PIECE_BYTES, PIECE_ROWS, Spool, SpoolPiece
from omnigraph.engine.load.state import TOLD
from omnigraph.errors import InvalidArgument, InvalidData
from omnigraph.model.catalog_file import decode_catalog
from omnigraph.plan.load.new_ids import number_ids
from omnigraph.plan.load.places import Reject, SourceName
from omnigraph.plan.load.shaping import ShapedPortion
from omnigraph.spark.load.journal import digest
from omnigraph.spark.tasks import Failure, answer_batch, to_failure

RANGE_BYTES = 64 << 20
_CHUNK = 16 << 20
_SHELF_BYTES = 512 << 20  # of all types together
_BATCH_ROWS = 128 * 1024


class ShapedPart(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one part of a source. `lines` is its number of lines, for the parts after
    it."""

    pieces: tuple[SpoolPiece, ...]
    rejects: tuple[Reject, ...]
    more: int
    lines: int
    bytes: int
    failure: Failure | None = None
    aside: tuple[RejectedFile, ...] = ()


@dataclass(frozen=True)
class ShapeJob:
    """The settings for shaping every part. `complete` means whole entities, as everywhere except in
    a merge."""

    catalog: bytes
    names: tuple[SourceName, ...]
    complete: bool
    every: bool
    operation: str
    spool: Spool

    def name(self, number: int, cut: Any, stamp: Any) -> str:
        """The name of this part in the journal."""
        how = (self.catalog, self.names[number], self.complete, self.every, self.operation)
        return f"read-{number}-{digest(how, cut, stamp)}"


@dataclass(frozen=True)
class FilePart:
    """A file, or the lines that begin within a range of its bytes, or some of its row groups."""

    number: int
    source: InputSource
    part: int = 0
    range: tuple[int, int] | None = None
    groups: tuple[int, ...] | None = None
    lines: int = 0

    @property
    def cut(self) -> tuple[Any, ...]:
        """The meant part of the file, and its format."""
        source = self.source
        read = (source.format, source.type, source.columns, source.compression)
        return (self.part, self.range, self.groups, read)


def plan_parts(
    number: int, source: InputSource, *, range_bytes: int = RANGE_BYTES
) -> list[FilePart]:
    """JSONL is cut anywhere, and Parquet between row groups. CSV (a value may contain line breaks),
    Arrow and compressed files are read by one task each."""
    size = source.size or 0
    if source.format == "jsonl" and source.compression is None and size > range_bytes:
        starts = range(0, size, range_bytes)
        return [
            FilePart(number, source, part, range=(start, min(start + range_bytes, size)))
            for part, start in enumerate(starts)
        ]
    if source.format == "parquet" and source.path is not None:
        return _row_groups(number, source)
    return [FilePart(number, source)]


def _row_groups(number: int, source: InputSource) -> list[FilePart]:
    try:
        metadata = pq.read_metadata(source.path)
    except (OSError, ValueError, MemoryError, pa.ArrowException):
        return [FilePart(number, source)]  # reading it reports the error
    counts = [metadata.row_group(n).num_rows for n in range(metadata.num_row_groups)]
    parts: list[FilePart] = []
    groups: list[int] = []
    held = 0
    for group, count in enumerate(counts):
        groups.append(group)
        held += count
        if held >= PIECE_ROWS or group == len(counts) - 1:
            part = FilePart(number, source, len(parts), groups=tuple(groups), lines=held)
            parts.append(part)
            groups, held = [], 0
    return parts or [FilePart(number, source)]


def shape_part(job: ShapeJob, part: FilePart) -> Iterator[ShapedPart]:
    """One answer. It includes errors of the source as a whole, which the caller must see."""
    source, counted = part.source, None
    if part.range is not None:
        assert source.path is not None
        counted = LineRange(source.path, *part.range)
        source = replace(source, path=None, stream=counted)
    elif part.groups is not None:
        source = replace(source, row_groups=part.groups)
    try:
        yield _shape(job, part, source, lambda: part.lines if counted is None else counted.lines)
    finally:
        if counted is not None:
            counted.close()


def shape_frame(
    job: ShapeJob, number: int, type: str
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """For `mapInArrow` over a DataFrame whose rows are all of one type. The extension of Spark
    knows the function by its name."""

    def omnigraph_read(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        from pyspark import TaskContext

        place = TaskContext.get()
        partition = 0 if place is None else int(place.partitionId())
        rows = 0

        def counted(first: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            nonlocal rows
            for batch in _combined(first, batches):
                rows += batch.num_rows
                yield batch

        first = next(batches, None)
        if first is None:
            return
        reader = pa.RecordBatchReader.from_batches(first.schema, counted(first))
        source = InputSource(job.names[number].name, "rows", rows=reader, type=type)
        part = FilePart(number, source, partition)
        yield answer_batch(partition, _shape(job, part, source, lambda: rows))

    return omnigraph_read


def _combined(first: pa.RecordBatch, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Spark's batches are too small for the cost of a batch."""
    held, rows = [first], first.num_rows
    for batch in batches:
        if rows >= _BATCH_ROWS:
            yield from pa.Table.from_batches(held).combine_chunks().to_batches()
            held, rows = [], 0
        held.append(batch)
        rows += batch.num_rows
    yield from pa.Table.from_batches(held).combine_chunks().to_batches()


def shape_source(job: ShapeJob, number: int, source: InputSource) -> ShapedPart:
    """Shapes a source that only this process can read: a stream, or rows in its memory."""
    return _shape(job, FilePart(number, source), source, lambda: 0)


def _shape(
    job: ShapeJob, part: FilePart, source: InputSource, lines: Callable[[], int]
) -> ShapedPart:
    made = 0
    # A part that runs again gives the same ids, and no two parts give the same.
    seed = f"{job.operation}/{part.number}/{part.part}"

    def new_ids(count: int) -> pa.Array:
        nonlocal made
        made += count
        return number_ids(seed, made - count, count)

    seen: list[int] = []
    reader = SourceReader(
        catalog=decode_catalog(job.catalog),
        names=job.names,
        complete=job.complete,
        every=job.every,
        new_ids=new_ids,
        chunk_bytes=_CHUNK,
        seen=seen.append,
    )
    shelf = _Shelf(job, f"{part.number}-{part.part}")
    rejects = RejectedShelf(job.spool)
    more = 0
    failure = None
    try:
        for shaped in reader.read(part.number, source):
            more += shaped.more
            told = shaped.rejects if job.every else shaped.rejects[: TOLD - len(rejects.few)]
            rejects.add(told)
            more += len(shaped.rejects) - len(told)
            shelf.add(shaped)
    except (InvalidData, InvalidArgument) as error:
        failure = to_failure(error)
    rejects.close()
    return ShapedPart(
        pieces=tuple(shelf.pieces()),
        rejects=tuple(rejects.few),
        aside=tuple(rejects.files),
        more=more,
        lines=lines(),
        bytes=sum(seen),
        failure=failure,
    )


class _Shelf:
    """Rows by type and by the properties that they give, until there are enough for a piece."""

    def __init__(self, job: ShapeJob, name: str) -> None:
        self._job = job
        self._name = name
        self._held: dict[tuple[str, tuple[str, ...]], list[tuple[pa.Table, bool]]] = {}
        self._done: list[SpoolPiece] = []

    def add(self, shaped: ShapedPortion) -> None:
        for rows in shaped.groups:
            given = () if self._job.complete else tuple(sorted(rows.given))
            key = (rows.kind.table_key, given)
            held = self._held.setdefault(key, [])
            held.append((rows.table, rows.generated))
            full = sum(table.num_rows for table, _ in held) >= PIECE_ROWS
            if full or _size(held) >= PIECE_BYTES:
                self._write(key)
        if sum(map(_size, self._held.values())) >= _SHELF_BYTES:
            for key in list(self._held):
                self._write(key)

    def pieces(self) -> list[SpoolPiece]:
        for key in list(self._held):
            self._write(key)
        return self._done

    def _write(self, key: tuple[str, tuple[str, ...]]) -> None:
        held = self._held.pop(key)
        schema = held[0][0].schema
        table = pa.concat_tables([rows.cast(schema) for rows, _ in held])
        # An attempt that failed may have left files of the same part.
        name = f"{self._name}-{len(self._done)}-{uuid4().hex[:12]}.arrow"
        self._done.append(
            SpoolPiece(
                key=self._job.spool.write(name, table),
                table=key[0],
                given=key[1],
                generated=all(generated for _, generated in held),
                rows=table.num_rows,
                bytes=table.nbytes,
            )
        )


def _size(held: list[tuple[pa.Table, bool]]) -> int:
    return sum(table.nbytes for table, _ in held)


class LineRange:
    """The lines of a file that begin within a range of bytes, as a stream that counts them."""

    def __init__(self, path: Path, start: int, stop: int) -> None:
        self._file: Any = path.open("rb")
        self._stop = stop
        self.lines = 0
        if start:
            self._file.seek(start - 1)
            self._file.readline()
        self._at = self._file.tell()

    def read(self, size: int) -> bytes:
        if self._at >= self._stop:
            return b""
        data: bytes = self._file.read(min(size, self._stop - self._at))
        if self._at + len(data) >= self._stop and not data.endswith(b"\n"):
            data += self._file.readline()
        self._at += len(data)
        if not data:
            self._at = self._stop
        self.lines += data.count(b"\n")
        return data

    def close(self) -> None:
        self._file.close()
