"""Owns the version file of a table: its name, and the parts of it that Lance does not expose."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_MAX_FRAGMENT_ID = 11
_TRANSACTION_FILE = 12
_PROPERTIES = 4


def version_file(location: str, version: str) -> str:
    """The first version of a table is attached, all others are detached."""
    number = int(version)
    name = f"{2**64 - 1 - number:020d}" if number < 2**63 else f"d{version}"
    return f"{location}/_versions/{name}.manifest"


def highest_fragment(handle: Any) -> int:
    """The highest fragment id that the table ever used."""
    given = 0
    for number, value in _fields(handle):
        if number == _MAX_FRAGMENT_ID and isinstance(value, int):
            given = value
    return given


def transaction_file(handle: Any) -> str | None:
    """The name of the transaction that made this version."""
    for number, value in _fields(handle):
        if number == _TRANSACTION_FILE and isinstance(value, bytes):
            return value.decode()
    return None


def properties_of(transaction: bytes) -> dict[str, str]:
    """The properties in the file of a transaction."""
    found = {}
    for number, entry in _protobuf_fields(transaction):
        if number == _PROPERTIES and isinstance(entry, bytes):
            pair = dict(_protobuf_fields(entry))
            name, value = pair.get(1, b""), pair.get(2, b"")
            if isinstance(name, bytes) and isinstance(value, bytes):
                found[name.decode()] = value.decode()
    return found


def _fields(handle: Any) -> Iterator[tuple[int, int | bytes]]:
    return _protobuf_fields(handle._ds.serialized_manifest())  # noqa: SLF001


def _protobuf_fields(data: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message, one level deep: numbers as such, everything else as bytes."""
    place = 0
    while place < len(data):
        tag, place = _varint(data, place)
        match tag & 7:
            case 0:
                value, place = _varint(data, place)
                yield tag >> 3, value
                continue
            case 2:
                size, place = _varint(data, place)
            case kind:
                size = 8 if kind == 1 else 4
        yield tag >> 3, data[place : place + size]
        place += size


def _varint(data: bytes, place: int) -> tuple[int, int]:
    value = shift = 0
    while data[place] & 0x80:
        value |= (data[place] & 0x7F) << shift
        place, shift = place + 1, shift + 7
    return value | data[place] << shift, place + 1
