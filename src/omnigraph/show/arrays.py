"""Owns a subgraph as arrays: an edge index for each kind of edge, and features as numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeVar, get_args

import numpy as np

from omnigraph.errors import InvalidArgument
from omnigraph.show.parts import SubgraphEdge, SubgraphNode

EdgeKey = tuple[str, str, str]
"""The type at the source, the edge type, the type at the target."""
Number = Literal["float32", "float64"]
"""The width of the numbers in an array."""
_Item = TypeVar("_Item", SubgraphNode, SubgraphEdge)


@dataclass(frozen=True)
class NodeArrays:
    """`x` has a row for each node, in the order of `ids`, and a column for each of `features`; a
    vector is several columns, `meaning[0]` and so on."""

    ids: tuple[str, ...]
    features: tuple[str, ...]
    x: np.ndarray


@dataclass(frozen=True)
class EdgeArrays:
    """`index` has two rows: for each edge the place of its source and of its target among the
    nodes of their types. `x` has a row for each edge."""

    ids: tuple[str, ...]
    index: np.ndarray
    features: tuple[str, ...]
    x: np.ndarray


@dataclass(frozen=True)
class GraphArrays:
    """Nodes by type, edges by (type of source, type, type of target). `torch.from_numpy` takes each
    array as it is."""

    nodes: Mapping[str, NodeArrays]
    edges: Mapping[EdgeKey, EdgeArrays]


def make_arrays(
    found_nodes: Sequence[SubgraphNode],
    found_edges: Sequence[SubgraphEdge],
    features: Mapping[str, Sequence[str]] | None,
    dtype: Number,
) -> GraphArrays:
    if dtype not in get_args(Number):
        raise InvalidArgument(f"dtype is 'float32' or 'float64', not {dtype!r}.")
    nodes: dict[str, list[SubgraphNode]] = {}
    for node in found_nodes:
        nodes.setdefault(node.type, []).append(node)
    edges: dict[EdgeKey, list[SubgraphEdge]] = {}
    for edge in found_edges:
        edges.setdefault((edge.source[0], edge.type, edge.target[0]), []).append(edge)
    chosen = features or {}
    unknown = {*chosen} - {*nodes, *(key[1] for key in edges)}
    if unknown:
        raise InvalidArgument(f"There is nothing of the type {min(unknown)!r} in this subgraph.")
    places = {node.end: place for each in nodes.values() for place, node in enumerate(each)}
    return GraphArrays(
        {kind: _node_arrays(each, chosen.get(kind), dtype) for kind, each in nodes.items()},
        {key: _edge_arrays(each, places, chosen.get(key[1]), dtype) for key, each in edges.items()},
    )


def _node_arrays(nodes: list[SubgraphNode], wanted: Sequence[str] | None, dtype: str) -> NodeArrays:
    names, x = _numbers(nodes, wanted, dtype)
    return NodeArrays(tuple(node.id for node in nodes), names, x)


def _edge_arrays(
    edges: list[SubgraphEdge],
    places: Mapping[tuple[str, str], int],
    wanted: Sequence[str] | None,
    dtype: str,
) -> EdgeArrays:
    names, x = _numbers(edges, wanted, dtype)
    ends = [(places[edge.source], places[edge.target]) for edge in edges]
    index = np.array(ends, np.int64).reshape(-1, 2).T
    return EdgeArrays(tuple(edge.id for edge in edges), np.ascontiguousarray(index), names, x)


def _numbers(
    items: Sequence[_Item], wanted: Sequence[str] | None, dtype: str
) -> tuple[tuple[str, ...], np.ndarray]:
    known = dict.fromkeys(name for item in items for name in item.data)
    names: list[str] = []
    columns: list[np.ndarray] = []
    for name in known if wanted is None else wanted:
        if name not in known:
            raise InvalidArgument(f"{items[0].type} has no property {name!r} here.")
        values = [item.data.get(name) for item in items]
        width = _width(values)
        if width is None:
            if wanted is not None:
                raise InvalidArgument(
                    f"{items[0].type}.{name} holds no numbers, so it is no feature.",
                    help="Name properties that are numbers, booleans or vectors.",
                )
            continue
        empty = [np.nan] * max(width, 1)
        rows = [empty if value is None else value if width else [value] for value in values]
        columns.append(np.array(rows, dtype))
        names += [f"{name}[{place}]" for place in range(width)] if width else [name]
    x = np.hstack(columns) if columns else np.empty((len(items), 0), dtype)
    return tuple(names), np.ascontiguousarray(x)


def _width(values: list[Any]) -> int | None:
    """0 for single numbers, the length of vectors, None for anything else, and for nothing."""
    there = [value for value in values if value is not None]
    if not there:
        return None
    if all(isinstance(value, bool | int | float) for value in there):
        return 0
    sizes = {len(value) if isinstance(value, list | tuple) else -1 for value in there}
    if len(sizes) != 1 or sizes & {-1, 0}:
        return None
    flat = all(isinstance(part, int | float) for value in there for part in value)
    return sizes.pop() if flat else None
