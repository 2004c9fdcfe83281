"""Owns finding the file behind a failed read: Lance tells of a table, and somebody has to know
which object to bring back.

It runs only after something has failed, so it may cost: what must be there is looked for, and then
each fragment is read by itself.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from omnigraph.errors import Corrupt, OmnigraphError, StoreFailure
from omnigraph.store.disk import files_below
from omnigraph.store.panics import brief, explained
from omnigraph.store.precautions import require_sound_files

if TYPE_CHECKING:
    from omnigraph.store.tables import Table

_TRIED = 1 << 30
"""Bytes of a table up to which all of it is read to find what is wrong."""
_PATH = re.compile(r"(?:data|_deletions|_indices|_transactions)/[\w./-]*\w")


@contextlib.contextmanager
def reading(table: Table, fragments: Iterable[int] | None = None) -> Iterator[None]:
    """Reads of a table's files, or of those of some fragments: what fails names the file, and what
    would end the process is refused before."""
    require_sound_files(table, fragments)
    try:
        with explained(table.location):
            yield
    except (Corrupt, StoreFailure) as error:
        told = _told(table, None if fragments is None else set(fragments), error)
        raise told from error.__cause__


def _told(
    table: Table, fragments: set[int] | None, error: Corrupt | StoreFailure
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


def _wrong_files(table: Table, fragments: Iterable[int]) -> Iterator[str]:
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


def _is_readable(table: Table, number: int) -> bool:
    """Whether all of one fragment can be read by itself."""
    options: dict[str, Any] = {"blob_handling": "all_binary"} if table.blobs else {}
    try:
        with explained(table.location):
            fragment = table.handle.get_fragment(number)
            for _ in table.handle.scanner(fragments=[fragment], **options).to_batches():
                pass
    except OmnigraphError:
        return False
    return True


def _keys(table: Table, number: int) -> list[str]:
    mark, base = table.marks[number], table.location
    keys = [f"{base}/data/{name}" for name in mark.files]
    if table.directory is not None and table.blobs:
        beside = [table.directory / key.rsplit(".", 1)[0] for key in keys]
        found = [path for folder in beside for path in files_below(folder)]
        keys += [path.relative_to(table.directory).as_posix() for path in found]
    if mark.deletion is not None:
        keys.append(f"{base}/{mark.deletion}")
    return keys


def _index_files(table: Table) -> Iterator[str]:
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
