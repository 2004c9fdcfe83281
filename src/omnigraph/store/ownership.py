"""Owns which names below a root belong to this program, by their form."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from omnigraph.errors import RootNotEmpty
from omnigraph.store.disk import explained_files
from omnigraph.store.objects import OF_THE_SYSTEM, ObjectStore
from omnigraph.store.roots import Root

LOCATION = re.compile(r"(?:nodes|edges)/[0-9a-f]{16}-[0-9A-HJKMNP-TV-Z]{26}")
"""The location of a type's table: the hash of its name, and a unique id."""
_OWN = (
    *("__history", "__job", "__jobs", "__manifest", "__recovery", "__spool", "__wait"),
    *("_schema", "_queries", "__digests", "_graph.json"),
)
_TEMPORARY = re.compile(r"\.tmp-[0-9a-f]{16}")
_FIRST_PAGE = 1000


def is_own(key: str) -> bool:
    """Whether a key has a form that this program uses, whoever put it there."""
    first, _, rest = key.partition("/")
    if first in ("nodes", "edges"):
        location = "/".join(key.split("/", 2)[:2])
        return LOCATION.fullmatch(location) is not None
    return first in _OWN or (not rest and _TEMPORARY.fullmatch(first) is not None)


def is_unfinished(key: str) -> bool:
    """Whether a key is what a crash left of an unfinished object of this graph."""
    return is_own(key) and _TEMPORARY.fullmatch(key.rsplit("/", 1)[-1]) is not None


def list_occupants(root: Root, objects: ObjectStore) -> list[str]:
    """What is at a root, as far as it shows whose root it is: in a store the first page of a
    listing, in a directory the names of two levels."""
    if root.directory is None:
        keys = objects.list("", limit=_FIRST_PAGE)
    else:
        with explained_files(str(root.directory)):
            keys = list(_shallow(root.directory))
    return [key for key in keys if not is_of_the_system(key)]


def refuse_foreign(root: Root, occupants: Iterable[str]) -> None:
    """What a crashed attempt left belongs to this program and is in nobody's way."""
    for key in occupants:
        if not is_own(key):
            raise RootNotEmpty(
                f"{root.uri} is not empty: {key!r} is there, and is no part of a graph."
            )


def is_remains(keys: Iterable[str]) -> bool:
    """Whether a root contains only what a crash left of a graph: tables or versions, and nothing
    that belongs to anybody else."""
    held = [key for key in keys if not is_of_the_system(key)]
    tells = any(key.startswith(("nodes/", "edges/", "__manifest/")) for key in held)
    return tells and all(is_own(key) for key in held)


def drop_empty_directories(root: Root) -> None:
    """Removes directories whose files were deleted; one that still contains something stays."""
    if root.directory is None:
        return
    for place, _, _ in os.walk(root.directory, topdown=False):
        with contextlib.suppress(OSError):
            Path(place).rmdir()


def is_of_the_system(key: str) -> bool:
    """Whether a key is a file that file managers and file systems create, wherever it is."""
    parts = key.split("/")
    return parts[-1] in OF_THE_SYSTEM or parts[0] in OF_THE_SYSTEM


def _shallow(directory: Path) -> Iterator[str]:
    for name in _names(directory):
        if name in ("nodes", "edges"):
            yield from (f"{name}/{inner}" for inner in _names(directory / name))
        else:
            yield name


def _names(directory: Path) -> list[str]:
    try:
        return sorted(entry.name for entry in directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
