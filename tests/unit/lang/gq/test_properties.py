"""What holds for every query and every text."""

from __future__ import annotations

import random
import re
from collections import Counter
from pathlib import Path

from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.lang.diagnostics import REPORTED, render_all
from omnigraph.lang.gq import compile_file, compile_query, parse_queries
from omnigraph.lang.gq.format import format_queries
from omnigraph.lang.gq.grammar import load_grammar
from omnigraph.lang.gq.lint import lint_file
from omnigraph.lang.tokens import Token
from tests.unit.lang.gq.drawn import Drawn, drawn_queries
from tests.unit.lang.gq.world import catalog, scatter, tokens_of, without_spans

seeds = st.integers(0, 2**32)
GOLDEN = sorted((Path(__file__).parents[3] / "golden" / "gq").glob("*.gq"))
SOUND = [
    text
    for text in (path.read_bytes().decode() for path in GOLDEN)
    # A branch name may hold signs that are tokens elsewhere, so it cannot be scattered.
    if not parse_queries(text).diagnostics and "branch" not in text
]
texts = st.sampled_from(SOUND) | drawn_queries.map(lambda drawn: drawn.text)


def formatted(text: str) -> str:
    result = format_queries(text)
    assert result.text is not None, render_all(result.diagnostics, text)
    return result.text


def comments_of(text: str) -> Counter[str]:
    comments: list[Token] = []
    load_grammar().lexer.tokens(text, lambda _: None, comments)
    return Counter(re.sub(r"\s+", " ", comment.text).strip() for comment in comments)


@given(drawn_queries)
def test_a_well_typed_query_over_any_schema_has_no_diagnostics(drawn: Drawn) -> None:
    result = compile_query(drawn.text, drawn.catalog)
    assert result.query is not None, render_all(result.diagnostics, drawn.text)


@given(texts, seeds)
def test_formatting_never_changes_the_tree(text: str, seed: int) -> None:
    scattered = scatter(text, seed)
    before = without_spans(parse_queries(scattered).file)
    assert without_spans(parse_queries(formatted(scattered)).file) == before


@given(texts, seeds)
def test_formatting_twice_is_formatting_once(text: str, seed: int) -> None:
    once = formatted(scatter(text, seed, comments=0.6))
    assert formatted(once) == once


@given(texts, seeds)
def test_formatting_keeps_every_comment(text: str, seed: int) -> None:
    scattered = scatter(text, seed, comments=0.6)
    assert comments_of(formatted(scattered)) == comments_of(scattered)


def check_any_text(text: str) -> None:
    """Any text has queries or diagnostics that can be shown, and nothing raises."""
    result = compile_file(text, catalog())
    assert len(result.diagnostics) <= REPORTED + 1
    for diagnostic in result.diagnostics:
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
    assert bool(render_all(result.diagnostics, text)) == bool(result.diagnostics)
    parsed = parse_queries(text)
    assert (format_queries(text).text is None) == bool(parsed.diagnostics)
    lint_file(parsed.file, catalog())


SIGNS = ["{", "}", "(", ")", "[", "]", ":", ",", "?", "@", "=", "-", "->", ".", "|", "<", ">"]
SIGNS += ["*", "/", "%", "+", "!=", "<=", '"', "//", "/*", "*/", "\\", "é", ";", "\n", "\ud800"]
WORDS = ["query", "match", "return", "distinct", "as", "order", "limit", "offset", "optional"]
WORDS += ["exists", "count", "contains", "insert", "update", "set", "delete", "where", "branch"]
WORDS += ["explain", "and", "or", "not", "is", "in", "null", "true", "$p", "$_", "$x", "Person"]
WORDS += ["name", "age", "knows", "worksAt", "1", "2.5", '"text"', "$p: Person", "$p knows $x"]
WORDS += ["match {", "return {", "query q() {", "not {", "$p.name", "$p.@id", "$p.age > 1", "sum("]
WORDS += ["insert Person {", "name: 1", "where name = 1", "branch create", "count {", "k=60"]


@given(st.lists(st.sampled_from(SIGNS + WORDS * 2), max_size=60), st.sampled_from(["", " "]))
def test_any_soup_of_words_gives_queries_or_diagnostics(words: list[str], glue: str) -> None:
    check_any_text(glue.join(words))


@given(st.text())
@example("\ufeff\ufeff")
@example("match {")
@example('match { $p: Person {name "x"} $p knows } return { $p.name as }')
def test_any_text_gives_queries_or_diagnostics(text: str) -> None:
    check_any_text(text)


@given(texts, seeds)
def test_any_damage_to_a_text_gives_queries_or_diagnostics(text: str, seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(chance.randint(1, 8)):
        at = chance.randint(0, len(text))
        end = min(len(text), at + chance.choice([0, 0, 1, 1, 5, 40]))
        text = text[:at] + chance.choice(["", *SIGNS, *WORDS]) + text[end:]
    check_any_text(text)


@given(texts, seeds)
def test_losing_one_token_gives_queries_or_diagnostics(text: str, seed: int) -> None:
    tokens = tokens_of(text)[:-1]
    lost = random.Random(seed).randrange(len(tokens)) if tokens else 0
    check_any_text(" ".join(t.text for i, t in enumerate(tokens) if i != lost))
