"""Owns the routes that bring a branch to what another one, or an older commit, has."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.merge.run import Merge
from omnigraph.errors import InvalidArgument
from omnigraph.model.version import Commit
from omnigraph.server.answers import answer
from omnigraph.server.bodies import RequestBody
from omnigraph.server.call import TheCall
from omnigraph.server.routing import StrictRoute
from omnigraph.wire.rows import commit_record, lineage_of, merge_row

router = APIRouter(prefix="/graphs/{graph}", tags=["merge"], route_class=StrictRoute)


class Resolution(RequestBody):
    """The row that an entity has after the merge; null if it is gone."""

    type: str
    id: str
    row: dict[str, Any] | None


class MergeBody(RequestBody):
    """`strategy` is "ours", "theirs", or a side by type or by `Type.property`."""

    source: str
    into: str = "main"
    strategy: str | dict[str, str] | None = None
    resolve: list[Resolution] | None = None
    message: str | None = None
    dry_run: bool = False
    delete_source: bool = False


class BackBody(RequestBody):
    """`ref` is what the branch becomes, or whose commit is undone."""

    ref: str
    branch: str = "main"
    message: str | None = None


@router.post("/merge")
async def merge(call: TheCall, body: MergeBody) -> Response:
    """Brings the changes of one branch into another, or tells every conflict."""
    if body.dry_run and body.delete_source:
        raise InvalidArgument("A merge that is only tried deletes nothing.")
    words = call.words(body.message)
    resolve = None if body.resolve is None else _resolved(body.resolve)

    def do(graph: Graph) -> Merge:
        done = graph.branch(body.into).merge(
            body.source,
            strategy=body.strategy,
            resolve=resolve,
            dry_run=body.dry_run,
            **words,
        )
        if body.delete_source and not done.repeated:
            graph.delete_branch(body.source, actor=call.caller.actor)
        return done

    done = await call.write(do)
    commit = None if done.commit is None else done.commit.id
    row = merge_row(done, body.source, body.into, dry_run=body.dry_run)
    told = row | {"repeated": done.repeated, "lineage": lineage_of(done.commit)}
    return answer(call.shown(told), commit, io=done.io)


def _resolved(rows: list[Resolution]) -> dict[tuple[str, str], dict[str, Any] | None]:
    found = {(one.type, one.id): one.row for one in rows}
    if len(found) < len(rows):
        raise InvalidArgument("resolve names an entity twice.")
    return found


@router.post("/restore")
async def restore(call: TheCall, body: BackBody) -> Response:
    """Makes a branch what it was at a ref, as a new commit."""
    words = call.words(body.message)
    return _written(await call.write(lambda g: g.branch(body.branch).restore(body.ref, **words)))


@router.post("/revert")
async def revert(call: TheCall, body: BackBody) -> Response:
    """Undoes what one commit did, as a new commit."""
    words = call.words(body.message)
    return _written(await call.write(lambda g: g.branch(body.branch).revert(body.ref, **words)))


def _written(commit: Commit) -> Response:
    return answer(commit_record(commit), commit.id)
