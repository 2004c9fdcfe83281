"""Owns the transaction as users see it: statements in a block become one commit, or nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot, find_type
from omnigraph.engine.write.attempt import Write
from omnigraph.engine.write.published import another_call
from omnigraph.engine.write.statements import (
    AppendRows,
    DeleteRows,
    OverwriteRows,
    Statement,
    UpdateRows,
    UpsertRows,
)
from omnigraph.engine.write.work import refuse
from omnigraph.errors import InvalidArgument, InvalidData, OmnigraphError, TypeNotFound
from omnigraph.model.catalog import GraphType
from omnigraph.model.version import Commit
from omnigraph.model.words import read_word
from omnigraph.plan.publish import Lineage
from omnigraph.plan.rows import shape_rows
from omnigraph.plan.validate import check_duplicates, check_rows
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
        actor, message = read_word("actor", actor), read_word("message", message)
        self._require_own = session.require_own
        self._new_id = session.runtime.ulid
        self._retry_for = retry_for
        self._state: Literal["open", "published", "abandoned"] = "open"
        self.io = Ledger()
        self.commit: Commit | None = None
        self.commit_id: str | None = None
        self.repeated = False
        self._write = Write(
            session,
            branch=branch,
            lineage=Lineage(
                kind="write", operation=session.runtime.ulid(), actor=actor, message=message
            ),
            if_commit=read_word("if_commit", if_commit),
            idempotency_key=read_word("idempotency_key", idempotency_key),
            reshape=self._reshape,
            ledger=self.io,
            tells=True,
        )

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

    def publish(self) -> None:
        """Publishes what was staged; leaving the block does this."""
        self._require_open()
        self._state = "abandoned"
        published = self._write.publish(retry_for=self._retry_for)
        self._state = "published"
        if published is not None:
            self.commit_id = published.commit
            self.repeated = published.repeated
            self.commit = None if published.version is None else published.version.commit

    # Writing

    def append(self, type: str, rows: Any) -> int:
        """New entities; an id that exists already is an error."""
        return self._give_rows(AppendRows, type, rows)

    def upsert(self, type: str, rows: Any) -> int:
        """New or changed entities by id; properties that are not given keep their value."""
        return self._give_rows(UpsertRows, type, rows)

    def overwrite(self, type: str, rows: Any) -> int:
        """Replaces every entity of the type."""
        return self._give_rows(OverwriteRows, type, rows)

    def update(self, type: str, *, set: Mapping[str, Any], where: pc.Expression | None) -> int:
        """Sets properties, to values or to expressions over the old row, where a condition
        holds (None: everywhere). Returns the number of entities. It is run again when another
        commit comes first; if the number would be another one, that is a `Conflict`."""
        self._require_open()
        with self._refusals():
            return self._write.run(UpdateRows(type, dict(set), where), reading=True)

    def delete(self, type: str, *, where: pc.Expression | None) -> int:
        """Removes entities, and with nodes their edges, where a condition holds. Returns the
        number of entities, for which the same holds as for that of `update`."""
        self._require_open()
        with self._refusals():
            return self._write.run(DeleteRows(type, where), reading=True)

    # Reading

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
    ) -> pa.Table:
        """Rows as they would be if the block ended here. What is read here must not change
        until the commit: if another commit changes it, this one fails with `Conflict`."""
        self._require_open()
        work = self._write.working(reading=True)
        view = work.view(work.snapshot.type(type))
        names = view.check_columns(columns)
        self._write.reads.add(view.kind.table_key)
        schema = pa.schema([view.schema.field(name) for name in names])
        batches = view.scan(self.io, columns=names, filter=filter)
        return pa.Table.from_batches(batches, schema=schema)

    def count(self, type: str) -> int:
        self._require_open()
        work = self._write.working(reading=True)
        kind = work.snapshot.type(type)
        self._write.reads.add(kind.table_key)
        return work.view(kind).count()

    # Rows

    def _give_rows(self, make: type[AppendRows], name: str, rows: Any) -> int:
        self._require_open()
        rows = _rereadable(rows)
        with self._refusals():
            try:
                return self._try_rows(make, name, rows)
            except (TypeNotFound, InvalidData) as error:
                if (first := self._write.repeats()) is not None:
                    raise another_call(first) from error
                if not self._write.moved_on():
                    raise
            return self._try_rows(make, name, rows)

    @contextlib.contextmanager
    def _refusals(self) -> Iterator[None]:
        """The code of the block may go on after an error, knowing what it says."""
        try:
            yield
        except OmnigraphError:
            self._write.refused()
            raise

    def _try_rows(self, make: type[AppendRows], name: str, rows: Any) -> int:
        # Rows that can clash with nothing need no look at the head.
        kind = find_type(self._write.catalog(reading=False), name)
        if make is not AppendRows or kind.key:
            kind = find_type(self._write.catalog(reading=True), name)
        statement = self._shape(make, kind, rows)
        given = any(group.table.num_rows for group in statement.shaped.groups)
        if not given and make is not OverwriteRows:
            return 0
        return self._write.run(statement, reading=not statement.generated_ids)

    def _shape(self, make: type[AppendRows], kind: GraphType, rows: Any) -> AppendRows:
        made: list[str] = []

        def new_ids(count: int) -> list[str]:
            new = [self._new_id() for _ in range(count)]
            made.extend(new)
            return new

        shaped = shape_rows(kind, rows, complete=make is not UpsertRows, new_ids=new_ids)
        refuse(shaped.violations, more=shaped.more)
        generated = len(made) == sum(group.table.num_rows for group in shaped.groups)
        for group in shaped.groups:
            refuse(check_rows(kind, group.table, positions=group.positions))
        if shaped.groups and not generated:
            ids = [group.table.select(["id"]) for group in shaped.groups]
            refuse(check_duplicates(kind, pa.concat_tables(ids)))
        return make(kind.name, rows, shaped, generated, () if generated else tuple(made))

    def _reshape(self, statements: list[Statement], snapshot: Snapshot) -> list[Statement]:
        """Rows read again under another schema."""
        return [
            self._shape(type(one), snapshot.type(one.type), one.raw)
            if isinstance(one, AppendRows)
            else one
            for one in statements
        ]

    def _require_open(self) -> None:
        self._require_own()
        if self._state != "open":
            raise InvalidArgument(f"The transaction is {self._state}; begin another one.")


def _rereadable(rows: Any) -> Any:
    """Streams can be read only once, and a lost race reads again."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    if hasattr(rows, "__next__"):
        return list(rows)
    return rows
