"""Texts that the grammars make, and broken ones: each has an answer or diagnostics, and formatting
what parses changes its look once and its meaning never."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from omnigraph.lang.diagnostics import REPORTED, Diagnostic, render_all
from omnigraph.lang.gq import compile_file, parse_queries
from omnigraph.lang.gq.format import format_queries
from omnigraph.lang.gq.grammar import load_grammar as gq_grammar
from omnigraph.lang.gq.lint import lint_file
from omnigraph.lang.pg import compile_schema, parse_schema
from omnigraph.lang.pg.format import format_schema
from omnigraph.lang.pg.grammar import load_grammar as pg_grammar
from omnigraph.lang.pg.lint import lint_schema
from omnigraph.lang.pg.print import print_schema
from omnigraph.lang.tokens import Token
from tests.hostile.grammars import gq, pg
from tests.unit.lang.gq.world import catalog, without_spans


def require_shown(diagnostics: tuple[Diagnostic, ...], text: str) -> None:
    assert len(diagnostics) <= REPORTED + 1
    for one in diagnostics:
        assert 0 <= one.span.start <= one.span.end <= len(text)
        assert one.message
    assert bool(render_all(diagnostics, text)) == bool(diagnostics)


def require_stable(
    text: str,
    format_text: Callable[[str], Any],
    tree_of: Callable[[str], object],
    comments_of: Callable[[str], Counter[str]],
) -> bool:
    """Whether the text parses. If it does, formatting it changes no tree and loses no comment, and
    formatting it again changes nothing."""
    once = format_text(text).text
    if once is None:
        return False
    assert tree_of(once) == tree_of(text)
    assert format_text(once).text == once
    assert comments_of(once) == comments_of(text)
    return True


def words_of(comments: list[Token]) -> Counter[str]:
    return Counter(re.sub(r"\s+", " ", comment.text).strip() for comment in comments)


# Queries


def query_tree(text: str) -> object:
    parsed = parse_queries(text)
    assert not parsed.diagnostics
    return without_spans(parsed.file)


def query_comments(text: str) -> Counter[str]:
    comments: list[Token] = []
    gq_grammar().lexer.tokens(text, lambda _: None, comments)
    return words_of(comments)


def try_query(text: str) -> bool:
    found = compile_file(text, catalog())
    require_shown(found.diagnostics, text)
    parsed = parse_queries(text)
    lint_file(parsed.file, catalog())
    parses = require_stable(text, format_queries, query_tree, query_comments)
    assert parses == (not parsed.diagnostics)
    return parses


# Schemas


def schema_tree(text: str) -> object:
    parsed = parse_schema(text)
    assert not parsed.diagnostics
    return without_spans(parsed.tree)


def schema_comments(text: str) -> Counter[str]:
    comments: list[Token] = []
    list(pg_grammar().lexer.tokens(text, lambda _: None, comments=comments))
    return words_of(comments)


def try_schema(text: str) -> bool:
    checked = compile_schema(text)
    require_shown(checked.diagnostics, text)
    parsed = parse_schema(text)
    lint_schema(parsed.tree)
    parses = require_stable(text, format_schema, schema_tree, schema_comments)
    assert parses == (not parsed.diagnostics)
    if checked.schema is not None:
        assert compile_schema(print_schema(checked.schema)).schema == checked.schema
    return parses


LANGUAGES = {"gq": (gq, try_query), "pg": (pg, try_schema)}


def try_many(language: str, seeds: range) -> float:
    """The part of the texts that parse. A failure names the seed and shows the text."""
    grammar, attempt = LANGUAGES[language]
    parsed = 0
    for seed in seeds:
        text = grammar().text(seed)
        try:
            parsed += attempt(text)
        except Exception as error:
            raise AssertionError(f"seed {seed} of {language}: {text!r}") from error
    return parsed / len(seeds)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_text_of_the_grammar_has_an_answer_or_diagnostics(language: str) -> None:
    assert 0.4 < try_many(language, range(700)) < 0.9


@pytest.mark.slow
@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("start", range(0, 50_000, 10_000))
def test_many_texts_of_the_grammar_have_answers_or_diagnostics(language: str, start: int) -> None:
    try_many(language, range(start, start + 10_000))


# What it found


@pytest.mark.parametrize(
    "text",
    [
        "node A { x: node, y: I32 }",
        "node A { x: edge /* c */ , }",
        "interface A { x: implements, @key(x), }",
    ],
)
def test_a_comma_that_keeps_a_word_from_being_a_keyword_stays(text: str) -> None:
    assert try_schema(text)


@pytest.mark.parametrize("spare", range(60, 100))
@pytest.mark.parametrize("end", [" }", ", }"])
def test_commas_that_come_or_go_are_counted_when_a_line_is_filled(spare: int, end: str) -> None:
    assert try_query(f'match {{ $p: Person }} return {{ "{"x" * spare}" as a $p.age as b{end}')
    assert try_query(f'insert Person {{ name: "{"x" * spare}" age: 1{end}')


@pytest.mark.parametrize("order", ["sum(x) { $p knows $q }", "-avg(x) { $q: Person } desc"])
def test_a_result_column_has_no_meaning_within_a_pattern(order: str) -> None:
    text = f"match {{ $p: Person }} return {{ $p.age as x }} order {{ {order} }}"
    assert try_query(text)
    told = compile_file(text, catalog()).diagnostics
    assert [one.message for one in told] == ["`x` alone has no meaning here"]


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_rule_and_terminal_of_a_grammar_is_tried(language: str) -> None:
    grammar = LANGUAGES[language][0]()
    assert set(reachable(grammar.rules, grammar.start)) == set(grammar.rules) - {"wreck"}
    used = {part for ways in grammar.rules.values() for way in ways for part in way}
    assert used - set(grammar.rules) <= set(grammar.words)


def reachable(rules: Any, start: str) -> Iterator[str]:
    seen, todo = {start}, [start]
    while todo:
        name = todo.pop()
        yield name
        for part in {part for way in rules[name] for part in way}:
            if part in rules and part not in seen:
                seen.add(part)
                todo.append(part)
