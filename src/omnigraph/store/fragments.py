"""Owns what identifies the fragments and columns of table versions. It decides whether two versions
share the rows of a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple


@dataclass(frozen=True)
class FragmentMark:
    """Decides whether two versions share a fragment's rows."""

    id: int
    files: tuple[str, ...]
    deletion: str | None
    rows: int
    physical: int
    """Including deleted rows."""
    bytes: int = field(default=0, compare=False)


class TableColumn(NamedTuple):
    """Decides whether a column means the same in two versions that share a file: branches that each
    add one give one field id to both, and one name to two types (hazard 5)."""

    name: str
    field: int
    type: str


@dataclass(frozen=True)
class KnownSegment:
    """A segment of an index of a table version. `fragments` may name some that no longer exist."""

    uuid: str
    name: str
    fragments: frozenset[int]
    bytes: int | None = None
    columns: tuple[str, ...] = ()
    kind: str = ""
    """The kind of the index, as Lance calls it."""


def mark_of(metadata: Any) -> FragmentMark:
    deletion = metadata.deletion_file
    return FragmentMark(
        id=metadata.id,
        # The public `path` builds a class at each call, 60 µs a time.
        files=tuple(f._path for f in metadata.files),  # noqa: SLF001
        deletion=None if deletion is None else str(deletion.path(metadata.id)),
        rows=metadata.num_rows,
        physical=metadata.physical_rows,
        bytes=sum(f.file_size_bytes or 0 for f in metadata.files),
    )


def field_meanings(schema: Any) -> dict[int, str]:
    """The path of each field id of a Lance schema."""
    meanings: dict[int, str] = {}
    waiting = [("", f) for f in schema.fields()]
    while waiting:
        path, current = waiting.pop()
        path = f"{path}/{current.name()}"
        meanings[current.id()] = path
        waiting += [(path, child) for child in current.children()]
    return meanings
