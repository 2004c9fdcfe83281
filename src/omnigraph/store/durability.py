"""Owns which files on a disk a power cut must not take: those of fragments and of whole versions.

Lance syncs nothing. On an object store there is nothing to do.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from omnigraph.store.disk import directories_above, files_below, sync_files
from omnigraph.store.files import files_of_version
from omnigraph.store.tables import Table, fragment_paths


def sync_fragments(table: Table, fragments: Sequence[str]) -> None:
    """Lets the files of staged fragments survive: rows, large blobs and deletion files."""
    from lance.fragment import FragmentMetadata

    if table.directory is not None:
        staged: list[Any] = [FragmentMetadata.from_json(text) for text in fragments]
        _sync(table, [path for one in staged for path in fragment_paths(table, one)])


def sync_version(table: Table, base: Table) -> None:
    """Lets what this version has, and its base has not, survive."""
    if table.directory is None:
        return
    own, known = files_of_version(table), files_of_version(base)
    paths = [table.directory / key for key in own.files.keys() - known.files.keys()]
    for folder in own.folders.keys() - known.folders.keys():
        paths += files_below(table.directory / folder)
    _sync(table, paths)


def _sync(table: Table, paths: Iterable[Path]) -> None:
    assert table.directory is not None
    if found := [path for path in paths if path.exists()]:
        sync_files(found, directories_above(found, table.directory))
