"""Search in unusual surroundings: schemas that change, bounded memory, threads, copies, cleanup."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.query.search import texts, vectors
from omnigraph.model import indexes
from omnigraph.store.text_search import build_scratch
from omnigraph.store.vector_search import find_vectors
from tests.search.compare import mismatch
from tests.search.oracle import Corpus, cosine_distance
from tests.search.questions import draw_question
from tests.search.test_search_edges import NEAR, SCHEMA, SCORES, SETTINGS, WORDS, column, docs, new
from tests.search.world import SEGMENTS, World, limits, plain


def fill(g: Graph, texts: dict[str, str | None]) -> None:
    with g.transaction() as tx:
        tx.append("Doc", [{"slug": slug, "text": text} for slug, text in texts.items()])


# Schemas.


@pytest.mark.parametrize("indexed", [False, True])
def test_a_renamed_property_is_searched_on(indexed: bool) -> None:
    with new() as g, limits(**SEGMENTS):
        fill(g, {"a": "red", "b": "blue"})
        if indexed:
            g.optimize()
        renamed = 'words: String? @index @rename_from("text")'
        g.apply_schema(SCHEMA.replace("text: String? @index", renamed))
        asked = WORDS.replace("$d.text", "$d.words")
        assert docs(g, asked, w="red") == ["a"]
        g.mutate('insert Doc { slug: "c", words: "red" }')
        assert docs(g, asked, w="red") == ["a", "c"]
        g.optimize()
        assert docs(g, asked, w="red") == ["a", "c"]
        assert docs(g.at("main~2"), WORDS, w="red") == ["a"]


@pytest.mark.parametrize("indexed", [False, True])
def test_a_property_that_was_dropped_and_added_again_is_empty(indexed: bool) -> None:
    with new() as g, limits(**SEGMENTS):
        fill(g, {"a": "red", "b": "blue"})
        if indexed:
            g.optimize()
        g.apply_schema(SCHEMA.replace("text: String? @index", ""))
        g.apply_schema(SCHEMA)
        assert docs(g, WORDS, w="red blue") == []
        assert column(g, SCORES, "score", w="red") == {"a": None, "b": None}
        g.mutate('update Doc set { text: "red" } where slug = "b"')
        assert docs(g, WORDS, w="red") == ["b"]
        g.optimize()
        assert docs(g, WORDS, w="red") == ["b"]
        assert column(g, SCORES, "score", w="red") == {
            "a": None,
            "b": pytest.approx(Corpus.of(["red"]).score("red", "red")),
        }


def test_a_property_that_is_added_later_is_searched_in_old_rows_and_new() -> None:
    with new() as g, limits(**SEGMENTS):
        fill(g, {"a": "red"})
        g.optimize()
        g.apply_schema(SCHEMA.replace("year: I32?", "year: I32?  more: String? @index"))
        asked = WORDS.replace("$d.text", "$d.more")
        assert docs(g, asked, w="red") == []
        g.mutate('insert Doc { slug: "b", more: "red" }')
        assert docs(g, asked, w="red") == ["b"]
        g.optimize()
        assert docs(g, asked, w="red") == ["b"]


def test_overwriting_and_reverting_leave_nothing_behind() -> None:
    with new() as g, limits(**SEGMENTS):
        fill(g, {"a": "red", "b": "blue"})
        g.optimize()
        g.load([{"slug": "c", "text": "red"}], type="Doc", mode="overwrite")
        assert docs(g, WORDS, w="red blue") == ["c"]
        assert column(g, SCORES, "score", w="red").keys() == {"c"}
        g.optimize()
        corpus = Corpus.of(["red"])
        assert column(g, SCORES, "score", w="red") == {
            "c": pytest.approx(corpus.score("red", "red"))
        }
        done = g.mutate('update Doc set { text: "green" } where slug = "c"')
        assert done.commit is not None
        g.revert(done.commit.id)
        assert docs(g, WORDS, w="red green") == ["c"]
        assert docs(g, WORDS, w="green") == []


# Bounds.


@pytest.mark.parametrize("bounds", [{"cache_bytes": 0}, {"query_rows": 2}, {"lookup_rows": 0}])
@pytest.mark.parametrize("indexed", [False, True])
def test_bounds_of_memory_change_no_answer(bounds: dict[str, int], indexed: bool) -> None:
    with limits(**(SEGMENTS if indexed else {})):
        world = World(Random(11), segments=indexed, size=40)
        try:
            settings = replace(world.settings, **bounds)  # type: ignore[arg-type]
            with omnigraph.open(world.root, mode="r", settings=settings) as g:
                rows = plain(g)
                for seed in range(25):
                    question = draw_question(Random(seed))
                    found = g.query(question.text, params=dict(question.params)).to_pylist()
                    wrong = mismatch(question, rows, found, exact=True)
                    assert wrong is None, f"{question.text}\n{question.params}\n{wrong}"
        finally:
            world.close()


def test_many_threads_ask_one_handle() -> None:
    """Of several versions at once, so that what is kept for one is not given to another."""
    world = World(Random(12), size=30)
    try:
        for _ in range(3):
            world._update("main")
            world._delete("main")
        views = [world.g.at(commit) for commit in dict.fromkeys(world.past)]
        known = [plain(view) for view in views]
        with omnigraph.open(world.root, mode="r") as g:
            views = [g.at(view.commit.id) for view in views]

            def ask(seed: int) -> str | None:
                question = draw_question(Random(seed))
                at = seed % len(views)
                found = views[at].query(question.text, params=dict(question.params)).to_pylist()
                return mismatch(question, known[at], found, exact=True)

            with ThreadPoolExecutor(8) as pool:
                assert set(pool.map(ask, range(150))) == {None}
    finally:
        world.close()


# Places.


def test_a_copy_and_a_reader_find_the_same(tmp_path: Path) -> None:
    with limits(**SEGMENTS):
        world = World(Random(13), segments=True, size=25)
        try:
            world.g.copy(tmp_path / "copy")
            rows = plain(world.g)
            with omnigraph.open(tmp_path / "copy", mode="r") as g:
                for seed in range(25):
                    question = draw_question(Random(seed))
                    found = g.query(question.text, params=dict(question.params)).to_pylist()
                    assert mismatch(question, rows, found, exact=True) is None
        finally:
            world.close()


def test_a_handle_that_was_open_before_maintenance_and_cleanup_goes_on() -> None:
    root = f"memory://{uuid.uuid4().hex}"
    with omnigraph.init(root, schema=SCHEMA, settings=SETTINGS) as g, limits(**SEGMENTS):
        fill(g, {f"d{n}": f"red number{n}" for n in range(30)})
        g.optimize()
        other = omnigraph.open(root, settings=SETTINGS)
        pinned = other.snapshot()
        assert len(docs(other, WORDS, w="red")) == 30
        for n in range(5):
            g.mutate(f'update Doc set {{ text: "blue number{n}" }} where slug = "d{n}"')
        g.optimize()
        g.cleanup(keep=1, older_than=0.0)
        assert len(docs(other, WORDS, w="red")) == 25
        assert len(docs(other, WORDS, w="blue")) == 5
        assert len(docs(pinned, WORDS, w="red")) == 30, "grace keeps what it reads"
        other.close()


# Questions of strange size.


@pytest.mark.parametrize("indexed", [False, True])
def test_a_question_of_many_words(indexed: bool) -> None:
    with new() as g, limits(**SEGMENTS):
        fill(g, {f"d{n}": f"word{n} red" for n in range(50)})
        if indexed:
            g.optimize()
        many = " ".join(f"word{n}" for n in range(0, 4000, 2))
        assert len(docs(g, WORDS, w=many)) == 25
        assert len(docs(g, WORDS, w="red " * 20_000)) == 50
        found = column(g, SCORES, "score", w="red " * 5_000)
        assert found == pytest.approx(column(g, SCORES, "score", w="red"))


def test_ids_that_are_strange_break_ties() -> None:
    names = [" ", "a", "A", "é", "日", "🦊", '"', "\\", "\n", "a b", "z" * 500]
    rows: list[dict[str, Any]] = [{"slug": name, "text": "red", "v": [1, 0, 0]} for name in names]
    with new() as g, limits(**SEGMENTS):
        with g.transaction() as tx:
            tx.append("Doc", rows)
        for _ in range(2):
            assert list(column(g, SCORES, "score", w="red")) == sorted(names)
            assert list(column(g, NEAR, "far", q=[1, 0, 0])) == sorted(names)
            g.optimize()


# Pending rows.


@pytest.fixture
def indexed(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many texts each scratch index was made of."""
    sizes: list[int] = []

    def watched(given: Any, analysis: Any) -> Any:
        sizes.append(len(given))
        return build_scratch(given, analysis)

    monkeypatch.setattr(texts, "build_scratch", watched)
    return sizes


def test_a_transaction_indexes_what_is_pending_and_all_of_it_once_for_scores(
    indexed: list[int],
) -> None:
    with new(in_memory=True) as g, limits(**SEGMENTS):
        fill(g, {f"d{n}": f"red d{n}" for n in range(300)})
        g.optimize()
        with g.transaction() as tx:
            tx.upsert("Doc", [{"slug": "d7", "text": "blue"}, {"slug": "new", "text": "red blue"}])
            assert docs(tx, WORDS, w="blue") == ["d7", "new"]
            assert docs(tx, WORDS, w="d7 d8") == ["d8"]
            assert docs(tx, WORDS.replace("search", "fuzzy"), w="blux") == ["d7", "new"]
            assert indexed == [2]
            for _ in range(3):
                column(tx, SCORES, "score", w="blue")
            assert indexed == [2, 301]
            tx.upsert("Doc", [{"slug": "d8", "text": "blue"}])
            assert docs(tx, WORDS, w="blue") == ["d7", "d8", "new"]
            assert docs(tx, WORDS, w="d7 d8") == []
            assert indexed == [2, 301, 3]


def test_vectors_beside_pending_ones_are_found_by_their_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []

    def watched(*args: Any, **options: Any) -> Any:
        asked.append(args[3])
        return find_vectors(*args, **options)

    monkeypatch.setattr(vectors, "find_vectors", watched)
    near = NEAR.replace("limit 100", "limit 3")
    with new() as g, limits(**SEGMENTS):
        with g.transaction() as tx:
            tx.append("Doc", [{"slug": f"d{n:03d}", "v": [1, 3 - n / 100, 0]} for n in range(300)])
        g.optimize()
        with g.transaction() as tx:
            tx.delete("Doc", where='slug > "d288"')
            tx.upsert("Doc", [{"slug": "d288", "v": [0, 1, 0]}, {"slug": "new", "v": [-1, 1, 0]}])
            found = list(column(tx, near, "far", q=[1, 0, 0]))
            assert found == ["d287", "d286", "d285"], "what is hidden takes no place"
            tx.upsert("Doc", [{"slug": "new", "v": [2, 0, 0]}])
            assert list(column(tx, near, "far", q=[1, 0, 0])) == ["new", "d287", "d286"]
            assert asked, "the index is asked"


def test_vectors_that_are_in_memory_are_compared_without_an_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In several fragments, with deleted rows and rows without a vector, all or some of them."""
    chance = Random(5)
    rows: list[dict[str, Any]] = [
        {"slug": f"d{n:03d}", "year": n, "v": [chance.uniform(-1, 1) for _ in range(3)]}
        for n in range(300)
    ]
    rows[7]["v"], rows[8]["v"] = None, [0, 0, 0]
    text = """query q($q: Vector(3)) { match { $d: Doc %s }
      return { $d.slug as d, nearest($d.v, $q) as far } order { far } limit 20 }"""

    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("the index is asked")

    with new(in_memory=True) as g, limits(**SEGMENTS):
        for part in (rows[:100], rows[100:250], rows[250:]):
            with g.transaction() as tx:
                tx.append("Doc", part)
        g.optimize()
        with g.transaction() as tx:
            tx.delete("Doc", where="year > 200 and year < 230")
        left = [row for row in rows if not 200 < row["year"] < 230]
        g.query("match { $d: Doc } return { $d.v as v }").to_pylist()
        monkeypatch.setattr(vectors, "find_vectors", refused)
        for some, many in (("", left), ("$d.year >= 30", left[30:]), ("$d.year < 270", left[:-30])):
            asked = [chance.uniform(-1, 1) for _ in range(3)]
            far = {row["slug"]: cosine_distance(row["v"], asked) for row in many}
            wanted = sorted((value, slug) for slug, value in far.items() if value is not None)
            found = column(g, text % some, "far", q=asked)
            assert list(found) == [slug for _, slug in wanted[:20]]
            near = pytest.approx([value for value, _ in wanted[:20]], abs=1e-6)
            assert list(found.values()) == near
        assert "Doc.v by all vectors in memory, exact" in g.explain(
            text % "", params={"q": [1, 0, 0]}
        )


@pytest.mark.parametrize("others", [2, 4])
def test_the_vector_of_another_entity_is_looked_for_by_index(
    others: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As often as there are such entities, and not by comparing all vectors."""
    asked: list[Any] = []

    def watched(*args: Any, **options: Any) -> Any:
        asked.append(args[2].tolist())
        return find_vectors(*args, **options)

    monkeypatch.setattr(vectors, "find_vectors", watched)
    monkeypatch.setattr(vectors, "_FEW", 0)
    text = """query q($m: I32) { match { $d: Doc $o: Doc $o.year < $m }
      return { $d.slug as d, $o.slug as o, nearest($d.v, $o.v) as far }
      order { far, $o.slug } limit 6 }"""
    with new() as g, limits(**SEGMENTS):
        with g.transaction() as tx:
            tx.append("Doc", [
                {"slug": f"d{n:03d}", "v": [n % 60, 1, 0] if n else [0, 0, 0], "year": n}
                for n in range(300)
            ])  # fmt: skip
        expected = g.query(text, params={"m": others}).to_pylist()
        g.optimize()
        assert g.query(text, params={"m": others}).to_pylist() == expected
        assert len(asked) == others - 1, "a zero vector is not asked for"


def test_candidates_are_filtered_before_they_are_ranked_by_an_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Also where they are too many to be looked at one by one, and the nearest are none of them."""
    monkeypatch.setattr(vectors, "_FEW", 0)
    text = """match { $d: Doc $d.year > 100 } return { $d.slug as d }
      order { %s } limit 3"""
    near = text % "nearest($d.v, [1.0, 0.0, 0.0])"
    words = text % 'bm25($d.text, "red")'
    with new() as g, limits(**SEGMENTS):
        with g.transaction() as tx:
            tx.append("Doc", [
                {"slug": f"d{n:03d}", "v": [500, n, 0], "year": n, "text": "red " + "on " * n}
                for n in range(300)
            ])  # fmt: skip
        g.optimize()
        assert [row["d"] for row in g.query(near).to_pylist()] == ["d101", "d102", "d103"]
        assert [row["d"] for row in g.query(words).to_pylist()] == ["d101", "d102", "d103"]


def test_every_partition_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(indexes, "_PARTITION", 4)
    chance = Random(3)
    rows = {f"d{n:03d}": [chance.uniform(-1, 1) for _ in range(3)] for n in range(400)}
    near = NEAR.replace("limit 100", "limit 20")
    with new() as g, limits(**SEGMENTS):
        with g.transaction() as tx:
            tx.append("Doc", [{"slug": slug, "v": v} for slug, v in rows.items()])
        g.optimize()
        for _ in range(20):
            asked = [chance.uniform(-1, 1) for _ in range(3)]
            wanted = sorted(rows, key=lambda slug: cosine_distance(rows[slug], asked) or 0.0)
            assert list(column(g, near, "far", q=asked)) == wanted[:20]
