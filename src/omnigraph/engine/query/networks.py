"""Owns the result as a networkx graph: the nodes and edges that the match bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from omnigraph.engine.query.gather import chosen_frames
from omnigraph.engine.query.run import Run
from omnigraph.errors import InvalidArgument
from omnigraph.lang.gq.checked import EdgeKind, NodeKind, Variable
from omnigraph.model.catalog import EdgeType
from omnigraph.plan.query import Plan, plan_listing
from omnigraph.plan.query.logical import pattern_variables

if TYPE_CHECKING:
    import networkx as nx


def build_network(plan: Plan, start: Callable[[Plan], Run]) -> nx.MultiDiGraph:
    """Nodes are (type, id) with their properties. Edges are keyed by their id and carry `@type`,
    which no property can be called. A traversal without an edge variable binds no edge, so it adds
    none."""
    network = empty_network()
    for variable, numbers, run in _bound_entities(plan, start):
        numbers = np.unique(numbers[numbers >= 0])
        for kind in variable.kind.types:
            mine = numbers[run.entities.of_type(kind, numbers)]
            if isinstance(kind, EdgeType):
                objects = run.objects(EdgeKind((kind,)), mine).to_pylist()
                _add_edges(network, kind, objects, run, mine)
            else:
                for row in run.objects(NodeKind((kind,)), mine).to_pylist():
                    node = (kind.name, row.pop("@id"))
                    network.add_node(node)
                    network.nodes[node].update(row)  # not as keywords: users choose the names
    return network


def empty_network() -> nx.MultiDiGraph:
    try:
        import networkx as nx
    except ImportError:
        raise InvalidArgument(
            "networkx is not installed.", help="Install it: pip install networkx"
        ) from None
    return nx.MultiDiGraph()


def _add_edges(
    network: Any, kind: EdgeType, objects: list[dict[str, Any]], run: Run, numbers: np.ndarray
) -> None:
    positions = numbers - run.entities.rows(kind).base
    sources = run.entities.rows(kind).take("src", positions).to_pylist()
    targets = run.entities.rows(kind).take("dst", positions).to_pylist()
    for row, source, target in zip(objects, sources, targets, strict=True):
        ends = ((kind.source, source), (kind.target, target))
        key = network.add_edge(*ends, key=row.pop("@id"))
        network.edges[*ends, key].update(row | {"@type": kind.name})


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
