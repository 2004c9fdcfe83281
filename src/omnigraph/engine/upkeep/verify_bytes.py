"""Owns the check of bytes: every file against the checksum from when it was written, or first
read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.checksums import is_transaction, read_written
from omnigraph.engine.upkeep.reachable_files import PARALLEL, holds
from omnigraph.engine.upkeep.verify_report import Verification
from omnigraph.errors import Corrupt, OmnigraphError, OutOfMemory
from omnigraph.store.file_checksums import PREFIX, read_digests, write_digests
from omnigraph.store.files import TableFiles
from omnigraph.store.objects import Absent, MeteredStore, StoredFile
from omnigraph.store.table_checksums import fits
from omnigraph.store.versions import STAMP_KEY
from omnigraph.telemetry import Ledger

_CHANGING = (PREFIX, "__wait/", "__recovery/")
_CHANGING_NAMES = ("_adjacency", "latest_version_hint.json")


def check_bytes(
    session: Session,
    files: Mapping[str, StoredFile],
    needed: TableFiles,
    report: Verification,
    ledger: Ledger,
    *,
    record: bool,
) -> None:
    """Lance keeps no checksums, so a flipped bit in a value looks like a value. With `record`, new
    checksums are stored."""
    objects = session.metered(ledger)
    known = _known(objects, report)
    record = record and known is not None
    known = known or {}
    written = _written(session, files, report, ledger)
    keys = [key for key in files if not may_change(key)]

    def look(key: str) -> str | OmnigraphError | None:
        """The checksum of a file for which none is stored, or "" if the file is as it should be."""
        try:
            data = session.objects.get(key)
        except Absent:
            return None  # gone since it was listed; a version that needs it is reported elsewhere
        except OmnigraphError as error:
            return error
        told = [sums[key] for sums in (written, known) if key in sums]
        if not all(fits(data, one) for one in told):
            return Corrupt(f"The bytes of {key} are not what they were.")
        return "" if told else hashlib.sha256(data).hexdigest()

    with ThreadPoolExecutor(PARALLEL) as pool:
        seen = dict(zip(keys, pool.map(look, keys), strict=True))
    ledger.record("get", "digest", count=len(keys), size=sum(files[key].size for key in keys))
    new = {key: value for key, value in seen.items() if isinstance(value, str) and value}
    for key, error in seen.items():
        if isinstance(error, OmnigraphError):
            report.found("checksum", key, error.message)
    for key in known.keys() - files.keys():  # beside a data file, which does not list them
        if key not in needed.files and holds(needed, key):
            report.found("missing_file", key, f"{key} is missing.")
    # The checksums of a damaged graph are not stored.
    if record and new and report.ok:
        write_digests(objects, session.runtime.ulid(), new)


def _written(
    session: Session, files: Mapping[str, StoredFile], report: Verification, ledger: Ledger
) -> dict[str, str]:
    """Checksums from when files were written. An unreadable transaction is a finding, and the
    others are still checked."""
    found: dict[str, str] = {}
    for key in files:
        try:
            found |= read_written(session, [key], ledger) if is_transaction(key) else {}
        except OmnigraphError as error:
            report.found("unreadable", key, error.message)
    return found


def may_change(key: str) -> bool:
    """The stamp changes with an upgrade. Everything that it says is compared with the versions."""
    if key.startswith(_CHANGING) or "/_refs/" in key or key == STAMP_KEY:
        return True
    return key.endswith(_CHANGING_NAMES) or "/.tmp-" in key


def _known(objects: MeteredStore, report: Verification) -> dict[str, str] | None:
    """The checksums stored by an earlier check, or None if they cannot be read."""
    try:
        return read_digests(objects)
    except OutOfMemory:
        raise  # it says nothing about the graph
    except OmnigraphError as error:
        report.found("unreadable", PREFIX, error.message)
        return None
