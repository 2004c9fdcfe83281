"""Owns the next version of a chain: what it takes over from the one before it, and what begins
anew. Pure."""

from __future__ import annotations

from typing import Any

import msgspec

from omnigraph.model.keys import NO_KEYS
from omnigraph.model.version import FORMAT, UNSEEN, ForkPoint, GraphVersion, SeenCommit


def point_to(version: GraphVersion) -> ForkPoint:
    """Where a version is."""
    return ForkPoint(
        branch=version.branch, incarnation=version.incarnation, version=version.version
    )


def follow(end: GraphVersion, *, token: str, **changes: Any) -> GraphVersion:
    """The version after the end of a chain: the same in everything that is not changed. Whether
    a version is a merge, and what a call was told, is said by that version alone."""
    anew: dict[str, Any] = {"merged": None, "forwarded": False, "keys": end.keys.passed_on()}
    if (commit := changes.get("commit")) is not None:
        unseen = commit.kind in UNSEEN
        anew["seen"] = (end.seen or SeenCommit(end.commit.id, end.version)) if unseen else None
    return msgspec.structs.replace(
        end, format=FORMAT, token=token, version=end.version + 1, **anew | changes
    )


def begin(
    origin: GraphVersion, end: GraphVersion | None, *, branch: str, token: str, **changes: Any
) -> GraphVersion:
    """The first version of a branch or a tag, which shows what its origin shows. A name that was
    used before goes on with its chain, whose end this is, as another incarnation."""
    number = 1 if end is None else end.version + 1
    anew: dict[str, Any] = {
        "merged": None,
        "forwarded": False,
        "keys": NO_KEYS,
        "seen": None if origin.seen is None else SeenCommit(origin.seen.commit, number),
        "maintained": 0,
        "protected": False,
        "floor": 1 if end is None else end.floor,
        "folded": 1 if end is None else end.folded,
        "forgotten": 1 if end is None else end.forgotten,
        "kept": () if end is None else end.kept,
    }
    return msgspec.structs.replace(
        origin,
        format=FORMAT,
        token=token,
        branch=branch,
        incarnation=1 if end is None else end.incarnation + 1,
        version=number,
        first=number,
        forked_from=point_to(origin),
        **anew | changes,
    )
