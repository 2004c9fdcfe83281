"""Owns verifying: every readable version, the objects that it names, and files that nothing needs.

It reports and repairs nothing. Each damage is one finding that names the object, and never keeps
the rest from being checked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from itertools import pairwise

from omnigraph.engine.session import Session
from omnigraph.engine.stored_queries import StoredQueries
from omnigraph.engine.upkeep.reachable_files import (
    Trace,
    TracedTable,
    holds,
    list_files,
    pinned,
    read_versions,
)
from omnigraph.engine.upkeep.survey import needed_versions
from omnigraph.engine.upkeep.verify_bytes import check_bytes
from omnigraph.engine.upkeep.verify_report import Verification
from omnigraph.engine.upkeep.verify_rows import RowChecks
from omnigraph.errors import OmnigraphError, OutOfMemory
from omnigraph.model.stored_queries import queries_key
from omnigraph.model.version import UNSEEN, GraphVersion, TablePin
from omnigraph.store.files import TableFiles, is_candidate, location_of
from omnigraph.store.history import Archive, archive_prefix
from omnigraph.store.intents import list_intents
from omnigraph.store.objects import Absent, StoredFile
from omnigraph.store.version_files import version_file
from omnigraph.store.versions import (
    STAMP_KEY,
    encode_branch,
    is_version,
    named_branches,
    version_key,
    version_number,
)
from omnigraph.telemetry import Ledger


def verify(session: Session, *, deep: bool, record: bool, ledger: Ledger) -> Verification:
    """With `deep`, every row and every byte is read too. With `record`, the checksums of files that
    were read for the first time are stored, so the next check shows whether they changed."""
    return _Verifier(session, ledger, deep=deep, record=record).run()


class _Verifier:
    def __init__(self, session: Session, ledger: Ledger, *, deep: bool, record: bool) -> None:
        self._session = session
        self._ledger = ledger
        self._record = record
        self.report = Verification(deep=deep, io=ledger)
        self._trace = Trace(session, ledger)
        self._versions: list[GraphVersion] = []
        self._heads: list[GraphVersion] = []
        self._ends: dict[str, GraphVersion] = {}

    def run(self) -> Verification:
        graph = self._check_stamp()
        for branch in self._session.versions(self._ledger).list_branches():
            self._check_chain(branch, graph)
        archived = named_branches(self._session.metered(self._ledger).groups("__history/"))
        self._check_known(set(archived))
        self._check_needed()
        for branch in archived:
            self._check_archive(branch)
        self._check_schemas()
        self._trace.follow(self._versions)
        self._check_pins()
        files = list_files(self._session, self._ledger)
        self.report.looked_at["files"] = len(files)
        self._check_files(files)
        self._check_unreferenced(files)
        self._check_intents()
        if self.report.deep:
            RowChecks(self._session, self._trace, self.report, self._ledger).run(
                self._versions, self._heads
            )
            check_bytes(
                self._session,
                files,
                self._trace.needed(),
                self.report,
                self._ledger,
                record=self._record,
            )
        return self.report

    def _check_stamp(self) -> str | None:
        try:
            return self._session.versions(self._ledger).read_stamp().graph
        except Absent:
            self.report.found("missing_stamp", STAMP_KEY, f"{STAMP_KEY} is missing.")
        except OutOfMemory:
            raise  # it says nothing about the graph
        except OmnigraphError as error:
            self.report.found("unreadable", STAMP_KEY, error.message)
        return None

    def _check_intents(self) -> None:
        """Not damage, but somebody has to look at it, because cleanup waits for it."""
        for known in list_intents(self._session.metered(self._ledger)):
            if known.intent is None:
                message = f"The intent {known.id} cannot be read ({known.problem}); cleanup waits."
                self.report.found("intent", known.key, message, severity="note")

    # Versions

    def _check_chain(self, branch: str, graph: str | None) -> None:
        listed = self._session.metered(self._ledger).list(f"__manifest/{encode_branch(branch)}/")
        numbers = sorted(version_number(key) for key in listed if is_version(key))
        found = dict(
            zip(
                numbers,
                read_versions(self._session, branch, numbers, self._ledger),
                strict=True,
            )
        )
        held: dict[int, GraphVersion] = {}
        for number, version in found.items():
            match version:
                case GraphVersion():
                    held[number] = version
                case Absent():
                    pass  # a cleanup ran meanwhile
                case error:
                    self.report.found(
                        "unreadable_version", version_key(branch, number), error.message
                    )
        if not held:
            return
        head = self._ends[branch] = held[max(held)]
        self.report.looked_at["versions"] += sum(number >= head.bottom for number in held)
        chain = {number: one for number, one in held.items() if number >= head.bottom}
        chain |= self._read_archived(branch, range(head.floor, head.bottom))
        for number in range(head.bottom, head.version + 1):
            if number not in found:
                key = version_key(branch, number)
                self.report.found(
                    "missing_version", key, f"Version {number} of {branch!r} is missing."
                )
        for version in chain.values():
            self._check_version(version, graph)
        for before, after in pairwise(chain[number] for number in sorted(chain)):
            if after.version == before.version + 1:
                self._check_step(before, after)
        self._versions += self._read_archived(branch, head.kept).values()
        self._versions += [one for one in chain.values() if not one.deleted or one.tag]
        if not head.deleted or head.tag:
            self._heads.append(head)

    def _check_known(self, archived: set[str]) -> None:
        """A chain cannot show that its newest version is lost, but versions that build on it can. A
        copy of some branches has only the history of the others."""
        told: set[tuple[str, int]] = set()
        for version in [*self._ends.values(), *self._versions]:
            for branch, number in _references(version):
                end = self._ends.get(branch)
                if (branch, number) in told or (end is None and branch in archived):
                    continue
                if end is None or number > end.version:
                    told.add((branch, number))
                    there = "it is not there" if end is None else f"it ends at {end.version}"
                    self.report.found(
                        "lost_version",
                        version_key(branch, number),
                        f"Version {version.version} of {version.branch!r} knows version {number} "
                        f"of {branch!r}, but {there}.",
                    )

    def _check_needed(self) -> None:
        """The versions that tags stand for and later merges compare with must stay, even where
        cleanup had announced their deletion and found out just then that somebody uses them
        again."""
        known = {(version.branch, version.version) for version in self._versions}
        try:
            needed = needed_versions(self._session, self._heads, self._ledger)
        except OutOfMemory:
            raise  # it says nothing about the graph
        except OmnigraphError as error:
            self.report.found("broken_chain", "__manifest/", error.message)
            return
        for branch, number in sorted(needed - known):
            self._versions += self._read_archived(branch, [number]).values()

    def _check_version(self, version: GraphVersion, graph: str | None) -> None:
        key = version_key(version.branch, version.version)
        if graph is not None and version.graph != graph:
            self.report.found(
                "foreign_version", key, f"{key} belongs to another graph than {STAMP_KEY}."
            )
        if not version.first <= version.version:
            self.report.found("broken_chain", key, f"{key} says that its branch begins after it.")
        own = version.version > version.first  # a fork repeats a commit of another branch
        if own and version.commit.kind in UNSEEN and version.maintained < 1:
            self.report.found("broken_chain", key, f"{key} does not count itself as maintenance.")

    def _check_step(self, before: GraphVersion, after: GraphVersion) -> None:
        """A version follows the one before it, unless it begins a new stretch."""
        key = version_key(after.branch, after.version)
        if after.first == after.version:
            return
        if after.floor < before.floor or after.gc_cutoff < before.gc_cutoff:
            self.report.found("broken_chain", key, f"{key} contradicts what cleanup announced.")
        if (after.incarnation, after.first) != (before.incarnation, before.first):
            self.report.found("broken_chain", key, f"{key} does not follow on the version before.")
        elif after.commit.parents[:1] != (before.commit.id,):
            self.report.found(
                "broken_parent",
                key,
                f"The commit {after.commit.id} in {key} does not have {before.commit.id}, the "
                "one before it, as its first parent.",
            )
        elif (after.commit.created_at, after.commit.id) <= (
            before.commit.created_at,
            before.commit.id,
        ):
            self.report.found("clock", key, f"The commit in {key} is not later than its parent.")

    def _read_archived(self, branch: str, numbers: Iterable[int]) -> dict[int, GraphVersion]:
        """Readable versions that are below the chain: in the archive, or still on the chain if
        cleanup did not get that far."""
        archive, objects = self._session.archive(branch), self._session.metered(self._ledger)
        found = {}
        for number in numbers:
            key = version_key(branch, number)
            try:
                try:
                    found[number] = archive.read(objects, number)
                except Absent:
                    found[number] = self._session.versions(self._ledger).read(branch, number)
            except Absent:
                self.report.found(
                    "missing_version",
                    key,
                    f"Version {number} of {branch!r} is kept, but not in its history, "
                    f"{archive_prefix(branch)}.",
                )
            except OutOfMemory:
                raise  # it says nothing about the graph
            except OmnigraphError as error:
                self.report.found("unreadable_version", key, error.message)
        return found

    def _check_archive(self, branch: str) -> None:
        """Checks all of it, including versions that only the log can show."""
        archive, objects = Archive(branch), self._session.metered(self._ledger)
        end = self._ends.get(branch)
        for segment in archive.segments(objects):
            if end is not None and segment.last > end.version:
                self.report.found(
                    "lost_version",
                    version_key(branch, segment.last),
                    f"The history of {branch!r} has version {segment.last}, but the branch ends at "
                    f"{end.version}.",
                )
            try:
                archive.check(objects, segment)
            except Absent:
                pass  # a larger one has taken its place
            except OutOfMemory:
                raise  # it says nothing about the graph
            except OmnigraphError as error:
                self.report.found("unreadable_history", segment.key, error.message)
            self.report.looked_at["history"] += segment.size

    def _check_schemas(self) -> None:
        """What versions name by its hash: schemas, catalogs, stored queries."""
        session = self._session
        held = StoredQueries.shared_by(session)
        for digest in sorted({version.schema for version in self._versions}):
            self._check_content(f"_schema/{digest}.pg", session.read_schema_text, digest)
        for digest in sorted({version.catalog for version in self._versions}):
            self._check_content(f"_schema/{digest}.json", session.fetch_catalog, digest)
            self.report.looked_at["schemas"] += 1
        for queries in sorted({one.queries for one in self._versions if one.queries}):
            self._check_content(queries_key(queries), held.fetch, queries, kind="queries")

    def _check_content(
        self, key: str, read: Callable[[str, Ledger], object], digest: str, kind: str = "schema"
    ) -> None:
        try:
            read(digest, self._ledger)
        except OutOfMemory:
            raise  # it says nothing about the graph
        except OmnigraphError as error:
            self.report.found(kind, key, error.message)

    # Tables

    def _check_pins(self) -> None:
        self.report.looked_at["tables"] = len(self._trace.tables)
        for (location, number), traced in self._trace.tables.items():
            if traced.error is not None:
                key = version_file(location, number)
                self.report.found("table_version", key, traced.error.message)
        told: set[tuple[str, str, int, int]] = set()
        for version in self._versions:
            for pin in version.tables:
                fact = (*pinned(pin), pin.rows, pin.fragments)
                if fact not in told:
                    told.add(fact)
                    self._check_pin(version, pin, self._trace.tables[pinned(pin)])

    def _check_pin(self, version: GraphVersion, pin: TablePin, traced: TracedTable) -> None:
        if traced.table is None:
            return
        key = version_file(*pinned(pin))
        where = f"version {version.version} of {version.branch!r}"
        rows, fragments = traced.table.rows, len(traced.table.marks)
        if rows != pin.rows:
            self.report.found(
                "row_count", key, f"{pin.key} has {rows} rows; {where} says {pin.rows}."
            )
        if fragments != pin.fragments:
            self.report.found(
                "fragment_count",
                key,
                f"{pin.key} has {fragments} fragments; {where} says {pin.fragments}.",
            )

    # Files

    def _check_files(self, files: dict[str, StoredFile]) -> None:
        needed = self._trace.needed()
        sizes: Counter[str] = Counter()
        for key, file in files.items():
            if "/_indices/" in key:
                sizes["/".join(key.split("/")[:4]) + "/"] += file.size
        for key, size in needed.files.items():
            held = files.get(key)
            if held is None:
                # It may have been written while the files were listed.
                if not self._session.metered(self._ledger).exists(key):
                    self.report.found("missing_file", key, f"{key} is missing.")
            elif held.size == 0 or size not in (None, held.size):
                expected = "more than 0" if size is None else size
                self.report.found(
                    "file_size", key, f"{key} has {held.size} bytes; it should have {expected}."
                )
        for folder, size in needed.folders.items():
            if size is not None and sizes[folder] != size:
                self.report.found(
                    "index_files",
                    folder,
                    f"{folder} holds {sizes[folder]} bytes; it should hold {size}.",
                )

    def _check_unreferenced(self, files: dict[str, StoredFile]) -> None:
        """Only for a sound graph: an unreadable object may need a file that seems left over."""
        if not self.report.ok:
            return
        needed, locations = self._trace.needed(), self._trace.locations
        for key, file in files.items():
            location = location_of(key)
            if location is None or (location in locations and not is_spent(key, location, needed)):
                continue
            self.report.found(
                "unreferenced",
                key,
                f"{key} ({file.size} bytes) belongs to no version.",
                severity="note",
            )


def _references(version: GraphVersion) -> set[tuple[str, int]]:
    """The versions of other chains that this one builds on."""
    found = {(chain.split(":", 1)[1], number) for chain, number in version.ancestry.items()}
    found |= {
        (place.branch, place.version)
        for place in (version.forked_from, version.merged)
        if place is not None
    }
    return found


def is_spent(key: str, location: str, needed: TableFiles) -> bool:
    """Whether a file of a table in use belongs to none of the versions in use."""
    return is_candidate(key, location) and not holds(needed, key)
