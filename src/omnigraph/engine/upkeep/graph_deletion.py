"""Owns deleting a whole graph: the files that are its own by the form of their names, and no
others.

The stamp and the chain of `main` are deleted first, so nobody can open the rest if this is
interrupted. The same call then deletes the rest.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.object_deletion import delete_objects
from omnigraph.errors import GraphNotFound
from omnigraph.runtime import SYSTEM, Runtime, reach
from omnigraph.settings import Settings
from omnigraph.store.ownership import drop_empty_directories, is_own, is_remains
from omnigraph.store.roots import parse_root
from omnigraph.store.versions import STAMP_KEY
from omnigraph.telemetry import Ledger

_MAIN = "__manifest/main/"


@dataclass(frozen=True)
class Deleted:
    """How many files and bytes were deleted, or with `dry_run` would be. `left` are files at the
    root that are no part of a graph."""

    root: str
    files: int
    bytes: int
    left: tuple[str, ...] = ()
    dry_run: bool = False
    io: Ledger = field(default_factory=Ledger, repr=False)


def delete(
    root: str | os.PathLike[str],
    *,
    dry_run: bool = False,
    settings: Settings | None = None,
    runtime: Runtime = SYSTEM,
) -> Deleted:
    """Deletes a graph for good, with all its branches, tags and history. A root without a graph is
    refused; files there that are no part of a graph stay. With `dry_run` it only tells what would
    go.

    >>> made = omnigraph.init("memory://short-lived", schema="node Note { text: String }")
    >>> made.close()
    >>> omnigraph.delete("memory://short-lived", dry_run=True).left
    ()
    >>> gone = omnigraph.delete("memory://short-lived")
    >>> omnigraph.open("memory://short-lived")
    Traceback (most recent call last):
    omnigraph.errors.GraphNotFound: There is no graph at memory://short-lived...
    """
    settings = settings or Settings.from_environment()
    place = parse_root(root)
    session = Session(place, place.objects(settings), settings, runtime)
    ledger = Ledger()
    found = session.metered(ledger).files("")
    keys = [one.key for one in found]
    graph = any(key == STAMP_KEY or key.startswith(_MAIN) for key in keys)
    if not graph and not is_remains(keys):
        raise GraphNotFound(f"There is no graph at {place.uri}.")
    own = [one for one in found if is_own(one.key)]
    told = Deleted(
        place.uri,
        len(own),
        sum(one.size for one in own),
        tuple(key for key in keys if not is_own(key)),
        dry_run,
        ledger,
    )
    if not dry_run:
        first = [one.key for one in own if one.key == STAMP_KEY or one.key.startswith(_MAIN)]
        delete_objects(session, sorted(first, reverse=True), ledger)
        reach("graph unnamed")
        delete_objects(session, [one.key for one in own if one.key not in set(first)], ledger)
        drop_empty_directories(place)
    return told
