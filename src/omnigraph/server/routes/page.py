"""Owns the routes of the web page. They are no part of the interface: only the page itself uses
them."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from omnigraph.errors import NotFound
from omnigraph.server.page import INDEX, SECURITY, PageFile
from omnigraph.server.routing import StrictRoute
from omnigraph.server.service import Service
from omnigraph.wire.media import choose_coding

router = APIRouter(tags=["page"], route_class=StrictRoute, include_in_schema=False)


@router.head("/")
@router.get("/")
async def index(request: Request) -> Response:
    """The web page."""
    return _sent(request, INDEX)


@router.head("/web/{path:path}")
@router.get("/web/{path:path}")
async def file(request: Request, path: str) -> Response:
    """A file that the page needs."""
    return _sent(request, path)


def _sent(request: Request, name: str) -> Response:
    service: Service = request.scope["service"]
    found = service.page.find(name) if service.page is not None else None
    if found is None:
        raise NotFound("There is nothing at this address.", help="See /openapi.json.")
    headers = SECURITY | {
        "ETag": found.etag,
        "Cache-Control": "no-cache",
        "Vary": "Accept-Encoding",
    }
    if _has(request, found):
        return Response(status_code=304, headers=headers)
    body = found.body
    if found.packed is not None and choose_coding(_codings(request)) == "gzip":
        body, headers = found.packed, headers | {"Content-Encoding": "gzip"}
    headers["Content-Length"] = str(len(body))
    shown = b"" if request.method == "HEAD" else body
    return Response(shown, media_type=found.kind, headers=headers)


def _codings(request: Request) -> str | None:
    """What the client takes, without zstd: a file is packed once, in gzip."""
    given = request.headers.get("accept-encoding", "")
    return ",".join(one for one in given.split(",") if not one.strip().startswith("zstd"))


def _has(request: Request, found: PageFile) -> bool:
    given = request.headers.get("if-none-match", "")
    tags = {one.strip().removeprefix("W/") for one in given.split(",")}
    return found.etag in tags or "*" in tags
