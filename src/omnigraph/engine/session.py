"""Owns what everything done through one open handle shares: the store, caches and known heads."""

from __future__ import annotations

import contextlib
import copy
import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from omnigraph.engine.permissions import UNRESTRICTED, Permissions, hidden_branch
from omnigraph.errors import BranchMoved, BranchNotFound, Corrupt, InvalidRef, UnsafeStore
from omnigraph.lang.suggestions import near
from omnigraph.model.catalog import Catalog, encode_catalog
from omnigraph.model.catalog_file import decode_catalog
from omnigraph.model.refs import BranchRef, parse_ref
from omnigraph.model.version import GraphStamp, GraphVersion
from omnigraph.runtime import Runtime
from omnigraph.settings import Settings
from omnigraph.store.content import read_content, write_content
from omnigraph.store.forks import is_own, process_mark, require_own
from omnigraph.store.history import Archive, lost_version
from omnigraph.store.objects import Absent, Ambiguous, MeteredStore, ObjectStore
from omnigraph.store.queue import LocalQueue, Tickets
from omnigraph.store.roots import Root
from omnigraph.store.versions import Versions, another_graph, encode_branch, version_key
from omnigraph.telemetry import Ledger

if TYPE_CHECKING:
    from omnigraph.store.open_tables import Tables
    from omnigraph.store.tables import Table

Part = TypeVar("Part")
OnWrite = Callable[[str, "Mapping[str, tuple[Table, Table]]"], None]
"""Called after each write with its branch, and its tables before and after."""

_CACHED_VERSIONS = 1024
_CACHED_CATALOGS = 64


@dataclass(frozen=True)
class SeenHead:
    """A head, and when it was last known to be the head, by both clocks."""

    version: GraphVersion
    monotonic: float
    wall: int


class Session:
    def __init__(self, root: Root, objects: ObjectStore, settings: Settings, runtime: Runtime):
        self._process = process_mark()
        self.root = root
        self.objects = objects
        self.settings = settings
        self.runtime = runtime
        self.queue = LocalQueue(root.queue_directory()) if settings.queue else None
        self.tickets = Tickets(runtime)
        self._lock = threading.Lock()
        self._parts: dict[Callable[[Session], Any], Any] = {}
        self._parts_lock = threading.RLock()  # one part may ask for another
        self._heads: dict[str, SeenHead] = {}
        self._company: set[str] = set()
        self._versions: OrderedDict[tuple[str, int], GraphVersion] = OrderedDict()
        self._catalogs: OrderedDict[str, Catalog] = OrderedDict()
        self._archives: dict[str, Archive] = {}
        self._identity: dict[str, str] = {}
        self._store_is_safe = threading.Event()
        self.held: Mapping[str, int] = {}
        self.permissions: Permissions = UNRESTRICTED
        self._first = self
        self.on_write: OnWrite | None = None

    def holding(self, branch: str, incarnation: int) -> Session:
        """This session, for an operation on one incarnation of a branch. If the head belongs to
        another branch of the same name, looking it up raises `BranchMoved`. Everything else is
        shared."""
        held = copy.copy(self)
        held.held = {**self.held, branch: incarnation}
        return held

    def acting(self, permissions: Permissions) -> Session:
        """This session, in somebody's name. Everything else is shared."""
        acting = copy.copy(self)
        acting.permissions = permissions
        return acting

    def for_itself(self) -> Session:
        """This session, for what the engine does on its own account."""
        return self.acting(UNRESTRICTED) if self.permissions.restricted else self

    @property
    def is_own(self) -> bool:
        """Whether this process made it, rather than a parent that was forked."""
        return is_own(self._process)

    def require_own(self) -> None:
        require_own(self._process, self.root.uri)

    def metered(self, ledger: Ledger) -> MeteredStore:
        self.require_own()
        return MeteredStore(self.objects, ledger)

    @property
    def tables(self) -> Tables:
        return self.shared(_tables)

    def shared(self, make: Callable[[Session], Part]) -> Part:
        """What a part of the engine keeps for as long as the handle is open. It is made when it is
        first asked for. The session knows none of these parts."""
        part: Part | None = self._parts.get(make)
        if part is not None:
            return part
        with self._parts_lock:
            if make not in self._parts:
                self._parts[make] = make(self._first)  # which is nobody's
            made: Part = self._parts[make]
            return made

    def made(self, make: Callable[[Session], Part]) -> Part | None:
        """The same part if it has been asked for before, else None."""
        return self._parts.get(make)

    def versions(self, ledger: Ledger) -> Versions:
        return Versions(self.metered(ledger), self.runtime)

    # Heads

    def head(self, branch: str, ledger: Ledger, *, fresh: bool = True) -> GraphVersion:
        """The newest version. If not `fresh`, the head that was last seen, as long as it was seen
        so recently that the next number cannot have come and gone (hazard 8)."""
        self.require_own()
        encode_branch(branch)  # raises the error for an invalid name
        seen = self._heads.get(branch)
        try:
            if seen is None or self.slept_since(seen):
                version = self.versions(ledger).read_head(branch)
            elif not fresh:
                return seen.version
            else:
                version = self.versions(ledger).read_newer(seen.version)
                self._met(branch, others=version is not seen.version)
        except Absent:
            raise self._no_branch(branch, ledger) from None
        self.saw_head(version)
        return version

    def met_company(self, version: GraphVersion) -> None:
        """Another process has put this version since this one last knew the head."""
        self._met(version.branch, others=True)
        with self._lock:
            self._remember(version)

    def _met(self, branch: str, *, others: bool) -> None:
        with self._lock:
            (self._company.add if others else self._company.discard)(branch)

    def has_company(self, branch: str) -> bool:
        """Whether others wrote to the branch when its head was last looked up or lost to them. Then
        a look at the head costs less than a write that rests on an old one."""
        return branch in self._company

    def known_head(self, branch: str) -> GraphVersion | None:
        """The head that was last seen, without a request. None if it is unknown or was seen too
        long ago."""
        seen = self._heads.get(branch)
        if seen is None or self.slept_since(seen):
            return None
        return seen.version

    def live_head(self, branch: str, ledger: Ledger, *, fresh: bool = True) -> GraphVersion:
        """The head of a branch that exists at the moment."""
        version = self.head(branch, ledger, fresh=fresh)
        if version.deleted and not fresh:
            version = self.head(branch, ledger)
        self.require_held(version)
        if version.tag:
            raise BranchNotFound(
                f"{branch!r} is a tag, not a branch.",
                help="A tag stays where it is: create a branch from it to go on from there.",
            )
        if version.deleted:
            raise self._no_branch(branch, ledger)
        return version

    def require_held(self, end: GraphVersion) -> None:
        """Raises if the end of a chain belongs to another branch than the one that the operation is
        for."""
        meant = self.held.get(end.branch)
        if meant is not None and (end.deleted or end.incarnation != meant):
            raise branch_moved(end.branch)

    def named_version(self, name: str, ledger: Ledger) -> GraphVersion:
        """The head of a branch or, at the same cost, the version of a tag. A name is never both."""
        version = self.head(name, ledger)
        self.require_held(version)
        if version.deleted and not version.tag:
            raise self._no_branch(name, ledger)
        fork = version.forked_from
        if not version.tag or fork is None:
            return version
        try:
            # The version of a tag stays, whatever its branch has forgotten.
            return self.read_record(fork.branch, fork.version, ledger)
        except Absent:
            raise lost_version(fork.branch, fork.version) from None

    def saw_head(self, version: GraphVersion) -> None:
        """Raises if it belongs to another graph, which was made where the one that was opened was
        deleted: nothing that is known here holds there."""
        self.heard_head(version, 0.0)

    def heard_head(self, version: GraphVersion, ago: float) -> None:
        """The same for a head that another writer of this machine saw some seconds ago."""
        if self._identity.setdefault("graph", version.graph) != version.graph:
            raise another_graph()
        wall = self.runtime.now() - int(ago * 1e6)
        now = SeenHead(version, self.runtime.monotonic() - ago, wall)
        with self._lock:
            known = self._heads.get(version.branch)
            if known is not None and known.version is version:
                self._heads[version.branch] = now
                return
            if known is None or known.version.version <= version.version:
                self._heads[version.branch] = now
            self._remember(version)

    def _elapsed(self, seen: SeenHead) -> float:
        """The larger of two clocks: one stops while a machine sleeps, and the other may be set."""
        by_wall = (self.runtime.now() - seen.wall) / 1e6
        return max(self.runtime.monotonic() - seen.monotonic, by_wall)

    def seen_before(self, version: GraphVersion) -> SeenHead | None:
        """The head before this version, if it is still the newest one seen."""
        seen = self._heads.get(version.branch)
        return seen if seen is not None and seen.version.version == version.version - 1 else None

    def slept_since(self, seen: SeenHead | None) -> bool:
        """Whether the number after this head may have come and been deleted by cleanup (hazard
        8)."""
        return seen is None or self._elapsed(seen) > self.settings.grace / 4

    def outlived(self, since: int, head: GraphVersion) -> bool:
        """Whether cleanup may have deleted, or may soon delete, what was staged or looked up at
        this time (hazard 7). It must then be made again before it is bound to this head."""
        age = (self.runtime.now() - since) / 1e6
        return since <= head.gc_cutoff or age >= self.settings.grace / 2

    def forget_head(self, branch: str) -> None:
        with self._lock:
            self._heads.pop(branch, None)

    def _no_branch(self, branch: str, ledger: Ledger) -> BranchNotFound:
        if self.permissions.restricted:
            return hidden_branch(branch)  # a guess would tell of branches that are hidden
        with contextlib.suppress(InvalidRef):
            if parse_ref(branch) != BranchRef(branch):
                return BranchNotFound(
                    f"{branch!r} is a commit, not a branch.", help="Name the branch to write to."
                )
        names = self.versions(ledger).list_branches()
        guess = near(branch, names)
        hint = f"Did you mean {guess!r}?" if guess else ""
        return BranchNotFound(f"There is no branch {branch!r}.", help=hint)

    # Versions and catalogs, both immutable

    def read_version(self, branch: str, number: int, ledger: Ledger) -> GraphVersion:
        """Raises `Absent`."""
        self.require_own()
        seen = self._heads.get(branch)
        if seen is not None and not seen.version.retains(number):
            raise Absent(f"version {number} of {branch}")  # even of one that is known here
        if (known := self._known(branch, number)) is not None:
            return known
        try:
            version = self._fetch(branch, number, ledger)
        except Absent:
            try:
                head = self.head(branch, ledger)
            except BranchNotFound:  # a copy of some branches has only the history of the others
                raise Absent(f"version {number} of {branch}") from None
            if number >= head.bottom or not head.retains(number):
                raise
            version = self.archive(branch).read(self.metered(ledger), number)
        with self._lock:
            self._remember(version)
        return version

    def _known(self, branch: str, number: int) -> GraphVersion | None:
        with self._lock:
            if (version := self._versions.get((branch, number))) is not None:
                self._versions.move_to_end((branch, number))
            return version

    def remembered(self, branch: str, number: int) -> GraphVersion | None:
        """A version that was read before, without a request."""
        return self._known(branch, number)

    def _fetch(self, branch: str, number: int, ledger: Ledger) -> GraphVersion:
        """Below the bottom of the chain the archive counts: an object on the chain there may be the
        ghost of a writer that slept. It is missing from the archive only while cleanup is about to
        move it."""
        seen = self._heads.get(branch)
        if seen is not None and number < seen.version.bottom:
            try:
                return self.archive(branch).read(self.metered(ledger), number)
            except Absent:
                pass
        return self.versions(ledger).read(branch, number)

    def read_record(self, branch: str, number: int, ledger: Ledger) -> GraphVersion:
        """The record of a version, even one whose tables cleanup has deleted: for questions about
        commits, not about entities. Raises `Absent`."""
        self.require_own()
        if (known := self._known(branch, number)) is not None:
            return known
        try:
            return self.read_version(branch, number, ledger)
        except Absent:
            pass
        try:
            return self.archive(branch).read(self.metered(ledger), number)
        except Absent:  # cleanup has announced its deletion and has not got to it yet
            return self.versions(ledger).read(branch, number)

    def archive(self, branch: str) -> Archive:
        with self._lock:
            return self._archives.setdefault(branch, Archive(branch))

    def was_reclaimed(self, version: GraphVersion, ledger: Ledger) -> bool:
        """Whether cleanup has deleted a version, which may have been pinned long ago."""
        self.forget_head(version.branch)
        head = self.head(version.branch, ledger)
        return not head.retains(version.version)

    def _remember(self, version: GraphVersion) -> None:
        self._versions[version.branch, version.version] = version
        while len(self._versions) > _CACHED_VERSIONS:
            self._versions.popitem(last=False)

    def files_of(self, version: GraphVersion) -> list[Path]:
        """The files that must be on disk before anything outside its branch builds on this version.
        Its writer may not have synced them yet."""
        if self.root.directory is None:
            return []
        path = self.root.directory / version_key(version.branch, version.version)
        return [path] if path.exists() else []  # versions in the archive were synced there

    def read_catalog(self, digest: str, ledger: Ledger) -> Catalog:
        self.require_own()
        with self._lock:
            if (catalog := self._catalogs.get(digest)) is not None:
                return catalog
        return self._keep_catalog(self.fetch_catalog(digest, ledger))

    def fetch_catalog(self, digest: str, ledger: Ledger) -> Catalog:
        """The catalog as it is on the store, without the cache."""
        key = _catalog_key(digest)
        return decode_catalog(read_content(self.metered(ledger), key, digest, "catalog"), key)

    def read_schema_text(self, digest: str, ledger: Ledger) -> str:
        key = _schema_key(digest)
        data = read_content(self.metered(ledger), key, digest, "schema text")
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            raise Corrupt(f"The schema text {key} is no text: {error}.") from error

    def write_schema(self, text: str, catalog: Catalog, ledger: Ledger) -> tuple[str, str]:
        """Stores a text and a catalog under their hashes. If they exist already, that is just as
        good."""
        data = text.encode()
        digest = hashlib.sha256(data).hexdigest()
        objects = self.metered(ledger)
        write_content(objects, _schema_key(digest), data)
        write_content(objects, _catalog_key(catalog.digest), encode_catalog(catalog))
        self._keep_catalog(catalog)
        return digest, catalog.digest

    def _keep_catalog(self, catalog: Catalog) -> Catalog:
        with self._lock:
            self._catalogs[catalog.digest] = catalog
            while len(self._catalogs) > _CACHED_CATALOGS:
                self._catalogs.popitem(last=False)
        return catalog

    # Safety of the store

    def require_safe_store(self, graph: str, format: int, ledger: Ledger) -> None:
        """Runs once per handle, before the first write: creating the stamp again must be refused. A
        store that ignores the condition would only replace it by the same bytes."""
        if self._store_is_safe.is_set() or self.root.directory is not None:
            return
        try:
            created = self.versions(ledger).write_stamp(GraphStamp(format=format, graph=graph))
        except Ambiguous:
            return
        if created:
            raise UnsafeStore(f"{self.root.uri} accepted to create what was already there.")
        self._store_is_safe.set()


def _tables(session: Session) -> Tables:
    from omnigraph.store.open_tables import (
        Tables,  # needs Lance and Arrow, which reading commits does not
    )

    return Tables(session.root, timeout=session.settings.request_timeout)


def branch_moved(name: str) -> BranchMoved:
    return BranchMoved(
        f"The branch {name!r} was deleted, or deleted and created again, since this handle was "
        "made or this operation began.",
        help="Nothing was changed; get a new handle with g.branch(...), or begin anew.",
    )


def _schema_key(digest: str) -> str:
    return f"_schema/{digest}.pg"


def _catalog_key(digest: str) -> str:
    return f"_schema/{digest}.json"


def hash_call(parts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(parts)).hexdigest()[:16]
