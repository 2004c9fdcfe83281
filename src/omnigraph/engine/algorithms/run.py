"""Owns running an algorithm by name, on a snapshot and an engine, and writing its result as a
property."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol

from omnigraph.engine.algorithms.local import compute_here
from omnigraph.engine.algorithms.registry import (
    Algorithm,
    find_algorithm,
    fitting_types,
    read_options,
)
from omnigraph.engine.algorithms.result import AlgorithmResult, Computed, Target
from omnigraph.engine.algorithms.scope import AlgorithmScope, read_scope
from omnigraph.engine.executors import Startable, configured_master, find_executor, registered
from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.session import Session
from omnigraph.errors import InvalidArgument, PreconditionFailed
from omnigraph.model.call_types import AlgorithmFilter, Edges
from omnigraph.model.options import CommitOptions
from omnigraph.model.types import type_text
from omnigraph.model.version import Commit

_TRIES = 5
_ENGINES = ("auto", "local", "spark")


class AlgorithmExecutor(Protocol):
    """An engine that runs algorithms in the place of this process."""

    def algorithm(
        self,
        session: Session,
        snapshot: GraphView,
        scope: AlgorithmScope,
        name: str,
        options: Mapping[str, Any],
    ) -> Computed:
        """The same values as in this process, from an algorithm with all its options."""


@dataclass(frozen=True)
class AlgorithmCall:
    """The arguments of a call of `algorithm`."""

    name: str
    edges: Edges
    direction: str | None
    where: AlgorithmFilter
    engine: str
    options: Mapping[str, Any]


def run_algorithm(session: Session, snapshot: GraphView, call: AlgorithmCall) -> AlgorithmResult:
    algorithm, engine, options = _read(call)
    scope = _scope(session, snapshot, algorithm, call)
    return _result(call, engine, _compute(session, snapshot, scope, call, engine, options))


def write_algorithm(
    session: Session,
    pin: Callable[[], GraphView],
    call: AlgorithmCall,
    write_to: str,
    commit: CommitOptions,
) -> AlgorithmResult:
    """Stores the values as a property, on the head that they were computed on. If the head moves,
    they are computed again, unless the caller named a commit."""
    algorithm, engine, options = _read(call)
    commit = replace(commit, message=commit.message or f"{call.name} into {write_to}")
    tries = 1 if commit.if_commit is not None else _TRIES
    for left in range(tries - 1, -1, -1):
        snapshot = pin()
        scope = _scope(session, snapshot, algorithm, call)
        _check_target(scope, algorithm, call, write_to)
        computed = _compute(session, snapshot, scope, call, engine, options)
        here = replace(commit, if_commit=commit.if_commit or snapshot.commit.id)
        try:
            made = computed.write(Target(write_to, scope.nodes, here))
        except PreconditionFailed:
            if not left:
                raise
            continue  # nodes may have changed since, so the old values are void
        return _result(call, engine, computed, made)
    raise AssertionError("unreachable")


def _read(call: AlgorithmCall) -> tuple[Algorithm, str, Mapping[str, Any]]:
    algorithm = find_algorithm(call.name)
    options = read_options(call.name, call.options)
    if algorithm.undirected and call.direction not in (None, "both"):
        raise InvalidArgument(f"{call.name} follows edges both ways, whatever they point to.")
    return algorithm, _choose(call.engine), options


def _choose(asked: str) -> str:
    """With "auto" an algorithm runs on Spark only if Spark is a cluster. On one machine the arrays
    of this process are many times faster."""
    if asked not in _ENGINES:
        listed = ", ".join(repr(word) for word in _ENGINES)
        raise InvalidArgument(f"`engine` is one of {listed}, not {asked!r}.")
    if asked != "auto":
        return asked
    if not ("pyspark" in sys.modules or configured_master()) or not registered("spark"):
        return "local"
    executor: Startable = find_executor("spark")
    return "spark" if executor.is_cluster() else "local"


def _scope(
    session: Session, snapshot: GraphView, algorithm: Algorithm, call: AlgorithmCall
) -> AlgorithmScope:
    direction = call.direction or algorithm.direction
    now = session.runtime.now()
    return read_scope(snapshot.catalog, call.edges, direction, call.where, now)


def _compute(
    session: Session,
    snapshot: GraphView,
    scope: AlgorithmScope,
    call: AlgorithmCall,
    engine: str,
    options: Mapping[str, Any],
) -> Computed:
    if engine == "local":
        return compute_here(session, snapshot, scope, call.name, options)
    executor: AlgorithmExecutor = find_executor(engine)
    return executor.algorithm(session, snapshot, scope, call.name, options)


def _result(
    call: AlgorithmCall, engine: str, computed: Computed, commit: Commit | None = None
) -> AlgorithmResult:
    return AlgorithmResult(
        name=call.name,
        engine=engine,
        rounds=computed.rounds,
        commit=commit,
        frame=computed.frame,
        _computed=computed,
    )


def _check_target(
    scope: AlgorithmScope, algorithm: Algorithm, call: AlgorithmCall, property: str
) -> None:
    """All node types must have a property that can hold the values."""
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
