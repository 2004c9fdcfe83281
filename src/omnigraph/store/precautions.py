"""Owns a check of a table's files before Lance trusts them. Lance allocates as much as the last
bytes of a data file, or a deletion file, say. A flipped bit there kills the process without an
explanation.

It reads some hundred bytes of each file, once in a process, and only on a disk: an object store
checks its contents by itself.
"""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from omnigraph.errors import Corrupt
from omnigraph.store.fragments import FragmentMark
from omnigraph.store.lance_errors import brief

_FOOTER = struct.Struct("<QQQIIHH4s")
_PLACE = struct.Struct("<QQ")
_MAGIC = b"LANC"
_INDEXES = (".lance", ".idx")
_MOST_DELETED = 1 << 40
_MESSAGE = b"\xff\xff\xff\xff"
_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK

_NAME = re.compile(rb"/lance\.encodings[0-9]*\.[A-Za-z]+")
_ENDS = (b".ColumnEncoding", b".PageLayout", b".ArrayEncoding")
_ENCODING, _PAGES, _OF_PAGE, _DIRECT, _CONTENT, _TYPE = 1, 2, 4, 2, 1, 1
_LONGEST = 10
"""Bytes of a number."""
_VARINT, _EIGHT, _BYTES, _FOUR = 0, 1, 2, 5


class WatchedTable(Protocol):
    """What this module needs of a table version. `sound_files` were checked, including all files of
    the fragments in `looked_at`."""

    @property
    def location(self) -> str: ...
    @property
    def directory(self) -> Path | None: ...
    @property
    def marks(self) -> Mapping[int, FragmentMark]: ...
    @property
    def sound_files(self) -> set[str]: ...
    @property
    def looked_at(self) -> set[int]: ...
    def mark_of(self, number: int) -> FragmentMark | None: ...


def require_sound_files(table: WatchedTable, fragments: Iterable[int] | None) -> None:
    """Raises if a file of these fragments, or of any fragment, would crash Lance."""
    if table.directory is None:
        return
    wanted = frozenset(table.marks if fragments is None else fragments) - table.looked_at
    for number in wanted:
        mark = table.mark_of(number)
        if mark is None:
            continue
        for name in mark.files:
            if "\0" in name:
                raise Corrupt(f"A version of {table.location} names a file {name!r}.")
            key = f"{table.location}/data/{name}"
            if key not in table.sound_files:
                require_sound_end(table.directory, [key])
                table.sound_files.add(key)
        if mark.deletion is not None:
            key = f"{table.location}/{mark.deletion}"
            if key not in table.sound_files:
                _require_sound_deletion(table.directory, key)
                table.sound_files.add(key)
        table.looked_at.add(number)


def require_sound_end(root: Path, keys: Iterable[str]) -> None:
    for key in keys:
        if (wrong := find_wrong_end(root / key)) is not None:
            raise Corrupt(f"{key} {wrong}.")


def _require_sound_deletion(root: Path, key: str) -> None:
    """Deleted rows are listed in an Arrow file. Its lengths are in its messages and at its end:
    Lance trusts the former, Arrow uses the latter, and both must agree. Files with another ending
    are bitmaps, which Lance checks."""
    if not key.endswith(".arrow"):
        return
    try:
        data = (root / key).read_bytes()
        rows = pa.ipc.open_file(data).read_all()
        rows.validate(full=True)
        messages = data[max(data.find(_MESSAGE), 0) :]
        same = pa.ipc.open_stream(messages).read_all().equals(rows) and _fits(messages)
    except FileNotFoundError:
        return  # reading it reports the error
    except (pa.ArrowException, ValueError, OSError, StopIteration) as error:
        raise Corrupt(f"{key} cannot be read: {brief(str(error))}") from error
    if not same:
        raise Corrupt(f"{key} cannot be read: its end tells of something else than its beginning.")


def _fits(messages: bytes) -> bool:
    """The packed buffers begin with their lengths, or -1. Arrow skips the first one, for nulls,
    because there are none; Lance allocates memory for it."""
    reader = pa.ipc.MessageReader.open_stream(messages)
    reader.read_next_message()
    body = reader.read_next_message().body
    length = int.from_bytes(body[:8].to_pybytes(), "little", signed=True)
    return length <= _MOST_DELETED


def wrong_index_files(root: Path, location: str) -> list[str]:
    """Index files are data files too, each in the folder of its segment."""
    return [
        path.relative_to(root).as_posix()
        for path in (root / location / "_indices").glob("*/*")
        if path.suffix in _INDEXES and find_wrong_end(path) is not None
    ]


def find_wrong_end(path: Path) -> str | None:
    """What is wrong with the end of a data file. None also if it cannot be read at all, which
    reading it will report."""
    try:
        held = os.open(path, _READ)
    except OSError:
        return None
    try:
        size = os.fstat(held).st_size
        if size < _FOOTER.size:
            return f"has {size} bytes, which is less than its end alone"
        return _look(held, size)
    except OSError:
        return None
    finally:
        os.close(held)


def _look(held: int, size: int) -> str | None:
    end = os.pread(held, _FOOTER.size, size - _FOOTER.size)
    metadata, columns, buffers, buffer_count, column_count, _, _, magic = _FOOTER.unpack(end)
    if magic != _MAGIC:
        return "does not end as a data file does"
    tables = (buffer_count + column_count) * _PLACE.size
    consistent = (
        metadata <= columns
        and columns + column_count * _PLACE.size == buffers
        and buffers + buffer_count * _PLACE.size == size - _FOOTER.size
    )
    if not consistent:
        return "has an end that does not fit its length"
    places = list(_PLACE.iter_unpack(os.pread(held, tables, columns)))
    if any(place > size or length > size - place for place, length in places):
        return "names parts of itself that lie beyond its end"
    told = os.pread(held, columns - metadata, metadata)
    if _is_doubtful(told):
        of_columns = places[:column_count]
        if any(
            b"\0" in name
            for place, length in of_columns
            for name in _encoding_names(os.pread(held, length, place))
        ):
            return "names an encoding that is none"
    return None


# A name of an encoding that Lance does not know goes into the words of its error, and a NUL in
# those words ends the process: they become a text of C on their way to Python.


def _is_doubtful(metadata: bytes) -> bool:
    """Whether it is worth to look at each name: one of them lacks its beginning or its end, or has
    another length than is told before it."""
    names = list(_NAME.finditer(metadata))
    if sum(map(metadata.count, _ENDS)) != len(names):
        return True
    return any(
        metadata[name.start() - 2 : name.start()] != b"\n" + bytes([name.end() - name.start()])
        for name in names
    )


def _encoding_names(column: bytes) -> Iterator[bytes]:
    """Those that the description of a column holds, its own and those of its pages, as far as it
    can be read."""
    for number, value in _fields(column):
        if number == _ENCODING:
            yield from _names(value)
        elif number == _PAGES:
            for inner, held in _fields(value):
                if inner == _OF_PAGE:
                    yield from _names(held)


def _names(encoding: bytes) -> Iterator[bytes]:
    for content in _inside(encoding, _DIRECT, _CONTENT):
        yield from (value for number, value in _fields(content) if number == _TYPE)


def _inside(message: bytes, *path: int) -> Iterator[bytes]:
    if not path:
        yield message
        return
    for number, value in _fields(message):
        if number == path[0]:
            yield from _inside(value, *path[1:])


def _fields(message: bytes) -> Iterator[tuple[int, bytes]]:
    """The fields of a protobuf message that are bytes; it ends where nothing can be read."""
    place = 0
    while place < len(message):
        tag, place = _varint(message, place)
        kind = tag & 7
        if kind == _VARINT:
            _, place = _varint(message, place)
        elif kind == _BYTES:
            length, place = _varint(message, place)
            yield tag >> 3, message[place : place + length]
            place += length
        elif kind in (_EIGHT, _FOUR):
            place += 8 if kind == _EIGHT else 4
        else:
            return


def _varint(message: bytes, start: int) -> tuple[int, int]:
    """The number, and the place behind it."""
    value = 0
    for count, byte in enumerate(message[start : start + _LONGEST]):
        value |= (byte & 0x7F) << (7 * count)
        if byte < 0x80:
            return value, start + count + 1
    return 0, len(message)
