"""Owns publishing: it binds a plan to the head of its branch, and returns what happened."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, assert_never

from omnigraph.engine.session import Session, branch_moved
from omnigraph.engine.write.bind import bind_action, merge_pins
from omnigraph.engine.write.chain import Step, put_with_retry
from omnigraph.engine.write.precondition import moved_on
from omnigraph.engine.write.published import Published, recall
from omnigraph.engine.write.recent import Additive, RecentCommits, changed_rows, commutes
from omnigraph.errors import (
    Conflict,
    NewerFormat,
    ProtectedBranch,
)
from omnigraph.model.version import (
    FORMAT,
    UNSEEN,
    GraphVersion,
    TablePin,
    TableStatistics,
)
from omnigraph.plan.publish import PublishPlan
from omnigraph.plan.rebase import BranchGone, Clash, HeadMoved, Keep, Rerun, resolve_rebase
from omnigraph.plan.successor import Advance
from omnigraph.runtime import reach
from omnigraph.store.durability import paths_of
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

PASSES_PROTECTION = UNSEEN | {"merge"}
_PARALLEL = 8


class Publishable(Protocol):
    """What the publisher needs of a write: its plan, now and again on another head."""

    plan: PublishPlan

    @property
    def base(self) -> GraphVersion: ...

    def replan(self, head: GraphVersion) -> None:
        """Makes the plan again on a new base. Raises the errors that the statements raise there."""

    def stale(self, head: GraphVersion) -> bool:
        """Whether staged files may be gone by the time the plan is bound."""


@dataclass(frozen=True)
class _Bindings:
    """The result of a plan's actions: the pins of the next version, the tables before and after,
    and the new files."""

    pins: tuple[TablePin, ...]
    statistics: dict[str, TableStatistics]
    tables: dict[str, tuple[Table, Table]]
    unsynced: tuple[str, ...]


def publish(
    session: Session,
    work: Publishable,
    ledger: Ledger,
    *,
    retry_for: float,
    after: Sequence[Path] = (),
    additive: Additive | None = None,
) -> Published:
    """One commit, or an error that says what became of the write. The files in `after`, and those
    that the write made itself, are on disk before the commit can be seen. If the write says what it
    looked up and what it adds (`additive`), it need not run again after others that only added
    other rows."""
    return _Publication(session, work, ledger, after, additive).run(retry_for)


class _Publication:
    """One write on its way into a branch. It may be known already, or it is bound to the end of the
    chain."""

    def __init__(
        self,
        session: Session,
        work: Publishable,
        ledger: Ledger,
        after: Sequence[Path],
        additive: Additive | None,
    ) -> None:
        self._additive = additive
        self._before = ""
        self._session = session
        self._work = work
        self._ledger = ledger
        self._after = after
        self._known: Published | None = None
        self._bound = _Bindings((), {}, {}, ())

    def run(self, retry_for: float) -> Published:
        branch = self._work.plan.branch
        version = put_with_retry(
            self._session,
            branch,
            lambda fresh: self._session.head(branch, self._ledger, fresh=fresh),
            self._propose,
            self._ledger,
            retry_for=retry_for,
            queues=True,
        )
        if version is None:
            assert self._known is not None
            return self._known
        for _, table in self._bound.tables.values():
            self._session.tables.keep(table)
        added = changed_rows(self._work.plan, self._additive)
        RecentCommits.shared_by(self._session).note(self._before, version.token, added)
        return Published(version, version.commit.id, tables=self._bound.tables)

    def _propose(self, head: GraphVersion | None) -> Step | None:
        work = self._work
        assert head is not None  # there is no branch without a version
        if head.deleted or head.incarnation != work.plan.base_incarnation:
            raise branch_moved(head.branch)  # its keys and streams are not ours
        self._before = head.token
        self._known = recall(self._session, work.plan.lineage, head, self._ledger)
        if self._known is not None:
            return None
        self._rebase(work, head)
        plan = work.plan  # it may be another one now
        self._require_tables(plan, head)
        self._bound = self._bind(plan, head, self._ledger)
        change = Advance(
            plan.lineage,
            self._bound.pins,
            self._bound.statistics,
            plan.schema,
            plan.folded,
            plan.forgets,
            plan.queries,
        )
        return Step(change, [*paths_of(self._session.root, self._bound.unsynced), *self._after])

    def _require_tables(self, plan: PublishPlan, head: GraphVersion) -> None:
        permissions = self._session.permissions
        if permissions.restricted:
            catalog = self._session.read_catalog(head.catalog, self._ledger)
            tables = frozenset(action.table for action in plan.actions)
            permissions.require_tables(catalog, plan.lineage.kind, tables)

    def _rebase(self, work: Publishable, head: GraphVersion) -> None:
        plan = work.plan
        if head.format > FORMAT:
            raise NewerFormat(
                f"The branch {plan.branch!r} has moved to format {head.format}; this program "
                f"knows up to {FORMAT}."
            )
        require_unprotected(head, plan.lineage.kind)
        stale = work.stale(head)
        same = head.token == work.base.token
        verdict = Keep() if same else resolve_rebase(plan, work.base, head)
        if stale and verdict == Keep():
            verdict = Rerun("staged files may be gone")
        elif isinstance(verdict, Rerun) and not stale and self._additive is not None:
            verdict = Keep() if commutes(self._session, self._additive, head) else verdict
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

    def _bind(self, plan: PublishPlan, head: GraphVersion, ledger: Ledger) -> _Bindings:
        """Makes detached commits on the head's own tables, in parallel."""
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
        unsynced = tuple(key for bound, _ in results for key in bound.unsynced)
        return _Bindings(tuple(pins.values()), statistics, tables, unsynced)


def require_unprotected(head: GraphVersion, kind: str) -> None:
    """A protected branch accepts merges, and changes that no reader can see."""
    if head.protected and kind not in PASSES_PROTECTION:
        raise ProtectedBranch(f"The branch {head.branch!r} is protected against direct writes.")
