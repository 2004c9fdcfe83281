"""Owns the tables of one root: it creates them, opens their versions, and keeps handles."""

from __future__ import annotations

import threading
from collections import OrderedDict
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.errors import Corrupt
from omnigraph.model.stored_text import is_file_name
from omnigraph.settings import Settings
from omnigraph.store.disk import (
    directories_above,
    explained_files,
    files_below,
    require_inside,
    sync_files,
)
from omnigraph.store.forks import process_mark, require_own, use_engines
from omnigraph.store.fragments import mark_of
from omnigraph.store.lance_errors import explained
from omnigraph.store.lance_requests import Tally
from omnigraph.store.oddities import find_odd, require_plain
from omnigraph.store.precautions import require_sound_end, wrong_index_files
from omnigraph.store.tables import Table
from omnigraph.store.version_files import version_file
from omnigraph.telemetry import Ledger

if TYPE_CHECKING:
    from omnigraph.store.roots import Root

_OPEN_TABLES = 512


class Tables:
    """The tables of one root. Opens and creates them, and keeps handles of immutable versions."""

    def __init__(self, root: Root, *, timeout: float = Settings.request_timeout) -> None:
        self._root = root
        self._options = root.lance_options(timeout)
        self._process = process_mark()
        self.tally = Tally()
        self._lock = threading.Lock()
        self._open: OrderedDict[tuple[str, str], Table] = OrderedDict()
        self._odd: dict[str, frozenset[str]] = {}
        self._own_blobs: set[str] = set()
        self._sound_files: set[str] = set()

    @cached_property
    def _lance(self) -> Any:
        use_engines()
        import lance  # 0.7 s: only when the first table is touched

        return lance

    @cached_property
    def _session(self) -> Any:
        return self._lance.Session()

    def create(self, location: str, schema: pa.Schema, ledger: Ledger) -> Table:
        """Makes the only attached commit in the life of a table. A location is never used twice."""
        require_own(self._process, self._root.uri)
        uri = f"{self._root.uri}/{location}"
        with explained(location):
            handle = self._lance.write_dataset(
                schema.empty_table(),
                uri,
                mode="create",
                schema=schema,
                enable_stable_row_ids=False,
                storage_options=self._options,
                session=self._session,
            )
        table = self._table(handle, location)
        table.book(ledger, "table", hops=lambda *_: 3 if table.directory else 4)
        if self._root.directory is not None:
            created = files_below(Path(uri))
            sync_files(created, directories_above(created, self._root.directory))
        return self._remember(table)

    def open(self, location: str, version: str, ledger: Ledger) -> Table:
        require_own(self._process, self._root.uri)
        key = (location, version)
        with self._lock:
            if (table := self._open.get(key)) is not None:
                self._open.move_to_end(key)
                return table
        self._require_plain(location, version)
        file = version_file(location, version)
        with explained(f"{location} ({file})", missing=file):
            handle = self._lance.dataset(
                f"{self._root.uri}/{location}",
                version=int(version),
                storage_options=self._options,
                session=self._session,
            )
            require_own_files(handle, location, version)
            self._require_plain_files(handle, location)
            schema = handle.schema  # Lance reads it now, and panics where it cannot
        table = self._table(handle, location)
        table.__dict__["schema"] = schema
        table.book(ledger, "table", writes=0, hops=lambda *_: 1 if table.directory else 2)
        return self._remember(table)

    def _table(self, handle: Any, location: str) -> Table:
        return Table(
            handle,
            location,
            self._root.directory,
            tally=self.tally,
            own_blobs=self._own_blobs,
            sound_files=self._sound_files,
        )

    def _require_plain(self, location: str, version: str) -> None:
        """Neither the folders of a table nor its version file may be links (decision 36). Each
        table is listed once in a process."""
        root = self._root.directory
        if root is None:
            return
        key = version_file(location, version)
        with explained_files(key):
            if location not in self._odd:
                require_inside(root, location)
                require_plain(root, (f"{location}/{name}" for name in find_odd(root / location)))
                self._odd[location] = frozenset(
                    f"{location}/{folder}/{name}"
                    for folder, depth in (("data", 0), ("_deletions", 0), ("_indices", 1))
                    for name in find_odd(root / location / folder, depth=depth)
                ).union(wrong_index_files(root, location))
            require_plain(root, [key])

    def _require_plain_files(self, handle: Any, location: str) -> None:
        """An odd entry in a table is an error only if this version names it; so is a damaged index
        file."""
        root, odd = self._root.directory, self._odd.get(location)
        if root is None or not odd:
            return
        for fragment in handle.get_fragments():
            mark = mark_of(fragment.metadata)
            names = [f"data/{file}" for file in mark.files]
            names += [] if mark.deletion is None else [mark.deletion]
            require_plain(root, odd.intersection(f"{location}/{name}" for name in names))
        for index in handle.describe_indices():
            for segment in index.segments:
                folder = f"{location}/_indices/{segment.uuid}"
                named = [key for key in odd if f"{key}/".startswith(f"{folder}/")]
                require_plain(root, named)
                require_sound_end(root, named)

    def _remember(self, table: Table) -> Table:
        with self._lock:
            self._open[table.location, table.version] = table
            while len(self._open) > _OPEN_TABLES:
                self._open.popitem(last=False)
        return table

    def keep(self, table: Table) -> None:
        """Keeps the handle of a version that was just made, so that nobody has to open it. The list
        of files to sync is not kept: the writer carries it to the put."""
        self._remember(table.carrying(()))


def require_own_files(handle: Any, location: str, version: str) -> None:
    """Raises if a version of a table names files outside the table: a Lance version file can name
    other folders, and paths in them. It is in memory by now. Names that we give contain no
    slash."""
    if bases := handle._ds.base_paths():  # noqa: SLF001
        named = ", ".join(sorted(str(base.path) for base in bases.values()))
        raise Corrupt(f"{version_file(location, version)} names files outside of it: {named}.")
    if b"/" not in handle._ds.serialized_manifest():  # noqa: SLF001
        return
    for fragment in handle.get_fragments():
        for file in fragment.metadata.files:
            if not is_file_name(file._path):  # noqa: SLF001
                raise Corrupt(
                    f"{version_file(location, version)} names the file {file._path!r}, outside of "  # noqa: SLF001
                    "its table."
                )
