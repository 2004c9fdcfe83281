"""Owns publishing: binds a plan to the head, puts the next graph version, tells what happened.

The only module that puts graph versions.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol, assert_never

from omnigraph.engine.session import Session, branch_moved
from omnigraph.engine.write.bind import bind_action, merge_pins
from omnigraph.engine.write.precondition import moved_on
from omnigraph.engine.write.published import Published, recall
from omnigraph.errors import (
    Conflict,
    Contention,
    NewerFormat,
    OmnigraphError,
    OutcomeUnknown,
    ProtectedBranch,
)
from omnigraph.model.version import (
    FORMAT,
    UNSEEN,
    Commit,
    GraphVersion,
    StreamMark,
    TablePin,
    TableStatistics,
)
from omnigraph.plan.publish import Lineage, Merged, PublishPlan
from omnigraph.plan.rebase import BranchGone, Clash, HeadMoved, Keep, Rerun, resolve_rebase
from omnigraph.plan.succession import follow
from omnigraph.runtime import encode_ulid, reach, ulid_after, ulid_milliseconds
from omnigraph.store.durability import paths_of
from omnigraph.store.objects import Gone
from omnigraph.store.queue import Ticket
from omnigraph.store.tables import Table
from omnigraph.store.versions import Put
from omnigraph.telemetry import Ledger

RECENT_STREAMS = 512
PASSES_PROTECTION = UNSEEN | {"merge"}
_PARALLEL = 8


class Publishable(Protocol):
    """What the publisher needs of a write: its plan, now and again on another head."""

    plan: PublishPlan

    @property
    def base(self) -> GraphVersion: ...

    def replan(self, head: GraphVersion) -> None:
        """Makes the plan again on a new base; raises what the statements raise there."""

    def stale(self, head: GraphVersion) -> bool:
        """Whether staged files may be gone by the time that the plan is bound."""


class Publisher:
    def __init__(self, session: Session) -> None:
        self._session = session

    def publish(
        self,
        work: Publishable,
        ledger: Ledger,
        *,
        retry_for: float,
        after: Sequence[Path] = (),
    ) -> Published:
        """One commit, or an error that says what became of the write. The files `after` are on
        the disk before it can be seen, beside those that it wrote itself."""
        session, branch = self._session, work.plan.branch
        deadline = session.runtime.monotonic() + retry_for
        objects = session.metered(ledger)
        remote = session.root.directory is None
        ticket: Ticket | None = None
        gave_way = remote and session.tickets.give_way(objects, branch, deadline)
        try:
            with self._turn(branch, deadline) as waited:
                head = session.head(branch, ledger, fresh=waited or gave_way)
                attempt = 0
                while True:
                    if head.deleted or head.incarnation != work.plan.base_incarnation:
                        raise branch_moved(branch)  # whose keys and streams are not ours
                    known = recall(session, work.plan.lineage, head, ledger)
                    if known is not None:
                        return known
                    self._rebase(work, head)
                    bound = self._bind(work.plan, head, ledger)
                    newer = self._put(bound, ledger, after)
                    if newer is None:
                        session.tickets.landed(branch, contended=attempt > 0)
                        return bound
                    head = newer
                    attempt += 1
                    if session.runtime.monotonic() > deadline:
                        raise Contention(
                            f"The branch {branch!r} was written by others {attempt} times in "
                            f"{retry_for:g} s, each time before this write."
                        )
                    if remote:
                        ticket, waited = session.tickets.stand_in_line(
                            objects, branch, ticket, deadline
                        )
                        head = session.head(branch, ledger) if waited else newer
                    elif session.queue is None:
                        session.runtime.sleep(0.002 * attempt * session.runtime.random())
        finally:
            if ticket is not None:
                session.tickets.leave_line(objects, branch, ticket)

    @contextlib.contextmanager
    def _turn(self, branch: str, deadline: float) -> Iterator[bool]:
        queue = self._session.queue
        if queue is None:
            yield False
            return
        patience = max(0.0, deadline - self._session.runtime.monotonic()) / 2
        with queue.turn(branch, patience) as waited:
            yield waited

    def _rebase(self, work: Publishable, head: GraphVersion) -> None:
        plan = work.plan
        if head.format > FORMAT:
            raise NewerFormat(
                f"The branch {plan.branch!r} has moved to format {head.format}; this program "
                f"knows up to {FORMAT}."
            )
        require_unprotected(head, plan.lineage.kind)
        stale = work.stale(head)
        same = head.version == work.base.version
        verdict = Keep() if same else resolve_rebase(plan, work.base, head)
        if stale and verdict == Keep():
            verdict = Rerun("staged files may be gone")
        match verdict:
            case Keep():
                pass
            case Rerun():
                reach("rerun")
                work.replan(head)
            case BranchGone():
                raise branch_moved(plan.branch)
            case HeadMoved():
                raise moved_on(head, str(plan.if_commit))
            case Clash(mismatch=mismatch, because=because):
                raise Conflict(
                    f"{mismatch.table_key} is at version {mismatch.actual}, not at "
                    f"{mismatch.expected}: {because}.",
                    mismatch=mismatch,
                )
            case _:
                assert_never(verdict)

    def _bind(self, plan: PublishPlan, head: GraphVersion, ledger: Ledger) -> Published:
        """Detached commits on the head's own tables, side by side."""
        statistics: dict[str, TableStatistics] = {}
        tables: dict[str, tuple[Table, Table]] = {}

        def run(action: Any) -> tuple[Any, Ledger]:
            own = ledger.fork()
            return bind_action(self._session, action, head, own), own

        if len(plan.actions) == 1:
            results = [(bind_action(self._session, plan.actions[0], head, ledger), Ledger())]
        else:
            with ThreadPoolExecutor(_PARALLEL) as pool:
                results = list(pool.map(run, plan.actions))
            ledger.join([own for _, own in results])
        for action, (bound, _) in zip(plan.actions, results, strict=True):
            if bound.before is not None and bound.after is not None:
                tables[action.table] = (bound.before, bound.after)
            if bound.statistics != TableStatistics():
                statistics[action.table] = bound.statistics
        pairs = [(action, bound) for action, (bound, _) in zip(plan.actions, results, strict=True)]
        pins = merge_pins(head, pairs)
        reach("tables committed")
        version = self._next_version(plan, head, pins, statistics)
        unsynced = tuple(key for bound, _ in results for key in bound.unsynced)
        return Published(version, version.commit.id, tables=tables, unsynced=unsynced)

    def _next_version(
        self,
        plan: PublishPlan,
        head: GraphVersion,
        pins: dict[str, TablePin],
        statistics: dict[str, TableStatistics],
    ) -> GraphVersion:
        lineage = plan.lineage
        commit = commit_after(
            self._session,
            head,
            kind=lineage.kind,
            operation=lineage.operation,
            actor=lineage.actor,
            message=lineage.message,
            statistics=statistics,
            merged=lineage.merged,
        )
        keys = head.keys.passed_on()
        if lineage.key is not None and lineage.call is not None:
            keys = keys.used(
                bytes.fromhex(lineage.key),
                version=head.version + 1,
                time=commit.created_at // 1_000_000,
                call=bytes.fromhex(lineage.call),
                answers=lineage.answers,
            )
        unseen = lineage.kind in UNSEEN
        merged = lineage.merged
        return follow(
            head,
            token=self._session.runtime.ulid(),
            commit=commit,
            schema=plan.schema.schema if plan.schema else head.schema,
            catalog=plan.schema.catalog if plan.schema else head.catalog,
            tables=tuple(pins.values()),
            keys=keys,
            streams=_streams_after(head, lineage, commit),
            ancestry=merged.ancestry if merged else head.ancestry,
            merged=merged.at if merged else None,
            forwarded=merged is not None and merged.forwarded,
            folded=max(head.folded, plan.folded),
            forgotten=head.version + 1 if plan.forgets else head.forgotten,
            maintained=head.maintained + unseen,
        )

    def _put(self, bound: Published, ledger: Ledger, after: Sequence[Path]) -> GraphVersion | None:
        """None: landed. A version: the head that was faster."""
        assert bound.version is not None
        needed = paths_of(self._session.root, bound.unsynced)
        newer = put_version(self._session, bound.version, ledger, after=[*needed, *after])
        if newer is None:
            for _, table in bound.tables.values():
                self._session.tables.keep(table)
        return newer


def require_unprotected(head: GraphVersion, kind: str) -> None:
    """A protected branch takes merges, and what no reader can see."""
    if head.protected and kind not in PASSES_PROTECTION:
        raise ProtectedBranch(f"The branch {head.branch!r} is protected against direct writes.")


def _streams_after(head: GraphVersion, lineage: Lineage, commit: Commit) -> dict[str, StreamMark]:
    if lineage.stream is None:
        return head.streams
    mark = StreamMark(lineage.batch, head.version + 1, commit.id)
    marks = {**head.streams, lineage.stream: mark}
    if len(marks) > RECENT_STREAMS:
        del marks[min(marks, key=lambda stream: marks[stream].version)]
    return marks


def commit_after(
    session: Session,
    head: GraphVersion,
    *,
    kind: str,
    operation: str,
    actor: str | None = None,
    message: str | None = None,
    statistics: dict[str, TableStatistics] | None = None,
    merged: Merged | None = None,
) -> Commit:
    """A commit on top of the head: later than it by the clock that both carry."""
    created_at = max(session.runtime.now(), head.commit.created_at + 1)
    if merged is not None:  # made by another clock, perhaps a faster one
        created_at = max(created_at, (ulid_milliseconds(merged.commit) + 1) * 1000)
    return Commit(
        id=_commit_id(created_at, head.commit.id, session),
        parents=(head.commit.id,) if merged is None else (head.commit.id, merged.commit),
        kind=kind,
        created_at=created_at,
        operation=operation,
        actor=actor,
        message=message,
        statistics=statistics or {},
    )


def put_version(
    session: Session,
    version: GraphVersion,
    ledger: Ledger,
    *,
    after: Sequence[Path] = (),
    stamped: bool = True,
) -> GraphVersion | None:
    """The one put. None: landed; a version: the head that was faster."""
    if stamped:
        session.require_safe_store(version.graph, version.format, ledger)
    versions, seen = session.versions(ledger), session.seen_before(version)
    reach("before put")
    try:
        outcome = versions.put(version, after=after)
    except Gone:
        session.forget_head(version.branch)
        if version.version != version.first:
            # Cleanup took what this writer had staged while it slept; the head says so.
            return session.head(version.branch, ledger)
        # A branch begins with a version of another, which has gone to the archive meanwhile.
        outcome = versions.put(version, after=[path for path in after if path.exists()])
    reach("after put")
    slept = session.slept_since(seen)
    match outcome.put:
        case Put.LANDED:
            if slept and version.version > 1:  # the first of a branch follows nothing
                real = _real_head(session, version, ledger)
                if real.version > version.version and real.bottom > version.version:
                    versions.delete_ghost(version)
                    return real
            session.saw_head(version)
            return None
        case Put.TAKEN:
            assert outcome.taken_by is not None
            if slept or version.version == 1:
                # Who holds the number may itself be a ghost below the floor; and the first of a
                # chain stays where it is when cleanup takes those that follow on it.
                session.forget_head(version.branch)
                return session.head(version.branch, ledger)
            newer = versions.read_newer(outcome.taken_by)
            session.saw_head(newer)
            return newer
        case Put.UNKNOWN:
            raise OutcomeUnknown(
                f"Whether commit {version.commit.id}, version {version.version} of "
                f"{version.branch!r}, is there to stay is not known: {outcome.reason}.",
                commit=version.commit.id,
            )
        case put:
            assert_never(put)


def _real_head(session: Session, version: GraphVersion, ledger: Ledger) -> GraphVersion:
    """The head after a put that took long: ours counts only if it is above the floor."""
    session.forget_head(version.branch)
    try:
        return session.head(version.branch, ledger)
    except OmnigraphError as error:
        raise OutcomeUnknown(
            f"Commit {version.commit.id} was put, but whether cleanup had passed it cannot "
            f"be read: {error.message}",
            commit=version.commit.id,
        ) from error


def _commit_id(created_at: int, parent: str, session: Session) -> str:
    """Above the parent's, so that a commit can be found on its branch by bisection."""
    milliseconds = created_at // 1000
    if milliseconds <= ulid_milliseconds(parent):
        return ulid_after(parent, session.runtime.random())
    return encode_ulid(milliseconds, 0)[:10] + session.runtime.ulid()[10:]
