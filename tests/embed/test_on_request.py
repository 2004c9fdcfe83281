"""Embedding as part of a mutation, in its commit, and of a load, right after it."""

from __future__ import annotations

from typing import Any

import pytest

import omnigraph
from omnigraph import runtime
from omnigraph.engine.graph import Graph
from omnigraph.errors import (
    InvalidEmbedding,
    ModelMissing,
    NotEmbedded,
    ProviderUnavailable,
    TextRefused,
)
from omnigraph.settings import Settings
from tests.bench.embeddings import Provider, unit_vector_of

TWO = 'insert Doc { name: "a", text: "red" } insert Doc { name: "b", text: "  " }'


def vector(g: Any, name: str, type: str = "Doc") -> Any:
    row = g.entity(type, name)
    return None if row is None else row["v"]


def near(text: str) -> Any:
    return pytest.approx(unit_vector_of(text, 8), abs=1e-7)


def test_a_mutation_embeds_what_it_writes_in_its_commit(g: Graph, there: Provider) -> None:
    before = len(list(g.log()))
    done = g.mutate(TWO, embed=True)
    assert len(list(g.log())) == before + 1
    assert (done.embedded, done.nodes, done.counts["Doc"].inserted) == (1, 2, 2)
    assert done.counts["Doc"].updated == 0, "the vector of a new row is no change of it"
    assert vector(g, "a") == near("red")
    assert vector(g, "b") is None
    done = g.mutate('update Doc set { text: "blue" } where name = "a"', embed=True)
    assert (done.embedded, done.counts["Doc"].updated) == (1, 1)
    assert vector(g, "a") == near("blue")
    assert there.texts == ["red", "blue"]


def test_without_asking_nothing_is_embedded(g: Graph, there: Provider) -> None:
    assert g.mutate(TWO).embedded == 0
    g.load([{"name": "c", "text": "x"}], type="Doc")
    assert not there.requests


def test_several_types_and_an_edge_in_one_mutation(g: Graph) -> None:
    text = (
        TWO
        + ' insert Note { name: "n", body: "hello" }'
        + ' insert Cites { from: "a", to: "b", why: "so" }'
    )
    assert g.mutate(text, embed=True).embedded == 3
    assert g.scan("Cites").read_all()["v"].to_pylist() == [near("so")]
    assert len(vector(g, "n", "Note")) == 64


def test_a_vector_that_is_given_is_not_asked_for(g: Graph, there: Provider) -> None:
    given = [1.0] + [0.0] * 7
    text = f'insert Doc {{ name: "a", text: "red", v: {given} }}'
    assert g.mutate(text, embed=True).embedded == 0
    assert vector(g, "a") == given
    assert not there.requests


@pytest.mark.parametrize(
    ("fault", "error"), [("500", ProviderUnavailable), ("wrong_dimension", InvalidEmbedding)]
)
def test_a_mutation_that_cannot_embed_changes_nothing(
    g: Graph, there: Provider, fault: str, error: type[Exception]
) -> None:
    there.always = fault
    head = g.commit.id
    with pytest.raises(error):
        g.mutate(TWO, embed=True)
    assert (g.commit.id, g.count("Doc")) == (head, 0)


def test_a_text_that_is_refused_names_its_entity_and_changes_nothing(
    g: Graph, there: Provider
) -> None:
    there.bad = frozenset({"red"})
    with pytest.raises(TextRefused, match="The text of Doc 'a' is refused"):
        g.mutate(TWO, embed=True)
    assert g.count("Doc") == 0


def test_a_mutation_that_loses_a_race_asks_once(
    g: Graph, there: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    g.mutate(TWO)
    raced: list[str] = []
    with omnigraph.open(g.root) as other:

        def race(point: str) -> None:
            if point == "staged" and not raced:
                raced.append(point)
                other.mutate('update Doc set { text: "green" } where name = "b"')

        monkeypatch.setattr(runtime, "on_reach", race)
        g.mutate('update Doc set { text: "blue" } where true', embed=True)
    assert raced
    assert there.texts == ["blue"]
    assert vector(g, "a") == vector(g, "b") == near("blue")


def test_a_repeated_mutation_asks_nobody(g: Graph, there: Provider) -> None:
    g.mutate(TWO, embed=True, idempotency_key="k")
    assert g.mutate(TWO, embed=True, idempotency_key="k").repeated
    assert there.texts == ["red"]


def test_a_load_is_embedded_right_after_it(g: Graph, there: Provider) -> None:
    rows = [{"name": "a", "text": "red"}, {"name": "b", "text": "blue"}]
    done = g.load(rows, type="Doc", embed=True, actor="ada")
    assert done.embedded == 2
    assert [(c.kind, c.actor) for c in g.log(limit=2)] == [("embed", "ada"), ("load", "ada")]
    assert (vector(g, "a"), vector(g, "b")) == (near("red"), near("blue"))
    done = g.load([{"name": "a", "text": "green"}], type="Doc", mode="merge", embed=True)
    assert (done.embedded, vector(g, "a")) == (1, near("green"))


def test_a_load_to_a_new_branch_is_embedded_there(g: Graph) -> None:
    done = g.load([{"name": "a", "text": "red"}], type="Doc", new_branch="side", embed=True)
    assert done.embedded == 1
    assert vector(g.branch("side"), "a") == near("red")
    assert g.count("Doc") == 0


def test_a_load_of_a_type_without_vectors_has_nothing_to_embed(g: Graph) -> None:
    assert g.load([{"name": "p"}], type="Plain", embed=True).embedded == 0


def test_a_load_whose_texts_cannot_be_embedded_stays(g: Graph, there: Provider) -> None:
    there.always = "500"
    with pytest.raises(NotEmbedded, match="The rows are in commit") as caught:
        g.load([{"name": "a", "text": "red"}], type="Doc", embed=True)
    assert caught.value.applied
    assert caught.value.details["commit"] == g.commit.id
    assert "Do not load again" in caught.value.hint
    assert (g.count("Doc"), vector(g, "a")) == (1, None)
    there.always = ""
    g.embed()
    assert vector(g, "a") == near("red")


def test_a_load_is_not_begun_when_its_model_is_not_there(g: Graph) -> None:
    head = g.commit.id
    with omnigraph.open(g.root, settings=Settings()) as other, pytest.raises(ModelMissing):
        other.load([{"name": "a", "text": "red"}], type="Doc", embed=True)
    assert g.commit.id == head
