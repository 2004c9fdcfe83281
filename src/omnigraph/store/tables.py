"""Owns reading tables: one immutable version of the Lance dataset of a type.

Nothing outside `store` holds a Lance handle. `open_tables` opens versions; `staging` and `commits`
change tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.errors import Corrupt
from omnigraph.store.damaged_files import reading
from omnigraph.store.disk import (
    files_below,
)
from omnigraph.store.fragments import (
    FragmentMark,
    KnownSegment,
    TableColumn,
    field_meanings,
    mark_of,
)
from omnigraph.store.lance_errors import explained
from omnigraph.store.lance_requests import Hops, Tally, serial_hops
from omnigraph.store.large_values import require_own_blobs
from omnigraph.store.version_files import highest_fragment, version_file
from omnigraph.telemetry import Ledger

ADDRESS = "_rowaddr"
_LARGE_ROWS = 64 * 1024
_LARGE_BYTES = 16 << 20
_BLOB = "lance.blob"


@dataclass(frozen=True)
class Table:
    """One immutable version of a table."""

    handle: Any = field(repr=False)  # only for the modules of `store`
    location: str
    directory: Path | None = field(repr=False)
    inherited: tuple[dict[int, FragmentMark], frozenset[int]] = field(
        default=({}, frozenset()), repr=False
    )
    unsynced: tuple[str, ...] = field(default=(), repr=False)
    """Keys of files of this version that a power cut could still destroy. Only its writer has them;
    they are empty in a version that was opened."""
    tally: Tally = field(default_factory=Tally, repr=False, compare=False)
    own_blobs: set[str] = field(default_factory=set, repr=False, compare=False)
    """Data files whose large values are known to be inside the table, for all tables of a root."""
    sound_files: set[str] = field(default_factory=set, repr=False, compare=False)
    """Files that were checked before Lance read them, for all tables of a root."""
    looked_at: set[int] = field(default_factory=set, repr=False, compare=False)
    """Fragments of this version whose files were checked."""

    def carrying(self, unsynced: tuple[str, ...]) -> Table:
        """The same version with everything known about it, and these files to sync."""
        if self.unsynced == unsynced:
            return self
        same = object.__new__(Table)
        same.__dict__.update(self.__dict__, unsynced=unsynced)
        return same

    def own_handle(self) -> Any:
        """This version under a handle that nobody else has, without a request. Whatever Lance
        borrows for itself (building an index, moving a tag) fails every other user of the same
        handle meanwhile."""
        with explained(self.location):
            return copy(self.handle)

    @cached_property
    def version(self) -> str:
        with explained(self.location):
            return str(self.handle.version)

    @cached_property
    def schema(self) -> pa.Schema:
        with explained(self.location):
            return self.handle.schema

    @cached_property
    def rows(self) -> int:
        with reading(self, ()):
            return int(self.handle.count_rows())

    @cached_property
    def marks(self) -> dict[int, FragmentMark]:
        """Reads only the fragments that the version before did not have: a commit of one row must
        not cost a walk over all fragments."""
        before, changed = self.inherited
        with explained(self.location):
            get = self.handle.get_fragment
            return {
                number: before[number]
                if number in before and number not in changed
                else mark_of(get(number).metadata)
                for number in self.handle.fragment_ids()
            }

    def mark_of(self, number: int) -> FragmentMark | None:
        """The mark of one fragment, without a walk over all of them."""
        if "marks" in self.__dict__:
            return self.marks.get(number)
        with explained(self.location):
            fragment = self.handle.get_fragment(number)
        return None if fragment is None else mark_of(fragment.metadata)

    @cached_property
    def fields(self) -> dict[int, str]:
        """The meaning of each field id of this version: its path and type."""
        types = {f"/{f.name}": f"{f.type} {f.nullable}" for f in self.schema}
        with explained(self.location):
            meanings = field_meanings(self.handle.lance_schema)
        return {n: f"{path} {types.get(path, '')}" for n, path in meanings.items()}

    @cached_property
    def columns(self) -> dict[str, TableColumn]:
        """The columns by name."""
        with explained(self.location):
            ids = {field.name(): field.id() for field in self.handle.lance_schema.fields()}
        return {f.name: TableColumn(f.name, ids[f.name], str(f.type)) for f in self.schema}

    def column(self, name: str) -> TableColumn:
        """One that the schema names; the schema is another object than the table."""
        if (found := self.columns.get(name)) is None:
            named = version_file(self.location, self.version)
            raise Corrupt(f"{named} has no column {name!r}, which its schema names.")
        return found

    @cached_property
    def highest_fragment(self) -> int:
        """The highest fragment id that this table ever gave."""
        with explained(self.location):
            return highest_fragment(self.handle)

    @cached_property
    def is_remote(self) -> bool:
        """Whether a request goes over a network, so that few are better than small ones."""
        with explained(self.location):
            scheme, separator, _ = str(self.handle.uri).partition("://")
        return bool(separator) and scheme != "file"

    @cached_property
    def indexed_columns(self) -> frozenset[str]:
        return frozenset(column for segment in self.segments for column in segment.columns)

    @cached_property
    def segments(self) -> tuple[KnownSegment, ...]:
        """All segments of all indexes."""
        with explained(self.location):
            return tuple(
                KnownSegment(
                    str(segment.uuid),
                    index.name,
                    frozenset(segment.fragment_ids),
                    segment.size_bytes,
                    tuple(index.field_names),
                    str(index.type_url),
                )
                for index in self.handle.describe_indices()
                for segment in index.segments
            )

    @cached_property
    def takes_filters(self) -> bool:
        """Whether Lance accepts a filter over any columns of the table. If a column holds lists of
        unsigned integers, it accepts none."""
        kinds = [held.type for held in self.schema if pa.types.is_list(held.type)]
        return not any(pa.types.is_unsigned_integer(kind.value_type) for kind in kinds)

    @cached_property
    def blobs(self) -> frozenset[str]:
        return frozenset(f.name for f in self.schema if _BLOB in str(f.type))

    def book(
        self,
        ledger: Ledger,
        purpose: str,
        *,
        reads: int | None = None,
        writes: int | None = None,
        hops: Hops = serial_hops,
    ) -> None:
        """Moves requests that Lance made into the ledger: this many, or all that nobody has
        booked."""
        with explained(self.location):
            self.tally.book(self.handle, ledger, purpose, reads=reads, writes=writes, hops=hops)

    def scan_hops(self, fragments: Iterable[int]) -> Hops:
        """Lance says how many requests it made, not which waited for which. It reads fragments in
        parallel: first their deletion files, then their data. A large file takes several requests
        in a row, and so does a filter that leaves few rows."""
        marks = [self.marks[number] for number in fragments if number in self.marks]
        deletions = sum(mark.deletion is not None for mark in marks)

        def hops(reads: int, _: int) -> int:
            rest = max(reads - deletions, 0)
            return min(reads, (deletions > 0) + -(-rest // max(len(marks), 1)))

        return hops

    # Reading

    def fragments(self, numbers: Iterable[int]) -> list[Any]:
        """Fragments in Lance's form, only for the modules of `store`."""
        with explained(self.location):
            return [self.handle.get_fragment(number) for number in numbers]

    def scan(
        self,
        columns: Sequence[str],
        ledger: Ledger,
        *,
        filter: pc.Expression | None = None,
        addresses: bool = False,
        fragments: Sequence[int] | None = None,
        large: bool = False,
        purpose: str = "scan",
    ) -> Iterator[pa.RecordBatch]:
        """Batches in storage order. With `addresses`, each row's address is the last column.
        `large` batches, with as many rows as fit into some megabytes, are for callers that read to
        the end and pay for each batch."""
        options: dict[str, Any] = {}
        if large:
            options |= {"batch_size": _LARGE_ROWS, "batch_size_bytes": _LARGE_BYTES}
        if large_values := self.blobs.intersection(columns):
            options["blob_handling"] = "all_binary"
            self.require_own_blobs(large_values, fragments, ledger)
        if fragments is not None:
            if not fragments:
                return
            options["fragments"] = self.fragments(fragments)
        names, told, later = list(columns), filter, None
        if filter is not None and not self.takes_filters:
            others = [name for name in self.schema.names if name not in self.blobs]
            names, told, later = list(dict.fromkeys([*names, *others])), None, filter
        try:
            with reading(self, fragments):
                scanner = self.handle.scanner(
                    columns=names, filter=told, with_row_address=addresses, **options
                )
                for batch in scanner.to_batches():
                    if later is None:
                        yield batch
                    else:
                        kept = [*columns, *([ADDRESS] if addresses else [])]
                        yield batch.filter(later).select(kept)
        finally:
            read = self.marks if fragments is None else fragments
            self.book(ledger, purpose, hops=self.scan_hops(read))

    def read_physical(
        self, columns: Sequence[str], fragments: Sequence[int], ledger: Ledger
    ) -> pa.Table:
        """Every row of these fragments in storage order, including deleted ones: a data file holds
        the same rows in every version that has it."""
        with reading(self, fragments):
            rows = self.handle.scanner(
                columns=list(columns),
                fragments=self.fragments(fragments),
                with_row_id=True,
                include_deleted_rows=True,
                scan_in_order=True,
            ).to_table()
        self.book(ledger, "columns", hops=self.scan_hops(fragments))
        return rows.select(list(columns))

    def take(self, addresses: np.ndarray, columns: Sequence[str], ledger: Ledger) -> pa.Table:
        """The live rows among these, with their addresses."""
        names = [*columns, ADDRESS]
        if self.blobs.intersection(columns):
            return self._take_blobs(addresses, columns, ledger)
        with reading(self, np.unique(addresses >> np.uint64(32)).tolist()):
            rows = self.handle._take_rows(addresses.tolist(), columns=names)  # noqa: SLF001
        touched = len(np.unique(addresses >> np.uint64(32)))
        # A fragment's deletion file and its data are asked for at once.
        self.book(ledger, "take", hops=lambda reads, _: -(-reads // max(2 * touched, 1)))
        return rows

    def require_own_blobs(
        self, columns: Iterable[str], fragments: Iterable[int] | None, ledger: Ledger
    ) -> None:
        """Raises if a large value is outside this table, or cannot exist."""
        require_own_blobs(self, columns, fragments, ledger)

    def _take_blobs(
        self, addresses: np.ndarray, columns: Sequence[str], ledger: Ledger
    ) -> pa.Table:
        touched = {int(address) >> 32 for address in addresses}
        self.require_own_blobs(self.blobs.intersection(columns), touched, ledger)
        listed = ",".join(str(int(address)) for address in addresses)
        with reading(self, touched):
            rows = self.handle.scanner(
                columns=list(columns),
                filter=f"{ADDRESS} IN ({listed})",
                with_row_address=True,
                blob_handling="all_binary",
            ).to_table()
        self.book(ledger, "take", hops=self.scan_hops(np.unique(addresses >> np.uint64(32))))
        return rows


def fragment_keys(table: Table, metadata: Any) -> list[str]:
    """The files of a fragment on a disk: its rows, large blobs beside them, and its deletion
    file."""
    assert table.directory is not None
    base, root = table.location, table.directory
    keys = [f"{base}/data/{file._path}" for file in metadata.files]  # noqa: SLF001
    if table.blobs:
        beside = [found for key in keys for found in files_below((root / key).with_suffix(""))]
        keys += [found.relative_to(root).as_posix() for found in beside]
    if metadata.deletion_file is not None:
        keys.append(f"{base}/{metadata.deletion_file.path(metadata.id)}")
    return keys
