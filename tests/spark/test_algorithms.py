"""Algorithms on Spark: the values of the arrays of one process, and of networkx."""

from __future__ import annotations

import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import networkx as nx
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidArgument, NotFound
from omnigraph.settings import Settings
from tests.contract.graphs import rows

SCHEMA = """
node Person { name: String @key  age: I32?  rank: F64?  group: String?  hops: I32? }
node Paper { title: String  rank: F32?  group: String?  hops: I64? }
edge Knows: Person -> Person { since: I32? }
edge Wrote: Person -> Paper
"""
CALLS: list[dict[str, Any]] = [
    {"name": "degrees", "where": {"Knows": "since > 2005", "Paper": 'title != "t3"'}},
    {"name": "connected_components"},
]
LONGER: list[dict[str, Any]] = [
    {"name": "degrees", "edges": "Knows"},
    {"name": "core_numbers"},
    {"name": "core_numbers", "edges": "Knows", "where": {"Person": "age < 30"}},
    {"name": "pagerank", "edges": "Knows", "sources": ["p0", "p7"], "rounds": 12},
    {"name": "pagerank", "rounds": 2},
    {"name": "label_propagation", "rounds": 4},
    {"name": "triangle_count", "edges": "Knows"},
    {"name": "shortest_paths", "sources": [("Person", "p0"), ("Person", "p7")]},
    {"name": "pagerank", "edges": "Knows", "tolerance": 1e-6},
    {"name": "pagerank", "edges": "Knows", "direction": "in", "damping": 0.5, "rounds": 9},
    {"name": "degrees", "edges": {"Knows": "in", "Wrote": "out"}},
    {"name": "label_propagation", "edges": "Knows", "where": {"Person": "age < 30"}},
    {"name": "connected_components", "edges": "Knows", "where": "since > 2010"},
    {"name": "triangle_count", "where": {"Knows": "false"}},
    {"name": "shortest_paths", "edges": {"Knows": "both"}, "sources": ["p3"]},
]


def make(root: Path, people: int, edges: int, seed: int) -> Graph:
    draw = random.Random(seed)
    g = omnigraph.init(str(root), schema=SCHEMA, settings=Settings(durability="relaxed"))
    ends = range(people)
    weights = [1 / (n + 1) for n in ends]
    start, end = (draw.choices(ends, weights, k=edges) for _ in range(2))
    with g.transaction() as tx:
        tx.append("Person", [{"name": f"p{n}", "age": n % 50} for n in ends])
        tx.append("Paper", [{"id": f"p{n}", "title": f"t{n}"} for n in range(9)])
        tx.append(
            "Knows",
            [
                {"from": f"p{a}", "to": f"p{b}", "since": 2000 + n % 20}
                for n, (a, b) in enumerate(zip(start, end, strict=True))
            ],
        )
        tx.append("Wrote", [{"from": f"p{n}", "to": f"p{n % 9}"} for n in range(0, people, 4)])
    g.mutate('query q() { delete Person where name = "p5" }')
    return g


@pytest.fixture(scope="module")
def g(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    return make(tmp_path_factory.mktemp("algorithms") / "g", 40, 90, seed=1)


def compare(g: Graph, call: dict[str, Any]) -> pa.Table:
    here = g.algorithm(engine="local", **call).to_arrow()
    there = g.algorithm(engine="spark", **call)
    assert there.engine == "spark"
    assert there.frame is not None
    found = there.to_arrow()
    assert found.schema == here.schema
    assert found.select(["type", "id"]) == here.select(["type", "id"])
    if pa.types.is_floating(here["value"].type):
        assert found["value"].to_pylist() == pytest.approx(here["value"].to_pylist(), abs=1e-9)
    else:
        assert found["value"].to_pylist() == here["value"].to_pylist()
    return found


def test_values_are_those_of_one_process(g: Graph, spark: Any) -> None:
    for call in CALLS:
        compare(g, call)


@pytest.mark.slow
def test_edges_conditions_and_options_mean_the_same(g: Graph, spark: Any) -> None:
    for call in LONGER:
        compare(g, call)


@pytest.mark.slow
def test_values_become_a_property_in_one_commit(g: Graph, spark: Any) -> None:
    g.create_branch("try")
    before = g.at("try").version
    call: dict[str, Any] = {"sources": [("Person", "p0")], "write_to": "hops", "branch": "try"}
    g.algorithm("shortest_paths", where={"Knows": "since > 2004"}, **call)
    done = g.algorithm("shortest_paths", edges="Knows", engine="spark", actor="me", **call)
    assert done.commit is not None
    assert (g.at("try").version, done.commit.actor) == (before + 2, "me")
    held = {r["id"]: r["hops"] for r in rows(g, "Person", ref="try")}
    assert held == done.to_dict()
    assert None in held.values()
    assert {r["hops"] for r in rows(g, "Person")} == {None}
    assert {r["age"] for r in rows(g, "Person", ref="try")} != {None}


@pytest.mark.slow
def test_values_of_several_types_become_properties_in_one_commit(g: Graph, spark: Any) -> None:
    g.create_branch("both")
    before = g.at("both").version
    done = g.branch("both").algorithm("pagerank", rounds=2, write_to="rank", engine="spark")
    assert g.at("both").version == before + 1
    held = {("Person", r["id"]): r["rank"] for r in rows(g, "Person", ref="both")}
    held |= {("Paper", r["id"]): r["rank"] for r in rows(g, "Paper", ref="both")}
    assert held == pytest.approx(done.to_dict(), abs=1e-7)
    g.branch("both").algorithm("label_propagation", write_to="group", engine="spark")
    groups = g.at("both").algorithm("label_propagation").to_dict()
    assert {("Paper", r["id"]): r["group"] for r in rows(g, "Paper", ref="both")} == {
        key: value for key, value in groups.items() if key[0] == "Paper"
    }


@pytest.mark.slow
def test_what_cannot_be_done_is_said_in_the_same_words(g: Graph, spark: Any) -> None:
    for error, message, options in [
        (NotFound, "no node 'zz'", {"sources": ["zz"]}),
        (InvalidArgument, "Several types", {"sources": ["p0"]}),
        (InvalidArgument, "needs `sources`", {}),
    ]:
        for engine in ("local", "spark"):
            with pytest.raises(error, match=message):
                g.algorithm("shortest_paths", engine=engine, **options)  # type: ignore[arg-type]


@pytest.mark.slow
def test_an_empty_graph_has_no_values(tmp_path: Path, spark: Any) -> None:
    g = omnigraph.init(str(tmp_path / "g"), schema=SCHEMA)
    for name in ("pagerank", "connected_components", "label_propagation", "triangle_count"):
        assert len(g.algorithm(name, engine="spark")) == 0
        assert g.algorithm(name, engine="spark", write_to=_property(name)).commit is None


def _property(name: str) -> str:
    return {"pagerank": "rank", "triangle_count": "hops"}.get(name, "group")


@pytest.mark.slow
def test_long_paths_are_one_component_after_few_rounds(tmp_path: Path, spark: Any) -> None:
    count = 300
    order = list(range(count))
    random.Random(3).shuffle(order)
    g = omnigraph.init(str(tmp_path / "g"), schema=SCHEMA)
    with g.transaction() as tx:
        tx.append("Person", [{"name": f"p{n:04}"} for n in range(count)])
        pairs = pairwise(order)
        tx.append("Knows", [{"from": f"p{a:04}", "to": f"p{b:04}"} for a, b in pairs])
    found = g.algorithm("connected_components", edges="Knows", engine="spark")
    assert set(found.to_dict().values()) == {"p0000"}
    assert found.rounds < 12


@pytest.mark.slow
def test_a_million_edges_give_the_same_values(tmp_path: Path, spark: Any) -> None:
    people, count = 200_000, 1_000_000
    draw = random.Random(5)
    names = [f"p{n}" for n in range(people)]
    start = [int(people * draw.random() ** 2) for _ in range(count)]
    end = [draw.randrange(people) for _ in range(count)]
    g = omnigraph.init(str(tmp_path / "g"), schema=SCHEMA)
    g.load(pa.table({"name": names}), type="Person", engine="local")
    ends = {"from": [names[n] for n in start], "to": [names[n] for n in end]}
    g.load(pa.table(ends), type="Knows", engine="local")
    spark.conf.set("spark.sql.codegen.wholeStage", "true")
    for call in (
        {"name": "degrees", "edges": "Knows"},
        {"name": "pagerank", "edges": "Knows", "rounds": 5},
        {"name": "label_propagation", "edges": "Knows", "rounds": 3},
        {"name": "triangle_count", "edges": "Knows"},
        {"name": "shortest_paths", "edges": "Knows", "sources": ["p0", "p17"]},
    ):
        compare(g, call)
    network = nx.Graph(zip(start, end, strict=True))
    network.add_nodes_from(range(people))
    parts = {frozenset(part) for part in nx.connected_components(network)}
    found: dict[str, set[int]] = {}
    labels = compare(g, {"name": "connected_components", "edges": "Knows"})
    for name, label in zip(labels["id"].to_pylist(), labels["value"].to_pylist(), strict=True):
        found.setdefault(label, set()).add(int(name[1:]))
    assert set(map(frozenset, found.values())) == parts
