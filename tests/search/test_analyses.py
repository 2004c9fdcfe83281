"""How a text is cut, as its property says: stems and stop words of a language, on both sides of a
search, and again when the schema changes its mind."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from tests.search import oracle
from tests.search.oracle import Corpus
from tests.search.test_search_edges import SETTINGS, column, docs
from tests.search.world import SEGMENTS, limits

SCHEMA = "node Doc { slug: String @key  text: String? @index %s }"
LANGUAGES = (
    "danish", "dutch", "english", "finnish", "french", "german", "hungarian", "italian",
    "norwegian", "portuguese", "russian", "spanish", "swedish", "standard",
)  # fmt: skip
TEXTS = {
    str(n): text
    for n, text in enumerate([
        "merging merged merges", "the merge of the fox", "the and of", "accelerate", "acceler",
        "Häuser am Meer", "haus", "café CAFE", "maisons", "maison", "casas", "running runs",
        "книги книга", "agreed agree", "", None,
    ])
}  # fmt: skip
WORDS = ("merge", "the", "the merge", "merging of", "accelerate", "acceler", "häuser", "HAUS",
         "café", "maison", "casa", "run fox", "книг", "agree", "the of")  # fmt: skip
Match = Callable[[str | None, str | None, str], bool | None]
MATCHES: dict[str, Match] = {
    "search($d.text, $w)": oracle.has_word,
    "match_text($d.text, $w)": oracle.has_phrase,
    "fuzzy($d.text, $w, 0)": lambda text, wanted, cut: oracle.has_similar_word(
        text, wanted, 0, cut
    ),
    "fuzzy($d.text, $w, 1)": lambda text, wanted, cut: oracle.has_similar_word(
        text, wanted, 1, cut
    ),
}


def named(analysis: str) -> str:
    return SCHEMA % f'@analyzer("{analysis}")'


def made(schema: str) -> Graph:
    g = omnigraph.init(f"memory://{uuid.uuid4().hex}", schema=schema, settings=SETTINGS)
    with g.transaction() as tx:
        tx.append("Doc", [{"slug": slug, "text": text} for slug, text in TEXTS.items()])
    return g


def check(view: Any, analysis: str) -> None:
    corpus = Corpus.of(TEXTS.values(), analysis)
    scored = "query q($w: String) { match { $d: Doc } return"
    scored += " { $d.slug as d, bm25($d.text, $w) as s } }"
    for words in WORDS:
        for match, holds in MATCHES.items():
            text = (
                f"query q($w: String) {{ match {{ $d: Doc {match} }} return {{ $d.slug as d }} }}"
            )
            wanted = sorted(slug for slug, t in TEXTS.items() if holds(t, words, analysis))
            assert docs(view, text, w=words) == wanted, (analysis, match, words)
        scores = {slug: corpus.score(text, words) for slug, text in TEXTS.items()}
        assert column(view, scored, "s", w=words) == {
            slug: score if score is None else pytest.approx(score, rel=1e-5)
            for slug, score in scores.items()
        }, (analysis, words)


@pytest.mark.parametrize("analysis", LANGUAGES)
def test_each_language_cuts_texts_and_words_alike(analysis: str) -> None:
    with made(named(analysis)) as g, limits(**SEGMENTS):
        check(g, analysis)
        g.optimize()
        check(g, analysis)


def test_another_analysis_changes_the_answer_at_once_and_leaves_the_past_as_it_was() -> None:
    with made(SCHEMA % "") as g, limits(**SEGMENTS):
        g.optimize()
        plain = g.commit.id
        g.apply_schema(named("english"))
        check(g, "english")
        check(g.at(plain), "standard")
        g.optimize()
        english = g.commit.id
        check(g, "english")
        check(g.at(plain), "standard")
        g.create_branch("x", ref=plain)
        g.branch("x").apply_schema(named("german"))
        check(g.branch("x"), "german")
        g.branch("x").optimize()
        for view, analysis in (
            (g.branch("x"), "german"),
            (g, "english"),
            (g.at(plain), "standard"),
        ):
            check(view, analysis)
        g.restore(plain)
        check(g, "standard")
        g.optimize()
        check(g, "standard")
        with omnigraph.open(g.root, mode="r") as fresh:
            check(fresh.at(english), "english")
            check(fresh, "standard")
