"""Owns the check of bytes: every file against the checksum that it had when it was first seen."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor

from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.trace import PARALLEL, holds
from omnigraph.engine.upkeep.verify_report import Verification
from omnigraph.errors import OmnigraphError
from omnigraph.store.digests import PREFIX, read_digests, write_digests
from omnigraph.store.files import TableFiles
from omnigraph.store.objects import Absent, StoredFile
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
    """Lance keeps no checksums, so a flipped bit in a value looks like a value. With `record`
    what is new is written down."""
    objects = session.metered(ledger)
    try:
        known = read_digests(objects)
    except OmnigraphError as error:
        report.found("unreadable", PREFIX, error.message)
        return
    keys = [key for key in files if not may_change(key)]

    def digest(key: str) -> str | None:
        try:
            return hashlib.sha256(session.objects.get(key)).hexdigest()
        except Absent:
            return None  # gone since it was listed; if a version needs it, that is told

    with ThreadPoolExecutor(PARALLEL) as pool:
        seen = dict(zip(keys, pool.map(digest, keys), strict=True))
    ledger.record("get", "digest", count=len(keys), size=sum(files[key].size for key in keys))
    new: dict[str, str] = {}
    for key, value in seen.items():
        if value is None:
            continue
        if key not in known:
            new[key] = value
        elif known[key] != value:
            report.found("checksum", key, f"The bytes of {key} are not what they were.")
    for key in known.keys() - files.keys():  # beside a data file, which does not name them
        if key not in needed.files and holds(needed, key):
            report.found("missing_file", key, f"{key} is missing.")
    # A damaged graph is not written down as the way that it should be.
    if record and new and report.ok:
        write_digests(objects, session.runtime.ulid(), new)


def may_change(key: str) -> bool:
    """The stamp does so with an upgrade; all that it says is compared with the versions."""
    if key.startswith(_CHANGING) or "/_refs/" in key or key == STAMP_KEY:
        return True
    return key.endswith(_CHANGING_NAMES) or "/.tmp-" in key
