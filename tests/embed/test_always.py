"""Whatever is done to a graph, in whatever order: a vector that is there is that of its text."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable
from typing import Any

import pytest

from omnigraph.engine.branch import Branch
from omnigraph.engine.graph import Graph
from omnigraph.errors import InvalidArgument, MergeFailed, RevertFailed
from tests.bench.embeddings import unit_vector_of

WORDS = ("red", "blue", "green", "", None)
BRANCHES = ("main", "side")
Act = Callable[[Branch, dict[str, Any], random.Random], None]


def upsert(g: Branch, row: dict[str, Any], chance: random.Random) -> None:
    with g.transaction() as tx:
        tx.upsert("Doc", [row])


def update(g: Branch, row: dict[str, Any], chance: random.Random) -> None:
    with g.transaction() as tx:
        tx.update("Doc", set={"text": row["text"]}, where=f'name = "{row["name"]}"')


def mutate(g: Branch, row: dict[str, Any], chance: random.Random) -> None:
    value = "null" if row["text"] is None else f'"{row["text"]}"'
    text = f'update Doc set {{ text: {value} }} where name = "{row["name"]}"'
    g.mutate(text, embed=chance.random() < 0.5)


def load(g: Branch, row: dict[str, Any], chance: random.Random) -> None:
    g.load([row], type="Doc", mode="merge", engine="local", embed=chance.random() < 0.5)


def delete(g: Branch, row: dict[str, Any], chance: random.Random) -> None:
    g.mutate(f'delete Doc where name = "{row["name"]}"')


def embed(g: Branch, row: dict[str, Any], chance: random.Random) -> None:
    g.embed(commit_every=chance.choice((1, 3, None)), limit=chance.choice((1, None)))


def merge(g: Branch, row: dict[str, Any], chance: random.Random) -> None:
    source = "side" if g.name == "main" else "main"
    try:
        g.merge(source)
    except MergeFailed:
        g.merge(source, strategy=chance.choice(("ours", "theirs")))


def revert(g: Branch, row: dict[str, Any], chance: random.Random) -> None:
    with contextlib.suppress(RevertFailed, InvalidArgument):
        g.revert(chance.choice([commit.id for commit in g.log(limit=6)]))


def restore(g: Branch, row: dict[str, Any], chance: random.Random) -> None:
    g.restore(chance.choice([commit.id for commit in g.log(limit=4)]))


def optimize(g: Branch, row: dict[str, Any], chance: random.Random) -> None:
    g.optimize()


def overwrite(g: Branch, row: dict[str, Any], chance: random.Random) -> None:
    with g.transaction() as tx:
        tx.overwrite("Doc", [row])


ACTS: dict[Act, float] = {
    upsert: 2,
    update: 2,
    mutate: 2,
    load: 2,
    delete: 0.5,
    embed: 4,
    merge: 2,
    revert: 2,
    restore: 0.5,
    optimize: 0.5,
    overwrite: 0.2,
}


@pytest.mark.parametrize("seed", range(8))
def test_a_vector_is_that_of_its_text(g: Graph, seed: int) -> None:
    chance = random.Random(seed)
    g.create_branch("side")
    told, seen = list[str](), 0
    for _ in range(60):
        act = chance.choices(list(ACTS), list(ACTS.values()))[0]
        here = g.branch(chance.choice(BRANCHES))
        row = {"name": f"d{chance.randrange(4)}", "text": chance.choice(WORDS)}
        act(here, row, chance)
        told.append(f"{act.__name__} {here.name} {row}")
        for branch in BRANCHES:
            for found in g.branch(branch).scan("Doc").read_all().to_pylist():
                if found["v"] is not None:
                    seen += 1
                    expected = unit_vector_of(found["text"] or "", 8)
                    assert found["v"] == pytest.approx(expected, abs=1e-7), (found, told[-12:])
    assert seen > 5, "vectors were there to be looked at"
