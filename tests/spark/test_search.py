"""Indexes for search that executors built: the answers are those of one process, and of none."""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.load import indexing
from omnigraph.errors import InvalidArgument

SCHEMA = """
node Paper {
    slug: String @key
    body: String? @index @analyzer("english")
    v: Vector(4)? @index
}
"""
WORDS = [
    *("graph", "branch", "merge", "merging", "Café", "write", "writer", "lock", "index"),
    *("red", "fox", "the", "of"),
]
PAPERS = "match { $p: Paper } return { $p.slug"
QUESTIONS = [
    'match { $p: Paper search($p.body, "merge cafe") } return { $p.slug } order { $p.slug }',
    'match { $p: Paper match_text($p.body, "red fox") } return { $p.slug } order { $p.slug }',
    'match { $p: Paper fuzzy($p.body, "grph", 1) } return { $p.slug } order { $p.slug }',
    PAPERS + ", bm25($p.body, $words) as score } order { score } limit 20",
    PAPERS + ", nearest($p.v, [1, 0, 0.5, 0]) as far } order { far } limit 20",
    PAPERS + " } order { rrf(bm25($p.body, $words), nearest($p.v, [0, 1, 0, 0])) } limit 20",
]


def papers(count: int) -> list[dict[str, Any]]:
    chance = Random(7)
    return [
        {
            "type": "Paper",
            "data": {
                "slug": f"p{n:05d}",
                "body": " ".join(chance.choices(WORDS, k=chance.randrange(1, 9))),
                "v": [chance.uniform(-1, 1) for _ in range(4)] if n % 7 else None,
            },
        }
        for n in range(count)
    ]


def answers(g: Graph) -> list[list[dict[str, Any]]]:
    found = []
    for question in QUESTIONS:
        text = question
        if "$words" in question:
            text = f'query q($words: String = "merging branches") {{ {question} }}'
        found.append(g.query(text).to_pylist())
    return found


def indexed(g: Graph) -> dict[str, int]:
    searched = [one for one in g.indexes() if one.kind in ("INVERTED", "IVF_FLAT")]
    return {one.property: one.covered for one in searched}


def test_executors_build_the_indexes_of_a_load_and_of_optimize(
    tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = papers(1500)
    plain = omnigraph.init(tmp_path / "plain", schema=SCHEMA)
    plain.load(rows, engine="local")
    assert indexed(plain) == {"body": 0, "v": 0}
    expected = answers(plain)
    assert all(expected)

    optimized = omnigraph.init(tmp_path / "optimized", schema=SCHEMA)
    optimized.load(rows, engine="local")
    optimized.optimize(engine="spark")
    assert indexed(optimized) == {"body": 1500, "v": 1500}
    assert_same(answers(optimized), expected)

    monkeypatch.setattr(indexing, "INDEXED_ROWS", 1000)
    loaded = omnigraph.init(tmp_path / "loaded", schema=SCHEMA)
    loaded.load(rows, engine="spark")
    assert indexed(loaded) == {"body": 1500, "v": 1500}
    assert_same(answers(loaded), expected)
    assert loaded.verify(deep=True).ok


def assert_same(found: list[list[dict[str, Any]]], expected: list[list[dict[str, Any]]]) -> None:
    """The same rows in the same order; scores up to single precision."""
    for one, other in zip(found, expected, strict=True):
        assert [row["p.slug"] for row in one] == [row["p.slug"] for row in other]
        for name in ("score", "far"):
            if name in one[0]:
                values = [row[name] for row in other]
                assert [row[name] for row in one] == pytest.approx(values, rel=1e-5)


def test_spark_asks_no_searches_and_says_who_does(tmp_path: Path, spark: Any) -> None:
    g = omnigraph.init(tmp_path / "g", schema=SCHEMA)
    with pytest.raises(InvalidArgument, match="searches by text or vector"):
        g.query(QUESTIONS[0], engine="spark")
