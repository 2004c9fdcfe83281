"""Owns the routes of the past: commits, what changed between two of them, and the manifest."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fastapi import APIRouter
from starlette.responses import Response

from omnigraph.engine.graph import Graph
from omnigraph.engine.history.diff import Diff
from omnigraph.engine.history.log import entry_of
from omnigraph.engine.snapshot import Snapshot
from omnigraph.plan.digest import digest_values
from omnigraph.plan.log_drawing import draw_lanes
from omnigraph.server.answers import answer, check_items, not_modified, pin_of, read_at
from omnigraph.server.bodies import Kinds, Ops, Types
from omnigraph.server.call import GraphCall, TheCall, Ulid
from omnigraph.server.lines import answer_lines, list_page
from omnigraph.server.routing import StrictRoute
from omnigraph.wire.cursors import read_cursor
from omnigraph.wire.media import Shape, choose_form
from omnigraph.wire.rows import (
    change_row,
    commit_record,
    lane_row,
    queries_record,
    steps_record,
)
from omnigraph.wire.values import plain

router = APIRouter(prefix="/graphs/{graph}", tags=["history"], route_class=StrictRoute)
_LISTED = (Shape.JSON, Shape.LINES)


@router.get("/commits")
async def commits(
    call: TheCall,
    ref: str = "main",
    limit: int | None = None,
    cursor: str | None = None,
    actor: str | None = None,
    kind: str | None = None,
    since: str | None = None,
    until: str | None = None,
    first_parent: bool = False,
    all: bool = False,
) -> Response:
    """Commits, newest first: of a ref, or of all branches."""
    most = _items(call, limit)
    of = digest_values(["commits", call.name, ref, actor, kind, since, until, first_parent, all])
    place = None if cursor is None else read_cursor(cursor, of)

    def page(graph: Graph) -> tuple[str, dict[str, Any]]:
        start = graph.at(ref if place is None else place.commit)
        offset = 0 if place is None else place.offset
        log = (
            graph.log(
                all=True,
                actor=actor,
                kind=kind,
                since=since,
                until=until,
                first_parent=first_parent,
            )
            if all
            else start.log(
                actor=actor, kind=kind, since=since, until=until, first_parent=first_parent
            )
        )
        labels = log.labels()
        rows = (commit_record(one, labels.get(one.id, ())) for one in log)
        commit = start.commit.id
        return commit, list_page(rows, offset, most, of, commit)

    commit, told = await call.read(page)
    return answer(told, None if all else commit)


@router.get("/commits/lanes")
async def lanes(
    call: TheCall,
    ref: str = "main",
    limit: int | None = None,
    actor: str | None = None,
    kind: str | None = None,
    since: str | None = None,
    until: str | None = None,
    all: bool = False,
) -> Response:
    """The newest commits of a ref, or of all branches, as a drawing: each has a lane, and lines
    that lead to its parents. `cut` marks a line to a commit that is not shown."""
    most = _items(call, limit)

    def told(graph: Graph) -> tuple[str, list[dict[str, Any]]]:
        start = graph.at(ref)
        log = graph.log if all else start.log
        shown: dict[str, Any] = {"all": True} if all else {}
        shown |= {"actor": actor, "kind": kind, "since": since, "until": until}
        commits = list(log(limit=most, **shown))
        labels = start.log(limit=0).labels()
        drawn = draw_lanes([entry_of(one, labels.get(one.id, ())) for one in commits])
        rows = [
            commit_record(one, row.entry.labels) | lane_row(row)
            for one, row in zip(commits, drawn, strict=True)
        ]
        return start.commit.id, rows

    commit, rows = await call.read(told)
    return answer({"items": rows, "cursor": None}, None if all else commit)


@router.get("/commits/{commit}")
async def commit(call: TheCall, commit: Ulid) -> Response:
    """One commit."""
    return await read_at(call, commit, lambda at: commit_record(at.commit))


@router.get("/commits/{commit}/changes")
async def commit_changes(
    call: TheCall,
    commit: Ulid,
    limit: int | None = None,
    cursor: str | None = None,
    type: Types = None,
    kind: Kinds = None,
    op: Ops = None,
) -> Response:
    """What a commit changed against its first parent."""

    def find(graph: Graph, _pinned: str | None) -> tuple[Snapshot, Diff | None]:
        new = graph.at(commit)
        parents = new.commit.parents
        if not parents:
            return new, None
        return new, new.diff(parents[0], types=type, kinds=kind, ops=op)

    of = digest_values(["changes", call.name, commit, type, kind, op])
    return await _changes(call, find, of, limit, cursor)


@router.get("/diff")
async def diff(
    call: TheCall,
    old: str,
    new: str,
    limit: int | None = None,
    cursor: str | None = None,
    type: Types = None,
    kind: Kinds = None,
    op: Ops = None,
    summary: bool = False,
    schema: bool = False,
) -> Response:
    """What leads from one ref to another, entity by entity: a page, or a line for each. With
    `summary` only how many, with `schema` only what leads from one schema, and from the stored
    queries, to the others."""

    def find(graph: Graph, pinned: str | None) -> tuple[Snapshot, Diff | None]:
        at = graph.at(pinned or new)
        return at, at.diff(old, types=type, kinds=kind, ops=op)

    if summary:

        def counted(graph: Graph) -> tuple[str, dict[str, Any]]:
            at, found = find(graph, None)
            assert found is not None
            return at.commit.id, {"old": old, "new": new, "types": found.summary()}

        commit_id, told = await call.read(counted)
        return answer(told, commit_id)
    if schema:

        def told_schema(graph: Graph) -> tuple[str, dict[str, Any]]:
            before = graph.at(old)
            at, found = find(graph, None)
            assert found is not None
            told = {
                "old": pin_of(before),
                "new": pin_of(at),
                "steps": steps_record(found.schema),
                "queries": queries_record(found.queries),
            }
            return at.commit.id, told

        commit_id, about = await call.read(told_schema)
        return answer(about, commit_id)
    of = digest_values(["diff", call.name, old, new, type, kind, op])
    return await _changes(call, find, of, limit, cursor)


async def _changes(
    call: GraphCall, find: Any, of: str, limit: int | None, cursor: str | None
) -> Response:
    form = choose_form(call.request.headers.get("accept"), _LISTED)

    def rows(found: Diff | None) -> Iterator[dict[str, Any]]:
        return (call.shown(change_row(one)) for one in found or ())

    if form.shape is Shape.LINES:

        def stream(graph: Graph) -> tuple[str, Iterator[dict[str, Any]]]:
            at, found = find(graph, None)
            return at.commit.id, rows(found)

        return await answer_lines(call, stream)
    most = _items(call, limit)
    place = None if cursor is None else read_cursor(cursor, of)
    offset = 0 if place is None else place.offset

    def page(graph: Graph) -> tuple[str, dict[str, Any] | None]:
        at, found = find(graph, None if place is None else place.commit)
        if call.has_seen(at):
            return at.commit.id, None
        return at.commit.id, list_page(rows(found), offset, most, of, at.commit.id)

    commit_id, told = await call.read(page)
    return not_modified(commit_id) if told is None else answer(told, commit_id)


@router.get("/manifest")
async def manifest(call: TheCall, ref: str = "main") -> Response:
    """The version of the graph as rows: its tables and their versions, the head and its commit."""
    return await read_at(
        call, ref, lambda at: {"items": plain(at.manifest().to_pylist()), "cursor": None}
    )


def _items(call: GraphCall, limit: int | None) -> int:
    limits = call.service.limits
    return check_items(limit, limits.list_items, limits.most_list_items)
