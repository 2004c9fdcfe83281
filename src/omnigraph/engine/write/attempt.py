"""Owns one attempt at a write: statements over one pinned base, and the resulting plan.

After a lost race the attempt is repeated on the new head: a write is a function of its snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.engine.after_commit import after_commit
from omnigraph.engine.graph_view import GraphView, find_type, full_view_of
from omnigraph.engine.lookup import Lookups
from omnigraph.engine.session import Session, branch_moved
from omnigraph.engine.write.group import Groups
from omnigraph.engine.write.integrity import check_integrity
from omnigraph.engine.write.precondition import require_commit
from omnigraph.engine.write.published import Published, another_call, find_keyed, hash_key, recalled
from omnigraph.engine.write.publisher import publish, require_unprotected
from omnigraph.engine.write.recent import Looked
from omnigraph.engine.write.recorded_answers import (
    Effects,
    effects_of,
    number_of,
    pack_effects,
    pack_numbers,
)
from omnigraph.engine.write.stage import StagedAppends, StagedWork, stage_work
from omnigraph.engine.write.statements import (
    DeleteRows,
    DeleteWhere,
    OverwriteRows,
    Statement,
    hash_statements,
)
from omnigraph.engine.write.together import Proposal, may_join
from omnigraph.engine.write.work import Work
from omnigraph.errors import (
    BranchMoved,
    Conflict,
    InvalidData,
    PreconditionFailed,
    ProtectedBranch,
    Reclaimed,
    TypeNotFound,
)
from omnigraph.model.catalog import Catalog
from omnigraph.model.options import CommitOptions
from omnigraph.model.version import GraphVersion
from omnigraph.plan.publish import Lineage, PublishPlan
from omnigraph.runtime import reach
from omnigraph.store.objects import Absent
from omnigraph.telemetry import Ledger

Reshape = Callable[[list[Statement], GraphView], list[Statement]]


class _NothingLeftError(Exception):
    """On the new head the statements match nothing, so there is nothing to publish."""


class Write:
    """`reshape` makes the statements anew if the schema has changed. `call` distinguishes this call
    from others with the same idempotency key, if its statements do not. With `tells`, the caller's
    code relies on the number that each statement returns, so it must be the same on another
    base."""

    plan: PublishPlan

    def __init__(
        self,
        session: Session,
        *,
        branch: str,
        kind: str,
        options: CommitOptions,
        reshape: Reshape,
        ledger: Ledger,
        tells: bool = False,
    ) -> None:
        self._session = self._given = session
        self._branch = branch
        self._lineage = Lineage(
            kind=kind,
            operation=session.runtime.ulid(),
            actor=options.actor,
            message=options.message,
        )
        self._if_commit = options.if_commit
        self._key = hash_key(options.idempotency_key)
        self._patience = options.patience(session.settings.retry_for)
        self._looked: GraphVersion | None = None
        self._first: GraphVersion | None = None
        self._reshape = reshape
        self._ledger = ledger
        self._work: Work | None = None
        self._fresh = False
        self._appends = StagedAppends()
        self._staged = StagedWork((), {})
        self._answers: list[int] | None = [] if tells else None
        self._asked: list[tuple[Statement, int]] = []
        self.call: str | None = None
        self.statements: list[Statement] = []
        self.reads: set[str] = set()

    @property
    def base(self) -> GraphVersion:
        assert self._work is not None
        return self._work.snapshot.graph_version

    @property
    def effects(self) -> Effects:
        """How many entities of each table were inserted, updated and deleted on the last base, or
        by the first of several calls."""
        if self._first is not None:
            return effects_of(
                self._first, self._session.read_catalog(self._first.catalog, self._ledger)
            )
        return Counter() if self._work is None else self._work.effects

    def repeats(self) -> GraphVersion | None:
        """The version that an earlier call with the same idempotency key made. This is looked up
        first: that call was checked, and the branch has changed since. If it is on a newer head
        than the one known here, it is found there; only what the caller has been told cannot wait
        for that."""
        if self._key is not None and self._looked is None:
            self._look(fresh=self._answers is not None)
        return self._first

    def catalog(self, *, reading: bool, fresh: bool = False) -> Catalog:
        """The schema under which statements are read. For a repeated call, the schema of the first
        call. A caller with a limited view sees only a part of it."""
        if (first := self.repeats()) is not None:
            catalog = self._session.read_catalog(first.catalog, self._ledger)
        else:
            catalog = self.working(reading=reading, fresh=fresh).snapshot.catalog
        permissions = self._session.permissions
        return permissions.sight(catalog).visible if permissions.restricted else catalog

    def working(self, *, reading: bool, fresh: bool = False) -> Work:
        """The pinned base with all statements applied so far. It is the head that was last seen,
        which the put proves, or finds to be old. One look is taken first if the caller is told what
        was read (`fresh`), or if a statement reads while others write to the branch; nothing looks
        again (pin once)."""
        if (first := self.repeats()) is not None:
            return self._as_first_called(first)
        rests = reading or self._key is not None or self._if_commit is not None
        look = fresh or (rests and self._session.has_company(self._branch))
        if self._work is not None and (self._fresh or not look):
            return self._work
        if self._looked is None or (look and not self._fresh):
            self._look(fresh=look)
            if self._first is not None:
                return self._as_first_called(self._first)
        head = self._admitted()
        if self._work is None or head.token != self.base.token:
            self._work = self._resolve(head)
        return self._work

    def _look(self, *, fresh: bool) -> GraphVersion:
        head = self._session.live_head(self._branch, self._ledger, fresh=fresh)
        self._session = self._session.holding(head.branch, head.incarnation)
        if self._key is not None and (self._looked is None or head.token != self._looked.token):
            self._first = find_keyed(self._session, self._key, head, self._ledger)
        self._fresh, self._looked = self._fresh or fresh, head
        return head

    def _admitted(self) -> GraphVersion:
        """The head that was looked at, if it may be written to. If not, that may have changed."""
        assert self._looked is not None
        try:
            self._require_commit(self._looked)
            require_unprotected(self._looked, self._lineage.kind)
        except (PreconditionFailed, ProtectedBranch):
            if self._fresh:
                raise
            self._require_commit(self._look(fresh=True))
            require_unprotected(self._looked, self._lineage.kind)
        return self._looked

    def run(self, statement: Statement, *, reading: bool, fresh: bool = False) -> int:
        deletes = isinstance(statement, DeleteRows | DeleteWhere | OverwriteRows)
        self.require_write(statement.type, reading=reading, fresh=fresh, deletes=deletes)
        if (first := self.repeats()) is not None:
            affected = number_of(statement, [one for one, _ in self._asked], first)
        else:
            affected = self.working(reading=reading, fresh=fresh).apply(statement)
        self.statements.append(statement)
        self._asked.append((statement, affected))
        if self._answers is not None:
            self._answers.append(affected)
        return affected

    def require_write(
        self, type: str, *, reading: bool, fresh: bool = False, deletes: bool = False
    ) -> None:
        """Asks before anything of the type is looked at: a refusal would tell what is there."""
        permissions = self._session.permissions
        if permissions.restricted:
            kind = find_type(self.catalog(reading=reading, fresh=fresh), type)
            everything = self.working(reading=reading, fresh=fresh).snapshot.catalog
            permissions.require_write(everything, kind, deletes=deletes)

    def undo(self, count: int) -> None:
        """Goes back to the first few statements. The caller's code has seen the results of the
        others, so the tables that they depend on count as read."""
        self.refused()
        del self.statements[count:]
        if self._answers is not None:
            del self._answers[count:]
        if self._work is not None:
            self._resolve(self.base)

    def refused(self) -> None:
        """The caller's code was told of an error, so the tables that the error depends on count as
        read."""
        if self._work is not None:
            self.reads |= self._work.checks

    def moved_on(self) -> bool:
        """Whether a refusal, or that there is nothing to do, may be due to an old base, which is
        then replaced by a fresh one. The call may turn out to be a repeated one there."""
        if self._fresh or self._looked is None or self._first is not None:
            return False
        before = self._looked.token
        self.working(reading=True, fresh=True)
        return self._first is not None or self._looked.token != before

    def begin_again(self) -> bool:
        """The same without any statements."""
        if self._fresh:
            return False
        self.statements, self._asked, self._work = [], [], None
        return self.moved_on()

    def publish(self) -> Published | None:
        """None means that there was nothing to do."""
        if (first := self.repeats()) is not None:
            return self._recalled(first)
        if self.statements:
            self._stage_anywhere()
            if self._first is not None:
                return self._recalled(self._first)
        if not self._staged.actions:
            if self._if_commit is not None:
                self._require_commit(self._session.live_head(self._branch, self._ledger))
            return None
        try:
            published = self._publish()
        except _NothingLeftError:
            return None
        self._first = published.first
        with after_commit("carrying lookups"):
            for table, (old, new) in published.tables.items() if not published.carried else ():
                # The written rows are known, so lookups need not read them.
                rows, hidden = self._staged.rows[table]
                Lookups.shared_by(self._session).carry(old, new, rows, hidden)
        if self._session.on_write is not None:
            with after_commit("folding"):
                self._session.on_write(self._branch, published.tables)
        return published

    def _stage_anywhere(self) -> None:
        """On the base that there is. If that is refused, or comes to nothing, on a fresh one."""
        try:
            self._stage(self.working(reading=False))
        except InvalidData:
            if not self.moved_on():
                raise
        else:
            if self._staged.actions or not self.moved_on():
                return
        if self._first is None:
            self._stage(self.working(reading=False))

    def _publish(self) -> Published:
        try:
            return self._put()
        except BranchMoved:
            # Perhaps before this call: then the branch of that name is meant which there is now.
            if self._fresh:
                raise
        self._session = self._given
        if not self.moved_on():
            raise branch_moved(self._branch)
        if self._first is not None:
            return self._recalled(self._first)
        self._stage(self.working(reading=False))
        if not self._staged.actions:
            raise _NothingLeftError
        return self._put()

    def _put(self) -> Published:
        """Alone, or together with other threads."""

        def alone() -> Published:
            return publish(
                self._session, self, self._ledger, retry_for=self._patience, additive=self
            )

        if not self._session.settings.group_commit or not may_join(self.plan):
            return alone()
        proposal = Proposal(self._session, self, self._ledger)
        groups = Groups.shared_by(self._session)
        return groups.publish(proposal, alone, patience=self._patience)

    # What others need not run again for

    @property
    def looked(self) -> dict[str, Looked | None]:
        return {} if self._work is None else self._work.looked

    def added(self, table: str) -> pa.Table | None:
        return None if self._work is None else self._work.overlays[table].rows

    def staged_rows(self, table: str) -> tuple[pa.Table, np.ndarray]:
        return self._staged.rows[table]

    # What the publisher asks for

    def replan(self, head: GraphVersion) -> None:
        self._stage(self._resolve(head))
        if not self._staged.actions:
            raise _NothingLeftError

    def stale(self, head: GraphVersion) -> bool:
        """Cleanup may have deleted files staged before its cutoff, and will soon delete those older
        than half the grace period (hazard 7)."""
        if not self._session.outlived(self._appends.since, head):
            return False
        self._appends.clear()
        return True

    def _resolve(self, head: GraphVersion) -> Work:
        """Applies all statements so far to another base."""
        snapshot = full_view_of(self._session, head, self._ledger)
        before = None if self._work is None else self._work.snapshot.catalog.digest
        if self.statements and before != head.catalog:
            self.statements = self._reshape(self.statements, snapshot)
        work = Work(snapshot)
        told = [None] * len(self.statements) if self._answers is None else self._answers
        for statement, number in zip(self.statements, told, strict=True):
            affected = work.apply(statement)
            if number is not None and affected != number:
                raise Conflict(
                    f"A statement on {statement.type} affected {number} entities in the "
                    f"transaction; after another commit it would affect {affected}."
                )
        self._work = work
        return work

    def _stage(self, work: Work) -> None:
        check_integrity(work)
        self._appends.begin(self._session.runtime.now())
        self._staged = stage_work(work, self._appends, self._ledger)
        reach("staged")
        pins = work.snapshot.graph_version.pins
        self.plan = PublishPlan(
            branch=self._branch,
            base_version=work.snapshot.version,
            base_incarnation=work.snapshot.graph_version.incarnation,
            actions=self._staged.actions,
            lineage=self._keyed(work),
            reads={table: pins[table].content for table in self.reads},
            checks={table: pins[table].content for table in work.checks},
            if_commit=self._if_commit,
        )

    def _as_first_called(self, first: GraphVersion) -> Work:
        """A repeated call reads what the first call read: the state before its commit, with its
        statements so far."""
        try:
            before = self._session.read_version(self._branch, first.version - 1, self._ledger)
        except Absent:
            raise Reclaimed(
                f"The call was made before, as commit {first.commit.id}; what it read then was "
                "reclaimed."
            ) from None
        work = Work(full_view_of(self._session, before, self._ledger))
        for statement in self.statements:
            work.apply(statement)
        return work

    def _recalled(self, first: GraphVersion) -> Published:
        catalog = self._session.read_catalog(first.catalog, self._ledger)
        try:
            call = self.call or hash_statements(self.statements, catalog)
        except TypeNotFound as error:
            raise another_call(first) from error
        return recalled(first, call)

    def _keyed(self, work: Work) -> Lineage:
        if self._key is None:
            return self._lineage
        catalog = work.snapshot.catalog
        if self._answers is None:
            answers = pack_effects(work.effects, catalog)
        else:
            answers = pack_numbers(self._asked)
        call = self.call or hash_statements(self.statements, catalog)
        return msgspec.structs.replace(self._lineage, key=self._key, call=call, answers=answers)

    def _require_commit(self, head: GraphVersion) -> None:
        if self._if_commit is not None:
            pinned = require_commit(self._session, head, self._if_commit, self._ledger)
            self._if_commit = pinned
