"""Owns the check of a table's large values before one is read. A descriptor can name any file of
the machine (decision 36), and a flipped bit in it can give a length that no memory holds."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Corrupt
from omnigraph.store.damaged_files import ReadableTable, reading
from omnigraph.store.disk import explained_files
from omnigraph.store.fragments import FragmentMark
from omnigraph.store.lance_requests import Hops
from omnigraph.store.oddities import find_odd, require_plain
from omnigraph.telemetry import Ledger

_INLINE = 0
_DEDICATED = 2
"""The last kind that is stored in its table; the next kind can be anywhere."""


class BlobTable(ReadableTable, Protocol):
    """What this module needs of a table version. `own_blobs` are files that were checked."""

    @property
    def own_blobs(self) -> set[str]: ...
    def scan_hops(self, fragments: Iterable[int]) -> Hops: ...
    def book(self, ledger: Ledger, purpose: str, *, hops: Hops) -> None: ...


def require_own_blobs(
    table: BlobTable, columns: Iterable[str], fragments: Iterable[int] | None, ledger: Ledger
) -> None:
    """Each data file is checked once in a process."""
    names = sorted(columns)
    wanted = table.marks.keys() if fragments is None else fragments
    marks = [table.marks[number] for number in wanted if number in table.marks]
    unknown = [m for m in marks if not table.own_blobs.issuperset(_blob_marks(m, names))]
    if not unknown:
        return
    _require_plain_blobs(table, unknown)
    with reading(table, [mark.id for mark in unknown]):
        described = table.handle.scanner(
            columns=names,
            fragments=[table.handle.get_fragment(mark.id) for mark in unknown],
            blob_handling="blobs_descriptions",
        ).to_table()
    table.book(ledger, "blob", hops=table.scan_hops(mark.id for mark in unknown))
    files = [f"{table.location}/data/{file}" for mark in unknown for file in mark.files]
    for name in names:
        what = f"A value of {name!r} in the table {table.location} ({', '.join(files)})"
        _require_inside(described[name], what)
        _require_room(described[name], what, _largest(table, unknown, files))
    table.own_blobs.update(key for mark in unknown for key in _blob_marks(mark, names))


def _require_inside(described: pa.ChunkedArray, what: str) -> None:
    kinds, uris = (pc.struct_field(described, part) for part in ("kind", "blob_uri"))
    if pc.any(pc.or_(pc.greater(kinds, _DEDICATED), pc.not_equal(uris, ""))).as_py():
        raise Corrupt(
            f"{what} refers to a file outside of the graph.",
            help="Nothing outside of a graph is read for it. Do not trust this graph.",
        )


def _require_room(described: pa.ChunkedArray, what: str, largest: tuple[int, int | None]) -> None:
    """Lance allocates as much as a descriptor says, whatever it says."""
    kinds, places, sizes = (
        pc.fill_null(pc.struct_field(described, part), 0) for part in ("kind", "position", "size")
    )
    for inline, room in zip((True, False), largest, strict=True):
        if room is None:
            continue
        mine = pc.equal(kinds, _INLINE) if inline else pc.not_equal(kinds, _INLINE)
        limit = pa.scalar(room, pa.uint64())
        left = pc.subtract(limit, pc.min_element_wise(places, limit))
        beyond = pc.or_(pc.greater(places, limit), pc.greater(sizes, left))
        if pc.any(pc.and_(mine, beyond)).as_py():
            raise Corrupt(f"{what} is said to be longer than the file that holds it.")


def _largest(
    table: BlobTable, marks: Sequence[FragmentMark], files: Sequence[str]
) -> tuple[int, int | None]:
    """The sizes of the largest data file and of the largest file beside one, if they are known
    without a request."""
    data = max((mark.bytes for mark in marks), default=0)
    if table.directory is None:
        return data, None
    beside = [
        path.stat().st_size
        for file in files
        for path in (table.directory / file).with_suffix("").glob("*")
    ]
    return data, max(beside, default=None)  # Lance says which one is missing


def _require_plain_blobs(table: BlobTable, marks: Iterable[FragmentMark]) -> None:
    """Large values stored beside their data file must be files and not links."""
    if table.directory is None:
        return
    for mark in marks:
        for file in mark.files:
            folder = f"{table.location}/data/{file.rpartition('.')[0]}"
            with explained_files(folder):
                odd = find_odd(table.directory / folder)
                require_plain(table.directory, [folder, *(f"{folder}/{name}" for name in odd)])


def _blob_marks(mark: FragmentMark, columns: Iterable[str]) -> Iterator[str]:
    return (f"{file}/{column}" for file in mark.files for column in columns)
