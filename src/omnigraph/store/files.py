"""Owns the files of table versions: which files a version needs to be read."""

from __future__ import annotations

from dataclasses import dataclass, field

from omnigraph.store.indexes import list_segments
from omnigraph.store.lance_errors import explained
from omnigraph.store.ownership import LOCATION
from omnigraph.store.tables import Table
from omnigraph.store.version_files import transaction_file, version_file

CANDIDATES = ("data/", "_deletions/", "_indices/", "_transactions/", "_versions/d")
"""The folders below a table's location whose files belong to versions. The rest belongs to the
table."""


@dataclass(frozen=True)
class TableFiles:
    """Keys with their sizes, None if Lance does not say. `folders` are needed completely, each with
    the total size of its files."""

    files: dict[str, int | None] = field(default_factory=dict)
    folders: dict[str, int | None] = field(default_factory=dict)


def files_of_version(table: Table) -> TableFiles:
    """All files of this version of a table."""
    base = table.location
    files: dict[str, int | None] = {version_file(base, table.version): None}
    folders: dict[str, int | None] = {}
    with explained(base):
        if (transaction := transaction_file(table.handle)) is not None:
            files[f"{base}/_transactions/{transaction}"] = None
        for fragment in table.handle.get_fragments():
            metadata = fragment.metadata
            for file in metadata.files:
                name = file._path  # noqa: SLF001  (the public one builds a class at each call)
                files[f"{base}/data/{name}"] = file.file_size_bytes
                # Blobs above some size lie beside the file, in a folder of its name.
                folders[f"{base}/data/{name.rsplit('.', 1)[0]}/"] = None
            if metadata.deletion_file is not None:
                files[f"{base}/{metadata.deletion_file.path(metadata.id)}"] = None
        for segment in list_segments(table):
            folders[f"{base}/_indices/{segment.uuid}/"] = segment.bytes
    return TableFiles(files, folders)


def is_candidate(key: str, location: str) -> bool:
    return key.removeprefix(f"{location}/").startswith(CANDIDATES)


def location_of(key: str) -> str | None:
    """The table that contains a key, or None for a key outside all tables."""
    parts = key.split("/", 2)
    location = "/".join(parts[:2])
    return location if len(parts) == 3 and LOCATION.fullmatch(location) else None
