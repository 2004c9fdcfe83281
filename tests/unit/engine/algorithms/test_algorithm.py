"""Algorithms on graphs: which edges are followed, which nodes there are, values as properties."""

from __future__ import annotations

from pathlib import Path

import networkx as nx
import pytest

import omnigraph
from omnigraph import Graph, runtime
from omnigraph.errors import InvalidArgument, InvalidQuery, NotFound, TypeNotFound
from omnigraph.settings import Settings
from tests.contract.graphs import rows
from tests.unit.engine.algorithms.oracle import solve_pagerank

SCHEMA = """
node Person { name: String @key  rank: F64?  group: String?  hops: I64?  far: I32 @default(0) }
node Paper { title: String  rank: F64?  group: String? }
edge Knows: Person -> Person { since: I32? }
edge Wrote: Person -> Paper
"""
EDGES = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("c", "d"), ("e", "e")]


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    settings = Settings(durability="relaxed")
    graph = omnigraph.init(str(tmp_path / "g"), schema=SCHEMA, settings=settings)
    with graph.transaction() as tx:
        tx.append("Person", [{"name": name} for name in "gfedcba"])
        tx.append("Knows", [{"from": s, "to": e} for s, e in EDGES])
        tx.append("Paper", [{"id": "p", "title": "t"}, {"id": "a", "title": "u"}])
        tx.append("Wrote", [{"from": "f", "to": "p"}, {"from": "a", "to": "a"}])
    return graph


def test_ranks_are_those_of_the_network(g: Graph) -> None:
    found = g.algorithm("pagerank", edges="Knows")
    network = nx.MultiDiGraph()
    network.add_nodes_from("abcdefg")
    network.add_edges_from(EDGES)
    assert found.to_dict() == pytest.approx(solve_pagerank(network), abs=1e-8)
    back = g.algorithm("pagerank", edges="Knows", direction="in").to_dict()
    assert back == pytest.approx(solve_pagerank(network.reverse()), abs=1e-8)
    assert found.rounds > 1


def test_edges_may_be_of_several_types_each_in_its_direction(g: Graph) -> None:
    groups = g.algorithm("connected_components").to_dict()
    assert groups["Person", "d"] == "Paper:a"
    assert groups["Person", "a"] == "Paper:a"  # another node than the person of that id
    assert groups["Paper", "p"] == groups["Person", "f"] == "Paper:p"
    assert groups["Person", "g"] == "Person:g"
    hops = g.algorithm(
        "shortest_paths", edges={"Knows": "in", "Wrote": "out"}, sources=[("Person", "b")]
    ).to_dict()
    assert (hops["Person", "a"], hops["Paper", "a"], hops["Person", "d"]) == (1, 2, None)
    degrees = g.algorithm("degrees", edges=["Knows"]).to_dict()
    assert degrees == {"a": 2, "b": 2, "c": 4, "d": 2, "e": 1, "f": 0, "g": 0}
    assert g.algorithm("triangle_count", edges="Knows").to_dict()["a"] == 1


def test_values_become_a_property_in_one_commit(g: Graph) -> None:
    before = g.snapshot().version
    result = g.algorithm("pagerank", write_to="rank", actor="me")
    assert result.commit is not None
    assert (g.snapshot().version, g.snapshot().commit.id) == (before + 1, result.commit.id)
    assert result.commit.actor == "me"
    held = {("Person", r["name"]): r["rank"] for r in rows(g, "Person")}
    held |= {("Paper", r["id"]): r["rank"] for r in rows(g, "Paper")}
    assert held == result.to_dict()
    g.create_branch("try")
    g.branch("try").algorithm("connected_components", edges="Knows", write_to="group")
    assert {r["group"] for r in rows(g, "Person", ref="try")} == {"a", "e", "f", "g"}
    assert {r["group"] for r in rows(g, "Person")} == {None}
    g.algorithm("shortest_paths", edges="Knows", sources="a", write_to="hops")
    assert {r["name"]: r["hops"] for r in rows(g, "Person")}["d"] == 3
    assert g.at("main~1").algorithm("degrees", edges="Knows").to_dict()["c"] == 4


def test_conditions_leave_nodes_and_edges_out(g: Graph) -> None:
    with g.transaction() as tx:
        tx.append("Knows", [{"from": "a", "to": "g", "since": 1990}])
        tx.append("Knows", [{"from": "g", "to": "f", "since": 2005}])
    since = g.algorithm("degrees", edges="Knows", where="since >= 2000").to_dict()
    assert since == {"a": 0, "b": 0, "c": 0, "d": 0, "e": 0, "f": 1, "g": 1}
    # A test that Lance cannot answer, and nodes that are not there at all.
    some = g.algorithm(
        "connected_components",
        where={"Person": 'name != "c" and not (name starts_with "d")', "Wrote": "false"},
    ).to_dict()
    assert some == {
        ("Paper", "a"): "Paper:a",
        ("Paper", "p"): "Paper:p",
        ("Person", "a"): "Person:a",
        ("Person", "b"): "Person:a",
        ("Person", "e"): "Person:e",
        ("Person", "f"): "Person:a",
        ("Person", "g"): "Person:a",
    }
    g.algorithm("degrees", edges="Knows", where={"Person": 'name in ["a", "b"]'}, write_to="hops")
    held = {r["name"]: r["hops"] for r in rows(g, "Person")}
    assert held == {"a": 1, "b": 1, "c": None, "d": None, "e": None, "f": None, "g": None}
    with pytest.raises(NotFound, match="no node 'c'"):
        g.algorithm("shortest_paths", edges="Knows", sources="c", where={"Person": 'name = "a"'})


def test_deleted_nodes_and_edges_are_not_there(g: Graph) -> None:
    g.mutate('query q() { delete Person where name = "c" }')
    found = g.algorithm("degrees", edges="Knows").to_dict()
    assert found == {"a": 1, "b": 1, "d": 0, "e": 1, "f": 0, "g": 0}


def test_a_node_that_goes_meanwhile_does_not_come_back(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[int] = []

    def intrude(point: str) -> None:
        if point == "staged" and not done:
            done.append(1)
            g.mutate('query q() { delete Person where name = "d" }')

    monkeypatch.setattr(runtime, "on_reach", intrude)
    g.algorithm("degrees", edges="Knows", write_to="hops")
    assert done
    assert {r["name"]: r["hops"] for r in rows(g, "Person")} == {
        "a": 2,
        "b": 2,
        "c": 2,
        "e": 1,
        "f": 0,
        "g": 0,
    }


def test_what_cannot_be_done_is_said(g: Graph) -> None:
    head = g.snapshot().commit.id
    for error, message, options in [
        (InvalidArgument, "no algorithm 'pagerang'.*Did you mean 'pagerank'", {"name": "pagerang"}),
        (InvalidArgument, "has no option 'damp'", {"name": "pagerank", "damp": 1}),
        (InvalidArgument, "`damping` is a share", {"name": "pagerank", "damping": 1.5}),
        (InvalidArgument, "from 1 on, not 0", {"name": "label_propagation", "rounds": 0}),
        (InvalidArgument, "an id or a pair", {"name": "shortest_paths", "sources": [3]}),
        (InvalidArgument, "`engine` is one of", {"name": "degrees", "engine": "dask"}),
        (InvalidArgument, "which edges it is about", {"name": "degrees", "where": "since > 1"}),
        (
            InvalidArgument,
            "none of the types.*Did you mean 'Knows'",
            {"name": "degrees", "where": {"Know": "since > 1"}},
        ),
        (
            InvalidQuery,
            "does not fit Knows: .*no property `sinc`",
            {"name": "degrees", "edges": "Knows", "where": "sinc > 1"},
        ),
        (InvalidArgument, "both ways", {"name": "triangle_count", "direction": "in"}),
        (InvalidArgument, "'out', 'in' or 'both'", {"name": "degrees", "edges": {"Knows": "up"}}),
        (TypeNotFound, "no edge type 'Know'", {"name": "degrees", "edges": "Know"}),
        (InvalidArgument, "needs `sources`", {"name": "shortest_paths"}),
        (NotFound, "no node 'zz'", {"name": "shortest_paths", "sources": ["zz"]}),
        (InvalidArgument, "Several types", {"name": "shortest_paths", "sources": ["a"]}),
        (InvalidArgument, "has no property 'x'.*x: F64", {"name": "pagerank", "write_to": "x"}),
        (InvalidArgument, "is String, but", {"name": "pagerank", "write_to": "group"}),
        (
            InvalidArgument,
            "must be nullable",
            {"name": "shortest_paths", "edges": "Knows", "sources": "a", "write_to": "far"},
        ),
        (
            InvalidArgument,
            "part of the key",
            {"name": "connected_components", "edges": "Knows", "write_to": "name"},
        ),
    ]:
        with pytest.raises(error, match=message):
            g.algorithm(**options)  # type: ignore[arg-type]
    assert g.snapshot().commit.id == head
