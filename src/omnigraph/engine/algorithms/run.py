"""Owns running an algorithm by its name on a snapshot, and writing its result as a property."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.algorithms import kernels
from omnigraph.engine.algorithms.kernels import UNREACHED
from omnigraph.engine.algorithms.network import Edges, Network, build_network, read_edges
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import InvalidArgument, PreconditionFailed
from omnigraph.lang.near import near
from omnigraph.model.catalog import NodeType
from omnigraph.model.types import FLOATS, INTEGER_RANGES, Base, ScalarType, type_text
from omnigraph.model.version import Commit

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph

_TRIES = 5


@dataclass(frozen=True)
class Answer:
    """A value for each node; null where `known` says no."""

    values: Any
    rounds: int = 1
    known: Any = None


@dataclass(frozen=True)
class Algorithm:
    """`kind` is what its values are: "number", "count" or "label"."""

    run: Callable[..., Answer]
    kind: str
    direction: str
    undirected: bool = False
    options: tuple[str, ...] = ()
    nullable: bool = False


def _pagerank(network: Network, *, damping: float = 0.85, **options: Any) -> Answer:
    if not 0 <= damping < 1:
        raise InvalidArgument(f"`damping` is a share from 0 to below 1, not {damping!r}.")
    found = kernels.pagerank(network.count, network.src, network.dst, damping=damping, **options)
    return Answer(*found)


def _components(network: Network) -> Answer:
    return Answer(*kernels.connected_components(network.count, network.src, network.dst))


def _labels(network: Network, **options: int) -> Answer:
    return Answer(*kernels.label_propagation(network.count, network.src, network.dst, **options))


def _triangles(network: Network) -> Answer:
    return Answer(kernels.triangle_count(network.count, network.src, network.dst))


def _paths(network: Network, *, sources: Any = None) -> Answer:
    given = [sources] if isinstance(sources, str | tuple) else sources
    if not given:
        raise InvalidArgument("`shortest_paths` needs `sources`, the ids of one or more nodes.")
    found = network.find(given)
    distance, rounds = kernels.shortest_paths(network.count, network.src, network.dst, found)
    return Answer(distance, rounds, distance != UNREACHED)


def _degrees(network: Network) -> Answer:
    return Answer(kernels.degrees(network.count, network.src))


ALGORITHMS = {
    "pagerank": Algorithm(_pagerank, "number", "out", options=("damping", "tolerance", "rounds")),
    "connected_components": Algorithm(_components, "label", "both", undirected=True),
    "label_propagation": Algorithm(_labels, "label", "both", options=("rounds",)),
    "triangle_count": Algorithm(_triangles, "count", "both", undirected=True),
    "shortest_paths": Algorithm(_paths, "count", "out", options=("sources",), nullable=True),
    "degrees": Algorithm(_degrees, "count", "both"),
}
_ARROW = {"number": pa.float64(), "count": pa.int64(), "label": pa.string()}


@dataclass(frozen=True)
class AlgorithmResult:
    """A row for each node: `type`, `id` and `value`. `rounds` is how often all edges were looked
    at; `commit` is there if the values were written."""

    name: str
    table: pa.Table = field(repr=False)
    rounds: int
    commit: Commit | None = None

    def to_arrow(self) -> pa.Table:
        return self.table

    def to_pandas(self) -> Any:
        return self.table.to_pandas()

    def to_pylist(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.table.to_pylist()
        return found

    def to_dict(self) -> dict[Any, Any]:
        """Values by id, or by (type, id) if there are several types."""
        rows = self.to_pylist()
        if len({row["type"] for row in rows}) < 2:
            return {row["id"]: row["value"] for row in rows}
        return {(row["type"], row["id"]): row["value"] for row in rows}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self.table.num_rows)


@dataclass(frozen=True)
class AlgorithmCall:
    """What `Graph.algorithm` was asked for."""

    name: str
    edges: Edges
    direction: str | None
    ref: str | None
    branch: str
    write_to: str | None
    actor: str | None
    message: str | None
    options: Mapping[str, Any]


def run_algorithm(graph: Graph, call: AlgorithmCall) -> AlgorithmResult:
    algorithm = _find(call)
    if call.write_to is None:
        return _compute(graph, graph.snapshot(call.ref or call.branch), algorithm, call)[0]
    if call.ref is not None:
        raise InvalidArgument(
            "Values are written to the head of a branch: give `branch` or `ref`, not both."
        )
    for left in range(_TRIES - 1, -1, -1):
        snapshot = graph.snapshot(call.branch)
        targets = _targets(snapshot, algorithm, call)
        result, network, answer = _compute(graph, snapshot, algorithm, call)
        try:
            commit = _write(graph, snapshot, network, answer, algorithm, call, targets)
        except PreconditionFailed:
            if not left:
                raise
            continue  # a node may be gone by now, and what it was worth says nothing any more
        return AlgorithmResult(result.name, result.table, result.rounds, commit)
    raise AssertionError("unreachable")


def _find(call: AlgorithmCall) -> Algorithm:
    algorithm = ALGORITHMS.get(call.name)
    if algorithm is None:
        guess = near(call.name, list(ALGORITHMS))
        hint = f"Did you mean {guess!r}?" if guess else f"There are: {', '.join(ALGORITHMS)}."
        raise InvalidArgument(f"There is no algorithm {call.name!r}.", help=hint)
    for name in call.options:
        if name not in algorithm.options:
            known = ", ".join(algorithm.options) or "none"
            raise InvalidArgument(
                f"{call.name} has no option {name!r}.", help=f"Its options: {known}."
            )
    if algorithm.undirected and call.direction not in (None, "both"):
        raise InvalidArgument(f"{call.name} follows edges both ways, whatever they point to.")
    return algorithm


def _compute(
    graph: Graph, snapshot: Snapshot, algorithm: Algorithm, call: AlgorithmCall
) -> tuple[AlgorithmResult, Network, Answer]:
    edges = read_edges(snapshot.catalog, call.edges, call.direction or algorithm.direction)
    network = build_network(graph._session, snapshot, edges)  # noqa: SLF001
    answer = algorithm.run(network, **call.options)
    values = _column(network, algorithm, answer)
    types = [pa.array([kind.name] * len(ids), pa.string()) for kind, ids, _ in _parts(network)]
    none = pa.array([], pa.string())
    table = pa.table(
        {
            "type": pa.concat_arrays([none, *types]),
            "id": pa.concat_arrays([none, *network.ids]),
            "value": values,
        }
    )
    return AlgorithmResult(call.name, table, answer.rounds), network, answer


def _parts(network: Network) -> list[tuple[NodeType, pa.Array, np.ndarray]]:
    return network.parts(np.arange(network.count))


def _column(network: Network, algorithm: Algorithm, answer: Answer) -> pa.Array:
    if algorithm.kind == "label":
        return network.names().take(pa.array(answer.values)).cast(pa.string())
    mask = None if answer.known is None else ~answer.known
    return pa.array(answer.values, _ARROW[algorithm.kind], mask=mask)


# Writing


def _targets(snapshot: Snapshot, algorithm: Algorithm, call: AlgorithmCall) -> list[NodeType]:
    """The node types that get the property, all of which must have a fitting one."""
    edges = read_edges(snapshot.catalog, call.edges, call.direction or algorithm.direction)
    chosen = [snapshot.catalog.edge_names[name] for name in edges]
    names = {name for edge in chosen for name in (edge.source, edge.target)}
    kinds = [kind for kind in snapshot.catalog.nodes if kind.name in names]
    for kind in kinds:
        held = {p.name: p for p in kind.properties}.get(call.write_to or "")
        fitting = " or ".join(_fitting(algorithm))
        if held is None:
            raise InvalidArgument(
                f"{kind.name} has no property {call.write_to!r} to write {call.name} to.",
                help=f"Add it to the schema first: `{call.write_to}: {_fitting(algorithm)[0]}?`.",
            )
        if call.write_to in kind.key:
            raise InvalidArgument(f"`{call.write_to}` is part of the key of {kind.name}.")
        if type_text(held.type) not in _fitting(algorithm):
            raise InvalidArgument(
                f"`{call.write_to}` of {kind.name} is {type_text(held.type)}, but {call.name} "
                f"gives {fitting}."
            )
        if algorithm.nullable and not held.nullable:
            raise InvalidArgument(
                f"`{call.write_to}` of {kind.name} must be nullable: {call.name} has no value "
                "for some nodes."
            )
    return kinds


def _fitting(algorithm: Algorithm) -> Sequence[str]:
    if algorithm.kind == "label":
        return [type_text(ScalarType(Base.STRING))]
    floats = [type_text(ScalarType(base)) for base in sorted(FLOATS, reverse=True)]
    if algorithm.kind == "number":
        return floats
    whole = [base for base in (Base.I64, Base.U64, Base.I32, Base.U32) if base in INTEGER_RANGES]
    return [*(type_text(ScalarType(base)) for base in whole), *floats]


def _write(
    graph: Graph,
    snapshot: Snapshot,
    network: Network,
    answer: Answer,
    algorithm: Algorithm,
    call: AlgorithmCall,
    targets: Sequence[NodeType],
) -> Commit | None:
    """One commit for all types, on exactly the version that was computed on."""
    values = _column(network, algorithm, answer)
    assert call.write_to is not None
    with graph.transaction(
        branch=call.branch,
        actor=call.actor,
        message=call.message or f"{call.name} into {call.write_to}",
        if_commit=snapshot.commit.id,
    ) as tx:
        for place, (kind, ids, _) in enumerate(_parts(network)):
            if kind not in targets or not len(ids):
                continue
            start = network.starts[place]
            given = pa.table({"id": ids, call.write_to: values.slice(start, len(ids))})
            tx.upsert(kind.name, _with_keys(snapshot, kind, given))
    return tx.commit


def _with_keys(snapshot: Snapshot, kind: NodeType, given: pa.Table) -> pa.Table:
    """An id of a type with a key is made from the key, so that is given too."""
    if not kind.key:
        return given
    keys = snapshot.scan(kind.name, columns=["id", *kind.key]).read_all()
    places = pa.compute.index_in(given["id"], value_set=keys["id"].combine_chunks())
    for name in kind.key:
        given = given.append_column(name, keys[name].take(places))
    return given
