"""Owns the graph version: the one object per commit that says everything about a snapshot."""

from __future__ import annotations

from functools import cached_property

import msgspec

from omnigraph.model.keys import NO_KEYS, Keys
from omnigraph.model.stored_text import (
    BranchName,
    ChainKey,
    Digest,
    LanceVersion,
    Location,
    Moment,
    Number,
    TableKey,
    Ulid,
)

FORMAT = 2
OLDEST_FORMAT = 1
UNSEEN = frozenset({"optimize", "cleanup", "discard", "upgrade"})
"""Kinds of commits that change nothing a reader can see."""


class TablePin(msgspec.Struct, frozen=True, kw_only=True):
    """Where a type's rows are in this graph version.

    `lance_version` is a decimal string because it lies above 2^63. `content` names what a reader
    sees of the table: it is new at every visible change, stays through compaction, and travels
    with the rows when a branch adopts, restores or forwards them. Two pins of one content show
    the same rows, whatever their branches (hazard 22). `table_version` counts the changes of the
    table on the branch; it is a number to show, and decides nothing.
    """

    key: TableKey
    type_id: str
    location: Location
    table_version: Number
    content: str
    lance_version: LanceVersion
    rows: Number
    fragments: Number


class TableStatistics(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    inserted: Number = 0
    updated: Number = 0
    deleted: Number = 0
    bytes: Number = 0


class Commit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lineage of a graph version. `operation` stays the same over all attempts of a write,
    `id` is new for each, grows along a branch and starts with the time of `created_at`."""

    id: Ulid
    parents: tuple[Ulid, ...]
    kind: str
    created_at: Moment
    operation: str
    actor: str | None = None
    message: str | None = None
    statistics: dict[str, TableStatistics] = {}


class StreamMark(msgspec.Struct, frozen=True, array_like=True):
    """The last batch of a stream that the branch has, and the commit that brought it."""

    batch: int
    version: Number
    commit: Ulid


class SeenCommit(msgspec.Struct, frozen=True, array_like=True):
    """A commit that everything since then only maintained."""

    commit: Ulid
    version: Number


class Created(msgspec.Struct, frozen=True, array_like=True):
    """When a branch or a tag was made, by whom and why."""

    at: Moment
    actor: str | None = None
    message: str | None = None


class ForkPoint(msgspec.Struct, frozen=True, kw_only=True):
    branch: BranchName
    incarnation: Number
    version: Number


class GraphVersion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """A full snapshot: reading it answers every question about what is in this version. `queries`
    is the hash of its stored queries, if it has any.

    `token` is unique to the put, by which a writer whose answer was lost knows its own again (a new
    branch shares its commit with others). `merged` is where the second parent of a merge is; with
    `forwarded` the branch had nothing of its own, and shows exactly what `merged` shows. `first` is
    the version with which this incarnation of the branch began, `forked_from` where it came from
    (whose commit is then also that of `first`) and `created` who made it. In format 1 a
    fast-forward began a stretch of the chain in the same way. `ancestry` holds for every other
    chain (branch and incarnation) up to which version it is part of this one's past, so that two
    heads tell their merge base without a walk over commits. `deleted` marks the tombstone of a
    branch; with `tag` it says that the name is that of a tag for the version in `forked_from`.
    `protected` closes the branch to direct writes. `floor` is the oldest version that cleanup left,
    `kept` are those below it that something still needs (tags, forks, merges to come); versions
    below `folded` are in the archive of the branch and no longer on its chain; `gc_cutoff` is the
    time before which nothing may have been staged or looked up that is bound to this version
    (hazard 7). `seen` is the commit before this one that a reader cannot tell from it, if
    maintenance alone came since, and the version from which on this chain shows it; `maintained`
    counts the commits since `first` that only maintenance made. Versions below `forgotten` have
    what a schema change dropped for good: cleanup keeps none of them for readers. `streams` holds
    the last batch of each stream, for longer than `keys` are held: a stream may lie still for a
    year and go on.
    """

    format: int
    graph: str
    token: str
    branch: BranchName
    incarnation: Number
    version: Number
    commit: Commit
    schema: Digest
    catalog: Digest
    tables: tuple[TablePin, ...]
    queries: Digest | None = None
    merged: ForkPoint | None = None
    forwarded: bool = False
    keys: Keys = NO_KEYS
    streams: dict[str, StreamMark] = {}
    ancestry: dict[ChainKey, Number] = {}
    first: Number = 1
    forked_from: ForkPoint | None = None
    created: Created | None = None
    deleted: bool = False
    tag: bool = False
    protected: bool = False
    floor: Number = 1
    folded: Number = 1
    gc_cutoff: Moment = 0
    kept: tuple[Number, ...] = ()
    seen: SeenCommit | None = None
    maintained: Number = 0
    forgotten: Number = 1

    @cached_property
    def pins(self) -> dict[str, TablePin]:
        return {pin.key: pin for pin in self.tables}

    @property
    def bottom(self) -> int:
        """The oldest version that is on the chain: what is older is in the archive, or soon."""
        return max(self.floor, self.folded)

    @property
    def begins_at_fork(self) -> bool:
        """Whether it only repeats the commit of where it was forked from."""
        return self.version == self.first and self.forked_from is not None

    def retains(self, number: int) -> bool:
        """Whether no cleanup has passed a version of this chain."""
        return number >= self.floor or number in self.kept

    def holds(self, commit: str) -> bool:
        """Whether this is the commit that a reader sees here, or the version's own. Another one
        that maintenance made in between is known by the number of its version (`shows`)."""
        return commit == self.commit.id or (self.seen is not None and commit == self.seen.commit)

    def shows(self, number: int) -> bool:
        """Whether a reader cannot tell this version from an older one of its chain."""
        return self.seen is not None and self.seen.version <= number <= self.version

    @property
    def visible(self) -> str:
        """The commit that a reader sees here: whatever maintenance does, it stays the same."""
        return self.commit.id if self.seen is None else self.seen.commit


def chain_key(version: GraphVersion) -> str:
    """Names the chain of versions that this one belongs to."""
    return f"{version.incarnation}:{version.branch}"


def past(version: GraphVersion) -> dict[str, int]:
    """For each chain, the newest version of it that this one contains."""
    return version.ancestry | {chain_key(version): version.version}


class GraphStamp(msgspec.Struct, frozen=True, kw_only=True):
    """`_graph.json`: lets a program refuse a graph before it reads anything else."""

    format: int
    graph: str
