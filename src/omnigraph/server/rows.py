"""Owns answers that are rows: a page of JSON, or a stream of lines or of Arrow, of whatever gives
batches."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
import pyarrow as pa
from starlette.responses import Response

from omnigraph.engine.query.result import Result
from omnigraph.errors import Cancelled, InvalidArgument, QueryTimeout, TooLarge
from omnigraph.server.answers import VARY, about, check_items, io_header, not_modified, told_io
from omnigraph.server.call import GraphCall
from omnigraph.server.coding import coder_of
from omnigraph.server.logs import log_slow_query
from omnigraph.server.pools import Pool
from omnigraph.server.streams import Pieces, PulledResponse, until_gone
from omnigraph.telemetry import Ledger
from omnigraph.wire.columns import columns_of, json_rows, row_bytes
from omnigraph.wire.cursors import PageCursor
from omnigraph.wire.media import JSON, Form, Shape, choose_coding
from omnigraph.wire.streams import writer_of

_SOON = 0.05
"""Seconds after which it is worth looking whether the client is still there."""


@dataclass
class Found:
    """Rows that were found at a commit. `seen` says that the client has them already."""

    commit: str
    ref: str
    schema: pa.Schema
    batches: Callable[[], Iterator[pa.RecordBatch]]
    io: Ledger
    cancel: Callable[[], None] = lambda: None
    ordered: bool = False
    timely: bool = False
    seen: bool = False
    explain: Callable[[], str] | None = None


def found_by(result: Result, ref: str, *, seen: bool) -> Found:
    return Found(
        result.commit.id,
        ref,
        result.schema,
        result.batches,
        result.io,
        result.cancel,
        result.ordered,
        result.timely,
        seen and not result.timely,
        result.explain,
    )


@dataclass(frozen=True)
class RowsWanted:
    """How much of the rows is wanted: from `offset` on at most `limit`; `of` gives the digest of
    what was asked, which a cursor repeats, if there can be one; `seconds` and `memory` are its
    bounds."""

    form: Form
    of: Callable[[], str] | None
    limit: int | None
    offset: int = 0
    seconds: float | None = None
    memory: int = 0
    text: str = ""


@dataclass
class _Box:
    """What a thread has begun, for the one who may have to stop it."""

    found: Found | None = None
    stopped: bool = False

    def stop(self) -> None:
        self.stopped = True
        if self.found is not None:
            self.found.cancel()

    def put(self, found: Found) -> Found:
        self.found = found
        if self.stopped:
            found.cancel()
        return found


async def answer_rows(
    call: GraphCall, find: Callable[[Any], Found], wanted: RowsWanted
) -> Response:
    """`find` begins to look for the rows, in a thread."""
    async with contextlib.AsyncExitStack() as held:
        if wanted.memory:
            await held.enter_async_context(call.service.admission.memory(wanted.memory))
        if wanted.form.shape is Shape.JSON:
            return await _page(call, find, wanted)
        held.enter_context(call.service.admission.stream())
        return await _stream(call, find, wanted, held.pop_all())


# A page


async def _page(call: GraphCall, find: Callable[[Any], Found], wanted: RowsWanted) -> Response:
    limits = call.service.limits
    most = check_items(wanted.limit, limits.page_rows, limits.most_page_rows)
    box = _Box()

    def work(graph: Any) -> tuple[Found, bytes]:
        found = box.put(find(graph))
        if found.seen:
            return found, b""
        page = _Page(limits.page_bytes, most, wanted)
        return found, page.read(found)

    began = time.monotonic()
    found, body = await attended(call, call.service.pools.read, work, box.stop)
    tell_slow(call, found, wanted, time.monotonic() - began)
    if found.seen:
        return not_modified(found.commit)
    return _coded(call, body, about(found.commit, timely=found.timely) | io_header(found.io))


class _Page:
    def __init__(self, most_bytes: int, most_rows: int, wanted: RowsWanted) -> None:
        self._room = most_bytes
        self._most = most_rows
        self._wanted = wanted
        self._rows: list[bytes] = []
        self._more = False

    def read(self, found: Found) -> bytes:
        batches = found.batches()
        try:
            self._fill(batches)
        finally:
            if (closing := getattr(batches, "close", None)) is not None:
                closing()
        after = self._wanted.offset + len(self._rows)
        cursor = None
        if self._more and found.ordered and self._wanted.of is not None:
            cursor = PageCursor(found.commit, self._wanted.of(), after).text
        told = {
            "columns": columns_of(found.schema),
            "rows": msgspec.Raw(b"[" + b",".join(self._rows) + b"]"),
            "ref": found.ref,
            "commit": found.commit,
            "row_count": len(self._rows),
            "truncated": self._more,
            "cursor": cursor,
            "io": told_io(found.io),
        }
        return msgspec.json.encode(told)

    def _fill(self, batches: Iterator[pa.RecordBatch]) -> None:
        skipped = self._wanted.offset
        for whole in batches:
            batch = whole.slice(skipped) if skipped else whole
            skipped -= whole.num_rows - batch.num_rows
            left = self._most - len(self._rows)
            if batch.num_rows > left:
                batch, self._more = batch.slice(0, left), True
            for row in json_rows(batch, whole_as_text=self._wanted.form.whole_as_text):
                if not self._add(row_bytes(row)):
                    return
            if self._more:
                return

    def _add(self, row: bytes) -> bool:
        self._room -= len(row) + 1
        if self._room < 0:
            if not self._rows:
                raise TooLarge(
                    "One row is larger than a page of JSON may be.",
                    limit="page_bytes",
                    allowed=self._room + len(row) + 1,
                    actual=len(row),
                    help="Ask for a stream: application/jsonl or Arrow.",
                )
            self._more = True
            return False
        self._rows.append(row)
        return True


def _coded(call: GraphCall, body: bytes, headers: dict[str, str]) -> Response:
    coding = choose_coding(call.request.headers.get("accept-encoding"))
    coder = coder_of(coding) if len(body) >= 1024 else None
    if coder is not None and coding is not None:
        body = coder.code(body) + coder.end()
        headers = headers | coding_headers(coding)
    return Response(body, media_type=JSON, headers=headers)


def tell_slow(call: GraphCall, found: Found, wanted: RowsWanted, seconds: float) -> None:
    """A query that took long is logged with its plan."""
    log = call.service.log
    if found.explain is None or not 0 < log.slow_query <= seconds:
        return
    log_slow_query(
        wanted.text,
        log,
        graph=call.name,
        seconds=round(seconds, 3),
        commit=found.commit,
        plan=found.explain(),
        request_id=call.request_id,
    )


def coding_headers(coding: str) -> dict[str, str]:
    return {"Content-Encoding": coding, "Vary": f"{VARY}, Accept-Encoding"}


async def attended(
    call: GraphCall,
    pool: Pool,
    work: Callable[[Any], Any],
    stop: Callable[[], None],
    seconds: float | None = None,
) -> Any:
    """What the work returns. It is stopped when the client goes away, or after so many seconds."""
    task = asyncio.ensure_future(call.do(pool, work))
    late = None if seconds is None else asyncio.get_running_loop().call_later(seconds, stop)
    try:
        await asyncio.wait({task}, timeout=_SOON)
        if not task.done():
            gone = asyncio.ensure_future(until_gone(call.request.receive))
            try:
                await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                gone.cancel()
        if not task.done():
            raise Cancelled("The client has gone.", limit="cancelled")
        return task.result()
    except Cancelled:
        if late is not None and late.when() <= asyncio.get_running_loop().time():
            raise QueryTimeout(
                f"The query took longer than its timeout of {seconds:g} s.", limit="timeout"
            ) from None
        raise
    finally:
        if late is not None:
            late.cancel()
        if not task.done():
            stop()
            task.cancel()


# A stream


async def _stream(
    call: GraphCall,
    find: Callable[[Any], Found],
    wanted: RowsWanted,
    held: contextlib.AsyncExitStack,
) -> Response:
    if wanted.limit is not None and wanted.limit <= 0:
        raise InvalidArgument(f"limit is a number from 1 on, not {wanted.limit}.")
    box, began = _Box(), time.monotonic()
    coding = choose_coding(call.request.headers.get("accept-encoding"))
    try:
        found, pieces, first = await attended(
            call,
            call.service.pools.read,
            lambda graph: _begin(box.put(find(graph)), wanted, coding),
            box.stop,
            wanted.seconds,
        )
        if found.seen:
            await held.aclose()
            return not_modified(found.commit)
    except BaseException:
        await held.aclose()
        raise
    left = None if wanted.seconds is None else wanted.seconds - (time.monotonic() - began)
    headers = about(found.commit, timely=found.timely)
    if found.ordered:
        headers["Omnigraph-Ordered"] = "true"
    if coding is not None:
        headers |= coding_headers(coding)
    return PulledResponse(
        call,
        pieces,
        first,
        media_type=wanted.form.content_type,
        headers=headers,
        seconds=None if left is None else max(left, 0.001),
        held=held,
    )


def _begin(
    found: Found, wanted: RowsWanted, coding: str | None
) -> tuple[Found, Pieces | None, bytes | None]:
    if found.seen:
        return found, None, None
    writer, coder = writer_of(wanted.form, found.schema), coder_of(coding)

    def coded(data: bytes) -> bytes:
        return data if coder is None or not data else coder.code(data)

    def made() -> Iterator[bytes]:
        batches = _sliced(found.batches(), wanted.offset, wanted.limit, writer.rows)
        try:
            first = next(batches, None)
            begin = writer.begin() + (b"" if first is None else writer.write(first))
            yield coded(begin)
            for batch in batches:
                yield coded(writer.write(batch))
            yield coded(writer.end()) + (b"" if coder is None else coder.end())
        finally:
            batches.close()

    def tail(problem: dict[str, Any]) -> bytes:
        return coded(writer.fail(problem))

    pieces = Pieces(made(), cancel=found.cancel, tail=tail)
    return found, pieces, pieces.next()


def _sliced(
    batches: Iterator[pa.RecordBatch], offset: int, limit: int | None, rows: int
) -> Generator[pa.RecordBatch, None, None]:
    """From a row on, at most so many, and never more than so many at once."""
    try:
        for whole in batches:
            batch = whole.slice(offset) if offset else whole
            offset -= whole.num_rows - batch.num_rows
            if limit is not None:
                batch = batch.slice(0, limit)
                limit -= batch.num_rows
            for start in range(0, batch.num_rows, rows):
                yield batch.slice(start, rows)
            if limit == 0:
                return
    finally:
        if (closing := getattr(batches, "close", None)) is not None:
            closing()
