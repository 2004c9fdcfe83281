"""Owns the route that gives everything, or a type, in a form that load reads."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Iterator
from typing import Annotated, Any, Literal

from fastapi import APIRouter, Query
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import Cancelled
from omnigraph.server.answers import about, not_modified
from omnigraph.server.call import TheCall
from omnigraph.server.routing import StrictRoute
from omnigraph.server.rows import attended
from omnigraph.server.streams import Pieces, PulledResponse

router = APIRouter(prefix="/graphs/{graph}", tags=["load"], route_class=StrictRoute)
_KINDS = {
    "jsonl": "application/jsonl",
    "csv": "text/csv; charset=utf-8",
    "parquet": "application/vnd.apache.parquet",
    "arrow": "application/vnd.apache.arrow.stream",
}
_AHEAD = 4
_PIECE = 1 << 18


@router.get("/export")
async def export(
    call: TheCall,
    ref: str = "main",
    type: Annotated[list[str] | None, Query(max_length=1_000)] = None,
    format: Literal["jsonl", "csv", "parquet", "arrow"] = "jsonl",
) -> Response:
    """Every entity, or those of some types: JSON lines of all, the other formats of one type."""

    def begin(graph: Graph) -> tuple[str, Pieces | None, bytes | None]:
        snapshot = graph.at(ref)
        if call.has_seen(snapshot):
            return snapshot.commit.id, None, None
        pipe = Pipe(snapshot, type, format)
        pieces = Pieces(pipe.pieces(), cancel=pipe.stop, tail=lambda _: b"")
        return snapshot.commit.id, pieces, pieces.next()

    async with contextlib.AsyncExitStack() as held:
        held.enter_context(call.service.admission.stream())
        commit, pieces, first = await attended(call, call.service.pools.read, begin, lambda: None)
        if pieces is None:
            return not_modified(commit)
        return PulledResponse(
            call,
            pieces,
            first,
            media_type=_KINDS[format],
            headers=about(commit) | {"Content-Disposition": "attachment"},
            seconds=None,
            held=held.pop_all(),
        )


class Pipe:
    """The engine writes an export to a file: here the file is a queue, from which the answer is
    taken. Only a little is made ahead."""

    def __init__(self, snapshot: Snapshot, types: list[str] | None, format: Any) -> None:
        self._snapshot = snapshot
        self._types = types
        self._format = format
        self._queue: queue.Queue[bytes | None] = queue.Queue(_AHEAD)
        self._stopped = threading.Event()
        self._failed: BaseException | None = None
        self._held: list[bytes] = []
        self._size = 0
        self.closed = False

    def stop(self) -> None:
        self._stopped.set()

    def pieces(self) -> Iterator[bytes]:
        thread = threading.Thread(target=self._make, daemon=True, name="omnigraph-export")
        thread.start()
        try:
            while (piece := self._queue.get()) is not None:
                yield piece
            if self._failed is not None:
                raise self._failed
        finally:
            self.stop()

    def _make(self) -> None:
        try:
            self._snapshot.export(types=self._types, format=self._format, to=self)
            self._put(b"".join(self._held))
        except BaseException as error:  # noqa: BLE001  raised where the pieces are taken
            self._failed = error
        with contextlib.suppress(Cancelled):
            self._put(None)

    def _put(self, piece: bytes | None) -> None:
        while not self._stopped.is_set():
            try:
                self._queue.put(piece, timeout=0.2)
            except queue.Full:
                continue
            return
        raise Cancelled("Nobody reads the export any more.", limit="cancelled")

    # What the engine writes to

    def write(self, data: Any) -> int:
        piece = bytes(data)
        self._held.append(piece)
        self._size += len(piece)
        if self._size >= _PIECE:
            self._put(b"".join(self._held))
            self._held, self._size = [], 0
        return len(piece)

    def flush(self) -> None:
        return None

    def close(self) -> None:
        self.closed = True

    def writable(self) -> bool:
        return True

    def readable(self) -> bool:
        return False

    def seekable(self) -> bool:
        return False

    def tell(self) -> int:
        raise OSError("an export goes one way")
