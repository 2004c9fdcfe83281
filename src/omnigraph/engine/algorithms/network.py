"""Owns the network that an algorithm runs on: nodes and edges of some types of a snapshot, as
numbers, in an order that does not depend on how they are stored."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.algorithms.kernels import Ints
from omnigraph.engine.algorithms.scope import AlgorithmScope
from omnigraph.engine.columns import Columns
from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.query.adjacency.arrays import Adjacency
from omnigraph.engine.query.adjacency.cache import Adjacencies
from omnigraph.engine.query.entities import Entities
from omnigraph.engine.query.rows import TypeRows
from omnigraph.engine.session import Session
from omnigraph.errors import InvalidArgument, NotFound
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.store.tables import ADDRESS

_OUT = -1
"""The number of a node that takes no part."""


@dataclass(frozen=True)
class Network:
    """Nodes are numbered by type, in the order of their names, and within a type by id. Each edge
    appears in the direction in which it is followed, and twice if it is followed both ways."""

    kinds: tuple[NodeType, ...]
    starts: tuple[int, ...]
    ids: tuple[pa.Array, ...]
    src: Ints
    dst: Ints

    @property
    def count(self) -> int:
        return self.starts[-1]

    def parts(self, values: np.ndarray) -> list[tuple[NodeType, pa.Array, np.ndarray]]:
        """The values of all nodes by type, with their ids."""
        return [
            (kind, ids, values[start:stop])
            for kind, ids, start, stop in zip(
                self.kinds, self.ids, self.starts[:-1], self.starts[1:], strict=True
            )
        ]

    def names(self) -> pa.Array:
        """The name of each node: its id, preceded by its type if there are several types."""
        if not self.kinds:
            return pa.array([], pa.string())
        if len(self.kinds) == 1:
            return self.ids[0]
        parts = [
            pc.binary_join_element_wise(kind.name, ids, ":")
            for kind, ids in zip(self.kinds, self.ids, strict=True)
        ]
        return pa.concat_arrays(parts)

    def find(self, names: Sequence[str | tuple[str, str]]) -> Ints:
        """Finds nodes by id, or by (type, id) where several types have the id."""
        found = []
        for name in names:
            wanted, text = name if isinstance(name, tuple) else (None, name)
            places = [
                start + int(place.as_py())
                for kind, ids, start in zip(self.kinds, self.ids, self.starts, strict=False)
                if wanted in (None, kind.name)
                and (place := pc.index(ids, pa.scalar(text, pa.string()))).as_py() >= 0
            ]
            if not places:
                raise NotFound(f"There is no node {name!r} among the nodes of these edges.")
            if len(places) > 1:
                raise InvalidArgument(f"Several types have a node {text!r}: give (type, id).")
            found += places
        return np.array(found, dtype=np.int64)


def build_network(session: Session, snapshot: GraphView, scope: AlgorithmScope) -> Network:
    entities = Entities(snapshot.view, Columns.shared_by(session), snapshot.io)
    ids, ranks, starts = [], {}, [0]
    for kind in scope.nodes:
        rows = entities.rows(kind)
        live = _kept(snapshot, scope, rows)
        held = rows.take("id", live).cast(pa.string())
        order = pc.sort_indices(held).to_numpy()
        place = np.full(rows.capacity, _OUT, dtype=np.int64)
        place[live[order]] = np.arange(len(order)) + starts[-1]
        ids.append(held.take(pa.array(order)))
        ranks[kind.name] = place
        starts.append(starts[-1] + len(order))
    src, dst = [np.empty(0, dtype=np.int64)], [np.empty(0, dtype=np.int64)]
    for edge, way in scope.edges:
        here, there = _ends(session, snapshot, scope, entities, edge, ranks)
        if way in ("out", "both"):
            src.append(here)
            dst.append(there)
        if way in ("in", "both"):
            other = here != there if way == "both" else np.ones(len(here), dtype=bool)
            src.append(there[other])  # a loop followed both ways is still one edge
            dst.append(here[other])
    return Network(scope.nodes, tuple(starts), tuple(ids), np.concatenate(src), np.concatenate(dst))


def _kept(snapshot: GraphView, scope: AlgorithmScope, rows: TypeRows) -> Ints:
    """The positions of the rows that take part."""
    condition = scope.condition(snapshot.catalog, rows.kind)
    if condition is None:
        live: Ints = rows.live
        return live
    batches = condition.rows(rows.view, ["id"], snapshot.io)
    none = np.array([], np.uint64)
    found = np.concatenate([none, *(batch.column(ADDRESS).to_numpy() for batch in batches)])
    kept: Ints = np.sort(rows.positions_of(found))
    return kept


def _ends(
    session: Session,
    snapshot: GraphView,
    scope: AlgorithmScope,
    entities: Entities,
    edge: EdgeType,
    ranks: Mapping[str, np.ndarray],
) -> tuple[Ints, Ints]:
    """Both ends of the edges that take part. An edge takes part if both of its nodes do."""
    catalog, ledger = snapshot.catalog, snapshot.io
    source = entities.rows(catalog.node_names[edge.source])
    target = entities.rows(catalog.node_names[edge.target])
    adjacencies = Adjacencies.shared_by(session)
    rows = entities.rows(edge)
    adjacency: Adjacency = adjacencies.of(rows, source, target, ledger)
    filtered = edge.table_key in scope.where
    chosen = _kept(snapshot, scope, rows) if filtered else adjacency.live
    ends = []
    for numbers, node in ((adjacency.src, source), (adjacency.dst, target)):
        positions = adjacencies.position_of(node, ledger)[numbers[chosen]]
        ends.append(ranks[node.kind.name][positions])
    here, there = ends
    both = (here != _OUT) & (there != _OUT)
    return (here, there) if both.all() else (here[both], there[both])
