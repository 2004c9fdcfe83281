"""Passages: a piece of the text itself, with the words marked that make it match."""

from __future__ import annotations

import re
from random import Random
from typing import Any

import pytest

from tests.search.oracle import has_word, words
from tests.search.test_search_edges import column, holding

SHOW = """query q($w: String?) { match { $d: Doc }
  return { $d.slug as d, highlight($d.text, $w) as p } }"""
MARKED = re.compile(r"\*\*(.+?)\*\*", re.DOTALL)


def shown(view: Any, wanted: str | None) -> dict[str, Any]:
    return column(view, SHOW, "p", w=wanted)


@pytest.mark.parametrize(
    ("text", "wanted", "passage"),
    [
        ("red fox", "fox", "red **fox**"),
        ("Red FOX", "red fox", "**Red** **FOX**"),
        ("Café!", "cafe", "**Café**!"),
        ("blue", "red", "blue"),
        ("", "red", ""),
        ("...", "red", "..."),
        (None, "red", None),
        ("red", None, None),
        ("red", "...", "red"),
        ("日本語 です", "日本語", "**日本語** です"),
        ("שלום עולם", "עולם", "שלום **עולם**"),
        ("🦊 fox 🦊", "fox", "🦊 **fox** 🦊"),
        ("red-fox's", "fox", "red-**fox**'s"),
        ("tab\tred\nline", "red", "tab\t**red**\nline"),
    ],
)
def test_a_short_text_is_its_own_passage(
    text: str | None, wanted: str | None, passage: str | None
) -> None:
    with holding("rows", {"a": text}) as view:
        assert shown(view, wanted) == {"a": passage}


def test_a_passage_is_cut_out_of_the_text_and_marks_what_matches() -> None:
    chance = Random(5)
    filler = ["lorem", "ipsum", "dolor", "Café", "日本語", "שלום", "x" * 60, "sit,", "amet."]
    texts = {}
    for number in range(60):
        parts = [chance.choice(filler) for _ in range(chance.randint(0, 150))]
        for word in ("Needle", "HAY", "stack"):
            if chance.random() < 0.5:
                parts.insert(chance.randint(0, len(parts)), word)
        texts[f"d{number:02d}"] = " ".join(parts)
    wanted = "needle hay stack"
    with holding("rows", texts) as view:
        for slug, passage in shown(view, wanted).items():
            text = texts[slug]
            piece = MARKED.sub(r"\1", passage).strip("…")
            assert piece in text, (text, passage)
            assert len(piece) <= max(400, min(len(text), 160)), passage
            marked = MARKED.findall(passage)
            assert all(has_word(word, wanted) for word in marked), passage
            found = [word for word in words(piece) if word in words(wanted)]
            assert len(marked) == len(found), passage
            assert bool(marked) is bool(has_word(text, wanted)), passage
            assert passage.startswith("…") is not text.startswith(piece) or not piece, passage


def test_the_passage_with_the_most_words_is_chosen() -> None:
    far = "lorem " * 200
    text = f"needle {far} needle hay stack {far} hay"
    with holding("rows", {"a": text}) as view:
        passage = shown(view, "needle hay stack")["a"]
    assert "**needle** **hay** **stack**" in passage
    assert passage.startswith("…")
    assert passage.endswith("…")


def test_a_text_without_any_of_the_words_shows_its_beginning() -> None:
    text = "first words " + "lorem " * 200
    with holding("rows", {"a": text}) as view:
        passage = shown(view, "needle")["a"]
    assert passage.startswith("first words lorem")
    assert passage.endswith("…")
    assert text.startswith(passage.rstrip("…"))
