"""Owns the known checksums of files, from when they were written and from deep checks.

They outlive the versions that cleanup deletes.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor

from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.reachable_files import PARALLEL
from omnigraph.store.file_checksums import PREFIX, read_digests, write_digests
from omnigraph.store.objects import Absent
from omnigraph.store.table_checksums import read_sums
from omnigraph.telemetry import Ledger

_TRANSACTIONS = "/_transactions/"


def is_transaction(key: str) -> bool:
    return _TRANSACTIONS in key and key.endswith(".txn")


def read_written(session: Session, keys: Iterable[str], ledger: Ledger) -> dict[str, str]:
    """The checksums in these transactions, by file. Raises an error for the first unreadable
    transaction."""

    def read(key: str) -> dict[str, str]:
        try:
            return read_sums(session.objects.get(key), key)
        except Absent:
            return {}

    wanted = [key for key in keys if is_transaction(key)]
    with ThreadPoolExecutor(PARALLEL) as pool:
        found = list(pool.map(read, wanted))
    ledger.record("get", "digest", count=len(wanted))
    return {key: value for sums in found for key, value in sums.items()}


def keep_checksums(
    session: Session, files: Collection[str], removed: Collection[str], ledger: Ledger
) -> None:
    """Before files are deleted, the checksums that their transactions hold of remaining files are
    written to one record, together with those recorded before. An object store has no such
    transactions, so this costs nothing there unless a deep check has run."""
    objects = session.metered(ledger)
    records = [key for key in files if key.startswith(PREFIX)]
    spent = removed if session.root.directory is not None else ()
    new = read_written(session, spent, ledger)
    if not new and not records:
        return
    left = set(files) - set(removed)
    known = read_digests(objects) if records else {}
    kept = {key: value for key, value in (new | known).items() if key in left}
    if kept == known:
        return
    write_digests(objects, session.runtime.ulid(), kept)
    for key in records:
        objects.delete(key)


def known_checksums(session: Session, files: Iterable[str], ledger: Ledger) -> Mapping[str, str]:
    """The known checksums of all files of a graph, if finding them takes no request for each
    file."""
    known = read_digests(session.metered(ledger))
    written = {} if session.root.directory is None else read_written(session, files, ledger)
    return written | known
