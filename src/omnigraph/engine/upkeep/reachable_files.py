"""Owns finding the files that are needed to read graph versions.

It does not use the caches of the session: examining every version of a graph must not evict what
readers are using.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from omnigraph.engine.session import Session
from omnigraph.errors import Corrupt, OmnigraphError, OutOfMemory
from omnigraph.model.version import GraphVersion, TablePin
from omnigraph.store.files import TableFiles, files_of_version
from omnigraph.store.objects import Absent, StoredFile
from omnigraph.store.open_tables import Tables
from omnigraph.store.ownership import is_of_the_system
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

PARALLEL = 8
_FEW = 8
"""Up to this many versions, threads are not worth starting."""

Pinned = tuple[str, str]
"""Location and number of a table version."""


@dataclass(frozen=True)
class TracedTable:
    """A table version with its files, or the reason why it cannot be opened."""

    table: Table | None
    files: TableFiles
    error: OmnigraphError | None = None


class Trace:
    """What was found so far. Asking again for a known version costs nothing."""

    def __init__(self, session: Session, ledger: Ledger) -> None:
        self._session = session
        self._ledger = ledger
        self._tables = Tables(session.root, timeout=session.settings.request_timeout)
        self.tables: dict[Pinned, TracedTable] = {}

    def follow(self, versions: Iterable[GraphVersion]) -> None:
        """Opens every table version that these graph versions pin and that is not known yet."""
        wanted = {pinned(pin) for version in versions for pin in version.tables}
        new = sorted(wanted - self.tables.keys())
        ledgers = [self._ledger.fork() for _ in new]
        with ThreadPoolExecutor(PARALLEL) as pool:
            self.tables |= dict(zip(new, pool.map(self._open, new, ledgers), strict=True))
        self._ledger.join(ledgers)

    def _open(self, at: Pinned, ledger: Ledger) -> TracedTable:
        try:
            table = self._tables.open(*at, ledger)
            return TracedTable(table, files_of_version(table))
        except OutOfMemory:
            raise  # it says nothing about the graph
        except OmnigraphError as error:
            return TracedTable(None, TableFiles(), error)

    def needed(self) -> TableFiles:
        """The files of all versions that were followed."""
        files: dict[str, int | None] = {}
        folders: dict[str, int | None] = {}
        for traced in self.tables.values():
            files |= traced.files.files
            folders |= traced.files.folders
        return TableFiles(files, folders)

    @property
    def locations(self) -> frozenset[str]:
        return frozenset(location for location, _ in self.tables)


def pinned(pin: TablePin) -> Pinned:
    return pin.location, pin.lance_version


def holds(needed: TableFiles, key: str) -> bool:
    """Whether a key is one of these files, or is in one of these folders."""
    if key in needed.files:
        return True
    folder = key.rsplit("/", 1)[0] + "/"
    return folder in needed.folders


def read_versions(
    session: Session, branch: str, numbers: Sequence[int], ledger: Ledger
) -> list[GraphVersion | Absent | OmnigraphError]:
    """Many versions of a chain, read in parallel, with an error in the place of an unreadable
    one."""

    def read(number: int, own: Ledger) -> GraphVersion | Absent | OmnigraphError:
        try:
            return session.versions(own).read(branch, number)
        except OutOfMemory:
            raise
        except (Absent, OmnigraphError) as error:
            return error

    if len(numbers) <= _FEW:
        return [read(number, ledger) for number in numbers]
    ledgers = [ledger.fork() for _ in numbers]
    with ThreadPoolExecutor(PARALLEL) as pool:
        found = list(pool.map(read, numbers, ledgers))
    ledger.join(ledgers)
    return found


def require_version(found: GraphVersion | Absent | OmnigraphError) -> GraphVersion:
    match found:
        case GraphVersion():
            return found
        case Absent():
            raise Corrupt(f"{found} is missing.")
        case error:
            raise error


def list_files(session: Session, ledger: Ledger) -> dict[str, StoredFile]:
    """Everything below the root, except what the operating system leaves in folders."""
    listed = session.metered(ledger).files("")
    return {file.key: file for file in listed if not is_of_the_system(file.key)}
