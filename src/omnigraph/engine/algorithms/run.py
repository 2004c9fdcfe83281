"""Owns running an algorithm by its name on a snapshot, on the engine that is asked for, and writing
its result as a property."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from omnigraph.engine.algorithms.local import compute_here
from omnigraph.engine.algorithms.offer import (
    Algorithm,
    find_algorithm,
    fitting_types,
    read_options,
)
from omnigraph.engine.algorithms.result import AlgorithmResult, Computed, Target
from omnigraph.engine.algorithms.scope import Edges, Scope, Where, read_scope
from omnigraph.engine.executors import configured_master, find_executor, registered
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import InvalidArgument, PreconditionFailed
from omnigraph.model.types import type_text
from omnigraph.model.words import plain_words

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph

_TRIES = 5
_ENGINES = ("auto", "local", "spark")


@dataclass(frozen=True)
class AlgorithmCall:
    """What `Graph.algorithm` was asked for."""

    name: str
    edges: Edges
    direction: str | None
    where: Where
    ref: str | None
    branch: str
    write_to: str | None
    engine: str
    actor: str | None
    message: str | None
    options: Mapping[str, Any]

    def __post_init__(self) -> None:
        plain_words(self)


def run_algorithm(graph: Graph, call: AlgorithmCall) -> AlgorithmResult:
    algorithm = find_algorithm(call.name)
    options = read_options(call.name, call.options)
    if algorithm.undirected and call.direction not in (None, "both"):
        raise InvalidArgument(f"{call.name} follows edges both ways, whatever they point to.")
    engine = _choose(call.engine)
    if call.write_to is None:
        snapshot = graph.snapshot(call.ref or call.branch)
        scope = _scope(graph, snapshot, algorithm, call)
        return _result(call, engine, _compute(graph, snapshot, scope, call, engine, options))
    if call.ref is not None:
        raise InvalidArgument(
            "Values are written to the head of a branch: give `branch` or `ref`, not both."
        )
    for left in range(_TRIES - 1, -1, -1):
        snapshot = graph.snapshot(call.branch)
        scope = _scope(graph, snapshot, algorithm, call)
        target = _target(snapshot, scope, algorithm, call, call.write_to)
        computed = _compute(graph, snapshot, scope, call, engine, options)
        try:
            commit = computed.write(target)
        except PreconditionFailed:
            if not left:
                raise
            continue  # a node may be gone by now, and what it was worth says nothing any more
        return _result(call, engine, computed, commit)
    raise AssertionError("unreachable")


def _choose(asked: str) -> str:
    """By itself an algorithm goes to Spark only where that is a cluster: on one machine the arrays
    of this process are many times faster."""
    if asked not in _ENGINES:
        listed = ", ".join(repr(word) for word in _ENGINES)
        raise InvalidArgument(f"`engine` is one of {listed}, not {asked!r}.")
    if asked != "auto":
        return asked
    if not ("pyspark" in sys.modules or configured_master()) or not registered("spark"):
        return "local"
    return "spark" if find_executor("spark").is_cluster() else "local"


def _scope(graph: Graph, snapshot: Snapshot, algorithm: Algorithm, call: AlgorithmCall) -> Scope:
    now = graph._session.runtime.now()  # noqa: SLF001
    direction = call.direction or algorithm.direction
    return read_scope(snapshot.catalog, call.edges, direction, call.where, now)


def _compute(
    graph: Graph,
    snapshot: Snapshot,
    scope: Scope,
    call: AlgorithmCall,
    engine: str,
    options: Mapping[str, Any],
) -> Computed:
    if engine == "local":
        return compute_here(graph, snapshot, scope, call.name, options)
    return find_executor(engine).algorithm(graph, snapshot, scope, call.name, options)


def _result(
    call: AlgorithmCall, engine: str, computed: Computed, commit: Any = None
) -> AlgorithmResult:
    return AlgorithmResult(
        name=call.name,
        engine=engine,
        rounds=computed.rounds,
        commit=commit,
        frame=computed.frame,
        _computed=computed,
    )


def _target(
    snapshot: Snapshot, scope: Scope, algorithm: Algorithm, call: AlgorithmCall, property: str
) -> Target:
    """The node types that get the property, all of which must have a fitting one."""
    fitting = fitting_types(algorithm)
    for kind in scope.nodes:
        held = {p.name: p for p in kind.properties}.get(property)
        if held is None:
            raise InvalidArgument(
                f"{kind.name} has no property {property!r} to write {call.name} to.",
                help=f"Add it to the schema first: `{property}: {fitting[0]}?`.",
            )
        if property in kind.key:
            raise InvalidArgument(f"`{property}` is part of the key of {kind.name}.")
        if type_text(held.type) not in fitting:
            raise InvalidArgument(
                f"`{property}` of {kind.name} is {type_text(held.type)}, but {call.name} "
                f"gives {' or '.join(fitting)}."
            )
        if algorithm.nullable and not held.nullable:
            raise InvalidArgument(
                f"`{property}` of {kind.name} must be nullable: {call.name} has no value "
                "for some nodes."
            )
    return Target(
        property=property,
        kinds=scope.nodes,
        branch=call.branch,
        actor=call.actor,
        message=call.message or f"{call.name} into {property}",
        if_commit=snapshot.commit.id,
    )
