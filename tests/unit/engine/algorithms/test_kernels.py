"""The algorithms against networkx, and against themselves written out plainly."""

from __future__ import annotations

from collections import Counter

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from networkx.algorithms.link_analysis.pagerank_alg import _pagerank_python

from omnigraph.engine.algorithms import kernels
from tests.unit.engine.algorithms.oracle import solve_pagerank


@st.composite
def networks(draw: st.DrawFn) -> tuple[int, list[tuple[int, int]]]:
    count = draw(st.integers(1, 12))
    node = st.integers(0, count - 1)
    return count, draw(st.lists(st.tuples(node, node), max_size=40))


def arrays(edges: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
    pairs = np.array(edges, dtype=np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def network(count: int, edges: list[tuple[int, int]]) -> nx.MultiDiGraph:
    made = nx.MultiDiGraph()
    made.add_nodes_from(range(count))
    made.add_edges_from(edges)
    return made


@given(networks(), st.sampled_from([0.5, 0.85, 0.99]))
def test_pagerank_is_what_a_walker_settles_to(
    drawn: tuple[int, list[tuple[int, int]]], damping: float
) -> None:
    count, edges = drawn
    rounds = 5000
    ranks, _ = kernels.pagerank(
        count, *arrays(edges), damping=damping, tolerance=1e-13, rounds=rounds
    )
    expected = solve_pagerank(network(count, edges), damping)
    assert ranks.tolist() == pytest.approx([expected[n] for n in range(count)], abs=1e-9)
    assert ranks.sum() == pytest.approx(1)


@given(networks(), st.data())
def test_ranks_near_some_nodes_are_those_of_networkx(
    drawn: tuple[int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    count, edges = drawn
    node = st.integers(0, count - 1)
    home = data.draw(st.lists(node, min_size=1, max_size=3))
    ranks, _ = kernels.pagerank(count, *arrays(edges), np.array(home), tolerance=1e-13, rounds=5000)
    # networkx has one edge between two nodes, with a weight.
    weighted = nx.DiGraph()
    weighted.add_nodes_from(range(count))
    for (a, b), ways in Counter(edges).items():
        weighted.add_edge(a, b, weight=ways)
    expected = _pagerank_python(
        weighted, personalization=dict.fromkeys(home, 1), tol=1e-13, max_iter=9999
    )
    assert ranks.tolist() == pytest.approx([expected[n] for n in range(count)], abs=1e-8)


@given(networks())
def test_core_numbers_are_those_of_networkx(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    count, edges = drawn
    plain = nx.Graph(network(count, edges))
    plain.remove_edges_from(list(nx.selfloop_edges(plain)))
    cores, _ = kernels.core_numbers(count, *arrays(edges))
    expected = nx.core_number(plain)
    assert cores.tolist() == [expected[n] for n in range(count)]


def test_core_numbers_of_a_large_graph_are_those_of_networkx() -> None:
    plain = nx.barabasi_albert_graph(2000, 5, seed=3)
    plain.add_edges_from((a, b) for a in range(30) for b in range(a))
    cores, _ = kernels.core_numbers(2000, *arrays(list(plain.edges)))
    expected = nx.core_number(plain)
    assert cores.tolist() == [expected[n] for n in range(2000)]
    assert cores.max() == 29


@given(networks())
def test_components_are_those_of_networkx(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    count, edges = drawn
    labels, _ = kernels.connected_components(count, *arrays(edges))
    expected = {
        node: min(part)
        for part in nx.weakly_connected_components(network(count, edges))
        for node in part
    }
    assert labels.tolist() == [expected[n] for n in range(count)]


def test_a_long_path_is_one_component_after_few_rounds() -> None:
    count = 100_000
    order = np.random.default_rng(7).permutation(count)
    labels, rounds = kernels.connected_components(count, order[:-1], order[1:])
    assert not labels.any()
    assert rounds < 40


@given(networks())
def test_triangles_are_those_of_networkx(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    count, edges = drawn
    plain = nx.Graph(network(count, edges))
    plain.remove_edges_from(list(nx.selfloop_edges(plain)))
    expected = nx.triangles(plain)
    found = kernels.triangle_count(count, *arrays(edges))
    assert found.tolist() == [expected[n] for n in range(count)]


def test_triangles_are_counted_in_parts_too(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = nx.gnm_random_graph(60, 500, seed=3)
    monkeypatch.setattr(kernels, "_AT_ONCE", 50)
    found = kernels.triangle_count(60, *arrays(list(plain.edges)))
    assert found.tolist() == [nx.triangles(plain)[n] for n in range(60)]


@given(networks(), st.data())
def test_distances_are_those_of_networkx(
    drawn: tuple[int, list[tuple[int, int]]], data: st.DataObject
) -> None:
    count, edges = drawn
    sources = data.draw(st.sets(st.integers(0, count - 1), min_size=1))
    found, _ = kernels.shortest_paths(count, *arrays(edges), np.array(sorted(sources)))
    lengths = nx.multi_source_dijkstra_path_length(network(count, edges), sources, weight=None)
    expected = [lengths.get(n, kernels.UNREACHED) for n in range(count)]
    assert found.tolist() == expected


@given(networks(), st.integers(1, 6))
def test_labels_spread_as_told(drawn: tuple[int, list[tuple[int, int]]], rounds: int) -> None:
    count, edges = drawn
    labels = list(range(count))
    for _ in range(rounds):
        votes = [Counter[int]() for _ in range(count)]
        for start, end in edges:
            votes[end][labels[start]] += 1
        labels = [
            min(v, key=lambda label: (-v[label], label)) if v else labels[n]
            for n, v in enumerate(votes)
        ]
    found, _ = kernels.label_propagation(count, *arrays(edges), rounds=rounds)
    assert found.tolist() == labels


@given(networks())
def test_degrees_count_parallel_edges(drawn: tuple[int, list[tuple[int, int]]]) -> None:
    count, edges = drawn
    found = kernels.degrees(count, arrays(edges)[0])
    expected = network(count, edges).out_degree()
    assert found.tolist() == [expected[n] for n in range(count)]
