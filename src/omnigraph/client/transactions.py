"""Owns transactions on a server: statements are gathered and checked here, and sent once.

What has to be read meanwhile (`scan`, `query`, `count`, and the numbers of `update` and `delete`)
is asked by sending the statements so far as a preview. The types that were read must not have
changed when the transaction is sent; the server refuses it otherwise.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Self, TypeVar

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.arguments import checked_methods
from omnigraph.client.connection import Answered
from omnigraph.client.remote_reads import substrait_of
from omnigraph.client.served_graph import TYPED, SchemaAt, ServedGraph, broken, json_body
from omnigraph.client.understanding import understanding
from omnigraph.client.writing import RemoteWrite, commit_in, landed, send
from omnigraph.engine.graph_view import find_type
from omnigraph.engine.query.expand import Kernel
from omnigraph.engine.query.result import Result
from omnigraph.engine.write.work import refuse
from omnigraph.errors import Conflict, InvalidArgument
from omnigraph.model.call_types import Filter
from omnigraph.model.options import CommitOptions
from omnigraph.model.version import Commit
from omnigraph.plan.rows.typed import shape_rows
from omnigraph.plan.validate import check_duplicates, check_rows
from omnigraph.show.subgraph import Subgraph
from omnigraph.telemetry import Ledger
from omnigraph.tracing import traced_methods
from omnigraph.wire.media import ARROW
from omnigraph.wire.streams import Interrupted, WholeArrow

T = TypeVar("T")
_BOUNDARY = "omnigraph-{}"


@dataclass(frozen=True)
class _SentStatement:
    """What is sent of a statement: its words, and its rows as an Arrow stream."""

    words: dict[str, Any]
    rows: bytes | None = field(default=None, repr=False)


class RemoteSavepoint:
    """A point of a transaction to go back to. As a context manager it asks the server at the end
    of the block whether its statements can be done, and undoes the block if it raises."""

    def __init__(self, transaction: RemoteTransaction, count: int) -> None:
        self._transaction = transaction
        self._count = count

    def rollback(self) -> None:
        """Undoes everything since the savepoint. The savepoint stays; later savepoints are gone."""
        self._transaction._roll_back(self, self._count)  # noqa: SLF001

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None:
                self._transaction._try(self._count)  # noqa: SLF001
            else:
                self.rollback()
        except BaseException:
            self.rollback()
            raise
        finally:
            self._transaction._release(self)  # noqa: SLF001


@traced_methods("publish")
@checked_methods
class RemoteTransaction:
    """A block of statements that becomes one commit on the server, or nothing."""

    def __init__(self, served: ServedGraph, branch: str, options: CommitOptions) -> None:
        self._served = served
        self._branch = branch
        self._options = options
        self._state: Literal["open", "published", "abandoned"] = "open"
        self._statements: list[_SentStatement] = []
        self._savepoints: list[RemoteSavepoint] = []
        self._schema: SchemaAt | None = None
        self._base: str | None = None
        self._reads: set[str] = set()
        self.io = Ledger()
        self.commit: Commit | None = None
        self.commit_id: str | None = None
        self.repeated = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            self.publish()
        else:
            self._state = "abandoned"

    def publish(self) -> None:
        """Sends the transaction; leaving the block does this."""
        self._require_open()
        self._state = "abandoned"
        if self._statements or self._reads or self._options.if_commit is not None:
            self._send()
        self._state = "published"

    def _send(self) -> None:
        body, kind = self._body(message=self._options.message)
        write = RemoteWrite("POST", "/transactions", self._branch, body, kind)
        sent = send(self._served, write, self._options)
        with landed(sent):
            self.commit_id = msgspec.convert(sent.told["commit"], str | None)
            self.repeated = sent.repeated
            self.commit = commit_in(self._served, sent)

    def savepoint(self) -> RemoteSavepoint:
        """A point to go back to, by its `rollback()`, or as a block that is undone if it raises."""
        self._require_open()
        point = RemoteSavepoint(self, len(self._statements))
        self._savepoints.append(point)
        return point

    def _roll_back(self, point: RemoteSavepoint, count: int) -> None:
        self._require_open()
        if point not in self._savepoints:
            raise InvalidArgument(
                "The savepoint is gone: its block has ended, or an earlier one was rolled back to."
            )
        del self._savepoints[self._savepoints.index(point) + 1 :]
        # The caller knows the numbers of what is undone, so it has read these types.
        for one in self._statements[count:]:
            if "expected" in one.words:
                self._reads.add(one.words["type"])
        del self._statements[count:]

    def _release(self, point: RemoteSavepoint) -> None:
        if point in self._savepoints:
            del self._savepoints[self._savepoints.index(point) :]

    def _try(self, count: int) -> None:
        if len(self._statements) > count:
            self._preview({})

    # Writing

    def append(self, type: str, rows: Any) -> int:
        """New entities. Their form is checked here, and whether they are new by the server."""
        return self._give_rows("append", type, rows)

    def upsert(self, type: str, rows: Any) -> int:
        """New or changed entities by id; properties that are not given keep their value."""
        return self._give_rows("upsert", type, rows)

    def overwrite(self, type: str, rows: Any) -> int:
        """Replaces every entity of the type."""
        return self._give_rows("overwrite", type, rows)

    def _give_rows(self, op: str, name: str, rows: Any) -> int:
        self._require_open()
        kind = find_type(self._known_schema().catalog, name)
        made: list[str] = []

        def new_ids(count: int) -> list[str]:
            # Made here, so that a preview and the transaction itself have the same.
            new = [self._served.runtime.ulid() for _ in range(count)]
            made.extend(new)
            return new

        shaped = shape_rows(kind, rows, complete=op != "upsert", new_ids=new_ids)
        refuse(shaped.violations, more=shaped.more)
        count = sum(int(group.table.num_rows) for group in shaped.groups)
        for group in shaped.groups:
            refuse(check_rows(kind, group.table, positions=group.positions))
        if shaped.groups and len(made) < count:
            ids = [group.table.select(["id"]) for group in shaped.groups]
            refuse(check_duplicates(kind, pa.concat_tables(ids)))
        if not count and op != "overwrite":
            return 0
        for group in shaped.groups:
            words = {"op": op, "type": kind.name}
            self._statements.append(_SentStatement(*_sent(words, group.table, set(made))))
        return count

    def update(self, type: str, *, set: Mapping[str, Any], where: Filter | None) -> int:
        """Sets properties where a condition holds, to values or to Arrow expressions over the old
        row. Returns the number of entities; if it is another one when the transaction is sent,
        that is a `Conflict`."""
        words = {"op": "update", "type": type} | self._condition(type, where, "where")
        values = {n: v for n, v in set.items() if not isinstance(v, pc.Expression)}
        computed = {n: v for n, v in set.items() if isinstance(v, pc.Expression)}
        schema = self._known_schema() if computed else None
        if schema is not None:
            words["expressions"] = {n: substrait_of(schema, type, v) for n, v in computed.items()}
        return self._count_statement(words | {"set": values})

    def delete(self, type: str, *, where: Filter | None) -> int:
        """Removes entities where a condition holds; the edges of a removed node go with it."""
        words = {"op": "delete", "type": type}
        return self._count_statement(words | self._condition(type, where, "where"))

    def _count_statement(self, words: dict[str, Any]) -> int:
        self._require_open()
        self._statements.append(_SentStatement(words))
        try:
            with understanding():
                count = msgspec.convert(self._preview({}).json["counts"][-1], int)
        except BaseException:
            self._statements.pop()
            raise
        self._statements[-1] = _SentStatement(words | {"expected": count})
        return count

    def _condition(self, type: str, where: Filter | None, name: str) -> dict[str, Any]:
        if where is None:
            return {}
        if isinstance(where, pc.Expression):
            return {"substrait": substrait_of(self._known_schema(), type, where)}
        return {name: where}

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
        """Asks a `.gq` query of the graph as it would be if the block ended here. The types that
        it asks must not change until the transaction is sent."""
        self._require_open()
        asked: dict[str, Any] = {"query": text, "name": name, "params": params}
        asked |= {"timeout": timeout, "memory_limit": memory_limit}
        given = {key: value for key, value in asked.items() if value is not None}
        table, commit = self._read({"query": given})
        served = self._served
        ref = f"{self._branch}@{commit}"

        def explain(analyze: bool) -> str:
            body = {"query": text, "name": name, "params": params, "ref": ref}
            return str(served.ask("/explain", body | {"analyze": analyze})["plan"])

        def network(_vectors: bool) -> Subgraph:
            raise InvalidArgument("The preview of a transaction gives rows, and no network.")

        return Result(
            table.schema,
            lambda: iter(table.to_batches()),
            commit=lambda: served.schema_at(ref).commit,
            io=Ledger(),
            cancel=lambda: None,
            explain=explain,
            graph=network,
        )

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.Table:
        """Rows as they would be if the block ended here. What is read must not change until the
        transaction is sent."""
        self._require_open()
        asked = {"type": type} | self._condition(type, filter, "filter")
        if columns is not None:
            asked["columns"] = [*columns]
        return self._read({"scan": asked})[0]

    def count(self, type: str) -> int:
        """How many entities a type would have if the block ended here."""
        self._require_open()
        table, _ = self._read({"count": type})
        with understanding():
            return int(table["count"][0].as_py())

    def _read(self, last: Mapping[str, Any]) -> tuple[pa.Table, str]:
        answer = self._preview(last, accept=ARROW)
        with understanding():
            names = answer.headers["omnigraph-reads"].split(",")
            self._reads |= {name for name in names if name}
        try:
            rows = WholeArrow(io.BytesIO(answer.body))
            table = pa.Table.from_batches(list(rows), rows.schema)
        except Interrupted as error:
            raise broken(str(error)) from error
        return table, str(answer.commit)

    def _preview(self, last: Mapping[str, Any], *, accept: str = TYPED) -> Answered:
        """What the statements so far would do, and then give to read. It changes nothing."""
        body, kind = self._body(**last)
        served = self._served
        headers = {"Accept": accept, "Content-Type": kind, **served.holding}
        if self._options.if_commit is not None:
            headers["If-Match"] = f'"{self._options.if_commit}"'
        if self._options.idempotency_key is not None:
            headers["Idempotency-Key"] = self._options.idempotency_key
        answer = served.connection.repeat(
            lambda: served.connection.once(
                "POST",
                served.path("/transactions"),
                query={"preview": True},
                body=body,
                headers=headers,
            ),
            patience=self._options.patience(served.connection.retry_for),
        )
        if self._base is None:
            with understanding():
                self._base = answer.commit or msgspec.convert(answer.json["base"], str)
        return answer

    # Bodies

    def _body(self, **more: Any) -> tuple[bytes, str]:
        """JSON, with rows as further parts if there are any."""
        statements = []
        parts: dict[str, bytes] = {}
        for number, one in enumerate(self._statements):
            words = dict(one.words)
            if one.rows is not None:
                words["part"] = f"rows{number}"
                parts[words["part"]] = one.rows
            statements.append(words)
        told = {"branch": self._branch, "statements": statements, **more}
        if self._base is not None:
            told |= {"base": self._base, "reads": sorted(self._reads)}
        data = json_body(told)
        if not parts:
            return data, "application/json"
        return _multipart({"transaction": data} | parts, os.urandom(16).hex())

    def _known_schema(self) -> SchemaAt:
        if self._schema is None:
            self._schema = self._served.schema_at(self._branch)
        return self._schema

    def _require_open(self) -> None:
        if self._state != "open":
            raise InvalidArgument(f"The transaction is {self._state}; begin another one.")


def _sent(words: dict[str, Any], table: pa.Table, made: set[str]) -> tuple[dict[str, Any], bytes]:
    """Ids that were made up here travel beside the rows, so that they are no part of what the call
    says: the same call, made again, makes up others."""
    ids = table["id"].to_pylist()
    own = [one for one in ids if one in made]
    if own:
        shown = pa.array([None if one in made else one for one in ids], pa.string())
        table = table.set_column(table.schema.get_field_index("id"), "id", shown)
        words = words | {"ids": own}
    return words, _as_stream(table)


def _as_stream(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def _multipart(parts: Mapping[str, bytes], random: str) -> tuple[bytes, str]:
    """Parts by name. The boundary is in none of them, because nobody can guess it."""
    boundary = _BOUNDARY.format(random)
    pieces = []
    for name, data in parts.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n'
        pieces += [head.encode(), data, b"\r\n"]
    pieces.append(f"--{boundary}--\r\n".encode())
    return b"".join(pieces), f"multipart/form-data; boundary={boundary}"


def run_unit(
    served: ServedGraph,
    branch: str,
    unit: Callable[[Any], T],
    options: CommitOptions,
) -> T:
    """Calls the unit until what it read has not changed when it is sent."""
    runtime = served.runtime
    deadline = runtime.monotonic() + options.patience(served.connection.retry_for)
    attempt = 0
    while True:
        left = max(0.0, deadline - runtime.monotonic())
        try:
            with RemoteTransaction(served, branch, replace(options, retry_for=left)) as tx:
                result = unit(tx)
        except Conflict as error:
            attempt += 1
            if not error.retryable or runtime.monotonic() > deadline:
                raise
            runtime.sleep(min(0.5, 0.01 * 2 ** min(attempt, 6)) * runtime.random())
            continue
        return result
