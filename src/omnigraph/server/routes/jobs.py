"""Owns the routes of jobs: long work that goes on after the answer, of which any process tells."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

from fastapi import APIRouter
from pydantic import ConfigDict
from starlette.responses import Response

from omnigraph.engine.asking import ask_branch, ask_new_branch
from omnigraph.engine.graph import Graph
from omnigraph.engine.job_work import work_of
from omnigraph.engine.upkeep.jobs import GraphJob, Work
from omnigraph.errors import Denied, InvalidArgument, JobNotFound, OmnigraphError
from omnigraph.model.caller import Caller
from omnigraph.plan.digest import digest_values
from omnigraph.runtime import SYSTEM
from omnigraph.server.answers import answer, check_items, page_of
from omnigraph.server.bodies import RequestBody
from omnigraph.server.call import GraphCall, TheCall, Ulid
from omnigraph.server.events import EventsResponse, EventStream
from omnigraph.server.file_jobs import drop_body, export_work, keep_body, load_work
from omnigraph.server.lines import answer_lines
from omnigraph.server.problems import known
from omnigraph.server.routing import StrictRoute
from omnigraph.server.service import Service
from omnigraph.store.job_files import JobKind, id_of_key
from omnigraph.wire.problems import problem_of
from omnigraph.wire.values import plain

router = APIRouter(prefix="/graphs/{graph}/jobs", tags=["jobs"], route_class=StrictRoute)
_LOOK = 0.25
_BY = "by"
"""In the arguments of a job: in whose name it is done, also by a process that goes on with it."""


class JobBody(RequestBody):
    """`kind`, and the arguments that jobs of this kind take."""

    model_config = ConfigDict(extra="allow", strict=True, frozen=True)

    kind: Literal[
        "load", "export", "optimize", "cleanup", "verify", "algorithm", "resume", "discard"
    ]


@router.post("", status_code=202)
async def submit(call: TheCall, body: JobBody) -> Response:
    """Begins a job. Its arguments are those of the call that it stands for."""
    arguments = dict(body.model_extra or {})
    for name in ("upload", _BY, "if_commit"):
        if name in arguments:
            raise InvalidArgument(f"A job takes no argument {name!r}.")
    return await begin_job(call, body.kind, arguments)


@router.get("")
async def jobs(call: TheCall, limit: int | None = None, cursor: str | None = None) -> Response:
    """The jobs of the graph, oldest first: those of the caller, or all for who maintains it."""
    limits = call.service.limits
    most = check_items(limit, limits.list_items, limits.most_list_items)

    def found(graph: Graph) -> list[dict[str, Any]]:
        everything = _maintains(graph)
        held = own(call).jobs.list()
        return [job_row(one) for one in held if everything or one.actor == call.caller.actor]

    listed = page_of(await call.read(found), most, cursor, digest_values(["jobs", call.name]))
    return answer(listed, headers=_NEVER_KEPT)


@router.get("/{job}")
async def job(call: TheCall, job: Ulid) -> Response:
    """One job: what it was asked, how far it is, and what came of it."""
    return answer(
        job_row(await call.read(lambda g: _job(call, g, job))),
        headers=_NEVER_KEPT,
    )


@router.delete("/{job}")
async def cancel(call: TheCall, job: Ulid) -> Response:
    """Asks a job to stop, wherever it runs. What it has committed stays."""

    def do(graph: Graph) -> GraphJob:
        _job(call, graph, job)
        return own(call).jobs.cancel(job, actor=call.caller.actor)

    return answer(job_row(await call.write(do)), headers=_NEVER_KEPT)


@router.get("/{job}/rejected")
async def rejected(call: TheCall, job: Ulid) -> Response:
    """The rows that a load has put aside, a line for each; of very many only the first."""

    def find(graph: Graph) -> tuple[str, Iterator[dict[str, Any]]]:
        held = _job(call, graph, job)
        rows = (held.result or {}).get("rejects", [])
        return str((held.result or {}).get("commit") or ""), iter(rows)

    return await answer_lines(call, find)


@router.get("/{job}/events")
async def events(call: TheCall, job: Ulid) -> Response:
    """How far a job is, as events: `progress` whenever that changes, and `done` or `failed`."""
    first = await call.read(lambda g: _job(call, g, job))

    async def made(stream: EventStream) -> None:
        held, seen = first, None
        while not stream.over:
            row = job_row(held)
            told = {name: value for name, value in row.items() if name != "heartbeat"}
            ended = held.ended or held.state in ("lost", "unreadable")
            if told != seen:
                name = ("done" if held.state == "done" else "failed") if ended else "progress"
                await stream.tell(name, row)
                seen = told
            if ended:
                return
            await stream.pause(_LOOK)
            try:
                held = await call.read(lambda g: _job(call, g, job))
            except Exception as error:  # noqa: BLE001  told as an event; the answer has begun
                await stream.tell("failed", problem_of(known(error), call.request_id))
                return

    return EventsResponse(call, made)


_NEVER_KEPT = {"Cache-Control": "no-store"}


def job_row(job: GraphJob) -> dict[str, Any]:
    row: dict[str, Any] = plain(job.to_dict())
    row["arguments"] = {n: v for n, v in row["arguments"].items() if n not in (_BY, "upload")}
    return row


def own(call: GraphCall) -> Graph:
    """The server's own handle: jobs are objects beside the graph, which no policy knows."""
    return call.service.graphs.open(call.name)


def _maintains(graph: Graph) -> bool:
    try:
        _ = graph.jobs
    except Denied:
        return False
    return True


def _job(call: GraphCall, graph: Graph, id: str) -> GraphJob:
    """A job that is the caller's own, or that of a graph that they maintain."""
    held = own(call).jobs.get(id)
    if held.actor != call.caller.actor and not _maintains(graph):
        raise JobNotFound(f"There is no job {id}.")
    return held


async def begin_job(
    call: GraphCall, kind: JobKind, arguments: dict[str, Any], body: Path | None = None
) -> Response:
    """Whether the caller may do that is asked here and again when it is done."""
    key = call.words()["idempotency_key"] or f"job/{SYSTEM.ulid()}"
    caller = call.caller
    by = {name: sorted(getattr(caller, name) or ()) for name in ("roles", "groups")}
    given = {name: value for name, value in arguments.items() if value is not None}
    asked = GraphJob(id_of_key(key), kind, "queued", given | {_BY: by}, caller.actor)

    def begin(graph: Graph) -> GraphJob:
        require_allowed(graph, kind, given)
        if body is not None:
            keep_body(body, _bare(asked))
        _work(graph, _bare(asked), call.service)  # what is wrong with it is told now
        return call.service.jobs.begin(
            own(call),
            asked,
            key,
            lambda job: _work(graph, _bare(job), call.service),
            lambda job: drop_body(_bare(job)),
        )

    told = job_row(await call.write(begin))
    headers = _NEVER_KEPT | {"Location": f"/graphs/{call.name}/jobs/{told['id']}"}
    return answer(told, status=202, headers=headers)


def require_allowed(graph: Graph, kind: JobKind, given: dict[str, Any]) -> None:
    session = graph._session  # noqa: SLF001
    branch = given.get("branch") or "main"
    if not isinstance(branch, str):
        raise InvalidArgument("branch is the name of a branch.")
    match kind:
        case "load" if given.get("from") is not None:
            ask_new_branch(session, branch, str(given.get("mode") or "append"))
        case "load":
            ask_branch(session, branch, "load", mode=str(given.get("mode") or "append"))
        case "export":
            graph.at(str(given.get("ref") or "main"))._pinned("export")  # noqa: SLF001
        case "algorithm":
            ask_branch(session, branch, "mutate")
        case "cleanup":
            session.permissions.require_graph("cleanup")
        case _:
            session.permissions.require_graph("maintain")


_LOADS = frozenset({"uri", "upload", "type", "mode", "branch", "from", "on_error", "engine"})
_FILES = {
    "load": _LOADS | {"message", "if_commit"},
    "export": frozenset({"uri", "types", "ref", "format", "overwrite"}),
}


def _work(graph: Graph, job: GraphJob, service: Service) -> Work:
    found = _work_here(graph, job, service)
    if found is None:
        raise InvalidArgument("The body of the load is not here any more.", help="Send it again.")
    return found


def _work_here(graph: Graph, job: GraphJob, service: Service) -> Work | None:
    if job.kind not in _FILES:
        return work_of(graph, job)
    for name in job.arguments:
        if name not in _FILES[job.kind]:
            known_names = ", ".join(sorted(_FILES[job.kind] - {"upload", "if_commit"}))
            raise InvalidArgument(
                f"A job of kind {job.kind} takes no argument {name!r}.",
                help=f"There are {known_names}.",
            )
    if job.kind == "export":
        return export_work(graph, job, service.sources)
    return load_work(graph, job, service.sources, service.limits)


def _bare(job: GraphJob) -> GraphJob:
    return replace(job, arguments={n: v for n, v in job.arguments.items() if n != _BY})


def take_up(service: Service, name: str) -> None:
    """Goes on with the jobs of a graph that nobody works on any more, in the name of who asked for
    them."""
    if not service.graphs.is_open(name):
        return
    graph = service.graphs.open(name)

    def work(job: GraphJob) -> Work | None:
        by = job.arguments.get(_BY)
        if not isinstance(by, dict) or job.actor is None:
            return None  # not asked for here
        with contextlib.suppress(OmnigraphError, KeyError, TypeError, ValueError):
            caller = Caller(job.actor, frozenset(by["groups"]), frozenset(by["roles"]))
            acting = graph.acting(
                caller, service.policy, name=name, audit=lambda event: service.hear(event, None)
            )
            return _work_here(acting, _bare(job), service)
        return None

    service.jobs.take_up(graph, work, lambda job: drop_body(_bare(job)))
