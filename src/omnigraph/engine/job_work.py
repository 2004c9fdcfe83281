"""Owns the work of those kinds of jobs that need nothing but the graph: which arguments each takes,
and the call that it becomes. Loads and exports need files, which only their caller can allow."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from omnigraph.engine.graph import Graph
from omnigraph.engine.upkeep.jobs import GraphJob, JobContext, Work
from omnigraph.errors import IntentNotFound, InvalidArgument

_LISTED = 2_000
"""Files and findings that the result of a job lists."""
_Call = Callable[[Graph, JobContext, dict[str, Any]], Mapping[str, Any]]


def work_of(graph: Graph, job: GraphJob) -> Work:
    """Arguments come from the graph, which may be anybody's: another than these is refused."""
    if job.kind not in _KINDS:
        raise InvalidArgument(f"A {job.kind} job needs files, which a graph does not allow.")
    allowed, call = _KINDS[job.kind]
    arguments = dict(job.arguments)
    for name in arguments:
        if name not in allowed:
            raise InvalidArgument(
                f"A job of kind {job.kind} takes no argument {name!r}.",
                help=f"There are {', '.join(sorted(allowed))}.",
            )
    return lambda context: call(graph, context, arguments)


def _optimize(graph: Graph, context: JobContext, given: dict[str, Any]) -> dict[str, Any]:
    branch = graph.branch(given.pop("branch", "main"))
    done = branch.optimize(
        progress=lambda one: context.progress(one.done, one.total, f"{one.type}: {one.doing}"),
        actor=context.job.actor,
        idempotency_key=context.key,
        **given,
    )
    return {
        "commit": None if done.commit is None else done.commit.id,
        "types": msgspec.to_builtins(done.types),
        "dry_run": done.dry_run,
        "gave_way": done.gave_way,
        "folded": done.folded,
        "repeated": done.repeated,
    }


def _cleanup(graph: Graph, _: JobContext, given: dict[str, Any]) -> dict[str, Any]:
    told = graph.cleanup(**given).to_dict()
    if (more := len(told["removed"]) - _LISTED) > 0:  # a job is one small object
        told["removed"] = told["removed"][:_LISTED]
        told["spared"] = [*told["spared"], f"{more:,} more files that went are not listed here"]
    return told


def _verify(graph: Graph, _: JobContext, given: dict[str, Any]) -> dict[str, Any]:
    told: dict[str, Any] = msgspec.to_builtins(graph.verify(**given).to_dict())
    told["findings"] = told["findings"][:_LISTED]
    return told


def _algorithm(graph: Graph, context: JobContext, given: dict[str, Any]) -> dict[str, Any]:
    branch = graph.branch(given.pop("branch", "main"))
    name, options = given.pop("name", None), given.pop("options", {})
    if "write_to" not in given or not isinstance(options, dict):
        raise InvalidArgument("An algorithm that is a job says where it writes to: `write_to`.")
    words: dict[str, Any] = {"actor": context.job.actor, "idempotency_key": context.key}
    if twice := sorted(options.keys() & {"name", *given, *words}):
        raise InvalidArgument(f"{twice[0]!r} is no option of an algorithm.")
    done = branch.algorithm(name, **given, **words, **options)
    return {"commit": None if done.commit is None else done.commit.id, "rounds": done.rounds}


def _resume(graph: Graph, context: JobContext, given: dict[str, Any]) -> dict[str, Any]:
    try:
        return {"commit": graph.recovery.resume(given.get("intent", "")).id}
    except IntentNotFound:
        if context.job.run < 1:
            raise
        return {"commit": None}  # the run before did it


def _discard(graph: Graph, context: JobContext, given: dict[str, Any]) -> dict[str, Any]:
    try:
        done = graph.recovery.discard(given.get("intent", ""))
    except IntentNotFound:
        if context.job.run < 1:
            raise
        return {"commit": None}  # the run before did it
    return {"commit": None if done is None else done.id}


_KINDS: dict[str, tuple[frozenset[str], _Call]] = {
    "optimize": (frozenset({"branch", "types", "dry_run"}), _optimize),
    "cleanup": (frozenset({"keep", "older_than", "grace", "dry_run"}), _cleanup),
    "verify": (frozenset({"deep"}), _verify),
    "algorithm": (
        frozenset({"branch", "name", "edges", "direction", "where", "write_to", "options"}),
        _algorithm,
    ),
    "resume": (frozenset({"intent"}), _resume),
    "discard": (frozenset({"intent"}), _discard),
}
