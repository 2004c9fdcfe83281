"""Owns the route that brings entities in: the body goes to a file first, then it is loaded."""

from __future__ import annotations

import hashlib
import os
import tempfile
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.load.result import LoadResult
from omnigraph.errors import InvalidArgument, UnsupportedMediaType
from omnigraph.server.answers import answer
from omnigraph.server.call import GraphCall, TheCall
from omnigraph.server.limits import ServerLimits
from omnigraph.server.routing import StrictRoute, too_large
from omnigraph.wire.rows import lineage_of
from omnigraph.wire.values import plain

router = APIRouter(prefix="/graphs/{graph}", tags=["load"], route_class=StrictRoute)
SUFFIXES = {
    "application/jsonl": ".jsonl",
    "application/x-ndjson": ".jsonl",
    "application/json": ".jsonl",
    "text/csv": ".csv",
    "application/vnd.apache.parquet": ".parquet",
    "application/vnd.apache.arrow.stream": ".arrow",
    "application/vnd.apache.arrow.file": ".arrow",
}
_PIECE = 1 << 20
_REJECTS = 100


class Spooled(os.PathLike[str]):
    """A body in a file of its own. It is the same source as another one with the same content."""

    def __init__(self, path: Path, digest: str) -> None:
        self._path = path
        self.content_digest = digest

    def __str__(self) -> str:
        return str(self._path)

    def __fspath__(self) -> str:
        return str(self._path)


@router.post("/load")
async def load(
    call: TheCall,
    request: Request,
    mode: Literal["append", "merge", "overwrite"] = "append",
    type: str | None = None,
    branch: str = "main",
    from_: Annotated[str | None, Query(alias="from")] = None,
    on_error: Literal["abort", "quarantine"] = "abort",
    message: str | None = None,
    rejects: Annotated[int, Query(ge=0, le=10_000)] = _REJECTS,
) -> Response:
    """Brings entities in, as one commit or not at all. With `from` they go to a new branch, which
    begins there."""
    suffix = _suffix(request)
    coding = _coding(request)
    words = call.words(message)
    with tempfile.TemporaryDirectory(prefix="omnigraph-load-") as held:
        raw = Path(held) / f"body{suffix}"
        digest = await _spool(request, raw, call)

        def do(graph: Graph) -> LoadResult:
            path = raw
            if coding is not None:
                path = raw.with_name(f"unpacked{suffix}")
                unpack(raw, path, coding, call.service.limits)
            handle = graph.branch("main" if from_ is not None else branch)
            return handle.load(
                Spooled(path, digest),
                type=type,
                mode=mode,
                new_branch=None if from_ is None else branch,
                ref=from_,
                on_error=on_error,
                engine="local",
                **words,
            )

        done = await call.write(do)
        return answer(load_row(done, rejects), done.commit_id, io=done.io)


def load_row(done: LoadResult, rejects: int = _REJECTS) -> dict[str, Any]:
    rejected = done.rejected_rows()
    return {
        "branch": done.branch,
        "mode": done.mode,
        "counts": {name: plain(counts) for name, counts in done.counts.items()},
        "commit": done.commit_id,
        "engine": done.engine,
        "rejected": rejected.num_rows,
        "rejects": plain(rejected.slice(0, rejects).to_pylist()),
        "repeated": done.repeated,
        "reason": done.reason,
        "lineage": lineage_of(done.commit),
    }


def _suffix(request: Request) -> str:
    kind = request.headers.get("content-type", "").split(";")[0].strip().lower()
    found = SUFFIXES.get(kind)
    if found is None:
        raise UnsupportedMediaType(
            f"A load cannot read {kind[:60]!r}.", help=f"It reads {', '.join(SUFFIXES)}."
        )
    return found


def _coding(request: Request) -> str | None:
    coding = request.headers.get("content-encoding", "identity").strip().lower()
    if coding not in ("identity", "gzip", "zstd"):
        raise UnsupportedMediaType(f"A load cannot unpack {coding[:60]!r}, only gzip and zstd.")
    return None if coding == "identity" else coding


async def _spool(request: Request, path: Path, call: GraphCall) -> str:
    """Writes the body to a file as it comes, and tells its digest."""
    limits = call.service.limits
    told = request.headers.get("content-length")
    if told is not None and int(told) > limits.load_bytes:
        raise too_large("load_bytes", limits.load_bytes, int(told))
    digest, size = hashlib.sha256(), 0
    with path.open("wb") as file:
        async for part in request.stream():
            size += len(part)
            if size > limits.load_bytes:
                raise too_large("load_bytes", limits.load_bytes, size)
            digest.update(part)
            file.write(part)
    return digest.hexdigest()


def unpack(source: Path, target: Path, coding: str, limits: ServerLimits) -> None:
    """Unpacks a body, if what comes out is no larger than a body may be."""
    size = 0
    try:
        with (
            pa.OSFile(str(source)) as packed,
            pa.CompressedInputStream(packed, coding) as stream,
            target.open("wb") as file,
        ):
            while part := stream.read(_PIECE):
                size += len(part)
                if size > limits.load_bytes:
                    raise too_large("load_bytes", limits.load_bytes, size)
                file.write(part)
    except (pa.ArrowException, OSError) as error:
        raise InvalidArgument(f"The body cannot be unpacked by {coding}: {error}.") from None
