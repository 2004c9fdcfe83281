"""Owns the transaction as users see it: statements in a block become one commit, or nothing."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import pyarrow as pa

from omnigraph.arguments import checked_methods
from omnigraph.engine.condition import scan_rows
from omnigraph.engine.graph_view import GraphView, as_seen, find_type
from omnigraph.engine.query.ask import ask
from omnigraph.engine.query.expand import Kernel
from omnigraph.engine.query.prepare import Preparations
from omnigraph.engine.query.result import Result
from omnigraph.engine.session import Session
from omnigraph.engine.write.attempt import Write
from omnigraph.engine.write.published import another_call
from omnigraph.engine.write.statements import (
    AppendRows,
    DeleteRows,
    OverwriteRows,
    Statement,
    UpdateRows,
    UpsertRows,
    Where,
    WhereText,
)
from omnigraph.engine.write.work import Work, refuse
from omnigraph.errors import InvalidArgument, InvalidData, OmnigraphError, TypeNotFound
from omnigraph.model.call_types import Filter
from omnigraph.model.catalog import GraphType
from omnigraph.model.options import CommitOptions
from omnigraph.model.permission import BranchAction
from omnigraph.model.version import Commit
from omnigraph.plan.rows.typed import shape_rows
from omnigraph.plan.validate import check_duplicates, check_rows
from omnigraph.telemetry import Ledger
from omnigraph.tracing import traced_methods


class Savepoint:
    """A point of a transaction to go back to. As a context manager it undoes the block if the block
    raises.

    >>> with g.transaction() as tx:
    ...     count = tx.append("Person", {"name": "Dan"})
    ...     try:
    ...         with tx.savepoint():
    ...             tx.append("Person", {"name": "Ada"})
    ...     except omnigraph.errors.InvalidData:
    ...         pass  # there is an Ada already; Dan stays
    >>> g.count("Person")
    4
    """

    def __init__(self, transaction: Transaction, count: int) -> None:
        self._transaction = transaction
        self._count = count

    def rollback(self) -> None:
        """Undoes everything since the savepoint. The savepoint stays; later savepoints are gone.

        >>> with g.transaction() as tx:
        ...     before = tx.savepoint()
        ...     count = tx.delete("Person", where=None)
        ...     before.rollback()
        ...     tx.count("Person")
        3
        """
        self._transaction._roll_back(self, self._count)  # noqa: SLF001

    def __enter__(self) -> Savepoint:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is not None:
            self.rollback()
        self._transaction._release(self)  # noqa: SLF001


@traced_methods("publish")
@checked_methods
class Transaction:
    """A block of statements. Leaving the block publishes one commit; an exception leaves nothing.

    After the block, `commit` is the commit (None if there was nothing to do), `commit_id` is its
    id, and `io` holds the requests that it took. If an earlier call with the same idempotency key
    had made the commit, `repeated` is True.

    >>> with g.transaction(actor="bob") as tx:
    ...     count = tx.append("Person", [{"name": "Dan"}, {"name": "Eve"}])
    ...     count = tx.append("Knows", {"from": "Dan", "to": "Eve"})
    >>> tx.commit.statistics["node:Person"].inserted
    2
    """

    def __init__(
        self,
        session: Session,
        branch: str,
        options: CommitOptions,
    ) -> None:
        self._session = session
        self._require_own = session.require_own
        self._new_id = session.runtime.ulid
        self._state: Literal["open", "published", "abandoned"] = "open"
        self.io = Ledger()
        self.commit: Commit | None = None
        self.commit_id: str | None = None
        self.repeated = False
        self._savepoints: list[Savepoint] = []
        self._write = Write(
            session,
            branch=branch,
            kind="write",
            options=options,
            reshape=self._reshape,
            ledger=self.io,
            tells=True,
        )

    def __enter__(self) -> Transaction:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.publish()
        else:
            self._state = "abandoned"

    def publish(self) -> None:
        """Publishes what was staged; leaving the block does this.

        >>> tx = g.transaction()
        >>> tx.append("Person", {"name": "Dan"})
        1
        >>> tx.publish()
        >>> g.count("Person")
        4
        """
        self._require_open()
        self._state = "abandoned"
        published = self._write.publish()
        self._state = "published"
        if published is not None:
            self.commit_id = published.commit
            self.repeated = published.repeated
            self.commit = None if published.version is None else published.version.commit

    def savepoint(self) -> Savepoint:
        """A point to go back to, by its `rollback()`, or as a block that is undone if it raises.
        The rest of the transaction stays.

        >>> with g.transaction() as tx:
        ...     count = tx.append("Person", {"name": "Dan"})
        ...     before = tx.savepoint()
        ...     count = tx.append("Person", {"name": "Eve"})
        ...     before.rollback()
        >>> sorted(g.scan("Person").read_all()["name"].to_pylist())
        ['Ada', 'Bob', 'Cyd', 'Dan']
        """
        self._require_open()
        point = Savepoint(self, len(self._write.statements))
        self._savepoints.append(point)
        return point

    def _roll_back(self, point: Savepoint, count: int) -> None:
        self._require_open()
        if point not in self._savepoints:
            raise InvalidArgument(
                "The savepoint is gone: its block has ended, or an earlier one was rolled back to."
            )
        del self._savepoints[self._savepoints.index(point) + 1 :]
        self._write.undo(count)

    def _release(self, point: Savepoint) -> None:
        if point in self._savepoints:
            del self._savepoints[self._savepoints.index(point) :]

    # Writing

    def append(self, type: str, rows: Any) -> int:
        """New entities, as dicts, Arrow, pandas or polars; an id that exists already is an
        error. Returns their number.

        >>> with g.transaction() as tx:
        ...     tx.append("Person", [{"name": "Dan", "age": 7}, {"name": "Eve"}])
        2
        """
        return self._give_rows(AppendRows, type, rows)

    def upsert(self, type: str, rows: Any) -> int:
        """New or changed entities by id; properties that are not given keep their value.

        >>> with g.transaction() as tx:
        ...     tx.upsert("Person", [{"name": "Ada", "age": 37}, {"name": "Dan"}])
        2
        """
        return self._give_rows(UpsertRows, type, rows)

    def overwrite(self, type: str, rows: Any) -> int:
        """Replaces every entity of the type.

        >>> with g.transaction() as tx:
        ...     tx.overwrite("Knows", [{"from": "Cyd", "to": "Ada"}])
        1
        >>> g.count("Knows")
        1
        """
        return self._give_rows(OverwriteRows, type, rows)

    def update(self, type: str, *, set: Mapping[str, Any], where: Filter | None) -> int:
        """Sets properties where a condition holds, to values or to Arrow expressions over the old
        row. The condition is a text of the query language or an Arrow expression; None means every
        entity. Returns the number of entities. If another commit comes first, the update runs
        again; if the number changes, that is a `Conflict`.

        >>> import pyarrow.compute as pc
        >>> with g.transaction() as tx:
        ...     tx.update("Person", set={"age": pc.field("age") + 1}, where='name = "Ada"')
        1
        >>> g.entity("Person", "Ada")["age"]
        37
        """
        self._require_open()
        with self._refusals():
            statement = UpdateRows(type, dict(set), self._condition(where))
            return self._write.run(statement, reading=True, fresh=True)

    def delete(self, type: str, *, where: Filter | None) -> int:
        """Removes entities where a condition holds, given as for `update`; the edges of a removed
        node go with it. Returns the number of entities; if it changes in a rerun, that is a
        `Conflict`, as for `update`.

        >>> with g.transaction() as tx:
        ...     tx.delete("Person", where="age > 40")
        1
        """
        self._require_open()
        with self._refusals():
            statement = DeleteRows(type, self._condition(where))
            return self._write.run(statement, reading=True, fresh=True)

    def _condition(self, where: Filter | None) -> Where:
        if isinstance(where, str):
            return WhereText(where, self._session.runtime.now())
        return where

    # Reading

    def query(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        memory_limit: int | None = None,
        kernel: Kernel = "auto",
    ) -> Result:
        """Asks a `.gq` query of the graph as it would be if the block ended here; what the block
        does later does not change the answer. The types that it asks must not change until the
        commit: if another commit changes them, this one fails with `Conflict`.

        >>> with g.transaction() as tx:
        ...     count = tx.append("Person", {"name": "Dan", "age": 50})
        ...     tx.query("match { $p: Person $p.age > 41 } return { $p.name }").to_pylist()
        [{'p.name': 'Dan'}]
        """
        self._require_open()
        with self._refusals():
            work = self._write.working(reading=True, fresh=True)
            snapshot, pending = self._seen(work, "query"), dict(work.overlays)
            prepared = Preparations.shared_by(self._session).read(text, name, snapshot.catalog)
            self._write.reads |= set(prepared.types) & snapshot.graph_version.pins.keys()
        return ask(
            self._session,
            snapshot,
            prepared,
            params,
            timeout=timeout,
            memory_limit=memory_limit,
            kernel=kernel,
            view=lambda kind: snapshot.view(kind, pending.get(kind.table_key)),
        )

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.Table:
        """Rows as they would be if the block ended here. What is read here must not change
        until the commit: if another commit changes it, this one fails with `Conflict`.

        >>> with g.transaction() as tx:
        ...     count = tx.append("Person", {"name": "Dan", "age": 50})
        ...     tx.scan("Person", columns=["name"], filter="age > 41").to_pylist()
        [{'name': 'Dan'}]
        """
        self._require_open()
        work = self._write.working(reading=True, fresh=True)
        seen = self._seen(work)
        kind = seen.type(type)
        view = seen.view(kind, work.overlays.get(kind.table_key))
        now = self._session.runtime.now()
        found = scan_rows(view, seen.catalog, columns, filter, now, self.io)
        self._write.reads.add(view.kind.table_key)
        return pa.Table.from_batches(found[1], schema=found[0])

    def count(self, type: str) -> int:
        """How many entities a type would have if the block ended here.

        >>> with g.transaction() as tx:
        ...     count = tx.delete("Person", where="age > 40")
        ...     tx.count("Person")
        2
        """
        self._require_open()
        work = self._write.working(reading=True, fresh=True)
        seen = self._seen(work)
        kind = seen.type(type)
        self._write.reads.add(kind.table_key)
        return seen.view(kind, work.overlays.get(kind.table_key)).count()

    def _seen(self, work: Work, action: BranchAction = "read") -> GraphView:
        """What the caller sees of the block so far, and may ask for."""
        permissions = self._session.permissions
        permissions.require_branch(action, permissions.branch(work.snapshot.graph_version))
        return as_seen(work.snapshot)

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
        """The code of the block may go on after an error, so it has learned something about the
        graph."""
        try:
            yield
        except OmnigraphError:
            self._write.refused()
            raise

    def _try_rows(self, make: type[AppendRows], name: str, rows: Any) -> int:
        # New rows with ids of our own can clash with nothing, so the head is not needed.
        kind = find_type(self._write.catalog(reading=False), name)
        self._write.require_write(kind.name, reading=False)
        if make is not AppendRows or kind.key:
            kind = find_type(self._write.catalog(reading=True), name)
        statement = self._shape(make, kind, rows)
        given = any(group.table.num_rows for group in statement.shaped.groups)
        if not given and make is not OverwriteRows:
            return 0
        return self._write.run(statement, reading=not statement.generated_ids)

    def _shape(
        self, make: type[AppendRows], kind: GraphType, rows: Any, told: Sequence[str] = ()
    ) -> AppendRows:
        """Ids that were generated before are used again, because the block may have read them."""
        made: list[str] = []

        def new_ids(count: int) -> list[str]:
            new = [*told[len(made) : len(made) + count]]
            new += [self._new_id() for _ in range(count - len(new))]
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

    def _reshape(self, statements: list[Statement], snapshot: GraphView) -> list[Statement]:
        """Reads the rows again under another schema."""
        return [
            self._shape(type(one), snapshot.type(one.type), one.raw, one.own_ids())
            if isinstance(one, AppendRows)
            else one
            for one in statements
        ]

    def _require_open(self) -> None:
        self._require_own()
        if self._state != "open":
            raise InvalidArgument(f"The transaction is {self._state}; begin another one.")


def _rereadable(rows: Any) -> Any:
    """A stream can be read only once, and a lost race reads again."""
    if isinstance(rows, pa.RecordBatchReader):
        return rows.read_all()
    if hasattr(rows, "__next__"):
        return list(rows)
    return rows
