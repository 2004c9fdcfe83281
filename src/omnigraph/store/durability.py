"""Owns the keys of the files on a disk that must survive a power cut.

Lance syncs nothing. On an object store there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from omnigraph.errors import Corrupt
from omnigraph.store.disk import directories_above, sync_files
from omnigraph.store.lance_errors import explained
from omnigraph.store.roots import Root
from omnigraph.store.tables import Table, fragment_keys


def sync_fragments(table: Table, fragments: Sequence[str]) -> None:
    """Makes the files of staged fragments durable: rows, large blobs and deletion files."""
    from lance.fragment import FragmentMetadata

    if table.directory is not None:
        with explained(table.location):
            staged: list[Any] = [FragmentMetadata.from_json(text) for text in fragments]
        keys = [key for one in staged for key in fragment_keys(table, one)]
        _sync(table.directory, [table.directory / key for key in keys])


def sync_keys(root: Root, keys: Sequence[str]) -> None:
    """Makes files durable whose names were noted when they were written."""
    if root.directory is not None:
        _sync(root.directory, paths_of(root, keys))


def paths_of(root: Root, keys: Sequence[str]) -> list[Path]:
    """The paths of files to sync. A plan that somebody else wrote may name anything, so only files
    below the root count."""
    if root.directory is None:
        return []
    for key in keys:
        if key.startswith("/") or ".." in PurePosixPath(key).parts:
            raise Corrupt(f"A plan names {key!r}, which is no file of the graph.")
    return [root.directory / key for key in keys]


def _sync(directory: Path, paths: Iterable[Path]) -> None:
    if found := [path for path in paths if path.exists()]:
        sync_files(found, directories_above(found, directory))
