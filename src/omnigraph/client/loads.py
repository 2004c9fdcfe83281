"""Owns loads into a server: whatever a load takes becomes one body, which is sent as it is read,
and can be sent again."""

from __future__ import annotations

import os
import tarfile
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import msgspec
import pyarrow as pa

from omnigraph.client.remote_jobs import await_job
from omnigraph.client.served_graph import ServedGraph
from omnigraph.client.writing import RemoteWrite, Sent, commit_in, landed, send
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.progress import LoadProgress, OnLoadProgress
from omnigraph.engine.load.result import LoadResult
from omnigraph.engine.load.sources import InputSource, find_sources
from omnigraph.errors import InvalidArgument, NotRemote
from omnigraph.model.changes import TypeCounts
from omnigraph.plan.load.places import Reject
from omnigraph.plan.rows.intake import ColumnFrame, read_input
from omnigraph.wire.values import plain

_KINDS = {
    "jsonl": "application/jsonl",
    "csv": "text/csv",
    "parquet": "application/vnd.apache.parquet",
}
_STREAM = "application/vnd.apache.arrow.stream"
_FILE = "application/vnd.apache.arrow.file"
_TAR = "application/x-tar"
_PIECE = 1 << 20
_REJECTS = 10_000


@dataclass(frozen=True)
class _LoadBody:
    """One file that is sent, and the type of its rows."""

    path: Path
    content_type: str
    coding: str | None = None
    type: str | None = None


def load_remote(served: ServedGraph, source: Any, options: LoadOptions) -> LoadResult:
    """As a load in this process, by one request. Above a size the server makes it a job, which is
    waited for."""
    if options.mapping is not None:
        raise NotRemote(
            "A server loads no mapping.",
            help="Load the files that it names one by one, or beside the storage.",
        )
    with ExitStack() as held:
        body = held.enter_context(_spooled(find_sources(source, options.type, None)))
        file = _SentFile(held.enter_context(body.path.open("rb")), body.path, options.progress)
        begins = options.create_branch_from
        query = {
            "mode": options.mode,
            "type": body.type,
            "branch": options.branch,
            "from": begins,
            "on_error": options.on_error,
            "message": options.commit.message,
            "rejects": _REJECTS,
        }
        headers = {"Content-Length": str(file.total)}
        if body.coding is not None:
            headers["Content-Encoding"] = body.coding
        write = RemoteWrite(
            "POST",
            "/load",
            options.branch,
            cast(IO[bytes], file),
            body.content_type,
            query=query,
            headers=headers,
            silence=3600.0,
        )
        sent = send(served, write, options.commit)
    if sent.answer.status == 202:
        sent = _ended(served, sent, options.progress)
    with landed(sent):
        return _result(served, sent)


def _ended(served: ServedGraph, sent: Sent, progress: OnLoadProgress | None) -> Sent:
    def tell(job: dict[str, Any]) -> None:
        if progress is not None:
            stage = str(job.get("doing") or job["state"])
            progress(LoadProgress(stage, int(job.get("done") or 0), 0, None))

    job = await_job(served, sent.told["id"], tell)
    told = dict(job["result"])
    if told.get("rejected"):
        told["rejects"] = [*served.lines(f"/jobs/{job['id']}/rejected")]
    return Sent(told, sent.repeated, sent.answer)


def _result(served: ServedGraph, sent: Sent) -> LoadResult:
    told = sent.told
    rejected = tuple(msgspec.convert(one, Reject) for one in told.get("rejects", ()))
    reason = str(told.get("reason", ""))
    if (more := int(told.get("rejected", 0)) - len(rejected)) > 0:
        reason += f" Of the rejected rows {more:,} more are not listed here."
    return LoadResult(
        told["branch"],
        told["mode"],
        commit_in(served, sent),
        msgspec.convert(told["counts"], dict[str, TypeCounts]),
        told["engine"],
        reason.strip(),
        rejected,
        sent.repeated,
        advice=tuple(told.get("advice", ())),
    )


class _SentFile:
    """A file that tells how far it has been sent."""

    def __init__(self, file: IO[bytes], path: Path, tell: OnLoadProgress | None) -> None:
        self._file = file
        self._tell = tell
        self.total = os.fstat(file.fileno()).st_size

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if self._tell is not None:
            self._tell(LoadProgress("sending", 0, self._file.tell(), self.total))
        return data

    def seek(self, place: int, whence: int = 0) -> int:
        return self._file.seek(place, whence)

    def tell(self) -> int:
        return self._file.tell()


# One body of whatever is given


@contextmanager
def _spooled(sources: list[InputSource]) -> Iterator[_LoadBody]:
    """Files are sent as they are. What can be read only once goes to a file first; several files
    become one archive."""
    with tempfile.TemporaryDirectory(prefix="omnigraph-load-") as folder:
        made = [_file_of(one, Path(folder), number) for number, one in enumerate(sources)]
        if len(made) == 1:
            yield made[0]
            return
        whole = Path(folder) / "sources.tar"
        with tarfile.open(whole, "w") as archive:
            for number, (body, one) in enumerate(zip(made, sources, strict=True)):
                archive.add(body.path, arcname=_name_of(number, body, one))
        yield _LoadBody(whole, _TAR)


def _name_of(number: int, body: _LoadBody, source: InputSource) -> str:
    """A name that says the order, the type and the form: `0003.Person.csv.gz`."""
    suffix = {_STREAM: "arrow", _FILE: "arrow"}.get(body.content_type) or source.format
    packed = {"gzip": ".gz", "zstd": ".zst", None: ""}[body.coding]
    return f"{number:04}.{body.type or ''}.{suffix}{packed}"


def _file_of(source: InputSource, folder: Path, number: int) -> _LoadBody:
    if source.path is not None:
        kind = _KINDS.get(source.format) or _arrow_kind(source.path)
        return _LoadBody(source.path, kind, source.compression, source.type)
    place = folder / f"spool{number}"
    if source.stream is not None:
        with place.open("wb") as file:
            _copy(source.stream, file)
        return _LoadBody(place, _KINDS["jsonl"], None, source.type)
    return _LoadBody(place, _spool_rows(source.rows, place), None, source.type)


def _arrow_kind(path: Path) -> str:
    with path.open("rb") as file:
        return _FILE if file.read(6) == b"ARROW1" else _STREAM


def _copy(stream: Any, file: IO[bytes]) -> None:
    while data := stream.read(_PIECE):
        file.write(data.encode() if isinstance(data, str) else data)


def _spool_rows(rows: Any, place: Path) -> str:
    """Frames as Arrow, dicts as lines."""
    reader = _reader_of(rows)
    if reader is not None:
        with pa.OSFile(str(place), "wb") as sink, pa.ipc.new_stream(sink, reader.schema) as out:
            for batch in reader:
                out.write_batch(batch)
        return _STREAM
    try:
        given = iter([rows] if isinstance(rows, dict) else rows)
    except TypeError:
        raise InvalidArgument(f"Rows cannot be read from {type(rows).__name__}.") from None
    with place.open("wb") as file:
        file.writelines(msgspec.json.encode(plain(row)) + b"\n" for row in given)
    return _KINDS["jsonl"]


def _reader_of(rows: Any) -> pa.RecordBatchReader | None:
    if isinstance(rows, pa.RecordBatchReader):
        return rows
    if isinstance(rows, dict | list | tuple) or hasattr(rows, "__next__"):
        return None
    if hasattr(rows, "__arrow_c_stream__") and not hasattr(rows, "iloc"):
        return pa.RecordBatchReader.from_stream(rows)
    frame = read_input(rows)
    if not isinstance(frame, ColumnFrame):
        return None
    columns = [pa.array(c) if isinstance(c, list) else c for c in frame.columns]
    if frame.whole_floats:
        columns = [_whole(one) for one in columns]
    return pa.table(dict(zip(map(str, frame.names), columns, strict=True))).to_reader()


def _whole(column: Any) -> Any:
    """pandas has floats where integers are missing. A property of floats takes integers, too."""
    if not pa.types.is_floating(column.type) or not column.null_count:
        return column
    try:
        return column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
