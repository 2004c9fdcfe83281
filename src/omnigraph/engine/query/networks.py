"""Owns the subgraph of a result: the nodes and edges that the match bound."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from omnigraph.engine.query.gather import chosen_frames
from omnigraph.engine.query.run import Run
from omnigraph.lang.gq.checked import EdgeKind, NodeKind, Variable
from omnigraph.model.catalog import EdgeType, NodeType
from omnigraph.model.types import VectorType
from omnigraph.plan.query import Plan, plan_listing
from omnigraph.plan.query.logical import pattern_variables
from omnigraph.show.parts import SubgraphEdge, SubgraphNode
from omnigraph.show.subgraph import Subgraph


def build_network(plan: Plan, start: Callable[[Plan], Run], *, vectors: bool) -> Subgraph:
    """A traversal without an edge variable binds no edge, so it adds none."""
    nodes: list[SubgraphNode] = []
    edges: list[SubgraphEdge] = []
    for variable, numbers, run in _bound_entities(plan, start):
        numbers = np.unique(numbers[numbers >= 0])
        for kind in variable.kind.types:
            mine = numbers[run.entities.of_type(kind, numbers)]
            if isinstance(kind, EdgeType):
                edges += _edges(kind, run, mine)
            else:
                nodes += _nodes(kind, run, mine, vectors=vectors)
    return Subgraph(nodes, edges)


def _nodes(
    kind: NodeType, run: Run, numbers: np.ndarray, *, vectors: bool
) -> Iterator[SubgraphNode]:
    rows = run.objects(NodeKind((kind,)), numbers).to_pylist()
    held = [p.name for p in kind.properties if isinstance(p.type, VectorType)] if vectors else []
    reader = run.entities.rows(kind)
    for name in held:
        found = reader.take(name, numbers - reader.base).to_pylist()
        rows = [row | {name: value} for row, value in zip(rows, found, strict=True)]
    for row in rows:
        yield SubgraphNode(kind.name, row.pop("@id"), row)


def _edges(kind: EdgeType, run: Run, numbers: np.ndarray) -> Iterator[SubgraphEdge]:
    rows = run.objects(EdgeKind((kind,)), numbers).to_pylist()
    reader = run.entities.rows(kind)
    ends = (reader.take(name, numbers - reader.base).to_pylist() for name in ("src", "dst"))
    for row, source, target in zip(rows, *ends, strict=True):
        key = row.pop("@id")
        yield SubgraphEdge(kind.name, key, (kind.source, source), (kind.target, target), row)


def _bound_entities(
    plan: Plan, start: Callable[[Plan], Run]
) -> list[tuple[Variable, np.ndarray, Run]]:
    """The entities of each variable, from a plan that keeps them all. Edges come last."""
    wanted = list(pattern_variables(plan.query.pattern))
    listing = plan_listing(plan)
    run = start(listing)
    found: dict[int, list[np.ndarray]] = {v.id: [np.array([], np.int64)] for v in wanted}
    for frame in chosen_frames(run, listing, run.frames()):
        for key, parts in found.items():
            parts.append(np.unique(frame.columns[key]))
    ordered = sorted(wanted, key=lambda v: isinstance(v.kind, EdgeKind))
    return [(v, np.concatenate(found[v.id]), run) for v in ordered]
