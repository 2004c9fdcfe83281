"""Owns the route that brings entities in: the body goes to a file first, then it is loaded."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Query, Request
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.load.result import LoadResult
from omnigraph.errors import UnsupportedMediaType
from omnigraph.server.answers import answer
from omnigraph.server.call import GraphCall, TheCall
from omnigraph.server.file_jobs import files_of, load_row
from omnigraph.server.routes.jobs import begin_job
from omnigraph.server.routing import StrictRoute, too_large

router = APIRouter(prefix="/graphs/{graph}", tags=["load"], route_class=StrictRoute)
SUFFIXES = {
    "application/jsonl": ".jsonl",
    "application/x-ndjson": ".jsonl",
    "application/json": ".jsonl",
    "text/csv": ".csv",
    "application/vnd.apache.parquet": ".parquet",
    "application/vnd.apache.arrow.stream": ".arrow",
    "application/vnd.apache.arrow.file": ".arrow",
    "application/x-tar": ".tar",
}
_REJECTS = 100


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
    begins there. A large body becomes a job: 202."""
    suffix = _suffix(request)
    coding = _coding(request)
    words = call.words(message)
    with tempfile.TemporaryDirectory(prefix="omnigraph-load-") as held:
        raw = Path(held) / f"body{suffix}"
        digest = await _spool(request, raw, call)
        if raw.stat().st_size > call.service.limits.load_job_bytes:
            given = {
                "upload": {"suffix": suffix, "coding": coding, "digest": digest},
                "type": type,
                "mode": mode,
                "branch": branch,
                "from": from_,
                "on_error": on_error,
                "message": message,
                "if_commit": words["if_commit"],
                "engine": "local",
            }
            return await begin_job(call, "load", given, raw)

        def do(graph: Graph) -> LoadResult:
            found = files_of(raw, digest, coding, call.service.limits)
            handle = graph.branch("main" if from_ is not None else branch)
            return handle.load(
                found.source,
                type=found.type if type is None else type,
                mode=mode,
                new_branch=None if from_ is None else branch,
                ref=from_,
                on_error=on_error,
                engine="local",
                **words,
            )

        done = await call.write(do)
        return answer(load_row(done, rejects), done.commit_id, io=done.io)


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
