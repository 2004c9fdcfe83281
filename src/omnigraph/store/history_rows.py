"""Owns the form of an archive segment: graph versions as rows of an Arrow file, each as what
differs from the one before it.

Versions that follow each other share nearly everything, and most of what is left are random
numbers. So who, when and what are columns, ids are bytes (a commit's begins with the millisecond
of its making, `microseconds` is what is left of that), and the rest of a version is a small JSON
delta. The token of a put is left out: it only matters while an answer may be on its way.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import pyarrow as pa
from ulid import ULID

from omnigraph.errors import Corrupt
from omnigraph.model.version import GraphVersion
from omnigraph.runtime import is_ulid

_LEVEL = 12
_SECOND = 1_000_000
_SUM = b"sha256"
_FIRST = b"first"
_NEAR = 2**31
_TEXTS = ("kind", "actor", "message")
_SCHEMA = pa.schema(
    [
        ("stored_at", pa.int64()),
        ("commit", pa.binary(16)),
        ("operation", pa.binary(16)),
        ("microseconds", pa.int32()),
        *((name, pa.dictionary(pa.int32(), pa.string())) for name in _TEXTS),
        ("rest", pa.binary()),
    ]
)

Fields = dict[str, Any]
"""A version as JSON has it."""


def encode_rows(versions: Sequence[GraphVersion], stored_at: Mapping[int, int]) -> bytes:
    """Versions with numbers that follow each other, with the times at which the store took them,
    where that is known."""
    columns: dict[str, list[Any]] = {name: [] for name in _SCHEMA.names}
    before: Fields = {}
    for version in versions:
        fields: Fields = msgspec.json.decode(msgspec.json.encode(version))
        row, rest = _split(fields, before)
        row |= {"stored_at": _rounded(stored_at.get(version.version))}
        row["rest"] = msgspec.json.encode(rest)
        for name, values in columns.items():
            values.append(row.get(name))
        before = fields
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression=pa.Codec("zstd", compression_level=_LEVEL))
    first = str(versions[0].version).encode()
    schema = _SCHEMA.with_metadata({_FIRST: first, _SUM: _checksum(first, columns)})
    with pa.ipc.new_file(sink, schema, options=options) as writer:
        arrays = [pa.array(columns[field.name], field.type) for field in _SCHEMA]
        writer.write_batch(pa.record_batch(arrays, schema=schema))
    packed: bytes = sink.getvalue().to_pybytes()
    return packed


def decode_rows(data: bytes, key: str) -> Iterator[tuple[Fields, int | None]]:
    """Each version, as JSON has it, with the time at which the store took it."""
    try:
        rows = pa.ipc.open_file(pa.py_buffer(data)).read_all()
        if not rows.schema.equals(_SCHEMA):
            raise Corrupt(f"{key} has other columns than a history has.")
        columns = {name: rows[name].to_pylist() for name in _SCHEMA.names}
        told = rows.schema.metadata or {}
        first = told.get(_FIRST, b"0")
        if _checksum(first, columns) != told.get(_SUM):
            raise Corrupt(f"{key} does not hold what was written: its checksum is another.")
    except (pa.ArrowException, OSError, ValueError) as error:
        raise Corrupt(f"{key} cannot be read: {error}.") from error
    before: Fields = {}
    for place in range(rows.num_rows):
        row = {name: values[place] for name, values in columns.items()}
        row["version"] = int(first) + place
        try:
            before = _join(row, msgspec.json.decode(row["rest"]), before)
        except (msgspec.DecodeError, LookupError, TypeError, ValueError) as error:
            raise Corrupt(f"{key} cannot be read at row {place}: {error!r}.") from error
        yield before, row["stored_at"]


def _checksum(first: bytes, columns: dict[str, list[Any]]) -> bytes:
    """Arrow keeps none, and nobody has these versions once more."""
    return hashlib.sha256(msgspec.msgpack.encode((first, columns))).hexdigest().encode()


def _rounded(time: int | None) -> int | None:
    """Up to a whole second: younger than it is, which only makes cleanup wait."""
    return None if time is None else -(-time // _SECOND) * _SECOND


def _split(fields: Fields, before: Fields) -> tuple[Fields, Fields]:
    """The columns of a row, and all else that differs from the row before."""
    commit = dict(fields["commit"])
    ulid = ULID.from_str(commit.pop("id"))
    row: Fields = {"commit": bytes(ulid)}
    after = commit["created_at"] - ulid.milliseconds * 1000
    if -_NEAR <= after < _NEAR:
        del commit["created_at"]
        row["microseconds"] = after
    row |= {name: commit.pop(name) for name in _TEXTS if name in commit}
    if is_ulid(commit["operation"]):
        row["operation"] = bytes(ULID.from_str(commit.pop("operation")))
    if before and commit["parents"] == [before["commit"]["id"]]:
        del commit["parents"]
    rest: Fields = {"commit": commit} if commit else {}
    for name, value in fields.items():
        if name in ("version", "token", "commit") or before.get(name) == value:
            continue
        match name:
            case "tables" if name in before:
                rest[name] = _changed_tables(before[name], value)
            case "keys":
                rest[name] = _added(before.get(name, []), value)
            case "same" if value == _same(before):
                rest[name] = True
            case _:
                rest[name] = value
    if gone := [name for name in before if name not in fields]:
        rest["-"] = gone
    return row, rest


def _join(row: Fields, rest: Fields, before: Fields) -> Fields:
    commit: Fields = rest.pop("commit", {})
    ulid = ULID(row["commit"])
    commit["id"] = str(ulid)
    if row["microseconds"] is not None:
        commit["created_at"] = ulid.milliseconds * 1000 + row["microseconds"]
    commit |= {name: row[name] for name in _TEXTS if row[name] is not None}
    if row["operation"] is not None:
        commit["operation"] = str(ULID(row["operation"]))
    if "parents" not in commit:
        commit["parents"] = [before["commit"]["id"]]
    gone = rest.pop("-", ())
    fields = {name: value for name, value in before.items() if name not in gone}
    for name, value in rest.items():
        match name:
            case "tables" if name in before:
                fields[name] = _apply_tables(before[name], value)
            case "keys":
                fields[name] = [*value[0], *before.get(name, [])][: value[1]]
            case "same" if value is True:
                fields[name] = _same(before)
            case _:
                fields[name] = value
    return fields | {"version": row["version"], "token": "", "commit": commit}


def _changed_tables(before: list[Fields], after: list[Fields]) -> list[Any]:
    """The order of the tables if it is another, and of each what is new."""
    known = {pin["key"]: pin for pin in before}
    changes = []
    for pin in after:
        old = known.get(pin["key"], {})
        differs = {
            name: value - old[name] if _counts(value) and _counts(old.get(name)) else value
            for name, value in pin.items()
            if old.get(name, ...) != value
        }
        if differs:
            changes.append({"key": pin["key"]} | differs)
    order = [pin["key"] for pin in after]
    return [changes] if order == list(known) else [changes, order]


def _apply_tables(before: list[Fields], changes: list[Any]) -> list[Fields]:
    pins = {pin["key"]: pin for pin in before}
    for change in changes[0]:
        old = pins.get(change["key"], {})
        pins[change["key"]] = old | {
            name: value + old[name] if _counts(value) and _counts(old.get(name)) else value
            for name, value in change.items()
        }
    return list(pins.values()) if len(changes) == 1 else [pins[key] for key in changes[1]]


def _counts(value: object) -> bool:
    """Numbers of tables are told by how far they moved: mostly by one, which is the same text."""
    return isinstance(value, int) and not isinstance(value, bool)


def _added(before: list[Any], after: list[Any]) -> list[Any]:
    """New ones come first, old ones fall off at the end: what came, and how many there are."""
    for count in range(len(after) + 1):
        if after[count:] == before[: len(after) - count]:
            return [after[:count], len(after)]
    raise AssertionError("nothing of a list is always a part of another")


def _same(before: Fields) -> list[str]:
    """What maintenance writes: the commit before, and those that were the same as that."""
    return [before["commit"]["id"], *before.get("same", [])][:64] if before else []
