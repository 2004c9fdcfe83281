"""What explains a graph comes over the wire as it is told in process."""

from __future__ import annotations

from omnigraph.client.remote_graph import RemoteGraph


def test_origins_descriptions_and_corrections_come_over_the_wire(g: RemoteGraph) -> None:
    g.mutate('insert Person { name: "Ada", born: date("1815-12-10") }', message="first")
    g.mutate('update Person set { age: 36 } where name = "Ada"', message="older")
    found = {one.property: one for one in g.blame("Person", "Ada")}
    assert found["age"].commit is not None
    assert (found["age"].value, found["age"].commit.message) == (36, "older")
    assert str(found["born"].value) == "1815-12-10"
    assert found["name"].commit == next(one for one in g.log() if one.message == "first")
    assert g.blame("Person", "Zoe") == []
    assert g.describe(types=["Person"]).startswith("node Person (1)")
    wrong = g.check("match { $p: Persn } return { $p.name }")
    assert (wrong.ok, wrong.diagnostics[0].start.column) == (False, 13)
    assert wrong.corrected == "match { $p: Person } return { $p.name }"
    assert g.may("mutate", "main")
