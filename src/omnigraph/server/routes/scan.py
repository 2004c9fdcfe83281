"""Owns the route that gives the rows of one type."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
from fastapi import APIRouter
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import InvalidArgument
from omnigraph.plan.digest import digest_values
from omnigraph.server.bodies import RequestBody
from omnigraph.server.call import TheCall
from omnigraph.server.routing import StrictRoute
from omnigraph.server.rows import Found, RowsWanted, answer_rows
from omnigraph.server.substrait import read_substrait, scan_where
from omnigraph.telemetry import Ledger
from omnigraph.wire.cursors import read_cursor
from omnigraph.wire.media import choose_form

router = APIRouter(prefix="/graphs/{graph}", tags=["query"], route_class=StrictRoute)


class ScanBody(RequestBody):
    """`filter` is a condition of the query language; `substrait` one as an expression of Arrow,
    serialized over the columns of the type, in Base64. Rows come from the one at `offset` on, or
    from where a `cursor` says."""

    type: str
    ref: str | None = None
    columns: list[str] | None = None
    filter: str | None = None
    substrait: str | None = None
    limit: int | None = None
    offset: int = 0
    cursor: str | None = None


@router.post("/scan")
async def scan(call: TheCall, body: ScanBody) -> Response:
    """The rows of a type that meet a condition, in the order of the table."""
    form = choose_form(call.request.headers.get("accept"))

    def of() -> str:
        asked = [body.type, body.columns, body.filter, body.substrait]
        return digest_values(["scan", call.name, *asked])

    ref, offset = body.ref or "main", body.offset
    if offset < 0:
        raise InvalidArgument(f"offset is a number from 0 on, not {offset}.")
    if body.cursor is not None:
        if offset:
            raise InvalidArgument("A cursor says itself where it goes on; leave offset away.")
        place = read_cursor(body.cursor, of())
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
