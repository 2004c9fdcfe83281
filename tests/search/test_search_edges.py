"""Search where it is easily wrong: strange words, long texts, bad vectors, cuts, empty places.

Each case is asked of rows without an index, of rows under segments, and of rows that are pending in
a transaction: the answers are those of decision 40 in all three.
"""

from __future__ import annotations

import math
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph, Settings
from omnigraph.errors import InvalidQuery, OmnigraphError
from tests.search.oracle import Corpus
from tests.search.world import SEGMENTS, limits

SCHEMA = """
node Doc { slug: String @key  text: String? @index  v: Vector(3)? @index  year: I32? }
edge Cites: Doc -> Doc { @key(src, dst) why: String? @index }
"""
SETTINGS = Settings(durability="relaxed", queue=False, folding="off")
WORDS = "query q($w: String?) { match { $d: Doc search($d.text, $w) } return { $d.slug as d } }"
PHRASE = "query q($w: String) { match { $d: Doc match_text($d.text, $w) } return { $d.slug as d } }"
NEAR = """query q($q: Vector(3)) { match { $d: Doc }
  return { $d.slug as d, nearest($d.v, $q) as far } order { nearest($d.v, $q) } limit 100 }"""
SCORES = """query q($w: String?) { match { $d: Doc }
  return { $d.slug as d, bm25($d.text, $w) as score } order { bm25($d.text, $w) } }"""


def new(*, in_memory: bool = False) -> Graph:
    """A graph that keeps no column in memory, if it is not to, so that indexes are asked."""
    settings = SETTINGS if in_memory else replace(SETTINGS, cache_bytes=1)
    return omnigraph.init(f"memory://{uuid.uuid4().hex}", schema=SCHEMA, settings=settings)


@contextmanager
def holding(where: str, texts: Mapping[str, Any], name: str = "text") -> Iterator[Any]:
    """Something to ask, in which documents with these texts or vectors are."""
    rows = [{"slug": slug, name: value} for slug, value in texts.items()]
    with new(in_memory=where == "memory") as g, limits(**SEGMENTS):
        if where == "pending":
            with g.transaction() as tx:
                tx.append("Doc", rows)
                yield tx
            return
        first = len(rows) // 2 if where == "tail" else len(rows)
        with g.transaction() as tx:
            tx.append("Doc", rows[:first])
        if where in ("segments", "tail", "memory"):
            g.optimize()
        if first < len(rows):
            with g.transaction() as tx:
                tx.append("Doc", rows[first:])
        if where == "memory":  # a small column is read at its first use
            g.query("match { $d: Doc } return { $d.v as v }").to_pylist()
        yield g


@pytest.fixture(params=["rows", "segments", "tail", "pending", "memory"])
def where(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def docs(view: Any, text: str, **params: Any) -> list[str]:
    return sorted(row["d"] for row in view.query(text, params=params).to_pylist())


def column(view: Any, text: str, name: str, **params: Any) -> dict[str, Any]:
    return {row["d"]: row[name] for row in view.query(text, params=params).to_pylist()}


# Words.

STRANGE = {
    "accents": "Café crème à São Paulo",
    "sharp": "Die Straße",
    "ligature": "ﬁne ﬂow",
    "japanese": "東京都に住む日本語",
    "thai": "สวัสดีครับผม",
    "hebrew": "שלום עולם",
    "arabic": "مرحبا بالعالم",
    "emoji": "🦊 👩‍👩‍👧",
    "emoji and word": "🦊 fox",
    "quoted": 'she said "red" (or blue) -- a:b +c *d?',
    "number": "3.14 and 1,000",
    "control": "a\x00b\tc\nd",
    "empty": "",
    "dots": "...",
    "null": None,
    "stop": "the and of",
    "long": "x" * 10_000 + " after",
    "edge": "y" * 39 + " " + "z" * 40,
}


@pytest.fixture(scope="module", params=["rows", "segments", "tail", "pending", "memory"])
def strange(request: pytest.FixtureRequest) -> Iterator[Any]:
    """The strange texts, made once for all that only look."""
    with holding(request.param, STRANGE) as view:
        yield view


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("cafe CREME", ["accents"]),
        ("são", ["accents"]),
        ("sao", ["accents"]),
        ("STRASSE", ["sharp"]),
        ("fine", ["ligature"]),
        ("日本語", ["japanese"]),
        ("東京", ["japanese"]),
        ("ครับ", ["thai"]),
        ("שלום", ["hebrew"]),
        ("بالعالم", ["arabic"]),
        ("🦊", []),
        ("🦊 fox", ["emoji and word"]),
        ('"red"', ["quoted"]),
        ("(red OR nothing)", ["quoted"]),
        ("NOT red", ["quoted"]),
        ("text:red", ["quoted"]),
        ("re* gr?n", []),
        ("red~1", ["number", "quoted"]),
        ("\\", []),
        ("'; drop table Doc; --", []),
        ("the", ["stop"]),
        ("of", ["stop"]),
        ("", []),
        ("...", []),
        ("   ", []),
        ("x" * 10_000, []),
        ("after", ["long"]),
        ("y" * 39, ["edge"]),
        ("z" * 40, []),
        ("14", ["number"]),
        ("d", ["control", "quoted"]),
        (None, []),
    ],
)
def test_strange_words(strange: Any, words: str | None, found: list[str]) -> None:
    assert docs(strange, WORDS, w=words) == found


@pytest.mark.parametrize(
    ("words", "found"),
    [
        ("a sao", ["accents"]),
        ("creme sao", []),
        ("住む日本語", ["japanese"]),
        ("ครับผม", ["thai"]),
        ("עולם שלום", []),
        ("שלום עולם", ["hebrew"]),
        ("or blue", ["quoted"]),
        ('"red" or', ["quoted"]),
        ("and of", ["stop"]),
        ("3 14", ["number"]),
        ("", []),
        ("...", []),
        ("x" * 10_000, []),
    ],
)
def test_strange_phrases(strange: Any, words: str, found: list[str]) -> None:
    assert docs(strange, PHRASE, w=words) == found


@pytest.mark.parametrize(
    ("words", "edits", "found"),
    [
        ("caffe", 1, ["accents"]),
        ("CAFFÉ", 1, ["accents"]),
        ("caf", 0, []),
        ("日本", 1, ["japanese"]),
        ("שלוים", 1, ["hebrew"]),
        ("bleu", 2, ["quoted"]),
        ("bleu", 1, []),
        ("thee", 1, ["stop"]),
        ("🦊", 2, []),
        ("", 2, []),
    ],
)
def test_strange_misspelt_words(strange: Any, words: str, edits: int, found: list[str]) -> None:
    text = f"query q($w: String) {{ match {{ $d: Doc fuzzy($d.text, $w, {edits}) }} return"
    assert docs(strange, text + " { $d.slug as d } }", w=words) == found


def test_what_is_null_is_neither_found_nor_missed(where: str) -> None:
    with holding(where, {"null": None, "red": "red", "blue": "blue"}) as view:
        said = "match { $d: Doc %s } return { $d.slug as d }"
        assert docs(view, said % 'search($d.text, "red")') == ["red"]
        assert docs(view, said % 'not search($d.text, "red")') == ["blue"]
        assert docs(view, said % 'search($d.text, "red") is null') == ["null"]
        assert docs(view, said % 'not match_text($d.text, "red")') == ["blue"]
        assert docs(view, said % 'not fuzzy($d.text, "red", 0)') == ["blue"]
        text = "query q($w: String?) { match { $d: Doc search($d.text, $w) is null } return"
        assert len(docs(view, text + " { $d.slug as d } }", w=None)) == 3


def test_a_text_of_ten_megabytes(where: str) -> None:
    texts = {"long": "lorem ipsum " * 850_000 + "needle in hay", "short": "ipsum"}
    with holding(where, texts) as view:
        assert docs(view, WORDS, w="needle") == ["long"]
        assert docs(view, PHRASE, w="needle in hay") == ["long"]
        wanted = Corpus.of(texts.values())
        for slug, score in column(view, SCORES, "score", w="ipsum").items():
            assert score == pytest.approx(wanted.score(texts[slug], "ipsum"), rel=1e-4)


# Scores and places.


def test_scores_are_the_formula_a_filter_changes_none_and_ties_go_by_id(where: str) -> None:
    texts = {f"d{n}": text for n, text in enumerate(
        ["red fox", "red red fox", "blue", None, "...", "fox red", "red fox", "fox"]
    )}  # fmt: skip
    corpus = Corpus.of(texts.values())
    with holding(where, texts) as view:
        for words in ("red", "red fox", "Red RED red", "fox green", "green", "..."):
            found = column(view, SCORES, "score", w=words)
            wanted = {slug: corpus.score(text, words) for slug, text in texts.items()}
            assert found == {k: v if v is None else pytest.approx(v) for k, v in wanted.items()}
        assert list(column(view, SCORES, "score", w="red")) == [
            "d1", "d0", "d5", "d6", "d2", "d4", "d7", "d3",
        ]  # fmt: skip
        only = SCORES.replace("$d: Doc", '$d: Doc $d.slug >= "d5"')
        full = column(view, SCORES, "score", w="red")
        assert column(view, only, "score", w="red") == {k: full[k] for k in ("d5", "d6", "d7")}


def test_more_ties_than_are_asked_for_go_by_id(where: str) -> None:
    texts = {f"d{999 - n}": "red fox" for n in range(400)}
    with holding(where, texts) as view:
        best = SCORES.removesuffix("}") + "limit 2 }"
        assert list(column(view, best, "score", w="red")) == ["d600", "d601"]


def test_a_misspelt_word_finds_however_many_words_are_near_it(where: str) -> None:
    texts = {f"d{n}": f"w{n:02d}" for n in range(100)}
    fuzzy = WORDS.replace("search", "fuzzy")
    with holding(where, texts) as view:
        assert len(docs(view, fuzzy, w="wzz")) == 100


def test_rows_behind_an_index_are_scored_as_those_under_it() -> None:
    """Hazard 20: both by the statistics of all, whatever maintenance has got to."""
    first = {f"a{n}": "red fox" for n in range(6)}
    later = {f"b{n}": "red blue blue " + "on " * n for n in range(4)}
    with new() as g, limits(**SEGMENTS):
        for texts in (first, later):
            with g.transaction() as tx:
                tx.append("Doc", [{"slug": slug, "text": text} for slug, text in texts.items()])
            if texts is first:
                g.optimize()
        assert "4 rows that it does not cover yet" in g.explain(SCORES, params={"w": "red"})
        corpus = Corpus.of([*first.values(), *later.values()])
        for words in ("red", "blue fox"):
            assert column(g, SCORES, "score", w=words) == {
                slug: pytest.approx(corpus.score(text, words), abs=1e-6)
                for slug, text in {**first, **later}.items()
            }
        assert docs(g, WORDS.replace("search", "fuzzy"), w="blux") == list(later)


def test_a_direction_is_obeyed_and_what_has_no_rank_is_last(where: str) -> None:
    with holding(where, {"a": "red", "b": None, "c": "red red blue", "d": "blue"}) as view:
        up = SCORES.replace("order { bm25($d.text, $w) }", "order { bm25($d.text, $w) asc }")
        down = SCORES.replace("order { bm25($d.text, $w) }", "order { bm25($d.text, $w) desc }")
        assert list(column(view, up, "score", w="red")) == ["d", "c", "a", "b"]
        assert list(column(view, down, "score", w="red")) == ["a", "c", "d", "b"]
        assert list(column(view, down, "score", w=None)) == ["a", "b", "c", "d"]


def test_an_order_key_removes_no_row(where: str) -> None:
    with holding(where, {"a": None, "b": "", "c": "red"}) as view:
        assert len(column(view, SCORES, "score", w="red")) == 3


@pytest.mark.parametrize(
    ("cut", "found"),
    [
        ("limit 0", []),
        ("limit 1", ["d0"]),
        ("limit 99", ["d0", "d1", "d2", "d3"]),
        ("limit 2 offset 1", ["d1", "d2"]),
        ("offset 3", ["d3"]),
        ("offset 99", []),
        ("limit 1 offset 99", []),
    ],
)
def test_limits_and_offsets(where: str, cut: str, found: list[str]) -> None:
    texts = {f"d{n}": "red " + "x " * n for n in range(4)}
    with holding(where, texts) as view:
        assert list(column(view, SCORES[:-1] + cut + " }", "score", w="red")) == found


@pytest.mark.parametrize("optimized", [False, True])
def test_an_empty_table(optimized: bool) -> None:
    with new() as g, limits(**SEGMENTS):
        if optimized:
            g.optimize()
        assert docs(g, WORDS, w="red") == docs(g, PHRASE, w="red") == []
        assert column(g, NEAR, "far", q=[1, 0, 0]) == {}
        with g.transaction() as tx:
            tx.append("Doc", {"slug": "a", "text": "red"})
        g.mutate("delete Doc where true")
        assert docs(g, WORDS, w="red") == []
        assert column(g, SCORES, "score", w="red") == {}


def test_reciprocal_ranks_by_hand(where: str) -> None:
    """Words: b, then a. Vectors: a, then c. Of d there is neither."""
    rows = [
        {"slug": "a", "text": "red blue green", "v": [1, 0, 0]},
        {"slug": "b", "text": "red", "v": None},
        {"slug": "c", "text": "blue", "v": [1, 1, 0]},
        {"slug": "d", "text": "blue", "v": [0, 0, 0]},
    ]
    with new() as g, limits(**SEGMENTS):
        with g.transaction() as tx:
            tx.append("Doc", rows)
        if where == "segments":
            g.optimize()
        for k in (", k=60", "", ", 60", ", k=1"):
            ranks = f'rrf(bm25($d.text, "red"), nearest($d.v, [1.0, 0.0, 0.0]){k})'
            text = f"match {{ $d: Doc }} return {{ $d.slug as d, {ranks} as s }}"
            found = column(g, text + f" order {{ {ranks} }} limit 9", "s")
            n = 1 if k == ", k=1" else 60
            assert list(found) == ["a", "b", "c", "d"]
            wanted = [1 / (n + 1) + 1 / n, 1 / n, 1 / (n + 1), 0]
            assert list(found.values()) == pytest.approx(wanted)


# Vectors.


def test_distances_of_what_is_null_zero_or_far(where: str) -> None:
    vectors = {"same": [2, 0, 0], "null": None, "zero": [0, 0, 0], "across": [0, 3, 0],
               "back": [-1, 0, 0], "also": [5, 0, 0]}  # fmt: skip
    with holding(where, vectors, "v") as view:
        found = column(view, NEAR, "far", q=[1, 0, 0])
        assert list(found) == ["also", "same", "across", "back", "null", "zero"]
        assert list(found.values()) == [
            pytest.approx(0), pytest.approx(0), pytest.approx(1), pytest.approx(2), None, None,
        ]  # fmt: skip
        nowhere = column(view, NEAR, "far", q=[0, 0, 0])
        assert list(nowhere) == sorted(vectors)
        assert set(nowhere.values()) == {None}


@pytest.mark.parametrize("length", [1e-14, 1e14])
def test_very_short_and_very_long_vectors_keep_their_direction(where: str, length: float) -> None:
    vectors = {"a": [length, 0, 0], "b": [length, length, 0], "c": [0, length, 0]}
    with holding(where, vectors, "v") as view:
        found = column(view, NEAR, "far", q=[1, 0, 0])
        assert list(found) == ["a", "b", "c"]
        assert list(found.values()) == pytest.approx([0, 1 - math.sqrt(0.5), 1], abs=1e-6)


@pytest.mark.parametrize("vector", [[1.0, 2.0], [1.0] * 4, [], "text", None, 7], ids=str)
def test_a_vector_that_does_not_fit_is_no_parameter(vector: Any) -> None:
    with new() as g:
        with g.transaction() as tx:
            tx.append("Doc", {"slug": "a", "v": [1, 2, 3]})
        with pytest.raises(OmnigraphError):
            g.query(NEAR, params={"q": vector}).to_pylist()


@pytest.mark.parametrize("item", [math.nan, math.inf, -math.inf])
def test_nothing_is_near_a_vector_that_is_not_finite(where: str, item: float) -> None:
    with holding(where, {"a": [1, 2, 3], "b": None}, "v") as view:
        assert column(view, NEAR, "far", q=[item, 1, 1]) == {"a": None, "b": None}


# What cannot be asked.

FOUR_LONG = """query q($q: Vector(4)) {
  match { $d: Doc } return { nearest($d.v, $q) as s } limit 1 }"""
DEPENDENT = """match { $d: Doc $d cites $e }
  return { rrf(nearest($d.v, $e.v), bm25($d.text, "x")) as s } limit 1"""


@pytest.mark.parametrize(
    ("text", "code", "said"),
    [
        ('match { $d: Doc search($d.year, "red") } return { $d.slug as d }', "T20", "I32"),
        ('match { $d: Doc search($d.v, "red") } return { $d.slug as d }', "T20", "Vector(3)"),
        ("match { $d: Doc search($d.text, 7) } return { $d.slug as d }", "T20", ""),
        ('match { $d: Doc match_text($d.year, "red") } return { $d.slug as d }', "T20", "I32"),
        ('match { $d: Doc fuzzy($d.text, "red", "two") } return { $d.slug as d }', "T20", ""),
        ('match { $d: Doc fuzzy($d.text, "red", 3) } return { $d.slug as d }', "T20", "2"),
        ('match { $d: Doc fuzzy($d.text, "red", -1) } return { $d.slug as d }', "T20", ""),
        (
            "match { $d: Doc } return { nearest($d.v, [1.0, 2.0]) as s } limit 1",
            "T19", "Vector(3)",
        ),
        (
            FOUR_LONG,
            "T19", "Vector(4)",
        ),
        ("match { $d: Doc } return { nearest($d.text, [1.0]) as s } limit 1", "T19", "String"),
        ("match { $d: Doc } return { nearest($d.v, 7) as s } limit 1", "T19", ""),
        (
            "match { $d: Doc } return { nearest($d.v, [1.0, 2.0, 3.0]) as s }",
            "T17", "limit",
        ),
        (
            'match { $d: Doc bm25($d.text, "red") > 1.0 } return { $d.slug as d }',
            "T21", "",
        ),
        (
            'match { $d: Doc } return { $d.slug as d } order { $d.slug, bm25($d.text, "x") }',
            "T21", "",
        ),
        (
            'match { $d: Doc } return { rrf(bm25($d.text, "x")) as s }',
            "T21", "",
        ),
        (
            DEPENDENT,
            "T21", "",
        ),
        (
            'match { $d: Doc } return { rrf(bm25($d.text, "x"), bm25($d.text, "y"), k=0) as s }',
            "T21", "",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_searched_says_why(text: str, code: str, said: str) -> None:
    with new() as g, pytest.raises(InvalidQuery) as refused:
        g.query(text, params={"q": [1, 2, 3, 4]} if "$q" in text else {}).to_pylist()
    found = {d.code: d.message for d in refused.value.diagnostics}
    assert code in found
    assert said in str(refused.value)


def test_a_misspelt_word_of_more_than_32_letters_is_refused() -> None:
    text = "query q($w: String) { match { $d: Doc fuzzy($d.text, $w, 2) } return { $d.slug as d } }"
    with new() as g:
        with g.transaction() as tx:
            tx.append("Doc", {"slug": "a", "text": "y" * 32})
        assert docs(g, text, w="y" * 32) == ["a"]
        assert docs(g, text, w="y" * 30) == ["a"]
        with pytest.raises(OmnigraphError, match="32"):
            g.query(text, params={"w": "y" * 33}).to_pylist()


def test_a_text_for_nearest_without_a_model_says_so() -> None:
    with new() as g:
        with g.transaction() as tx:
            tx.append("Doc", {"slug": "a", "v": [1, 2, 3]})
        text = 'match { $d: Doc } return { nearest($d.v, "red fox") as s } limit 1'
        with pytest.raises(OmnigraphError, match="@embed"):
            g.query(text).to_pylist()


# Branches, old refs, edges.


def test_a_branch_that_diverged_has_a_corpus_of_its_own() -> None:
    with new() as g, limits(**SEGMENTS):
        with g.transaction() as tx:
            tx.append("Doc", [{"slug": f"d{n}", "text": "red " * n + "fox"} for n in range(6)])
        g.optimize()
        g.create_branch("x")
        x = g.branch("x")
        with x.transaction() as tx:
            tx.append("Doc", [{"slug": f"x{n}", "text": "red"} for n in range(4)])
        with g.transaction() as tx:
            tx.append("Doc", {"slug": "m", "text": "green"})
        for view in (g, x, g.at("main~1"), omnigraph.open(g.root).branch("x")):
            rows = view.scan("Doc").read_all().to_pylist()
            corpus = Corpus.of(row["text"] for row in rows)
            wanted = {row["slug"]: pytest.approx(corpus.score(row["text"], "red")) for row in rows}
            assert column(view, SCORES, "score", w="red") == wanted


def test_an_old_ref_is_searched_as_its_schema_says() -> None:
    with new() as g, limits(**SEGMENTS):
        with g.transaction() as tx:
            near = {"v": [1, 2, 3]}
            tx.append("Doc", [{"slug": "a", "text": "red"}, {"slug": "b", "text": "Blue"} | near])
        g.optimize()
        old = g.commit.id
        bare = SCHEMA.replace("text: String? @index", "text: String?")
        assert g.apply_schema(bare).applied
        assert docs(g, WORDS, w="blue") == ["b"]
        g.optimize()
        g.mutate('update Doc set { text: "green" } where slug = "a"')
        assert docs(g, WORDS, w="red green") == ["a"]
        assert docs(g.at(old), WORDS, w="red") == ["a"]
        g.apply_schema(SCHEMA)
        assert docs(g, WORDS, w="green") == ["a"]
        g.optimize()
        assert docs(g, WORDS, w="green") == ["a"]
        g.restore(old)
        assert docs(g, WORDS, w="red green") == ["a"]


def test_edges_are_searched_like_nodes(where: str) -> None:
    with new() as g, limits(**SEGMENTS):
        with g.transaction() as tx:
            tx.append("Doc", [{"slug": name} for name in "abc"])
            tx.append("Cites", [
                {"from": "a", "to": "b", "why": "red fox"}, {"from": "a", "to": "c", "why": "fox"},
                {"from": "b", "to": "c", "why": None},
            ])  # fmt: skip
        if where == "segments":
            g.optimize()
        text = """match { $d: Doc $d $w:cites $e search($w.why, "fox") }
          return { $e.slug as d, bm25($w.why, "red") as s } order { bm25($w.why, "red") }"""
        found = column(g, text, "s")
        assert list(found) == ["b", "c"]
        assert found["b"] > found["c"] == 0


def test_what_a_transaction_deletes_and_changes_is_not_found() -> None:
    with new() as g, limits(**SEGMENTS):
        with g.transaction() as tx:
            tx.append("Doc", [{"slug": name, "text": f"red {name}"} for name in "abcd"])
        g.optimize()
        with g.transaction() as tx:
            tx.upsert("Doc", [{"slug": "a", "text": "blue"}, {"slug": "e", "text": "red"}])
            tx.delete("Doc", where='slug = "b"')
            assert docs(tx, WORDS, w="red") == ["c", "d", "e"]
            assert docs(g, WORDS, w="red") == ["a", "b", "c", "d"]
        assert docs(g, WORDS, w="red") == ["c", "d", "e"]
