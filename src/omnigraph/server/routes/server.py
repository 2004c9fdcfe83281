"""Owns the routes about the server itself."""

from __future__ import annotations

from fastapi import APIRouter, Request
from starlette.responses import Response

from omnigraph import __version__
from omnigraph.server.answers import answer
from omnigraph.server.routing import StrictRoute

API = 1
router = APIRouter(tags=["server"], route_class=StrictRoute)


@router.get("/version")
async def version() -> Response:
    """The version of the program and of the interface. The interface only ever grows."""
    return answer({"version": __version__, "api": API})


@router.get("/healthz")
async def healthz() -> Response:
    """Whether the process is alive."""
    return answer({"status": "ok"})


@router.get("/whoami")
async def whoami(request: Request) -> Response:
    """Who the server takes the caller for."""
    caller = request.scope["caller"]
    return answer(
        {
            "actor": caller.actor,
            "roles": sorted(caller.roles),
            "groups": sorted(caller.groups),
            "graphs": None if caller.graphs is None else sorted(caller.graphs),
            "token": caller.token,
        },
        headers={"Cache-Control": "no-store"},
    )
