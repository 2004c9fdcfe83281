"""Owns transactions: statements over one pinned snapshot that become one commit, or nothing."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.integrity import check_integrity
from omnigraph.engine.publisher import Published, Publisher
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot, find_type
from omnigraph.engine.stage import StagedAppends, stage_work
from omnigraph.engine.statements import (
    AppendRows,
    DeleteRows,
    OverwriteRows,
    Statement,
    UpdateRows,
    UpsertRows,
    hash_statements,
)
from omnigraph.engine.work import Work, refuse
from omnigraph.errors import InvalidArgument, InvalidData, PreconditionFailed, TypeNotFound
from omnigraph.model.catalog import GraphType
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.plan.publish import Lineage, PublishPlan
from omnigraph.plan.rows import shape_rows
from omnigraph.plan.validate import check_duplicates, check_rows
from omnigraph.runtime import reach
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger


class Transaction:
    """Leaving the block publishes one commit; an exception leaves nothing.

    After the block `commit` is the commit (None if there was nothing to do), `commit_id` its id
    (also when an earlier call with the same idempotency key had made it, then `repeated` is
    True), and `io` the requests that it took.
    """

    def __init__(
        self,
        session: Session,
        *,
        branch: str,
        actor: str | None,
        message: str | None,
        if_commit: str | None,
        idempotency_key: str | None,
        retry_for: float,
    ) -> None:
        self._session = session
        self._branch = branch
        self._lineage = Lineage(
            kind="write", operation=session.runtime.ulid(), actor=actor, message=message
        )
        self._if_commit = if_commit
        self._key = idempotency_key
        self._retry_for = retry_for
        self._statements: list[Statement] = []
        self._reads: set[str] = set()
        self._work: Work | None = None
        self._fresh = False
        self._state = "open"
        self.io = Ledger()
        self.commit: Commit | None = None
        self.commit_id: str | None = None
        self.repeated = False

    # The block

    def __enter__(self) -> Transaction:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if kind is None:
            self.publish()
        else:
            self._state = "abandoned"

    # Statements

    def append(self, type: str, rows: Any) -> int:  # noqa: A002
        """New entities; an id that exists already is an error."""
        return self._give_rows(AppendRows, type, rows, complete=True)

    def upsert(self, type: str, rows: Any) -> int:  # noqa: A002
        """New or changed entities by id; properties that are not given keep their value."""
        return self._give_rows(UpsertRows, type, rows, complete=False)

    def overwrite(self, type: str, rows: Any) -> int:  # noqa: A002
        """Replaces every entity of the type."""
        return self._give_rows(OverwriteRows, type, rows, complete=True)

    def update(
        self,
        type: str,  # noqa: A002
        *,
        set: Mapping[str, Any],  # noqa: A002
        where: pc.Expression | None,
    ) -> int:
        """Sets properties, to values or to expressions over the old row, where a condition
        holds (None: everywhere). Returns the number of entities."""
        return self._run(UpdateRows(type, dict(set), where), reading=True)

    def delete(self, type: str, *, where: pc.Expression | None) -> int:  # noqa: A002
        """Removes entities, and with nodes their edges, where a condition holds."""
        return self._run(DeleteRows(type, where), reading=True)

    def scan(
        self,
        type: str,  # noqa: A002
        *,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,  # noqa: A002
    ) -> pa.Table:
        """Rows as they would be if the block ended here. What is read here must not change
        until the commit: if another commit changes it, this one fails with `Conflict`."""
        work = self._working(reading=True)
        kind = work.snapshot.type(type)
        view = work.view(kind)
        names = view.check_columns(columns)
        self._reads.add(kind.table_key)
        schema = pa.schema([view.schema.field(name) for name in names])
        batches = view.scan(self.io, columns=names, filter=filter)
        return pa.Table.from_batches(batches, schema=schema)

    def count(self, type: str) -> int:  # noqa: A002
        work = self._working(reading=True)
        kind = work.snapshot.type(type)
        self._reads.add(kind.table_key)
        return work.view(kind).count()

    # Publishing

    @property
    def base(self) -> GraphVersion:
        assert self._work is not None
        return self._work.snapshot.graph_version

    def publish(self) -> None:
        """Publishes what was staged; leaving the block does this."""
        self._require_open()
        self._state = "published"
        if not self._statements:
            self._check_if_commit()
            return
        if self._key is not None:
            self._working(reading=True)
        write = _Write(self)
        if write.nothing_to_do:
            self._check_if_commit()
            return
        published = Publisher(self._session).publish(write, self.io, retry_for=self._retry_for)
        self.commit_id = published.commit
        self.repeated = published.repeated
        if published.version is not None:
            self.commit = published.version.commit
            write.carry(published)

    def _check_if_commit(self) -> None:
        if self._if_commit is not None:
            self._require_commit(self._session.live_head(self._branch, self.io))

    def _require_commit(self, head: GraphVersion) -> None:
        if self._if_commit is not None and head.commit.id != self._if_commit:
            raise PreconditionFailed(
                f"The branch {self._branch!r} is at commit {head.commit.id}, not at "
                f"{self._if_commit}."
            )

    # The work under way

    def _working(self, *, reading: bool) -> Work:
        """The pinned base with everything so far. Blind appends need no look at the head; the
        first statement that reads looks once, and nothing looks again (pin once)."""
        self._require_open(also_published=True)
        need_fresh = reading or self._if_commit is not None
        if self._work is not None and (self._fresh or not need_fresh):
            return self._work
        head = self._session.live_head(self._branch, self.io, fresh=need_fresh)
        self._require_commit(head)
        self._fresh = self._fresh or need_fresh
        if self._work is None or head.version != self.base.version:
            self._work = self.resolve(head)
        return self._work

    def resolve(self, head: GraphVersion) -> Work:
        """All statements so far, applied to another base."""
        snapshot = self._session.snapshot(head, self.io)
        changed = self._work is not None and self._work.snapshot.catalog is not snapshot.catalog
        if changed:
            self._statements = [self._reshaped(s, snapshot) for s in self._statements]
        work = Work(snapshot)
        for statement in self._statements:
            work.apply(statement)
        self._work = work
        return work

    def _run(self, statement: Statement, *, reading: bool) -> int:
        work = self._working(reading=reading)
        affected = work.apply(statement)
        self._statements.append(statement)
        return affected

    def _give_rows(
        self,
        make: type[AppendRows],
        name: str,
        rows: Any,
        *,
        complete: bool,
    ) -> int:
        rows = _rereadable(rows)
        try:
            return self._try_rows(make, name, rows, complete=complete)
        except (TypeNotFound, InvalidData):
            if not self._moved_on():
                raise
        return self._try_rows(make, name, rows, complete=complete)

    def _moved_on(self) -> bool:
        """Whether a refusal may be due to an old base, which is then replaced by a fresh one."""
        if self._fresh or self._work is None:
            return False
        before = self.base.version
        return self._working(reading=True).snapshot.version != before

    def _try_rows(self, make: type[AppendRows], name: str, rows: Any, *, complete: bool) -> int:
        # Rows that can clash with nothing need no look at the head.
        kind = find_type(self._working(reading=False).snapshot.catalog, name)
        if make is not AppendRows or kind.key:
            kind = find_type(self._working(reading=True).snapshot.catalog, name)
        statement = self._shape(make, kind, rows, complete=complete)
        given = any(group.table.num_rows for group in statement.shaped.groups)
        if not given and make is not OverwriteRows:
            return 0
        return self._run(statement, reading=not statement.generated_ids)

    def _shape(
        self, make: type[AppendRows], kind: GraphType, rows: Any, *, complete: bool
    ) -> AppendRows:
        generated = False

        def new_ids(count: int) -> list[str]:
            nonlocal generated
            generated = True
            return [self._session.runtime.ulid() for _ in range(count)]

        shaped = shape_rows(kind, rows, complete=complete, new_ids=new_ids)
        refuse(shaped.violations)
        for group in shaped.groups:
            refuse(check_rows(kind, group.table, positions=group.positions))
        if shaped.groups and not generated:
            ids = pa.concat_tables([g.table.select(["id"]) for g in shaped.groups])
            refuse(check_duplicates(kind, ids))
        return make(kind.name, rows, shaped, generated)

    def _reshaped(self, statement: Statement, snapshot: Snapshot) -> Statement:
        """Rows read again under another schema."""
        if not isinstance(statement, AppendRows) or statement.generated_ids:
            return statement
        kind = snapshot.type(statement.type)
        complete = not isinstance(statement, UpsertRows)
        return self._shape(type(statement), kind, statement.raw, complete=complete)

    def _require_open(self, *, also_published: bool = False) -> None:
        if self._state == "open" or (also_published and self._state == "published"):
            return
        raise InvalidArgument(f"The transaction is {self._state}; begin another one.")


class _Write:
    """A transaction as the publisher sees it: a plan, now and on any later head."""

    def __init__(self, transaction: Transaction) -> None:
        self._tx = transaction
        self._session = transaction._session
        self._appends = StagedAppends()
        self.nothing_to_do = False
        self._stage(transaction._working(reading=False))

    @property
    def base(self) -> GraphVersion:
        return self._tx.base

    def replan(self, head: GraphVersion) -> None:
        if head.deleted:
            head = self._session.live_head(head.branch, self._tx.io)
        self._stage(self._tx.resolve(head))

    def stale(self, head: GraphVersion) -> bool:
        """Cleanup may have taken files that were staged before its cutoff, and will soon take
        those older than half the grace period (hazard 7)."""
        half = self._session.settings.grace / 2
        age = (self._session.runtime.now() - self._staged_at) / 1e6
        if self._staged_at > head.gc_cutoff and age < half:
            return False
        self._appends.clear()
        return True

    def _stage(self, work: Work) -> None:
        tx = self._tx
        try:
            check_integrity(work)
        except InvalidData:
            if not tx._moved_on():
                raise
            work = tx._working(reading=True)
            check_integrity(work)
        self._staged_at = self._session.runtime.now()
        staged = stage_work(work, self._appends, tx.io)
        reach("staged")
        self._rows = staged.rows
        self.nothing_to_do = not staged.actions
        lineage = tx._lineage
        if tx._key is not None:
            key = hashlib.sha256(tx._key.encode()).hexdigest()[:16]
            call = hash_statements(tx._statements)
            lineage = Lineage(
                kind=lineage.kind,
                operation=lineage.operation,
                actor=lineage.actor,
                message=lineage.message,
                key=key,
                call=call,
            )
        pins = work.snapshot.graph_version.pins
        self.plan = PublishPlan(
            branch=tx._branch,
            base_version=work.snapshot.version,
            base_incarnation=work.snapshot.graph_version.incarnation,
            actions=staged.actions,
            lineage=lineage,
            reads={table: pins[table].content_version for table in tx._reads},
            checks={table: pins[table].content_version for table in work.checks},
            if_commit=tx._if_commit,
        )

    def carry(self, published: Published) -> None:
        """Tells the lookups what was written, so that they need not read it."""
        for table, (old, new) in published.tables.items():
            rows, hidden = self._rows[table]
            self._session.lookups.carry(old, new, rows, hidden)


def _rereadable(rows: Any) -> Any:
    """Streams can be read only once, and a lost race reads again."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    if hasattr(rows, "__next__"):
        return list(rows)
    return rows


Unit = Callable[[Transaction], Any]
