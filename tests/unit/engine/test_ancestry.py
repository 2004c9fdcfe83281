"""What a version knows of other branches stays small, and merges still find what they share."""

from __future__ import annotations

from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Reclaimed
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger
from tests.bench.aging import PassingTime

SCHEMA = "node Person { name: String @key  age: I64? }\n"
SETTINGS = Settings(durability="relaxed", folding="off", grace=60)


def put(g: Graph, branch: str, name: str, age: int) -> str:
    with g.branch(branch).transaction() as tx:
        tx.upsert("Person", [{"name": name, "age": age}])
    assert tx.commit_id is not None
    return tx.commit_id


def ages(g: Graph, ref: str = "main") -> dict[str, int]:
    rows = g.at(ref).scan("Person").read_all().to_pylist()
    return {row["id"]: row["age"] for row in rows}


def known(g: Graph, branch: str = "main") -> set[str]:
    head = g._session.head(branch, Ledger())
    return {chain.split(":", 1)[1] for chain in head.ancestry}


@pytest.fixture
def time(monkeypatch: pytest.MonkeyPatch) -> PassingTime:
    return PassingTime(monkeypatch)


@pytest.fixture
def g(tmp_path: Path, time: PassingTime) -> Graph:
    return omnigraph.init(tmp_path / "graph", schema=SCHEMA, settings=SETTINGS, runtime=time)


def clean(g: Graph, time: PassingTime) -> None:
    """Twice: what the first one takes is known to be gone by the second."""
    for _ in range(2):
        put(g, "main", "tick", 0)
        time.wait(Path(g.root), 600)
        put(g, "main", "tock", 0)
        g.cleanup(keep=1, older_than=0)


def test_branches_that_are_merged_and_gone_are_forgotten(g: Graph, time: PassingTime) -> None:
    made = []
    for number in range(12):
        name = f"agent {number}"
        g.create_branch(name)
        made.append(put(g, name, name, number))
        if number % 2:
            put(g, "main", "busy", number)
        g.merge(name)
        g.delete_branch(name)
    assert len(known(g)) == 12
    before = ages(g)
    clean(g, time)
    assert known(g) == set()
    assert before.items() <= ages(g).items()
    for ref in (made[3], f"main@{made[3]}"):
        with pytest.raises(Reclaimed):
            g.at(ref)
    assert len(list(g.log())) > 24
    assert g.verify(deep=True).ok


def test_a_branch_that_holds_only_a_part_keeps_the_rest_known(g: Graph, time: PassingTime) -> None:
    """Both have what `work` did. Only its name tells them what they have in common."""
    put(g, "main", "ann", 1)
    g.create_branch("work")
    put(g, "work", "ann", 2)
    g.create_branch("side", "work")
    put(g, "main", "bob", 1)
    g.merge("work")
    g.delete_branch("work")
    put(g, "main", "ann", 1)  # which is what it was before `work`
    put(g, "side", "cy", 3)
    clean(g, time)
    assert "work" in known(g)
    assert "work" in known(g, "side")
    assert g.merge("side").outcome == "merged"
    assert ages(g)["ann"] == 1  # a base before `work` would bring the 2 back
    assert g.verify(deep=True).ok
