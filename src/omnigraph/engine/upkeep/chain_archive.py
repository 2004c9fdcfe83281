"""Owns folding a chain: old graph versions move from one object each to the branch's archive.

Nothing becomes unreadable by it. The versions are in the archive before a commit of the branch
says so (`folded`), and leave the chain only after that: a reader finds each of them in one place
or in both. Only versions that have not been the head for as long as the grace period lasts are
taken, by the store's clock, as cleanup does: so no writer that is awake can be about to probe or
to put their numbers, and one that slept is told by the bottom of the chain (hazard 8).
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
    """What can be folded by now, in whole blocks; None when that is too little to be worth it."""
    if head.version - head.bottom < block or not _grown_old(session, head, block, ledger):
        return None
    now = read_store_time(session, ledger) if writable else session.runtime.now()
    stored = {n: file.modified for n, file in list_chain(session, head.branch, ledger).items()}
    below = resolve_folded(head, stored, now - int(session.settings.grace * 1e6), block)
    return ChainFold(head.branch, below, below - head.bottom) if below > head.bottom else None


def archive_fold(session: Session, fold: ChainFold, ledger: Ledger) -> bool:
    """Writes what is to leave the chain into the archive. False: somebody else was faster."""
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
    """Deletes from the chain what its newest version says is in the archive, also what an
    earlier fold did not come to. What this one does not come to, the next one or cleanup finds."""
    reach("fold published")
    held = list_chain(session, head.branch, ledger)
    archived = session.archive(head.branch).covers(session.metered(ledger), held)
    keys = [held[number].key for number in archived if FIRST < number < head.folded]
    delete_versions(session, keys, ledger)
    reach("fold pruned")
    session.archive(head.branch).merge_small(session.metered(ledger))


def _grown_old(session: Session, head: GraphVersion, block: int, ledger: Ledger) -> bool:
    """Whether the first block may be old enough, by one look at its last version: a chain that
    grows fast is not listed again and again."""
    number = head.bottom + block - 1
    try:
        version = session.read_version(head.branch, number, ledger)
    except Absent:
        return True
    age = session.runtime.now() - version.commit.created_at
    return age >= session.settings.grace * 1e6
