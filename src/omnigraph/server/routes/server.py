"""Owns the routes about the server itself."""

from __future__ import annotations

import asyncio

from fastapi import APIRouter, Request
from pydantic import Field
from starlette.responses import Response

from omnigraph import __version__
from omnigraph.errors import Draining, InvalidArgument, NotFound, Overloaded
from omnigraph.model.caller import Caller
from omnigraph.plan.digest import digest_values
from omnigraph.server.answers import answer, check_items, page_of
from omnigraph.server.bodies import RequestBody, only_text
from omnigraph.server.call import NAME_PATTERN, GraphName
from omnigraph.server.description import description
from omnigraph.server.routing import StrictRoute
from omnigraph.server.service import Service

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


class NewGraph(RequestBody):
    """A graph below the prefix of the server."""

    name: str = Field(pattern=NAME_PATTERN)
    schema_: str = Field(alias="schema")


class Farewell(RequestBody):
    """`confirm` repeats the name of the graph that is deleted."""

    confirm: str


@router.get("/graphs")
async def graphs(request: Request, limit: int | None = None, cursor: str | None = None) -> Response:
    """The graphs that the caller may see."""
    service: Service = request.scope["service"]
    seen = request.scope["caller"].graphs
    most = check_items(limit, service.limits.list_items, service.limits.most_list_items)
    caller: Caller = request.scope["caller"]
    found = await service.pools.read.run(caller.actor, service.graphs.listed)
    items = [
        {"name": name, "open": service.graphs.is_open(name)}
        for name in found
        if seen is None or name in seen
    ]
    return answer(page_of(items, most, cursor, digest_values(["graphs"])))


@router.post("/graphs")
async def create_graph(request: Request, body: NewGraph) -> Response:
    """A new graph below the prefix of the server."""
    service: Service = request.scope["service"]
    caller: Caller = request.scope["caller"]
    service.require("graph_create", caller)
    commit = await service.pools.write.run(
        caller.actor, lambda: service.graphs.create(body.name, only_text(body.schema_))
    )
    headers = {"Location": f"/graphs/{body.name}"}
    return answer({"name": body.name, "commit": commit}, commit, status=201, headers=headers)


@router.delete("/graphs/{graph}")
async def delete_graph(request: Request, graph: GraphName, body: Farewell) -> Response:
    """Deletes a graph below the prefix for good, with all that it holds."""
    service: Service = request.scope["service"]
    caller: Caller = request.scope["caller"]
    service.require("graph_delete", caller)
    if body.confirm != graph:
        raise InvalidArgument("confirm is not the name of the graph.", help="Nothing was deleted.")
    await service.pools.write.run(caller.actor, lambda: service.graphs.delete(graph))
    return answer({"name": graph, "deleted": True})


@router.get("/readyz")
async def readyz(request: Request) -> Response:
    """Whether requests should come here: Lance is imported, the heads were read, and the server is
    not about to end."""
    service: Service = request.scope["service"]
    if service.draining:
        raise Draining("This server is about to end.", retry_after=1)
    if not service.ready:
        raise Overloaded("The graphs are being opened.", limit="start")
    return answer({"status": "ready"})


@router.get("/metrics")
async def metrics(request: Request) -> Response:
    """Counters for Prometheus, of this process or of all workers."""
    service: Service = request.scope["service"]
    told = service.metrics.text(service.pools, service.admission)
    return Response(told, media_type=service.metrics.media_type)


@router.get("/activity")
async def activity(request: Request) -> Response:
    """What this process does now: requests that are under way, threads, memory. It answers for
    itself, one of so many `workers`, and only administrators."""
    service: Service = request.scope["service"]
    service.require("admin", request.scope["caller"])
    told = service.activity.told(service.pools, service.admission, request.scope)
    return answer(told, headers={"Cache-Control": "no-store"})


@router.get("/openapi.json")
async def openapi() -> Response:
    """The description of all routes."""
    return Response(description(), media_type="application/json")


@router.get("/.well-known/oauth-protected-resource", include_in_schema=False)
async def protected_resource(request: Request) -> Response:
    """Where tokens for this server come from (RFC 9728)."""
    service: Service = request.scope["service"]
    if service.issuer is None:
        raise NotFound("There is nothing at this address.", help="See /openapi.json.")
    told = {
        "resource": f"{request.url.scheme}://{request.url.netloc}",
        "authorization_servers": [service.issuer],
        "bearer_methods_supported": ["header"],
    }
    return answer(told)


@router.post("/reload")
async def reload(request: Request) -> Response:
    """Reads the configuration again. If anything in it is wrong, what was there before stays."""
    service: Service = request.scope["service"]
    service.require("admin", request.scope["caller"])
    await asyncio.to_thread(service.reload)
    return answer({"reloaded": True})
