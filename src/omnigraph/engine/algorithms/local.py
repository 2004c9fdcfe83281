"""Owns running an algorithm in this process, over arrays of the snapshot. A transaction writes the
result."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.algorithms import kernels
from omnigraph.engine.algorithms.kernels import UNREACHED
from omnigraph.engine.algorithms.network import Network, build_network
from omnigraph.engine.algorithms.registry import VALUES, find_algorithm
from omnigraph.engine.algorithms.result import Target
from omnigraph.engine.algorithms.scope import AlgorithmScope
from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.session import Session
from omnigraph.engine.write.transaction import Transaction
from omnigraph.model.catalog import NodeType
from omnigraph.model.version import Commit


@dataclass(frozen=True)
class Answer:
    """A value for each node, null where `known` is False."""

    values: Any
    rounds: int = 1
    known: Any = None


def _pagerank(network: Network, *, sources: list[str | tuple[str, str]], **options: Any) -> Answer:
    home = network.find(sources) if sources else None
    return Answer(*kernels.pagerank(network.count, network.src, network.dst, home, **options))


def _components(network: Network) -> Answer:
    return Answer(*kernels.connected_components(network.count, network.src, network.dst))


def _labels(network: Network, **options: int) -> Answer:
    return Answer(*kernels.label_propagation(network.count, network.src, network.dst, **options))


def _triangles(network: Network) -> Answer:
    return Answer(kernels.triangle_count(network.count, network.src, network.dst))


def _cores(network: Network) -> Answer:
    return Answer(*kernels.core_numbers(network.count, network.src, network.dst))


def _paths(network: Network, *, sources: list[str | tuple[str, str]]) -> Answer:
    found = network.find(sources)
    distance, rounds = kernels.shortest_paths(network.count, network.src, network.dst, found)
    return Answer(distance, rounds, distance != UNREACHED)


def _degrees(network: Network) -> Answer:
    return Answer(kernels.degrees(network.count, network.src))


_RUNS: Mapping[str, Callable[..., Answer]] = {
    "pagerank": _pagerank,
    "connected_components": _components,
    "label_propagation": _labels,
    "triangle_count": _triangles,
    "shortest_paths": _paths,
    "core_numbers": _cores,
    "degrees": _degrees,
}


@dataclass(frozen=True)
class LocalValues:
    """Values in memory."""

    session: Session
    snapshot: GraphView
    table: pa.Table
    rounds: int
    frame: Any = None

    def read(self) -> pa.Table:
        return self.table

    def write(self, target: Target) -> Commit | None:
        with Transaction(self.session, self.snapshot.branch, target.commit) as tx:
            for kind in target.kinds:
                rows = self.table.filter(pc.equal(self.table["type"], kind.name))
                if rows.num_rows:
                    given = rows.select(["id", "value"]).rename_columns(["id", target.property])
                    tx.upsert(kind.name, _with_keys(self.snapshot, kind, given))
        return tx.commit


def compute_here(
    session: Session,
    snapshot: GraphView,
    scope: AlgorithmScope,
    name: str,
    options: Mapping[str, Any],
) -> LocalValues:
    network = build_network(session, snapshot, scope)
    answer = _RUNS[name](network, **options)
    kind = find_algorithm(name).kind
    if kind == "label":
        values = network.names().take(pa.array(answer.values)).cast(pa.string())
    else:
        mask = None if answer.known is None else ~answer.known
        values = pa.array(answer.values, VALUES[kind], mask=mask)
    parts = network.parts(np.arange(network.count))
    none = pa.array([], pa.string())
    types = [pa.array([kind.name] * len(ids), pa.string()) for kind, ids, _ in parts]
    table = pa.table(
        {
            "type": pa.concat_arrays([none, *types]),
            "id": pa.concat_arrays([none, *network.ids]),
            "value": values,
        }
    )
    return LocalValues(session, snapshot, table, answer.rounds)


def _with_keys(snapshot: GraphView, kind: NodeType, given: pa.Table) -> pa.Table:
    """For a type with a key, the key is added to the rows, because ids are made from it."""
    if not kind.key:
        return given
    keys = snapshot.scan(kind.name, columns=["id", *kind.key]).read_all()
    places = pc.index_in(given["id"], value_set=keys["id"].combine_chunks())
    for name in kind.key:
        given = given.append_column(name, keys[name].take(places))
    return given
