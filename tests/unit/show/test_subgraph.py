"""A subgraph in the forms of other libraries: what was found is in each of them, and the same."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from omnigraph import Graph
from omnigraph.errors import InvalidArgument
from omnigraph.show.subgraph import Subgraph
from tests.unit.show.views import EVIL, NETWORK, PEOPLE, make_people


@pytest.fixture(scope="module")
def g(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Graph]:
    with make_people(str(tmp_path_factory.mktemp("show") / "people")) as found:
        yield found


def test_networkx_and_igraph_hold_the_same(g: Graph) -> None:
    found = g.query(NETWORK)
    part, network, other = found.graph(), found.to_networkx(), found.to_igraph()
    assert network.number_of_nodes() == other.vcount() == len(part.nodes) == PEOPLE + 2
    assert network.number_of_edges() == other.ecount() == len(part.edges) == 3 * PEOPLE
    ends = {
        (
            (other.vs[edge.source]["@type"], other.vs[edge.source]["@id"]),
            (other.vs[edge.target]["@type"], other.vs[edge.target]["@id"]),
            edge["@id"],
        )
        for edge in other.es
    }
    assert ends == {(a, b, key) for a, b, key in network.edges(keys=True)}
    assert network.nodes["Person", "p1"]["name"] == EVIL
    assert other.vs.find(**{"@id": "p1"})["name"] == EVIL
    assert other.vs.find(**{"@id": "rome"})["age"] is None


def test_an_end_that_was_not_named_is_a_node_without_properties(g: Graph) -> None:
    part = g.query('match { $p: Person { key: "p0" } $p $l:livesIn $_ } return { $p }').graph()
    assert [(node.type, node.id) for node in part.nodes] == [("Person", "p0"), ("Place", "rome")]
    assert repr(part) == "<Subgraph 2 nodes, 1 edges>"
    alone = Subgraph(part.nodes[:1], [*part.edges, *part.edges])
    assert (len(alone.edges), alone.nodes[1].end) == (1, ("Place", "rome"))
    assert alone.nodes[1].data == {}


def test_arrays_lead_back_to_every_edge_and_number(g: Graph) -> None:
    part = g.query(NETWORK).graph(vectors=True)
    arrays = part.to_arrays(dtype="float64")
    people, places = arrays.nodes["Person"], arrays.nodes["Place"]
    assert people.features == ("age", "happy", "meaning[0]", "meaning[1]")
    assert people.x.shape == (PEOPLE, 4)
    assert places.x.shape == (2, 0)
    for node in part.nodes:
        if node.type == "Person":
            row = people.x[people.ids.index(node.id)]
            age = node.data["age"]
            assert np.isnan(row[0]) if age is None else row[0] == age
            assert list(row[1:]) == [node.data["happy"], *node.data["meaning"]]
    lives = arrays.edges["Person", "LivesIn", "Place"]
    assert lives.index.dtype == np.int64
    assert lives.index.flags.c_contiguous
    told = {
        (people.ids[a], places.ids[b], key)
        for (a, b), key in zip(lives.index.T, lives.ids, strict=True)
    }
    assert told == {
        (edge.source[1], edge.target[1], edge.id) for edge in part.edges if edge.type == "LivesIn"
    }
    knows = arrays.edges["Person", "Knows", "Person"]
    assert (knows.features, knows.x.shape) == (("since",), (2 * PEOPLE, 1))


def test_features_are_chosen_and_numbers_are_floats(g: Graph) -> None:
    found = g.query(NETWORK)
    arrays = found.to_arrays({"Person": ["meaning", "age"]})
    assert arrays.nodes["Person"].features == ("meaning[0]", "meaning[1]", "age")
    assert arrays.nodes["Person"].x.dtype == np.float32
    with pytest.raises(InvalidArgument, match="holds no numbers"):
        found.to_arrays({"Person": ["name"]})
    with pytest.raises(InvalidArgument, match="no property 'size'"):
        found.to_arrays({"Person": ["size"]})
    with pytest.raises(InvalidArgument, match="'Pet'"):
        found.to_arrays({"Pet": ["name"]})


def test_an_empty_subgraph_has_every_form(g: Graph) -> None:
    found = g.query("match { $p: Person $p.age = 1 $p $k:knows $q } return { $p.name }")
    assert found.to_networkx().number_of_nodes() == found.to_igraph().vcount() == 0
    assert (found.to_arrays().nodes, found.to_arrays().edges) == ({}, {})
