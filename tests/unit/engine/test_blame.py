"""Where each value of an entity comes from, through merges too, and what that costs."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import omnigraph
from omnigraph import Graph
from tests.docs.examples import make_graph


@pytest.fixture
def g(root: str) -> Iterator[Graph]:
    with make_graph(root) as opened:
        yield opened


def told(g: Graph, name: str, ref: str = "main") -> dict[str, str | None]:
    return {
        one.property: None if one.commit is None else one.commit.message
        for one in g.at(ref).blame("Person", name)
    }


def test_each_property_has_the_commit_that_set_it_last(g: Graph) -> None:
    g.mutate('update Person set { age: 37 } where name = "Ada"', message="birthday")
    g.mutate('update Person set { rank: 0.5 } where name = "Ada"', message="ranked")
    g.mutate('update Person set { rank: 0.7 } where name = "Bob"', message="another")
    assert told(g, "Ada") == {
        "name": "three people", "age": "birthday", "rank": "ranked", "photo": "three people",
    }  # fmt: skip
    assert told(g, "Zoe") == {}


def test_a_merge_did_not_set_what_it_took_over(g: Graph) -> None:
    g.create_branch("agent/eve")
    branch = g.branch("agent/eve")
    branch.mutate('update Person set { age: 50 } where name = "Ada"', message="by the agent")
    branch.mutate('insert Person { name: "New" }', message="a new one")
    g.mutate('update Person set { rank: 1.5 } where name = "Ada"', message="on main")
    assert g.merge("agent/eve", message="reviewed").outcome == "merged"
    assert told(g, "Ada")["age"] == "by the agent"
    assert told(g, "Ada")["rank"] == "on main"
    assert set(told(g, "New").values()) == {"a new one"}


def test_a_merge_set_what_it_was_told_to(g: Graph) -> None:
    g.create_branch("side")
    g.branch("side").mutate('update Person set { age: 1 } where name = "Ada"', message="theirs")
    g.mutate('update Person set { age: 2 } where name = "Ada"', message="ours")
    g.merge("side", resolve={("Person", "Ada"): {"name": "Ada", "age": 3}}, message="settled")
    assert told(g, "Ada")["age"] == "settled"


def test_a_brought_forward_branch_keeps_its_origins(g: Graph) -> None:
    g.create_branch("side")
    g.branch("side").mutate('update Person set { age: 1 } where name = "Ada"', message="theirs")
    assert g.merge("side").outcome == "fast_forward"
    assert told(g, "Ada")["age"] == "theirs"


def test_who_was_deleted_and_came_again_is_new(g: Graph) -> None:
    g.mutate('delete Person where name = "Cyd"', message="gone")
    g.mutate('insert Person { name: "Cyd" }', message="again")
    assert set(told(g, "Cyd").values()) == {"again"}


def test_a_renamed_property_keeps_its_origin(g: Graph) -> None:
    g.mutate('update Person set { age: 37 } where name = "Ada"', message="birthday")
    text = g.schema.replace("age: I32?", 'years: I32? @rename_from("age")')
    g.apply_schema(text, message="renamed")
    assert told(g, "Ada")["years"] == "birthday"


def test_edges_have_origins_too(g: Graph) -> None:
    asked = g.query('match { $p: Person { name: "Ada" } $p $k:knows $f } return { $k.@id as id }')
    found = {one.property: one.commit for one in g.blame("Knows", asked.one()["id"])}
    assert found.keys() == {"src", "dst", "since"}
    assert all(one is not None and one.message == "three people" for one in found.values())


def test_it_reads_no_further_than_it_must() -> None:
    """The cost is that of the history of the entity, back to where everything is explained."""
    with omnigraph.init("memory://blame-cost", schema="node P { k: String @key v: I32? }") as g:
        for number in range(30):
            g.mutate(f'insert P {{ k: "{number}", v: 0 }}')
        ledger = _reads(g, "29")
        assert ledger < _reads(g, "0")


def _reads(g: Graph, key: str) -> int:
    from omnigraph.telemetry import watch_requests

    with watch_requests() as seen:
        g.blame("P", key)
    return seen.total().reads
