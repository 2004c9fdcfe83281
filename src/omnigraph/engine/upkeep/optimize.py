"""Owns maintenance of tables as a write: fewer fragments, indexes that cover them, one commit.

It changes nothing that a reader can see, gives way to writers, and never makes one fail. What it
staged is carried over to a newer head if its fragments are still there, and otherwise planned
again.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from omnigraph.engine.after_commit import after_commit
from omnigraph.engine.lookup import Lookups
from omnigraph.engine.query.adjacency.refresh import refresh_adjacency
from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.chain_archive import archive_fold, plan_fold, prune_fold
from omnigraph.engine.upkeep.heartbeat import Heartbeat
from omnigraph.engine.upkeep.optimization import ACTOR, KIND, NothingLeft, Optimization, TooSlow
from omnigraph.engine.upkeep.optimize_report import OnProgress, Optimized
from omnigraph.engine.upkeep.workers import Workers
from omnigraph.engine.write.lineage import find_repeated, make_lineage
from omnigraph.engine.write.precondition import pin_commit
from omnigraph.engine.write.published import Published
from omnigraph.engine.write.publisher import publish
from omnigraph.errors import Contention, Corrupt, OmnigraphError
from omnigraph.model.options import NO_OPTIONS, CommitOptions
from omnigraph.model.version import GraphVersion, TablePin
from omnigraph.plan.optimize import BY_HAND, Limits
from omnigraph.store.lance_tags import point_tag
from omnigraph.telemetry import Ledger

_ATTEMPTS = 5
_PARALLEL = 8
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def optimize(
    session: Session,
    branch: str,
    types: Sequence[str] | None,
    *,
    dry_run: bool = False,
    progress: OnProgress | None = None,
    limits: Limits = BY_HAND,
    options: CommitOptions = NO_OPTIONS,
    ledger: Ledger | None = None,
    workers: Workers | None = None,
) -> Optimized:
    """Makes at most one commit. `types` are names or table keys; None means all types and the
    chain."""
    ledger = Ledger() if ledger is None else ledger
    patience = options.patience(session.settings.retry_for)
    said = make_lineage(session, KIND, options, branch, types, actor=ACTOR)
    first = None if dry_run else find_repeated(session, branch, said, ledger)
    if first is not None:
        return Optimized(first.commit, {}, False, False, ledger, repeated=True)
    by_hand = limits.tail == BY_HAND.tail
    fold, head = None, session.live_head(branch, ledger)
    session = session.holding(branch, head.incarnation)
    pinned = pin_commit(session, head, options, ledger)
    if types is None or not by_hand:
        fold = plan_fold(session, head, limits.versions, ledger, writable=not dry_run)
        if fold is not None and not dry_run and not archive_fold(session, fold, ledger):
            fold = None
    work = Optimization(
        session,
        branch,
        types,
        limits,
        progress,
        ledger,
        fold,
        lineage=said,
        if_commit=pinned,
        dry_run=dry_run,
        workers=workers,
    )
    if not by_hand or dry_run:
        return _run(session, work, head, patience, ledger, by_hand=by_hand, dry_run=dry_run)
    with Heartbeat(session, KIND, branch=branch, actor=said.actor) as work.underway:
        return _run(session, work, head, patience, ledger, by_hand=by_hand, dry_run=dry_run)


def _run(
    session: Session,
    work: Optimization,
    head: GraphVersion,
    patience: float,
    ledger: Ledger,
    *,
    by_hand: bool,
    dry_run: bool,
) -> Optimized:
    for _ in range(_ATTEMPTS):
        try:
            work.stage(head)
            if dry_run or not work.worth_it:
                if by_hand and not dry_run:
                    _after(session, work, work.base, (), ledger)
                return Optimized(None, work.reports, dry_run, False, ledger, work.folded)
            published = publish(session, work, ledger, retry_for=patience)
        except NothingLeft:
            return Optimized(None, work.reports, False, False, ledger)
        except TooSlow:
            head = session.live_head(head.branch, ledger)
            continue
        except Corrupt:
            if not session.was_reclaimed(head, ledger):
                raise
            head = session.live_head(head.branch, ledger)  # a cleanup ran while this process slept
            continue
        except Contention:
            break
        return _done(session, work, published, ledger, by_hand=by_hand)
    return Optimized(None, work.reports, False, True, ledger)


def _done(
    session: Session, work: Optimization, published: Published, ledger: Ledger, *, by_hand: bool
) -> Optimized:
    version = published.version
    if version is None:  # another process with the same key was faster
        commit = None if published.first is None else published.first.commit
        return Optimized(commit, work.reports, False, False, ledger, repeated=True)
    with after_commit("following lookups"):
        for old, new in published.tables.values():
            Lookups.shared_by(session).follow(old, new, ledger)
    if by_hand:
        _after(session, work, version, tuple(published.tables), ledger)
    if work.folded:
        with after_commit("pruning the chain"):
            prune_fold(session, version, ledger)
    return Optimized(version.commit, work.reports, False, False, ledger, work.folded)


def _after(
    session: Session,
    work: Optimization,
    version: GraphVersion,
    changed: Sequence[str],
    ledger: Ledger,
) -> None:
    """Updates what is derived from tables, which may be late or missing."""
    with after_commit("tagging tables"):
        _tag_tables(session, version, work.tables, ledger)
    with after_commit("refreshing adjacency"):
        refresh_adjacency(session, version, work.tables, changed, ledger)


def _tag_tables(
    session: Session, version: GraphVersion, keys: Sequence[str], ledger: Ledger
) -> None:
    """Points the Lance tag of the branch at the version of each table. This is a courtesy to other
    readers of Lance: it may be late or missing, and nothing here reads it back. A name that Lance
    does not accept gets no tag."""
    if not _TAG.fullmatch(version.branch):
        return

    def tag(pin: TablePin, own: Ledger) -> None:
        with contextlib.suppress(OmnigraphError):
            table = session.tables.open(pin.location, pin.lance_version, own)
            point_tag(table, version.branch, own)

    pins = [version.pins[key] for key in keys if key in version.pins]
    ledgers = [ledger.fork() for _ in pins]
    with ThreadPoolExecutor(_PARALLEL) as pool:
        list(pool.map(tag, pins, ledgers))
    ledger.join(ledgers)
