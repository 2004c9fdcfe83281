"""Owns the graph version: the one object per commit that says everything about a snapshot."""

from __future__ import annotations

from functools import cached_property

import msgspec

from omnigraph.model.keys import NO_KEYS, Keys

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

    key: str
    type_id: str
    location: str
    table_version: int
    content: str
    lance_version: str
    rows: int
    fragments: int


class TableStatistics(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    inserted: int = 0
    updated: int = 0
    deleted: int = 0
    bytes: int = 0


class Commit(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The lineage of a graph version. `operation` stays the same over all attempts of a write,
    `id` is new for each, grows along a branch and starts with the time of `created_at`."""

    id: str
    parents: tuple[str, ...]
    kind: str
    created_at: int
    operation: str
    actor: str | None = None
    message: str | None = None
    statistics: dict[str, TableStatistics] = {}


class StreamMark(msgspec.Struct, frozen=True, array_like=True):
    """The last batch of a stream that the branch has, and the commit that brought it."""

    batch: int
    version: int
    commit: str


class SeenCommit(msgspec.Struct, frozen=True, array_like=True):
    """A commit that everything since then only maintained."""

    commit: str
    version: int


class ForkPoint(msgspec.Struct, frozen=True, kw_only=True):
    branch: str
    incarnation: int
    version: int


class GraphVersion(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, dict=True):
    """A full snapshot: reading it answers every question about what is in this version.

    `token` is unique to the put, by which a writer whose answer was lost knows its own again (a
    new branch shares its commit with others). `merged` is where the second parent of a merge is;
    with `forwarded` the branch had nothing of its own, and shows exactly what `merged` shows.
    `first` is the version with which this incarnation of the branch began, `forked_from` where it
    came from (whose commit is then also that of `first`). In format 1 a fast-forward began a
    stretch of the chain in the same way. `ancestry` holds for every other chain (branch and
    incarnation) up to which version it is part of this one's past, so that two heads tell their
    merge base without a walk over commits. `deleted` marks the tombstone of a branch; with `tag` it
    says that the name is that of a tag for the version in `forked_from`. `protected` closes the
    branch to direct writes. `floor` is the oldest version that cleanup left, `kept` are those below
    it that something still needs (tags, forks, merges to come); versions below `folded` are in the
    archive of the branch and no longer on its chain; `gc_cutoff` is the time before which nothing
    may have been staged or looked up that is bound to this version (hazard 7). `seen` is the
    commit before this one that a reader cannot tell from it, if maintenance alone came since, and
    the version from which on this chain shows it; `maintained` counts the commits since `first`
    that only maintenance made. Versions below `forgotten` have
    what a schema change dropped for good: cleanup keeps none of them for readers. `streams` holds
    the last batch of each stream, for longer than `keys` are held: a stream may lie still for a
    year and go on.
    """

    format: int
    graph: str
    token: str
    branch: str
    incarnation: int
    version: int
    commit: Commit
    schema: str
    catalog: str
    tables: tuple[TablePin, ...]
    merged: ForkPoint | None = None
    forwarded: bool = False
    keys: Keys = NO_KEYS
    streams: dict[str, StreamMark] = {}
    ancestry: dict[str, int] = {}
    first: int = 1
    forked_from: ForkPoint | None = None
    deleted: bool = False
    tag: bool = False
    protected: bool = False
    floor: int = 1
    folded: int = 1
    gc_cutoff: int = 0
    kept: tuple[int, ...] = ()
    seen: SeenCommit | None = None
    maintained: int = 0
    forgotten: int = 1

    @cached_property
    def pins(self) -> dict[str, TablePin]:
        return {pin.key: pin for pin in self.tables}

    @property
    def bottom(self) -> int:
        """The oldest version that is on the chain: what is older is in the archive, or soon."""
        return max(self.floor, self.folded)

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
