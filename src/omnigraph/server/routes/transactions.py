"""Owns the route that does several statements as one commit."""

from __future__ import annotations

import contextlib
from typing import Annotated, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc
from fastapi import APIRouter, Request
from pydantic import Field, ValidationError
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.write.transaction import Transaction
from omnigraph.errors import Conflict, InvalidArgument, UnsupportedMediaType
from omnigraph.plan.rebase import ExpectedVersionMismatch
from omnigraph.server.answers import answer
from omnigraph.server.bodies import RequestBody
from omnigraph.server.call import GraphCall, TheCall
from omnigraph.server.multipart import read_parts
from omnigraph.server.routing import StrictRoute, read_bounded, read_json
from omnigraph.server.substrait import read_substrait, scan_where
from omnigraph.wire.columns import columns_of, json_rows
from omnigraph.wire.values import plain

router = APIRouter(prefix="/graphs/{graph}", tags=["mutate"], route_class=StrictRoute)


class GivenRows(RequestBody):
    """New or changed rows: in the body, or as an Arrow stream in a part of it."""

    op: Literal["append", "upsert", "overwrite"]
    type: str
    rows: list[dict[str, Any]] | None = None
    part: str | None = None


class Where(RequestBody):
    """A condition of the query language; without any, every entity is meant."""

    type: str
    where: str | None = None
    substrait: str | None = None


class UpdateStatement(Where):
    op: Literal["update"]
    set: dict[str, Any]


class DeleteStatement(Where):
    op: Literal["delete"]


Statement = Annotated[GivenRows | UpdateStatement | DeleteStatement, Field(discriminator="op")]


class LastScan(RequestBody):
    """What a preview reads after the statements."""

    type: str
    columns: list[str] | None = None
    filter: str | None = None


class TransactionBody(RequestBody):
    """`reads` are types that must not have changed since the commit `base`."""

    branch: str = "main"
    message: str | None = None
    base: str | None = None
    reads: list[str] = Field(default_factory=list)
    statements: list[Statement] = Field(default_factory=list)
    scan: LastScan | None = None


@router.post("/transactions")
async def transactions(call: TheCall, request: Request, preview: bool = False) -> Response:
    """Statements that become one commit, or nothing. A preview only tells what they would do."""
    data, parts = await _received(request, call)
    words = call.words()

    def do(graph: Graph) -> tuple[str | None, dict[str, Any]]:
        body = _body(data, call)
        if body.scan is not None and not preview:
            raise InvalidArgument("Only a preview has a scan.")
        tx = graph.branch(body.branch).transaction(**(words | {"message": body.message}))
        return _run(graph, tx, body, parts, preview=preview)

    commit, told = await call.write(do)
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


def _run(
    graph: Graph,
    tx: Transaction,
    body: TransactionBody,
    parts: dict[str, bytes],
    *,
    preview: bool,
) -> tuple[str | None, dict[str, Any]]:
    with contextlib.ExitStack() as undone:
        if preview:
            undone.callback(lambda: tx.__exit__(KeyboardInterrupt, None, None))
        _require_unchanged(graph, tx, body)
        counts = [_do(tx, one, parts) for one in body.statements]
        told: dict[str, Any] = {"branch": body.branch, "counts": counts}
        if preview:
            return None, told | {"commit": None, "preview": True} | _scanned(tx, body.scan)
    tx.publish()
    told |= {"commit": tx.commit_id, "repeated": tx.repeated}
    if tx.commit is not None:
        told["statistics"] = plain(tx.commit.statistics)
    return tx.commit_id, told


def _require_unchanged(graph: Graph, tx: Transaction, body: TransactionBody) -> None:
    """The types that the caller has read are as they were at its base, and stay so until the
    commit: counting puts them among what the transaction read."""
    if body.base is None:
        if body.reads:
            raise InvalidArgument("reads are types as they were at a base: name the commit.")
        return
    base: Snapshot = graph.at(body.base)
    for name in body.reads:
        tx.count(name)
    now = graph.at(body.branch)
    for name in body.reads:
        key = base.type(name).table_key
        was, held = base.graph_version.pins.get(key), now.graph_version.pins.get(key)
        if (was and was.content) != (held and held.content):
            raise Conflict(
                f"{name} has changed since {body.base}.",
                mismatch=ExpectedVersionMismatch(
                    table_key=key,
                    expected=None if was is None else was.table_version,
                    actual=None if held is None else held.table_version,
                ),
            )


def _do(
    tx: Transaction, one: GivenRows | UpdateStatement | DeleteStatement, parts: dict[str, bytes]
) -> int:
    match one:
        case GivenRows():
            return int(getattr(tx, one.op)(one.type, _rows(one, parts)))
        case UpdateStatement():
            return tx.update(one.type, set=one.set, where=_where(tx, one))
        case DeleteStatement():
            return tx.delete(one.type, where=_where(tx, one))


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
    return pc.field("id").isin(met.read_all()["id"])


def _scanned(tx: Transaction, scan: LastScan | None) -> dict[str, Any]:
    if scan is None:
        return {}
    found = tx.scan(scan.type, columns=scan.columns, filter=scan.filter)
    rows = [row for batch in found.to_batches() for row in json_rows(batch)]
    return {"columns": columns_of(found.schema), "rows": rows}
