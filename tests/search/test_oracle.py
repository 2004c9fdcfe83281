"""The oracle of search against answers worked out by hand: who judges is judged first."""

from __future__ import annotations

import math

import pytest

from tests.search import oracle
from tests.search.oracle import Corpus


@pytest.mark.parametrize(
    ("text", "wanted", "any_word", "phrase"),
    [
        ("the Red fox", "red FOX", True, True),
        ("fox red", "red fox", True, False),
        ("red red fox", "red fox", True, True),
        ("red dog fox", "red fox", True, False),
        ("blue", "red fox", False, False),
        ("red", "...", False, False),
        ("", "red", False, False),
        ("...", "...", False, False),
        (None, "red", None, None),
        ("red", None, None, None),
        (None, None, None, None),
    ],
)
def test_words_and_phrases(
    text: str | None, wanted: str | None, any_word: bool | None, phrase: bool | None
) -> None:
    assert oracle.has_word(text, wanted) is any_word
    assert oracle.has_phrase(text, wanted) is phrase


@pytest.mark.parametrize(
    ("one", "other", "edits"),
    [("", "", 0), ("fox", "fox", 0), ("fox", "fax", 1), ("fox", "", 3), ("ab", "ba", 2),
     ("kitten", "sitting", 3), ("日本語", "日語", 1)],
)  # fmt: skip
def test_edits(one: str, other: str, edits: int) -> None:
    assert oracle.distance_of(one, other) == oracle.distance_of(other, one) == edits


def test_fuzzy_words_are_folded_on_both_sides() -> None:
    assert oracle.has_similar_word("Café", "CÁFÉS", 1) is True
    assert oracle.has_similar_word("Café", "cfs", 1) is False
    assert oracle.has_similar_word("Café", "caf", 0) is False
    assert oracle.has_similar_word(None, "caf", 0) is None


def test_the_score_of_two_texts_by_hand() -> None:
    """Two documents of 1 and 3 words; the third has no word and is none."""
    corpus = Corpus.of(["red", "red blue blue", "...", None])
    assert (corpus.documents, corpus.length) == (2, 2.0)
    rarity = math.log(1 + 0.5 / 2.5)
    short = rarity * 2.2 / (1 + 1.2 * (0.25 + 0.75 * 1 / 2))
    assert corpus.score("red", "red") == pytest.approx(short)
    assert corpus.score("red", "Red red") == pytest.approx(short), "a word counts once"
    rare = math.log(1 + 1.5 / 1.5)
    twice = rare * 2 * 2.2 / (2 + 1.2 * (0.25 + 0.75 * 3 / 2))
    assert corpus.score("red blue blue", "blue green") == pytest.approx(twice)
    assert corpus.score("green", "red") == 0
    assert corpus.score(None, "red") is None


def test_distances_by_hand() -> None:
    assert oracle.cosine_distance([1, 0], [0, 2]) == pytest.approx(1)
    assert oracle.cosine_distance([1, 1], [3, 3]) == pytest.approx(0, abs=1e-15)
    assert oracle.cosine_distance([1, 0], [-3, 0]) == pytest.approx(2)
    assert oracle.cosine_distance([1e-14, 0], [0, 1e14]) == pytest.approx(1)
    for bad in (None, [0, 0], [math.nan, 1], [math.inf, 1]):
        assert oracle.cosine_distance(bad, [1, 0]) is None
        assert oracle.cosine_distance([1, 0], bad) is None


def test_places_are_counted_from_zero_with_ties_by_id_and_end_with_the_window() -> None:
    assert oracle.places([(0.1, "x"), (0.1, "a"), (None, "n"), (-1.0, "b")]) == {
        "b": 0, "a": 1, "x": 2,
    }  # fmt: skip
    many = oracle.places((float(n), f"{n:05d}") for n in range(2000))
    assert (len(many), many["00999"]) == (1000, 999)


def test_fused_places_by_hand() -> None:
    ranks = [{"a": 0, "b": 1}, {"b": 0}]
    assert oracle.fused(ranks, "a") == pytest.approx(1 / 60)
    assert oracle.fused(ranks, "b", 1) == pytest.approx(1 / 2 + 1)
    assert oracle.fused(ranks, "c") == 0


def test_rows_are_ordered_with_ties_by_ids_and_no_rank_last() -> None:
    rows = [(None, ("a",)), (1.0, ("c",)), (1.0 + 1e-9, ("d",)), (1.0, ("b",)), (2.0, ("z",))]
    down = [ids for _, (ids,) in oracle.in_order(rows, descending=True, tie=oracle.TIE)]
    up = [ids for _, (ids,) in oracle.in_order(rows, descending=False, tie=oracle.TIE)]
    assert (down, up) == (["z", "b", "c", "d", "a"], ["b", "c", "d", "z", "a"])
