"""Owns the application: the routes there are, behind the front that every request passes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from importlib import import_module
from typing import Any

from fastapi import APIRouter, FastAPI
from starlette.types import ASGIApp

from omnigraph import __version__
from omnigraph.server.direct import direct_routes
from omnigraph.server.front import Front
from omnigraph.server.problems import answer_problems
from omnigraph.server.routes.jobs import take_up
from omnigraph.server.routes.mcp import speaking
from omnigraph.server.routing import StrictRoute
from omnigraph.server.service import Service

ROUTES = (
    "query",
    "mutate",
    "queries",
    "entities",
    "transactions",
    "scan",
    "graph",
    "server",
    "search",
    "algorithms",
    "texts",
    "schema",
    "names",
    "merging",
    "history",
    "changes",
    "export",
    "load",
    "jobs",
    "keys",
    "mcp",
    "page",
)
"""Modules of `omnigraph.server.routes`, each with a `router`. They are tried in this order,
so those that are asked most often come first."""


DIRECT = ("query", "mutate")
"""Those with one route, which is reached the short way."""


def _router(name: str) -> APIRouter:
    router: APIRouter = import_module(f"omnigraph.server.routes.{name}").router
    return router


def make_api(lifespan: Any = None) -> FastAPI:
    """The routes alone, of which the description is made."""
    api = FastAPI(
        title="OmniGraph",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        lifespan=lifespan,
        # Its spans hold the query of the address, which names entities: see omnigraph.tracing.
        telemetry={"tracing": False, "metrics": False, "logs": False, "auto_configure": False},
    )
    api.router.route_class = StrictRoute
    for name in ROUTES:
        api.include_router(_router(name))
    answer_problems(api)
    return api


def make_app(service: Service) -> ASGIApp:
    @contextlib.asynccontextmanager
    async def lifespan(_app: FastAPI) -> AsyncIterator[None]:
        async with speaking(service, wanted=service.mcp_wanted):
            await asyncio.to_thread(service.warm)
            service.jobs.watch(service.graphs.names, lambda name: take_up(service, name))
            yield
            service.close()

    return Front(make_api(lifespan), service, direct_routes(*map(_router, DIRECT)))
