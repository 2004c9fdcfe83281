"""Owns folding a chain: old graph versions move from one object each to the branch's archive.

Nothing becomes unreadable. The versions are in the archive before a commit of the branch says so
(`folded`), and leave the chain only after that, so a reader finds each of them in one place or in
both.

Only versions that have not been the head for the grace period are folded, by the store's clock, as
in cleanup. So no running writer can be about to probe or put their numbers, and a writer that slept
learns it from the bottom of the chain (hazard 8).
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.object_deletion import delete_versions
from omnigraph.engine.upkeep.reachable_files import read_versions, require_version
from omnigraph.engine.upkeep.store_time import read_store_time
from omnigraph.engine.upkeep.survey import FIRST, list_chain
from omnigraph.model.version import GraphVersion
from omnigraph.plan.retention import resolve_folded
from omnigraph.runtime import reach
from omnigraph.store.objects import Absent
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class ChainFold:
    """`count` versions, all below `below`, that are to leave the chain of a branch."""

    branch: str
    below: int
    count: int


def plan_fold(
    session: Session, head: GraphVersion, block: int, ledger: Ledger, *, writable: bool
) -> ChainFold | None:
    """What can be folded now, in whole blocks, or None if too little can."""
    if head.version - head.bottom < block or not _grown_old(session, head, block, ledger):
        return None
    now = read_store_time(session, ledger) if writable else session.runtime.now()
    stored = {n: file.modified for n, file in list_chain(session, head.branch, ledger).items()}
    below = resolve_folded(head, stored, now - int(session.settings.grace * 1e6), block)
    return ChainFold(head.branch, below, below - head.bottom) if below > head.bottom else None


def archive_fold(session: Session, fold: ChainFold, ledger: Ledger) -> bool:
    """Writes the versions that are to leave the chain into the archive. False means that somebody
    else was faster."""
    branch, objects = fold.branch, session.metered(ledger)
    stored = {n: file.modified for n, file in list_chain(session, branch, ledger).items()}
    numbers = range(fold.below - fold.count, fold.below)
    found = read_versions(session, branch, numbers, ledger)
    if any(isinstance(one, Absent) for one in found):
        session.forget_head(branch)
        if session.head(branch, ledger).bottom > numbers[0]:
            return False
    session.archive(branch).write(objects, list(map(require_version, found)), stored)
    reach("versions archived")
    return True


def prune_fold(session: Session, head: GraphVersion, ledger: Ledger) -> None:
    """Deletes from the chain the versions that its newest version says are in the archive,
    including leftovers of an earlier fold. If it is interrupted, the next fold or cleanup finds the
    rest."""
    reach("fold published")
    held = list_chain(session, head.branch, ledger)
    archived = session.archive(head.branch).covers(session.metered(ledger), held)
    keys = [held[number].key for number in archived if FIRST < number < head.folded]
    delete_versions(session, keys, ledger)
    reach("fold pruned")
    session.archive(head.branch).merge_small(session.metered(ledger))


def _grown_old(session: Session, head: GraphVersion, block: int, ledger: Ledger) -> bool:
    """Whether the first block may be old enough, judged by its last version, so that a fast-growing
    chain is not listed again and again."""
    number = head.bottom + block - 1
    try:
        version = session.read_version(head.branch, number, ledger)
    except Absent:
        return True
    age = session.runtime.now() - version.commit.created_at
    return age >= session.settings.grace * 1e6
