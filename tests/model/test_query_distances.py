"""Bounded traversals reach what networkx says is that far."""

from __future__ import annotations

from random import Random

import networkx as nx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.model.query_data import Dataset
from tests.model.query_engine import EngineExecutor
from tests.model.query_executors import OracleExecutor

SCHEMA = "node N { name: String @key }\nedge E: N -> N\nedge F: N -> N\n"
HOPS = {"e": (("E",), True), "<e>": (("E",), False), "(e|f)": (("E", "F"), True)}


def draw_graph(chance: Random, nodes: int, edges: int) -> Dataset:
    """Self-loops and parallel edges come by themselves."""
    names = [f"n{number}" for number in range(nodes)]
    data = Dataset(SCHEMA, {"N": [{"id": name, "name": name} for name in names]})
    for kind in ("E", "F"):
        data.edges[kind] = [
            {"id": f"{kind}{i}", "src": chance.choice(names), "dst": chance.choice(names)}
            for i in range(edges)
        ]
    return data


def reached(data: Dataset, hop: str, low: int, high: int) -> set[tuple[str, str]]:
    """By networkx; a node is at distance 0 from itself, and at 1 by its own loop."""
    kinds, is_directed = HOPS[hop]
    graph = nx.DiGraph() if is_directed else nx.Graph()
    graph.add_nodes_from(row["id"] for row in data.nodes["N"])
    graph.add_edges_from((e["src"], e["dst"]) for kind in kinds for e in data.edges[kind])
    found = {
        (start, stop)
        for start, distances in nx.all_pairs_shortest_path_length(graph, cutoff=high)
        for stop, distance in distances.items()
        if low <= distance <= high
    }
    loops = {(node, node) for node in nx.nodes_with_selfloops(graph)}
    return found | loops if low == 1 else found


def text_of(hop: str, low: int, high: int) -> str:
    return f"match {{ $a: N  $a {hop}{{{low},{high}}} $b }} return {{ $a.@id, $b.@id }}"


@settings(max_examples=25)
@given(
    st.randoms(use_true_random=False),
    st.sampled_from(list(HOPS)),
    st.integers(0, 3),
    st.integers(0, 4),
)
def test_the_oracle_measures_as_networkx_does(
    chance: Random, hop: str, low: int, more: int
) -> None:
    data = draw_graph(chance, chance.randint(1, 7), chance.randint(0, 9))
    rows = OracleExecutor(data).run(text_of(hop, low, low + more), {})
    assert len(rows) == len({tuple(row.values()) for row in rows})
    assert {(r["a.@id"], r["b.@id"]) for r in rows} == reached(data, hop, low, low + more)


@pytest.mark.parametrize("kernel", ["indexed", "adjacency"])
@pytest.mark.parametrize("edges", [20, 60, 200])
def test_the_engine_measures_as_networkx_does(edges: int, kernel: str) -> None:
    """Sparse, so that ways are long; and dense, so that frontiers are wide."""
    data = draw_graph(Random(edges), 60, edges)
    executor = EngineExecutor(data, kernel=kernel)
    try:
        for hop in HOPS:
            for low, high in [(0, 0), (0, 3), (1, 1), (1, 4), (2, 2), (3, 1000)]:
                rows = executor.run(text_of(hop, low, high), {})
                found = [(row["a.@id"], row["b.@id"]) for row in rows]
                assert len(found) == len(set(found))
                assert set(found) == reached(data, hop, low, high), (hop, low, high)
    finally:
        executor.close()


@pytest.mark.parametrize("hop", HOPS)
def test_measures_differ_between_hops(hop: str) -> None:
    """Otherwise the comparison above would say little."""
    data = draw_graph(Random(1), 7, 6)
    others = [reached(data, other, 1, 3) for other in HOPS if other != hop]
    assert reached(data, hop, 1, 3) not in others
