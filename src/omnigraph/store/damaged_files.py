"""Owns finding the file behind a failed read. Lance names only a table, but the user must know
which object to restore.

It runs only after a failure, so it may be slow: it looks for every file that must exist, and then
reads each fragment separately.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import Any, Protocol

from omnigraph.errors import Corrupt, OmnigraphError, StoreFailure
from omnigraph.store.disk import files_below
from omnigraph.store.lance_errors import brief, explained
from omnigraph.store.precautions import WatchedTable, require_sound_files

_TRIED = 1 << 30
"""Up to this size, the whole table is read to find the damage."""
_PATH = re.compile(r"(?:data|_deletions|_indices|_transactions)/[\w./-]*\w")


class ReadableTable(WatchedTable, Protocol):
    """What this module needs of a table version; it is always called with a `Table`."""

    @property
    def handle(self) -> Any: ...
    @property
    def blobs(self) -> frozenset[str]: ...
    @property
    def indexed_columns(self) -> frozenset[str]: ...


@contextlib.contextmanager
def reading(table: ReadableTable, fragments: Iterable[int] | None = None) -> Iterator[None]:
    """Wraps reads of a table's files, or those of some fragments. An error names the file, and a
    file that would crash the process is refused first."""
    require_sound_files(table, fragments)
    try:
        with explained(table.location):
            yield
    except (Corrupt, StoreFailure) as error:
        named = _named_error(table, None if fragments is None else set(fragments), error)
        raise named from error.__cause__


def _named_error(
    table: ReadableTable, fragments: set[int] | None, error: Corrupt | StoreFailure
) -> Corrupt | StoreFailure:
    wanted = [mark.id for mark in table.marks.values() if not fragments or mark.id in fragments]
    if table.directory is not None and (wrong := list(_wrong_files(table, wanted))):
        return Corrupt(" ".join(wrong))
    words = str(error.__cause__ or "")
    named = sorted({f"{table.location}/{path}" for path in _PATH.findall(words)})
    if sum(table.marks[number].bytes for number in wanted) <= _TRIED:
        for number in wanted:
            if not _is_readable(table, number):
                named += [key for key in _keys(table, number) if key not in named]
    if not named and table.indexed_columns:
        named = sorted(_index_files(table))
    if not named:
        return error
    return Corrupt(f"{', '.join(named)} cannot be read: {brief(words) or error.message}")


def _wrong_files(table: ReadableTable, fragments: Iterable[int]) -> Iterator[str]:
    assert table.directory is not None
    for number in fragments:
        with explained(table.location):
            held_files = table.handle.get_fragment(number).metadata.files
        sizes = {
            f"{table.location}/data/{file._path}": file.file_size_bytes  # noqa: SLF001
            for file in held_files
        }
        for key in _keys(table, number):
            try:
                held = (table.directory / key).stat().st_size
            except OSError:
                yield f"{key} is missing."
                continue
            expected = sizes.get(key)
            if held == 0 or expected not in (None, held):
                yield f"{key} has {held} bytes; it should have {expected or 'some'}."


def _is_readable(table: ReadableTable, number: int) -> bool:
    """Whether all of one fragment can be read."""
    options: dict[str, Any] = {"blob_handling": "all_binary"} if table.blobs else {}
    try:
        with explained(table.location):
            fragment = table.handle.get_fragment(number)
            for _ in table.handle.scanner(fragments=[fragment], **options).to_batches():
                pass
    except OmnigraphError:
        return False
    return True


def _keys(table: ReadableTable, number: int) -> list[str]:
    mark, base = table.marks[number], table.location
    keys = [f"{base}/data/{name}" for name in mark.files]
    if table.directory is not None and table.blobs:
        beside = [table.directory / key.rsplit(".", 1)[0] for key in keys]
        found = [path for folder in beside for path in files_below(folder)]
        keys += [path.relative_to(table.directory).as_posix() for path in found]
    if mark.deletion is not None:
        keys.append(f"{base}/{mark.deletion}")
    return keys


def _index_files(table: ReadableTable) -> Iterator[str]:
    with explained(table.location):
        described = table.handle.describe_indices()
        uuids = [segment.uuid for index in described for segment in index.segments]
    for uuid in uuids:
        folder = f"{table.location}/_indices/{uuid}"
        if table.directory is None:
            yield folder
            continue
        for path in files_below(table.directory / folder):
            yield path.relative_to(table.directory).as_posix()
