"""Search within all other clauses, asked of rows without an index and of rows under segments."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from omnigraph import Graph
from omnigraph.errors import InvalidQuery
from tests.search.oracle import Corpus
from tests.search.test_search_edges import new
from tests.search.world import SEGMENTS, limits

TEXTS = {"a": "red fox", "b": "red red blue", "c": "blue fox", "d": None, "e": "green"}
CITES = (("a", "b", "red wine"), ("a", "c", "wine"), ("b", "c", None), ("c", "e", "red"))


@pytest.fixture(scope="module", params=["rows", "segments"])
def g(request: pytest.FixtureRequest) -> Iterator[Graph]:
    with new() as graph, limits(**SEGMENTS):
        with graph.transaction() as tx:
            tx.append("Doc", [
                {"slug": slug, "text": text, "v": [n, 1, 0], "year": n % 2}
                for n, (slug, text) in enumerate(TEXTS.items())
            ])  # fmt: skip
            tx.append("Cites", [{"from": a, "to": b, "why": why} for a, b, why in CITES])
        if request.param == "segments":
            graph.optimize()
        yield graph


def ask(g: Graph, text: str, **params: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in g.query(text, params=params).to_pylist()]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('match { $d: Doc search($d.text, "red") } return { count($d) as n }', [(2,)]),
        ('match { $d: Doc search($d.text, "none") } return { count($d) as n }', [(0,)]),
        (
            (
                'match { $d: Doc search($d.text, "red blue") }'
                " return { $d.year as y, count($d) as n } order { y }"
            ),
            [(0, 2), (1, 1)],
        ),
        (
            (
                'match { $d: Doc $d cites $e search($e.text, "blue") }'
                " return distinct { $e.slug as e } order { e }"
            ),
            [("b",), ("c",)],
        ),
        (
            (
                'match { $d: Doc search($d.text, "green") or $d.year = 1 }'
                " return { $d.slug as d } order { d }"
            ),
            [("b",), ("d",), ("e",)],
        ),
        (
            (
                'match { $d: Doc search($d.text, "red") and search($d.text, "fox") }'
                " return { $d.slug as d }"
            ),
            [("a",)],
        ),
        (
            (
                'match { $d: Doc search($d.text, "red") search($d.text, "blue") }'
                " return { $d.slug as d }"
            ),
            [("b",)],
        ),
        (
            (
                'match { $d: Doc count { $d cites $e search($e.text, "fox blue") } > 1 }'
                " return { $d.slug as d }"
            ),
            [("a",)],
        ),
        (
            (
                'match { $d: Doc exists { $d $w:cites $e search($w.why, "red") } }'
                " return { $d.slug as d } order { d }"
            ),
            [("a",), ("c",)],
        ),
        (
            (
                'match { $d: Doc not { $d cites $e search($e.text, "blue") } }'
                " return { $d.slug as d } order { d }"
            ),
            [("c",), ("d",), ("e",)],
        ),
        (
            (
                'match { $d: Doc optional { $d cites $e search($e.text, "fox") } }'
                " return { $d.slug as d, $e.slug as e } order { d }"
            ),
            [("a", "c"), ("b", "c"), ("c", None), ("d", None), ("e", None)],
        ),
        (
            (
                'match { $d: Doc { slug: "a" } $d cites{1,2} $e search($e.text, "fox green") }'
                " return { $e.slug as e } order { e }"
            ),
            [("c",), ("e",)],
        ),
        (
            (
                'match { $d: Doc $d cites $e search($d.text, "red") search($e.text, "blue") }'
                " return { $d.slug as d, $e.slug as e } order { d, e }"
            ),
            [("a", "b"), ("a", "c"), ("b", "c")],
        ),
        (
            'match { $d: Doc } return { $d.slug as d, search($d.text, "red") as hit } order { d }',
            [("a", True), ("b", True), ("c", False), ("d", None), ("e", False)],
        ),
        (
            (
                "match { $d: Doc $d cites $e } return { $d.slug as d, $e.slug as e }"
                " order { nearest($e.v, $d.v), d } limit 2"
            ),
            [("c", "e"), ("b", "c")],
        ),
    ],
)
def test_searches_stand_wherever_a_condition_may(
    g: Graph, text: str, found: list[tuple[Any, ...]]
) -> None:
    assert ask(g, text) == found
    for kernel in ("indexed", "adjacency"):
        rows = g.query(text, kernel=kernel).to_pylist()
        assert [tuple(row.values()) for row in rows] == found


def test_a_rank_by_its_alias_and_amounts_as_parameters(g: Graph) -> None:
    text = """query q($n: I64, $m: I64, $w: String) { match { $d: Doc search($d.text, $w) }
      return { $d.slug as d, bm25($d.text, $w) as s } order { s desc } limit $n offset $m }"""
    corpus = Corpus.of(TEXTS.values())
    scores = {slug: corpus.score(text, "red fox") for slug, text in TEXTS.items()}
    best = sorted((slug for slug in TEXTS if scores[slug]), key=lambda slug: -(scores[slug] or 0))
    assert [slug for slug, _ in ask(g, text, n=2, m=1, w="red fox")] == best[1:3]
    assert ask(g, text, n=0, m=0, w="red fox") == []


def test_the_greatest_score_of_each_group(g: Graph) -> None:
    text = (
        """match { $d: Doc } return { $d.year as y, max(bm25($d.text, "red")) as s } order { y }"""
    )
    corpus = Corpus.of(TEXTS.values())
    assert ask(g, text) == [
        (0, pytest.approx(corpus.score(TEXTS["a"], "red"))),
        (1, pytest.approx(corpus.score(TEXTS["b"], "red"))),
    ]


def test_several_ranks_beside_each_other(g: Graph) -> None:
    text = """match { $d: Doc } return { $d.slug as d, bm25($d.text, "red") as r,
      bm25($d.text, "blue") as b, nearest($d.v, [0.0, 1.0, 0.0]) as n }
      order { bm25($d.text, "blue") } limit 5"""
    corpus = Corpus.of(TEXTS.values())
    for slug, red, blue, near in ask(g, text):
        assert red == pytest.approx(corpus.score(TEXTS[slug], "red"))
        assert blue == pytest.approx(corpus.score(TEXTS[slug], "blue"))
        assert near is not None


@pytest.mark.parametrize("cut", ["limit 1", "limit 2 offset 1", "limit 9"])
def test_the_cut_changes_no_place_of_a_fused_rank(g: Graph, cut: str) -> None:
    """The filter says the same as the rank that orders: still all rows of the match count."""
    fused = 'rrf(nearest($d.v, [0.0, 1.0, 0.0]), bm25($d.text, "blue"))'
    text = f"""match {{ $d: Doc search($d.text, "red fox") }}
      return {{ $d.slug as d, {fused} as s }} order {{ bm25($d.text, "red fox") }} """
    every = dict(ask(g, text + "limit 1000"))
    assert len(every) == 3
    found = dict(ask(g, text + cut))
    assert found == {slug: every[slug] for slug in found}


@pytest.mark.parametrize("order", ['bm25($d.text, "red")', "fused"])
def test_the_places_of_a_fused_rank_are_those_within_the_match(g: Graph, order: str) -> None:
    """Also where the rows are ordered by the words that the match looks for."""
    rank = 'rrf(nearest($d.v, [4.0, 1.0, 0.0]), bm25($d.text, "green"), 1)'
    found = ask(
        g,
        f'match {{ $d: Doc search($d.text, "red") }}'
        f" return {{ $d.slug as d, {rank} as fused }} order {{ {order} desc }} limit 5",
    )
    assert sorted(found) == [("a", 1 / 2), ("b", 1.0)]


def test_a_count_beside_the_filter_of_a_rank_counts_all(g: Graph) -> None:
    text = """match { $d: Doc search($d.text, "red fox") }
      return { $d.year as y, count($d) as n, max(bm25($d.text, "red fox")) as s }
      order { s desc } limit 1"""
    ((_, count, _),) = ask(g, text)
    assert count == 2


def test_a_highlight_shows_the_words_in_their_passage(g: Graph) -> None:
    text = 'match { $d: Doc } return { $d.slug as d, highlight($d.text, "RED") as p } order { d }'
    assert ask(g, text) == [
        ("a", "**red** fox"), ("b", "**red** **red** blue"), ("c", "blue fox"), ("d", None),
        ("e", "green"),
    ]  # fmt: skip


def test_what_is_searched_is_told(g: Graph) -> None:
    text = """match { $d: Doc search($d.text, "red") } return { $d.slug as d,
      nearest($d.v, [1.0, 0.0, 0.0]) as n } order { bm25($d.text, "red") } limit 1"""
    for told in (g.explain(text), g.explain(text, analyze=True)):
        assert "Doc.text" in told
        assert "exact" in told
        assert "index" in told


def test_index_tail_and_candidates_are_told() -> None:
    rows = [{"slug": f"d{n}", "text": "red", "v": [n, 1, 0], "year": n} for n in range(9)]
    text = """match { $d: Doc %s } return { $d.slug as d }
      order { rrf(bm25($d.text, "red"), nearest($d.v, [1.0, 0.0, 0.0])) } limit 2"""
    every, few = text % "", text % "$d.year < 7"
    with new() as g, limits(**SEGMENTS):
        with g.transaction() as tx:
            tx.append("Doc", rows)
        scratch = g.explain(every)
        assert "Doc.text by scratch index in memory, Doc.v by all vectors, exact" in scratch
        g.optimize()
        assert "Doc.text by index, Doc.v by index, exact" in g.explain(every)
        left = ", among what the match leaves"
        assert f"Doc.text by index{left}, Doc.v by index{left}, exact" in g.explain(few)
        counted = ", among 7 candidates"
        told = g.explain(few, analyze=True)
        assert f"Doc.text by index{counted}, Doc.v by index{counted}, exact" in told
        with g.transaction() as tx:
            tx.append("Doc", [{"slug": "new", "text": "red", "v": [0, 1, 0]}])
        tail = "index, and 1 row that it does not cover yet"
        assert f"Doc.text by {tail}, Doc.v by {tail}, exact" in g.explain(every)


def test_a_mutation_does_not_search(g: Graph) -> None:
    with pytest.raises(InvalidQuery):
        g.mutate('delete Doc where search(text, "red")')
    assert g.count("Doc") == len(TEXTS)
