"""Owns the route that gives the rows of one type."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from fastapi import APIRouter
from pyarrow.substrait import deserialize_expressions
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.protocols import SnapshotLike, TransactionLike
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import InvalidArgument
from omnigraph.plan.digest import digest_values
from omnigraph.server.bodies import RequestBody
from omnigraph.server.call import TheCall
from omnigraph.server.routing import StrictRoute
from omnigraph.server.rows import Found, RowsWanted, answer_rows
from omnigraph.telemetry import Ledger
from omnigraph.wire.cursors import read_cursor
from omnigraph.wire.media import choose_form

router = APIRouter(prefix="/graphs/{graph}", tags=["query"], route_class=StrictRoute)


class ScanBody(RequestBody):
    """`filter` is a condition of the query language; `substrait` one as an expression of Arrow,
    serialized over the columns of the type, in Base64."""

    type: str
    ref: str | None = None
    columns: list[str] | None = None
    filter: str | None = None
    substrait: str | None = None
    limit: int | None = None
    cursor: str | None = None


@router.post("/scan")
async def scan(call: TheCall, body: ScanBody) -> Response:
    """The rows of a type that meet a condition, in the order of the table."""
    form = choose_form(call.request.headers.get("accept"))
    of = digest_values(["scan", call.name, body.type, body.columns, body.filter, body.substrait])
    ref, offset = body.ref or "main", 0
    if body.cursor is not None:
        place = read_cursor(body.cursor, of)
        if body.ref is not None:
            raise InvalidArgument("A cursor says itself of which commit it is; leave ref away.")
        ref, offset = place.commit, place.offset
    limits = call.service.limits

    def find(graph: Graph) -> Found:
        snapshot = graph.at(ref)
        seen = call.has_seen(snapshot)
        reader = scanned(snapshot, body)
        stop = Stop()
        # A page goes on where it ended: a version has its rows in one order.
        return Found(
            snapshot.commit.id,
            ref,
            reader.schema,
            lambda: stop.until(reader),
            Ledger(),
            cancel=stop.set,
            ordered=True,
            seen=seen,
        )

    wanted = RowsWanted(form, of, body.limit, offset, limits.timeout, limits.query_memory)
    return await answer_rows(call, find, wanted)


class Stop:
    """Ends a reader between two batches."""

    def __init__(self) -> None:
        self._stopped = False

    def set(self) -> None:
        self._stopped = True

    def until(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        from omnigraph.errors import Cancelled

        for batch in reader:
            if self._stopped:
                raise Cancelled("The scan was cancelled.", limit="cancelled")
            yield batch


def scanned(snapshot: Snapshot, body: ScanBody) -> pa.RecordBatchReader:
    if body.substrait is None:
        return snapshot.scan(body.type, columns=body.columns, filter=body.filter)
    if body.filter is not None:
        raise InvalidArgument("Give a filter or substrait, not both.")
    return scan_where(snapshot, body.type, body.columns, read_substrait(body.substrait))


def read_substrait(text: str) -> Any:
    try:
        found = deserialize_expressions(base64.b64decode(text, validate=True))
    except (binascii.Error, pa.ArrowException, ValueError) as error:
        raise InvalidArgument(
            f"substrait is no serialized expression of Arrow: {str(error)[:200]}."
        ) from None
    if len(found.expressions) != 1:
        raise InvalidArgument("substrait holds one expression.")
    return found


def scan_where(
    snapshot: SnapshotLike | TransactionLike,
    type: str,
    columns: list[str] | None,
    condition: Any,
) -> pa.RecordBatchReader:
    """The condition knows columns by their places in the schema that it was made for, so it is
    asked of just these columns."""
    (test,) = condition.expressions.values()
    needed = condition.schema.names
    shown = snapshot.scan(type, columns=columns).schema
    names = shown.names
    found = snapshot.scan(type, columns=[*needed, *(n for n in names if n not in needed)])
    reader = found.to_reader() if isinstance(found, pa.Table) else found
    for field in condition.schema:
        if reader.schema.field(field.name).type != field.type:
            raise InvalidArgument(f"{field.name} of {type} is no {field.type}.")
    try:
        reader.schema.empty_table().filter(test)
    except (pa.ArrowException, KeyError) as error:
        raise InvalidArgument(f"The condition does not fit {type}: {str(error)[:200]}.") from None
    kept = (batch.filter(test).select(names) for batch in reader)
    return pa.RecordBatchReader.from_batches(shown, kept)
