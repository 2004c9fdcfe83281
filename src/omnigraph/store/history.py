"""Owns the archive of a branch: graph versions that cleanup took from the chain, columnar.

A segment is one Arrow file for a stretch of numbers, named by them and never changed, so it needs
no pin: a number of a branch means one version for ever. Segments may overlap (two cleanups at
once); what they hold for a number is the same.
"""

from __future__ import annotations

import contextlib
import threading
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import pyarrow as pa

from omnigraph.errors import Corrupt
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.store.objects import Absent, Ambiguous, ObjectStore
from omnigraph.store.versions import decode_version, encode_branch

SEGMENT = 1024
"""Versions in a segment: what one request of a log brings."""
_OPEN = 8
_SCHEMA = pa.schema(
    [
        ("version", pa.int64()),
        ("incarnation", pa.int64()),
        ("commit", pa.string()),
        ("parents", pa.list_(pa.string())),
        ("created_at", pa.int64()),
        ("kind", pa.string()),
        ("actor", pa.string()),
        ("message", pa.string()),
        ("body", pa.binary()),
    ]
)


@dataclass(frozen=True)
class Segment:
    """Numbers and commits, from the first and lowest to the last and highest."""

    first: int
    last: int
    low: str
    high: str
    key: str


def archive_prefix(branch: str) -> str:
    return f"__history/{encode_branch(branch)}/"


class Archive:
    """The archived versions of one branch. Keeps a few segments, which never change."""

    def __init__(self, branch: str) -> None:
        self._branch = branch
        self._lock = threading.Lock()
        self._known: list[Segment] | None = None
        self._open: OrderedDict[str, pa.Table] = OrderedDict()

    def segments(self, objects: ObjectStore, *, fresh: bool = False) -> list[Segment]:
        """Oldest first."""
        if self._known is None or fresh:
            names = objects.list(archive_prefix(self._branch))
            self._known = sorted(map(_segment, names), key=lambda one: (one.first, one.last))
        return self._known

    def read(self, objects: ObjectStore, number: int) -> GraphVersion:
        """Raises `Absent`."""
        for fresh in (False, True):
            for segment in self.segments(objects, fresh=fresh):
                if segment.first <= number <= segment.last:
                    rows = self._rows(objects, segment)
                    body = rows["body"][number - segment.first].as_py()
                    found = decode_version(body, segment.key)
                    if (found.branch, found.version) != (self._branch, number):
                        raise Corrupt(f"{segment.key} holds another version for {number}.")
                    return found
        raise Absent(f"version {number} of {self._branch}")

    def find_commit(self, objects: ObjectStore, commit: str) -> GraphVersion | None:
        """Names of segments tell which ids they may hold: one listing, and as good as always one
        segment, because ids grow along a branch (except where it was forwarded)."""
        for segment in self.segments(objects, fresh=True):
            if segment.low <= commit <= segment.high:
                column = self._rows(objects, segment)["commit"].to_pylist()
                if commit in column:
                    return self.read(objects, segment.first + column.index(commit))
        return None

    def write(self, objects: ObjectStore, versions: Sequence[GraphVersion]) -> None:
        """Versions with numbers that follow each other, oldest first."""
        for start in range(0, len(versions), SEGMENT):
            part = versions[start : start + SEGMENT]
            ids = [version.commit.id for version in part]
            numbers = f"{part[0].version:020d}-{part[-1].version:020d}"
            key = f"{archive_prefix(self._branch)}{numbers}-{min(ids)}-{max(ids)}.arrow"
            data = _encode(part)
            for _ in range(5):
                with contextlib.suppress(Ambiguous):
                    objects.put_if_absent(key, data)
                if objects.exists(key):
                    break
            else:
                raise Corrupt(f"{key} was written, and is not there.")
        self._known = None

    def _rows(self, objects: ObjectStore, segment: Segment) -> pa.Table:
        with self._lock:
            if (rows := self._open.get(segment.key)) is not None:
                self._open.move_to_end(segment.key)
                return rows
        data = objects.get(segment.key)
        try:
            rows = pa.ipc.open_file(pa.py_buffer(data)).read_all()
        except (pa.ArrowException, OSError, ValueError) as error:
            raise Corrupt(f"{segment.key} cannot be read: {error}.") from error
        if rows.num_rows != segment.last - segment.first + 1:
            raise Corrupt(f"{segment.key} holds {rows.num_rows} versions.")
        with self._lock:
            self._open[segment.key] = rows
            while len(self._open) > _OPEN:
                self._open.popitem(last=False)
        return rows


def _segment(key: str) -> Segment:
    first, last, low, high = key.rsplit("/", 1)[1].removesuffix(".arrow").split("-")
    return Segment(int(first), int(last), low, high, key)


def _encode(versions: Sequence[GraphVersion]) -> bytes:
    rows = pa.Table.from_pylist([_row(version) for version in versions], schema=_SCHEMA)
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, _SCHEMA, options=options) as writer:
        writer.write_table(rows.combine_chunks())
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def _row(version: GraphVersion) -> dict[str, object]:
    commit: Commit = version.commit
    return {
        "version": version.version,
        "incarnation": version.incarnation,
        "commit": commit.id,
        "parents": list(commit.parents),
        "created_at": commit.created_at,
        "kind": commit.kind,
        "actor": commit.actor,
        "message": commit.message,
        "body": msgspec.json.encode(version),
    }
