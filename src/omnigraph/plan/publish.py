"""Owns the publish plan: everything that a write will make visible, as one value."""

from __future__ import annotations

import msgspec

from omnigraph.model.stored_queries import QueriesChange
from omnigraph.model.stored_text import BranchName, Digest, Key, LanceVersion, Number, Ulid
from omnigraph.model.version import ForkPoint, TablePin, TableStatistics


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A version that this action has already made from `base`, with indexes over its new fragments.
    On any other version the action is carried out without it. `unsynced` are the keys of its files
    that a power cut could still destroy."""

    base: LanceVersion
    version: LanceVersion
    unsynced: tuple[Key, ...] = ()


class Append(msgspec.Struct, frozen=True, kw_only=True, tag="append"):
    """Rows that are new whatever else the table contains, so they may be carried over to another
    version."""

    table: str
    fragments: tuple[str, ...]
    fields: dict[int, str]
    rows: int
    bytes: int
    prepared: Prepared | None = None


class RowChange(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that are replaced or removed in exactly one table version, `base`."""

    table: str
    base: LanceVersion
    updated_fragments: tuple[str, ...]
    removed_fragments: tuple[int, ...]
    fragments: tuple[str, ...]
    inserted: int
    updated: int
    deleted: int
    bytes: int
    prepared: Prepared | None = None


class Upsert(RowChange, frozen=True, kw_only=True, tag="upsert"):
    pass


class Update(RowChange, frozen=True, kw_only=True, tag="update"):
    pass


class Delete(RowChange, frozen=True, kw_only=True, tag="delete"):
    pass


class Overwrite(msgspec.Struct, frozen=True, kw_only=True, tag="overwrite"):
    table: str
    base: LanceVersion
    fragments: tuple[str, ...]
    rows: int
    deleted: int
    bytes: int
    prepared: Prepared | None = None


class RewriteGroup(msgspec.Struct, frozen=True, kw_only=True):
    old: tuple[str, ...]
    new: tuple[str, ...]


class Index(msgspec.Struct, frozen=True, kw_only=True, tag="index"):
    """Index segments as the store made them, the data files that they were built over, and the
    segments (by uuid) whose place they take. `staged` is the version that they make of `base`,
    `unsynced` what came with it."""

    table: str
    segments: tuple[msgspec.Raw, ...]
    files: dict[int, tuple[str, ...]]
    removed: tuple[str, ...] = ()
    base: LanceVersion | None = None
    staged: LanceVersion | None = None
    unsynced: tuple[Key, ...] = ()


class Rewrite(msgspec.Struct, frozen=True, kw_only=True, tag="rewrite"):
    """Compaction: the same rows in other files, and segments over them. No reader can tell.
    `staged` is the version that all of it makes of `base`, `unsynced` what came with it; on another
    one it is done again."""

    table: str
    groups: tuple[RewriteGroup, ...]
    index: Index | None = None
    base: LanceVersion | None = None
    staged: LanceVersion | None = None
    unsynced: tuple[Key, ...] = ()


class AddColumns(msgspec.Struct, frozen=True, kw_only=True, tag="add_columns"):
    """`columns` is an Arrow schema, `fill` an Arrow stream of one row with the values of those
    that have a default, `casts` names for each other filled column the one it is cast from."""

    table: str
    base: LanceVersion
    columns: bytes
    fill: bytes | None = None
    casts: dict[str, str] = {}


class DropColumns(msgspec.Struct, frozen=True, kw_only=True, tag="drop_columns"):
    """Only the catalog forgets them. The bytes go at the next rewrite."""

    table: str
    columns: tuple[str, ...]


class Rename(msgspec.Struct, frozen=True, kw_only=True, tag="rename"):
    """The table of a renamed type: same place, same rows, another key."""

    table: str
    to: str


class Register(msgspec.Struct, frozen=True, kw_only=True, tag="register"):
    """A table that was just created and is empty."""

    table: str
    pin: TablePin
    unsynced: tuple[Key, ...] = ()


class Tombstone(msgspec.Struct, frozen=True, kw_only=True, tag="tombstone"):
    table: str


class Adopt(msgspec.Struct, frozen=True, kw_only=True, tag="adopt"):
    """Another version of a table, taken by pointer: one that was made for this commit alone, with
    the files that came with it, or if `published` one that a graph version already holds."""

    table: str
    base: LanceVersion
    pin: TablePin
    unsynced: tuple[Key, ...] = ()
    statistics: TableStatistics = TableStatistics()
    published: bool = False


TableAction = (
    Append
    | Upsert
    | Update
    | Delete
    | Overwrite
    | Rewrite
    | Index
    | AddColumns
    | DropColumns
    | Rename
    | Register
    | Tombstone
    | Adopt
)


class SchemaChange(msgspec.Struct, frozen=True, kw_only=True):
    """Hashes of a schema text and a catalog that are already stored."""

    schema: Digest
    catalog: Digest


class Merged(msgspec.Struct, frozen=True, kw_only=True):
    """The second parent of a merge, where it is, and the past that comes with it. With `forwarded`
    the branch becomes exactly what that is."""

    commit: Ulid
    at: ForkPoint
    ancestry: dict[str, int]
    forwarded: bool = False


class Lineage(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What the commit will record. `key` and `call` are hashes of the idempotency key and of the
    call, `answers` the numbers that the caller was told. `stream` and `batch` name the micro-batch
    that it brings."""

    kind: str
    operation: str
    actor: str | None = None
    message: str | None = None
    key: str | None = None
    call: str | None = None
    answers: tuple[int, ...] = ()
    stream: str | None = None
    batch: int = 0
    merged: Merged | None = None


class PublishPlan(msgspec.Struct, frozen=True, kw_only=True):
    """Complete before anything becomes visible. `reads` holds the content of each table that the
    caller's own code has seen, `checks` of each table that validation examined. Versions below
    `folded` are in the archive and leave the chain. With `forgets`, cleanup may soon remove all
    versions before this one."""

    branch: BranchName
    base_version: Number
    base_incarnation: Number
    actions: tuple[TableAction, ...]
    lineage: Lineage
    reads: dict[str, str] = {}
    checks: dict[str, str] = {}
    schema: SchemaChange | None = None
    queries: QueriesChange | None = None
    if_commit: str | None = None
    folded: Number = 1
    forgets: bool = False
