"""Owns deleting objects: in batches, in parallel, versions of a chain oldest first.

The caller has decided and announced what may be deleted; nothing is decided here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor

from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.reachable_files import PARALLEL
from omnigraph.telemetry import Ledger

_BATCH = 500


def delete_versions(session: Session, keys: Iterable[str], ledger: Ledger) -> None:
    """On a disk the head is found by counting up from the first versions as long as these exist, so
    on each chain the oldest is deleted before all others."""
    chains: dict[str, list[str]] = {}
    for key in keys:
        chains.setdefault(key.rsplit("/", 1)[0], []).append(key)
    for held in chains.values():
        # Names sort the newest first.
        oldest, *others = sorted(held, reverse=True)
        session.metered(ledger).delete(oldest)
        delete_objects(session, others, ledger)


def delete_objects(session: Session, keys: Sequence[str], ledger: Ledger) -> None:
    for start in range(0, len(keys), _BATCH):
        batch = keys[start : start + _BATCH]
        with ThreadPoolExecutor(PARALLEL) as pool:
            list(pool.map(session.objects.delete, batch))
        ledger.record("delete", "cleanup", count=len(batch))
