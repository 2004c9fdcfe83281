"""Owns the route that does several statements as one commit."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from fastapi import APIRouter, Request
from pyarrow.acero import Declaration, ProjectNodeOptions, TableSourceNodeOptions
from pydantic import Field, ValidationError
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.write.transaction import Transaction
from omnigraph.errors import Conflict, InvalidArgument, UnsupportedMediaType
from omnigraph.model.catalog import system_columns
from omnigraph.plan.rebase import ExpectedVersionMismatch
from omnigraph.runtime import SYSTEM, is_ulid
from omnigraph.server.answers import answer
from omnigraph.server.bodies import QueryText, RequestBody
from omnigraph.server.call import GraphCall, TheCall
from omnigraph.server.multipart import read_parts
from omnigraph.server.routing import StrictRoute, read_bounded, read_json
from omnigraph.server.substrait import read_substrait, scan_where
from omnigraph.wire.columns import columns_of, json_rows
from omnigraph.wire.media import ARROW, accepts
from omnigraph.wire.rows import lineage_of
from omnigraph.wire.streams import ArrowWriter
from omnigraph.wire.values import plain

router = APIRouter(prefix="/graphs/{graph}", tags=["mutate"], route_class=StrictRoute)


class GivenRows(RequestBody):
    """New or changed rows: in the body, or as an Arrow stream in a part of it. `ids` are for those
    that have none, in their order: ULIDs that the client made up."""

    op: Literal["append", "upsert", "overwrite"]
    type: str
    rows: list[dict[str, Any]] | None = None
    part: str | None = None
    ids: list[str] | None = None


class Where(RequestBody):
    """A condition of the query language; without any, every entity is meant."""

    type: str
    where: str | None = None
    substrait: str | None = None


class UpdateStatement(Where):
    """`expressions` are new values as expressions of Arrow over the old row. `expected` is the
    number that a preview told: if it is another one now, that is a conflict."""

    op: Literal["update"]
    set: dict[str, Any] = Field(default_factory=dict)
    expressions: dict[str, str] = Field(default_factory=dict)
    expected: int | None = None


class DeleteStatement(Where):
    op: Literal["delete"]
    expected: int | None = None


Statement = Annotated[GivenRows | UpdateStatement | DeleteStatement, Field(discriminator="op")]


class LastScan(RequestBody):
    """What a preview reads after the statements."""

    type: str
    columns: list[str] | None = None
    filter: str | None = None
    substrait: str | None = None


class LastQuery(QueryText):
    """What a preview asks after the statements."""

    timeout: float | None = None
    memory_limit: int | None = None


class TransactionBody(RequestBody):
    """`reads` are types that must not have changed since the commit `base`. A preview may end in a
    scan, a query or a count of what would be there."""

    branch: str = "main"
    message: str | None = None
    base: str | None = None
    reads: list[str] = Field(default_factory=list)
    statements: list[Statement] = Field(default_factory=list)
    scan: LastScan | None = None
    query: LastQuery | None = None
    count: str | None = None


@router.post("/transactions")
async def transactions(call: TheCall, request: Request, preview: bool = False) -> Response:
    """Statements that become one commit, or nothing. A preview only tells what they would do."""
    data, parts = await _received(request, call)
    words = call.words()

    def publish(graph: Graph) -> tuple[str | None, dict[str, Any]]:
        body = _body(data, call)
        if body.scan or body.query or body.count:
            raise InvalidArgument("Only a preview has a scan, a query or a count.")
        tx = graph.branch(body.branch).transaction(**(words | {"message": body.message}))
        return _publish(graph, tx, body, parts)

    if preview:
        return await call.write(lambda graph: _preview(call, graph, _body(data, call), parts))
    commit, told = await call.write(publish)
    return answer(told, commit)


async def _received(request: Request, call: GraphCall) -> tuple[bytes, dict[str, bytes]]:
    """The statements as JSON, and the other parts by name."""
    most = call.service.limits.transaction_bytes
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    if kind == "application/json":
        return await read_bounded(request, most, "transaction_bytes"), {}
    if kind != "multipart/form-data":
        raise UnsupportedMediaType(
            f"The body is application/json or multipart/form-data here, not {kind[:60]!r}."
        )
    whole = await read_bounded(request, most, "transaction_bytes")
    parts = read_parts(whole, request.headers["content-type"])
    if "transaction" not in parts:
        raise InvalidArgument("The part `transaction`, with the statements as JSON, is missing.")
    return parts.pop("transaction"), parts


def _body(data: bytes, call: GraphCall) -> TransactionBody:
    given = read_json(data, call.service.limits.json_depth)
    try:
        return TransactionBody.model_validate(given)
    except ValidationError as error:
        from omnigraph.server.problems import wrong_values

        raise wrong_values(error.errors()) from None


def _publish(
    graph: Graph, tx: Transaction, body: TransactionBody, parts: dict[str, bytes]
) -> tuple[str | None, dict[str, Any]]:
    first = tx._write.repeats() is not None  # noqa: SLF001
    if not first:
        _require_unchanged(graph, tx, body)
    counts = [_do(tx, one, parts, settled=not first) for one in body.statements]
    tx.publish()
    told: dict[str, Any] = {"branch": body.branch, "counts": counts}
    told |= {"commit": tx.commit_id, "repeated": tx.repeated, "lineage": lineage_of(tx.commit)}
    if tx.commit is not None:
        told["statistics"] = plain(tx.commit.statistics)
    return tx.commit_id, told


def _preview(
    call: GraphCall, graph: Graph, body: TransactionBody, parts: dict[str, bytes]
) -> Response:
    """What the statements would do, and what would then be read; nothing of it stays. A key that is
    known already lets a repeated call through that would be refused for what it did itself."""
    tx = graph.branch(body.branch).transaction(**call.words(body.message))
    with contextlib.ExitStack() as undone:
        undone.callback(lambda: tx.__exit__(KeyboardInterrupt, None, None))
        _require_unchanged(graph, tx, body)
        counts = [_do(tx, one, parts) for one in body.statements]
        seen = tx._write.working(reading=True).snapshot  # noqa: SLF001
        commit = seen.commit.id
        told: dict[str, Any] = {"branch": body.branch, "counts": counts, "base": commit}
        found, reads = _read(tx, body)
    told |= {"commit": None, "preview": True, "reads": reads}
    if found is None:
        return answer(told)
    if accepts(call.request.headers.get("accept"), ARROW):
        writer = ArrowWriter(found.schema)
        data = [writer.begin(), *map(writer.write, found.to_batches()), writer.end()]
        headers = {"Omnigraph-Commit": commit, "Omnigraph-Reads": ",".join(reads)}
        return Response(b"".join(data), media_type=ARROW, headers=headers)
    rows = [row for batch in found.to_batches() for row in json_rows(batch)]
    return answer(told | {"columns": columns_of(found.schema), "rows": rows})


def _read(tx: Transaction, body: TransactionBody) -> tuple[pa.Table | None, list[str]]:
    """What is read after the statements, and of which types."""
    if (body.scan is not None) + (body.query is not None) + (body.count is not None) > 1:
        raise InvalidArgument("A preview ends in a scan, a query or a count.")
    found: pa.Table | None = None
    before = set(tx._write.reads)  # noqa: SLF001
    if body.count is not None:
        found = pa.table({"count": [tx.count(body.count)]})
    elif body.scan is not None:
        scan = body.scan
        found = _scan(tx, scan)
    elif body.query is not None:
        asked = body.query
        found = tx.query(
            asked.query,
            asked.name,
            asked.params,
            timeout=asked.timeout,
            memory_limit=asked.memory_limit,
        ).to_arrow()
    read = tx._write.reads - before  # noqa: SLF001
    names = sorted({key.split(":", 1)[1] for key in read})
    if body.count is not None or body.scan is not None:
        names = [body.count or body.scan.type]  # type: ignore[union-attr]
    return found, names


def _scan(tx: Transaction, scan: LastScan) -> pa.Table:
    if scan.substrait is None:
        return tx.scan(scan.type, columns=scan.columns, filter=scan.filter)
    if scan.filter is not None:
        raise InvalidArgument("Give a filter or substrait, not both.")
    return scan_where(tx, scan.type, scan.columns, read_substrait(scan.substrait)).read_all()


def _require_unchanged(graph: Graph, tx: Transaction, body: TransactionBody) -> None:
    """The types that the caller has read are as they were at its base, and stay so until the
    commit: counting puts them among what the transaction read."""
    if body.base is None:
        if body.reads:
            raise InvalidArgument("reads are types as they were at a base: name the commit.")
        return
    base: Snapshot = graph.at(f"{body.branch}@{body.base}")
    for name in body.reads:
        tx.count(name)
    now = tx._write.working(reading=True).snapshot  # noqa: SLF001
    for name in body.reads:
        key = base.type(name).table_key
        was, held = base.graph_version.pins.get(key), now.graph_version.pins.get(key)
        if (was and was.content) != (held and held.content):
            raise Conflict(
                f"{name} has changed since {body.base}, and it was read in the transaction.",
                mismatch=ExpectedVersionMismatch(
                    table_key=key,
                    expected=None if was is None else was.table_version,
                    actual=None if held is None else held.table_version,
                ),
            )


def _do(
    tx: Transaction,
    one: GivenRows | UpdateStatement | DeleteStatement,
    parts: dict[str, bytes],
    *,
    settled: bool = True,
) -> int:
    if isinstance(one, GivenRows):
        _use_ids(tx, one.ids or [])
        return int(getattr(tx, one.op)(one.type, _rows(one, parts)))
    if isinstance(one, DeleteStatement):
        count = tx.delete(one.type, where=_where(tx, one))
    elif one.expressions:
        count = _compute(tx, one)
    else:
        count = tx.update(one.type, set=one.set, where=_where(tx, one))
    if settled and one.expected not in (None, count):
        raise Conflict(
            f"A statement on {one.type} affected {one.expected} entities in the transaction; "
            f"after another commit it would affect {count}."
        )
    return count


def _use_ids(tx: Transaction, given: list[str]) -> None:
    for one in given:
        if not is_ulid(one):
            raise InvalidArgument(f"ids are ULIDs, and {one[:60]!r} is none.")
    waiting = iter(given)
    tx._new_id = lambda: next(waiting, None) or SYSTEM.ulid()  # noqa: SLF001


def _compute(tx: Transaction, one: UpdateStatement) -> int:
    """New values that are expressions over the old row are computed here, row by row. An
    expression knows columns by their places, so each sees just the columns that it names."""
    new = {name: read_substrait(text) for name, text in one.expressions.items()}
    needed = dict.fromkeys(name for held in new.values() for name in held.schema.names)
    working = tx._write.working(reading=True)  # noqa: SLF001
    kind = working.snapshot.type(one.type)
    keys = [name for name in kind.key if name not in system_columns(kind)]
    system = [*system_columns(kind), *keys]
    columns = [*system, *(name for name in needed if name not in system)]
    found = _scan(
        tx, LastScan(type=one.type, columns=columns, filter=one.where, substrait=one.substrait)
    )
    changed = found.select(system)
    for name, held in new.items():
        (expression,) = held.expressions.values()
        changed = changed.append_column(
            name, _evaluate(found.select(held.schema.names), expression)
        )
    if not found.num_rows:
        return 0
    for name, value in one.set.items():
        changed = changed.append_column(name, pa.array([value] * found.num_rows))
    return int(tx.upsert(one.type, changed))


def _evaluate(table: pa.Table, expression: pc.Expression) -> pa.ChunkedArray:
    source = Declaration("table_source", TableSourceNodeOptions(table))
    plan = Declaration("project", ProjectNodeOptions([expression], ["value"]), [source])
    return plan.to_table(use_threads=False).column("value")


def _rows(one: GivenRows, parts: dict[str, bytes]) -> Any:
    if (one.rows is None) == (one.part is None):
        raise InvalidArgument("Rows are given as `rows`, or as the name of a `part`.")
    if one.rows is not None:
        return one.rows
    data = parts.get(str(one.part))
    if data is None:
        raise InvalidArgument(f"The body has no part {one.part!r}.")
    try:
        with pa.ipc.open_stream(data) as stream:
            return stream.read_all()
    except (pa.ArrowException, OSError) as error:
        raise InvalidArgument(
            f"The part {one.part!r} is no Arrow stream: {str(error)[:200]}."
        ) from None


def _where(tx: Transaction, one: Where) -> Any:
    """A condition that came as an expression is settled here: which entities meet it."""
    if one.substrait is None:
        return one.where
    if one.where is not None:
        raise InvalidArgument("Give where or substrait, not both.")
    met = scan_where(tx, one.type, ["id"], read_substrait(one.substrait))
    return pc.field("id").isin(pa.array(met.read_all()["id"].to_pylist(), pa.string()))
