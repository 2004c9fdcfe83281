"""Loads on Spark move the ends of edges whose key leaves one out, and refuse what is refused
here."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData
from tests.contract.test_functional_edges import HEADS, PACKAGES, PEOPLE, SCHEMA, edge, ends


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[dict[str, Graph]]:
    found = {}
    for engine in ("local", "spark"):
        g = found[engine] = omnigraph.init(tmp_path / engine, schema=SCHEMA)
        g.load([*PEOPLE, *PACKAGES, edge("Keeps", "p", "Ann", since=1), *HEADS], engine="local")
    yield found
    for g in found.values():
        g.close()


def test_both_engines_move_ends_alike(pair: dict[str, Graph], spark: Any) -> None:
    moves = [
        edge("Keeps", "p", "Bob"),
        edge("Keeps", "q", "Cid"),
        edge("Plays", "p", "Ann", part="x"),
    ]
    swap = [edge("Heads", "Bob", "p"), edge("Heads", "Ann", "r")]
    for engine, g in pair.items():
        done = g.load([*moves, *swap], mode="merge", engine=engine)  # type: ignore[arg-type]
        assert (done.engine, done.advice) == (engine, ())
        assert (done.counts["Keeps"].inserted, done.counts["Keeps"].updated) == (1, 1)
        g.load([edge("Plays", "p", "Cid", part="x")], mode="merge", engine=engine)  # type: ignore[arg-type]
        assert ends(g) == [("p", "p", "Bob"), ("q", "q", "Cid")]
        assert ends(g, "Heads") == [("p", "Bob", "p"), ("q", "Bob", "q"), ("r", "Ann", "r")]
        assert ends(g, "Plays") == [('["p","x"]', "p", "Cid")]
        kept = g.query(
            "match { $p: Package $p $k:keeps $o } return { $k.since } order { $k.since }"
        )
        assert [row["k.since"] for row in kept] == [None, 1]
        assert not g.verify(deep=True).errors


def test_both_engines_count_the_source_that_an_edge_left(
    pair: dict[str, Graph], spark: Any
) -> None:
    told = []
    for engine, g in pair.items():
        with pytest.raises(InvalidData) as error:
            g.load([edge("Heads", "Bob", "p")], mode="merge", engine=engine)  # type: ignore[arg-type]
        told.append([one.message for one in error.value.violations])
    words = '0 Heads edges from Person "Ann" are too few; @card allows at least 1.'
    assert told == [[words], [words]]
