"""Owns the routes of branches and tags: names for commits, which are never part of a path."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.model.version import Commit
from omnigraph.plan.digest import digest_values
from omnigraph.server.answers import answer, check_items, page_of
from omnigraph.server.bodies import RequestBody
from omnigraph.server.call import GraphCall, TheCall
from omnigraph.server.routing import StrictRoute
from omnigraph.wire.rows import commit_record

router = APIRouter(prefix="/graphs/{graph}", tags=["branches"], route_class=StrictRoute)
Name = Annotated[str, Query(max_length=1_000)]


class NewName(RequestBody):
    """`from` is the ref that the name begins at."""

    name: str
    from_: str = Field(default="main", alias="from")
    message: str | None = None


class Protection(RequestBody):
    protected: bool
    message: str | None = None


@router.get("/branches")
async def branches(call: TheCall, limit: int | None = None, cursor: str | None = None) -> Response:
    """Every branch with its head."""
    most = _items(call, limit)
    of = digest_values(["branches", call.name])

    def rows(graph: Graph) -> list[dict[str, Any]]:
        return [_branch_row(graph, name) for name in graph.branches()]

    return answer(page_of(await call.read(rows), most, cursor, of))


@router.post("/branches")
async def create_branch(call: TheCall, body: NewName) -> Response:
    """A new branch, which begins at a ref."""
    words = call.words(body.message)
    commit = await call.write(lambda g: g.create_branch(body.name, body.from_, **words))
    return _named(body.name, commit, status=201)


@router.patch("/branches")
async def protect_branch(call: TheCall, name: Name, body: Protection) -> Response:
    """Closes a branch to direct writes, or opens it again."""
    words = call.words(body.message)

    def do(graph: Graph) -> dict[str, Any]:
        (graph.protect if body.protected else graph.unprotect)(name, **words)
        return _branch_row(graph, name)

    return answer(await call.write(do))


@router.delete("/branches")
async def delete_branch(call: TheCall, name: Name, message: str | None = None) -> Response:
    """Takes a branch away. Its commits stay for as long as something needs them."""
    words = call.words(message)
    await call.write(lambda g: g.delete_branch(name, **words))
    return answer({"name": name, "deleted": True})


@router.get("/tags")
async def tags(call: TheCall, limit: int | None = None, cursor: str | None = None) -> Response:
    """Every tag with its commit."""
    most = _items(call, limit)
    of = digest_values(["tags", call.name])

    def rows(graph: Graph) -> list[dict[str, Any]]:
        return [{"name": name, **commit_record(commit)} for name, commit in graph.tags().items()]

    return answer(page_of(await call.read(rows), most, cursor, of))


@router.post("/tags")
async def create_tag(call: TheCall, body: NewName) -> Response:
    """A name for a commit that stays where it is."""
    words = call.words(body.message)
    commit = await call.write(lambda g: g.create_tag(body.name, body.from_, **words))
    return _named(body.name, commit, status=201)


@router.delete("/tags")
async def delete_tag(call: TheCall, name: Name, message: str | None = None) -> Response:
    """Takes the name away. The commit stays."""
    words = call.words(message)
    await call.write(lambda g: g.delete_tag(name, **words))
    return answer({"name": name, "deleted": True})


def _items(call: GraphCall, limit: int | None) -> int:
    limits = call.service.limits
    return check_items(limit, limits.list_items, limits.most_list_items)


def _branch_row(graph: Graph, name: str) -> dict[str, Any]:
    version = graph.at(name).graph_version
    about = {
        "protected": version.protected,
        "version": version.version,
        "incarnation": version.incarnation,
    }
    return {"name": name, **about, **commit_record(version.commit)}


def _named(name: str, commit: Commit, *, status: int) -> Response:
    return answer({"name": name, **commit_record(commit)}, commit.id, status=status)
