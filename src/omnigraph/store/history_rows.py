"""Owns the form of an archive segment: graph versions as rows of an Arrow stream, each as its
difference from the one before.

Regular data takes almost no room: times are stored as increments, the ids of one writer are counted
on from each other, an operation is stored as its distance before its commit, and the rest of a
version is one of a few texts (`history_steps`). Only random numbers remain. The token of a put is
left out, because it matters only while an answer may be under way.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa

from omnigraph.errors import Corrupt
from omnigraph.model.version import GraphVersion
from omnigraph.runtime import encode_ulid, is_ulid, ulid_number
from omnigraph.store.history_steps import Fields, apply_step, diff_fields

_LEVEL = 19
_SECOND = 1_000_000
_SUM = b"sha256"
_FIRST = b"first"
_RANDOM = 80
_COUNTED = 32
"""How many bits of an id are a counter; the bits above them are random (`runtime`)."""
_NEAR = 2**31
_TEXTS = ("kind", "actor", "message")
_UNSOUND = (
    *(msgspec.DecodeError, LookupError, StopIteration, TypeError, ValueError),
    *(AttributeError, OverflowError, RecursionError, UnicodeError),
)
"""The errors raised for rows that no program of ours has written."""
_SCHEMA = pa.schema(
    [
        ("stored_at", pa.int64()),
        ("later", pa.int64()),
        ("writer", pa.dictionary(pa.int32(), pa.binary(6))),
        ("counted", pa.int64()),
        ("began", pa.int32()),
        ("drawn", pa.int32()),
        *((name, pa.dictionary(pa.int32(), pa.string())) for name in _TEXTS),
        ("pins", pa.list_(pa.uint64())),
        ("rest", pa.dictionary(pa.int32(), pa.binary())),
    ]
)


def encode_rows(versions: Sequence[GraphVersion], stored_at: Mapping[int, int]) -> bytes:
    """Versions with consecutive numbers, with the times at which the store received them, where
    known."""
    columns: dict[str, list[Any]] = {name: [] for name in _SCHEMA.names}
    before: Fields = {}
    ids = _Ids()
    for version in versions:
        fields: Fields = msgspec.json.decode(msgspec.json.encode(version))
        step, pins = diff_fields(before, fields)
        row, commit = ids.split(dict(fields["commit"]))
        if before and commit["parents"] == [before["commit"]["id"]]:
            del commit["parents"]
        row["stored_at"] = _rounded(stored_at.get(version.version))
        row["pins"] = pins or None
        row["rest"] = msgspec.json.encode({"commit": commit} | step if commit else step)
        for name, values in columns.items():
            values.append(row.get(name))
        before = fields
    return _pack(columns, str(versions[0].version).encode())


def decode_rows(data: bytes, key: str) -> Iterator[tuple[Fields, int | None]]:
    """Each version in the form of JSON, with the time at which the store received it."""
    columns, first = _unpack(data, key)
    before: Fields = {}
    ids = _Ids()
    for place, rest in enumerate(columns["rest"]):
        row = {name: values[place] for name, values in columns.items()}
        try:
            step = msgspec.json.decode(rest)
            commit = ids.join(row, step.get("commit", {}))
            if "parents" not in commit:
                commit["parents"] = [before["commit"]["id"]]
            fields = apply_step(before, step, row["pins"] or [], commit["id"])
        except _UNSOUND as error:
            raise Corrupt(f"{key} cannot be read at row {place}: {error!r}.") from error
        before = fields | {"version": first + place, "token": "", "commit": commit}
        yield before, row["stored_at"]


class _Ids:
    """Commits as numbers that continue from those before them. The same in both directions."""

    def __init__(self) -> None:
        self._time = 0
        self._last: Counter[bytes] = Counter()

    def split(self, commit: Fields) -> tuple[Fields, Fields]:
        """The columns of a commit, and the rest of it."""
        number = ulid_number(commit.pop("id"))
        created = commit.pop("created_at")
        milliseconds, random = number >> _RANDOM, number % 2**_RANDOM
        writer = (random >> _COUNTED).to_bytes(6)
        counted = random % 2**_COUNTED
        row: Fields = {name: commit.pop(name) for name in _TEXTS if name in commit}
        row |= {
            "later": created - self._time,
            "writer": writer,
            "counted": counted - self._last[writer],
        }
        self._time, self._last[writer] = created, counted
        if (apart := milliseconds - created // 1000) != 0:
            commit["apart"] = apart
        if is_ulid(commit["operation"]):
            operation = ulid_number(commit["operation"])
            began = milliseconds - (operation >> _RANDOM)
            drawn = random - operation % 2**_RANDOM
            if abs(began) < _NEAR and abs(drawn) < _NEAR:
                del commit["operation"]
                row |= {"began": began, "drawn": drawn}
        return row, commit

    def join(self, row: Fields, commit: Fields) -> Fields:
        created = self._time + row["later"]
        counted = self._last[row["writer"]] + row["counted"]
        self._time, self._last[row["writer"]] = created, counted
        milliseconds = created // 1000 + commit.pop("apart", 0)
        random = (int.from_bytes(row["writer"]) << _COUNTED) + counted
        if row["began"] is not None:
            commit["operation"] = encode_ulid(milliseconds - row["began"], random - row["drawn"])
        commit |= {name: row[name] for name in _TEXTS if row[name] is not None}
        return commit | {"id": encode_ulid(milliseconds, random), "created_at": created}


def _pack(columns: dict[str, list[Any]], first: bytes) -> bytes:
    """Compressed as a whole: by itself, each buffer's frame would take as much as its contents."""
    sink = pa.BufferOutputStream()
    schema = _SCHEMA.with_metadata({_FIRST: first, _SUM: _checksum(first, columns)})
    with pa.ipc.new_stream(sink, schema) as writer:
        arrays = [pa.array(columns[field.name], field.type) for field in _SCHEMA]
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    codec = pa.Codec("zstd", compression_level=_LEVEL)
    packed: bytes = codec.compress(sink.getvalue(), asbytes=True)
    return packed


def _unpack(data: bytes, key: str) -> tuple[dict[str, list[Any]], int]:
    try:
        with pa.input_stream(pa.py_buffer(data), compression="zstd") as unpacked:
            rows = pa.ipc.open_stream(unpacked).read_all()
        rows.validate(full=True)  # it may come from anybody
        if not rows.schema.equals(_SCHEMA):
            raise Corrupt(f"{key} has other columns than a history has.")
        columns = {name: rows[name].to_pylist() for name in _SCHEMA.names}
        told = rows.schema.metadata or {}
        first = told.get(_FIRST, b"0")
        if _checksum(first, columns) != told.get(_SUM):
            raise Corrupt(f"{key} does not hold what was written: its checksum is another.")
        return columns, int(first)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Corrupt(f"{key} cannot be read: {error}.") from error


def _checksum(first: bytes, columns: dict[str, list[Any]]) -> bytes:
    """Arrow keeps no checksums, and nobody has another copy of these versions."""
    return hashlib.sha256(msgspec.msgpack.encode((first, columns))).hexdigest().encode()


def _rounded(time: int | None) -> int | None:
    """Up to a whole second. This makes it seem younger, so cleanup only waits longer."""
    return None if time is None else -(-time // _SECOND) * _SECOND
