"""Owns the successor: every change that a chain of graph versions can make, and the one function
that computes the next version from the end of a chain and a change. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, assert_never

import msgspec

from omnigraph.model.keys import NO_KEYS, Keys
from omnigraph.model.stored_queries import QueriesChange
from omnigraph.model.version import (
    FORMAT,
    UNSEEN,
    Commit,
    Created,
    ForkPoint,
    GraphVersion,
    SeenCommit,
    StreamMark,
    TablePin,
    TableStatistics,
    past,
)
from omnigraph.plan.publish import Lineage, SchemaChange
from omnigraph.runtime import encode_ulid, ulid_after, ulid_milliseconds

RECENT_STREAMS = 512


@dataclass(frozen=True)
class Birth:
    """What a new version gets from outside: a unique token and id, the time, and a number between 0
    and 1."""

    token: str
    id: str
    now: int
    chance: float


# The changes. `lineage` is what each records about itself.


@dataclass(frozen=True)
class CreateGraph:
    """The first version of a graph."""

    lineage: Lineage
    graph: str
    schema: SchemaChange
    tables: tuple[TablePin, ...]


@dataclass(frozen=True)
class Advance:
    """A commit on a branch: other tables, another schema, other stored queries, or neither."""

    lineage: Lineage
    tables: tuple[TablePin, ...]
    statistics: dict[str, TableStatistics] = field(default_factory=dict)
    schema: SchemaChange | None = None
    folded: int = 1
    forgets: bool = False
    queries: QueriesChange | None = None


@dataclass(frozen=True)
class Fork:
    """A branch begins and shows what its origin shows."""

    lineage: Lineage
    name: str
    origin: GraphVersion


@dataclass(frozen=True)
class Tag:
    """A tag begins and stands for its target from then on."""

    lineage: Lineage
    name: str
    target: GraphVersion


@dataclass(frozen=True)
class Tombstone:
    """A branch or a tag ends. With `wholly` its beginning is removed too, and nothing of it can be
    read any more."""

    lineage: Lineage
    wholly: bool = False


@dataclass(frozen=True)
class Protect:
    """A branch is closed to direct writes, or opened again."""

    lineage: Lineage
    protected: bool


@dataclass(frozen=True)
class Announce:
    """Cleanup announces what it will delete: everything below `floor` except for `kept`, and
    everything staged before `cutoff`. No past refers to chains in `spent` any more."""

    lineage: Lineage
    floor: int
    kept: tuple[int, ...]
    cutoff: int
    spent: frozenset[str]


@dataclass(frozen=True)
class Upgrade:
    """The chain continues in the format of this program."""

    lineage: Lineage


Change = CreateGraph | Advance | Fork | Tag | Tombstone | Protect | Announce | Upgrade


def succeed(end: GraphVersion | None, change: Change, birth: Birth) -> GraphVersion:
    """The version after the end of a chain, or the first version of a new chain. Everything that
    the change does not name stays as it is."""
    match change:
        case CreateGraph():
            return _create_graph(change, birth)
        case Fork():
            return _begin(
                end, change.origin, change.name, change.lineage, birth, ancestry=past(change.origin)
            )
        case Tag():
            target = change.target
            return _begin(
                end,
                target,
                change.name,
                change.lineage,
                birth,
                maintained=target.maintained,
                deleted=True,
                tag=True,
            )
    if end is None:
        raise ValueError("only a beginning follows on nothing")
    match change:
        case Advance():
            return _advance(end, change, birth)
        case Tombstone():
            floor = end.version + 1 if change.wholly else end.floor
            return _follow(end, change.lineage, birth, deleted=True, tag=False, floor=floor)
        case Protect():
            return _follow(end, change.lineage, birth, protected=change.protected)
        case Announce():
            return _maintain(
                end,
                change.lineage,
                birth,
                floor=change.floor,
                kept=change.kept,
                gc_cutoff=max(end.gc_cutoff, change.cutoff),
                ancestry={k: n for k, n in end.ancestry.items() if k not in change.spent},
            )
        case Upgrade():
            return _maintain(end, change.lineage, birth)
        case _:
            assert_never(change)


def point_to(version: GraphVersion) -> ForkPoint:
    """The place of a version."""
    return ForkPoint(
        branch=version.branch, incarnation=version.incarnation, version=version.version
    )


# Beginnings


def _create_graph(change: CreateGraph, birth: Birth) -> GraphVersion:
    lineage = change.lineage
    commit = Commit(
        id=_id_at(birth.now, birth),
        parents=(),
        kind=lineage.kind,
        created_at=birth.now,
        operation=lineage.operation,
        actor=lineage.actor,
        message=lineage.message,
    )
    return GraphVersion(
        format=FORMAT,
        graph=change.graph,
        token=birth.token,
        branch="main",
        incarnation=1,
        version=1,
        commit=commit,
        schema=change.schema.schema,
        catalog=change.schema.catalog,
        tables=change.tables,
    )


def _begin(
    end: GraphVersion | None,
    origin: GraphVersion,
    name: str,
    lineage: Lineage,
    birth: Birth,
    **changes: Any,
) -> GraphVersion:
    """The first version of a branch or a tag. It has the commit of its origin, and records who made
    it. A name that was used before continues its chain, as another incarnation."""
    number = 1 if end is None else end.version + 1
    anew: dict[str, Any] = {
        "merged": None,
        "forwarded": False,
        "keys": _keys_after(NO_KEYS, lineage, number, birth.now),
        "created": Created(birth.now, lineage.actor, lineage.message),
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
        token=birth.token,
        branch=name,
        incarnation=1 if end is None else end.incarnation + 1,
        version=number,
        first=number,
        forked_from=point_to(origin),
        **anew | changes,
    )


# What follows


def _advance(end: GraphVersion, change: Advance, birth: Birth) -> GraphVersion:
    lineage, merged = change.lineage, change.lineage.merged
    schema = change.schema or SchemaChange(schema=end.schema, catalog=end.catalog)
    return _follow(
        end,
        lineage,
        birth,
        change.statistics,
        schema=schema.schema,
        catalog=schema.catalog,
        tables=change.tables,
        queries=end.queries if change.queries is None else change.queries.queries,
        ancestry=merged.ancestry if merged else end.ancestry,
        merged=merged.at if merged else None,
        forwarded=merged is not None and merged.forwarded,
        folded=max(end.folded, change.folded),
        forgotten=end.version + 1 if change.forgets else end.forgotten,
    )


def _maintain(end: GraphVersion, lineage: Lineage, birth: Birth, **changes: Any) -> GraphVersion:
    """A change that no reader can see. A tag still stands for the same commit."""
    if not end.tag:
        return _follow(end, lineage, birth, **changes)
    return msgspec.structs.replace(
        end,
        format=FORMAT,
        token=birth.token,
        version=end.version + 1,
        first=end.version + 1,
        keys=end.keys.passed_on(),
        **changes,
    )


def _follow(
    end: GraphVersion,
    lineage: Lineage,
    birth: Birth,
    statistics: dict[str, TableStatistics] | None = None,
    **changes: Any,
) -> GraphVersion:
    """The next version, with a commit of its own. Only that version records whether it is a merge
    and what the call returned."""
    number, commit = end.version + 1, _commit_after(end, lineage, birth, statistics or {})
    unseen = lineage.kind in UNSEEN
    anew: dict[str, Any] = {
        "merged": None,
        "forwarded": False,
        "keys": _keys_after(end.keys.passed_on(), lineage, number, commit.created_at),
        "streams": _streams_after(end, lineage, commit),
        "seen": (end.seen or SeenCommit(end.commit.id, end.version)) if unseen else None,
        "maintained": end.maintained + unseen,
    }
    return msgspec.structs.replace(
        end, format=FORMAT, token=birth.token, version=number, commit=commit, **anew | changes
    )


def _commit_after(
    end: GraphVersion, lineage: Lineage, birth: Birth, statistics: dict[str, TableStatistics]
) -> Commit:
    """A commit on top of the end, with a later time than both of its parents."""
    merged = lineage.merged
    created_at = max(birth.now, end.commit.created_at + 1)
    if merged is not None:  # made by another clock, perhaps a faster one
        created_at = max(created_at, (ulid_milliseconds(merged.commit) + 1) * 1000)
    if created_at // 1000 <= ulid_milliseconds(end.commit.id):
        # Above the parent's, so that a commit can be found on its branch by bisection.
        commit_id = ulid_after(end.commit.id, birth.chance)
    else:
        commit_id = _id_at(created_at, birth)
    return Commit(
        id=commit_id,
        parents=(end.commit.id,) if merged is None else (end.commit.id, merged.commit),
        kind=lineage.kind,
        created_at=created_at,
        operation=lineage.operation,
        actor=lineage.actor,
        message=lineage.message,
        statistics=statistics,
    )


def _id_at(created_at: int, birth: Birth) -> str:
    return encode_ulid(created_at // 1000, 0)[:10] + birth.id[10:]


def _keys_after(keys: Keys, lineage: Lineage, number: int, time: int) -> Keys:
    if lineage.key is None or lineage.call is None:
        return keys
    return keys.used(
        bytes.fromhex(lineage.key),
        version=number,
        time=time // 1_000_000,
        call=bytes.fromhex(lineage.call),
        answers=lineage.answers,
    )


def _streams_after(end: GraphVersion, lineage: Lineage, commit: Commit) -> dict[str, StreamMark]:
    if lineage.stream is None:
        return end.streams
    mark = StreamMark(lineage.batch, end.version + 1, commit.id)
    marks = {**end.streams, lineage.stream: mark}
    if len(marks) > RECENT_STREAMS:
        del marks[min(marks, key=lambda stream: marks[stream].version)]
    return marks
