"""What holds for every schema and every text."""

from __future__ import annotations

import random
import re
from collections import Counter

import msgspec
from hypothesis import example, given
from hypothesis import strategies as st

from omnigraph.lang.diagnostics import render_all
from omnigraph.lang.pg import REPORTED, compile_schema, parse_schema
from omnigraph.lang.pg.format import format_schema
from omnigraph.lang.pg.grammar import load_grammar
from omnigraph.lang.pg.lint import lint_schema
from omnigraph.lang.pg.print import print_schema
from omnigraph.lang.tokens import Token
from omnigraph.model.schema import Schema
from tests.unit.lang.pg.drawn import drawn_schemas, scatter, tokens_of

seeds = st.integers(0, 2**32)


def compiled(text: str) -> Schema:
    checked = compile_schema(text)
    assert checked.schema is not None, render_all(checked.diagnostics, text)
    return checked.schema


def formatted(text: str) -> str:
    result = format_schema(text)
    assert result.text is not None, render_all(result.diagnostics, text)
    return result.text


def comments_of(text: str) -> Counter[str]:
    comments: list[Token] = []
    list(load_grammar().lexer.tokens(text, lambda _: None, comments=comments))
    return Counter(re.sub(r"\s+", " ", comment.text).strip() for comment in comments)


@given(drawn_schemas)
def test_a_printed_schema_compiles_to_itself(schema: Schema) -> None:
    text = print_schema(schema)
    assert compiled(text) == schema
    assert msgspec.json.encode(compiled(text)) == msgspec.json.encode(schema)


@given(drawn_schemas)
def test_a_printed_schema_is_already_formatted(schema: Schema) -> None:
    assert formatted(print_schema(schema)) == print_schema(schema)


@given(drawn_schemas, seeds)
def test_white_space_and_comments_never_change_the_schema(schema: Schema, seed: int) -> None:
    assert compiled(scatter(print_schema(schema), seed)) == schema


@given(drawn_schemas, seeds)
def test_formatting_never_changes_the_schema(schema: Schema, seed: int) -> None:
    assert compiled(formatted(scatter(print_schema(schema), seed))) == schema


@given(drawn_schemas, seeds)
def test_formatting_twice_is_formatting_once(schema: Schema, seed: int) -> None:
    once = formatted(scatter(print_schema(schema), seed, comments=0.6))
    assert formatted(once) == once


@given(drawn_schemas, seeds)
def test_formatting_keeps_every_comment(schema: Schema, seed: int) -> None:
    text = scatter(print_schema(schema), seed, comments=0.6)
    assert comments_of(formatted(text)) == comments_of(text)


@given(drawn_schemas)
def test_a_printed_schema_can_be_linted(schema: Schema) -> None:
    text = print_schema(schema)
    assert all(d.code.startswith("L") for d in lint_schema(parse_schema(text).tree))


def check_any_text(text: str) -> None:
    """Any text has a schema or diagnostics, never both, and each of them can be shown."""
    checked = compile_schema(text)
    assert (checked.schema is None) == bool(checked.diagnostics)
    assert len(checked.diagnostics) <= REPORTED + 1
    for diagnostic in checked.diagnostics:
        assert 0 <= diagnostic.span.start <= diagnostic.span.end <= len(text)
    assert bool(render_all(checked.diagnostics, text)) == bool(checked.diagnostics)
    assert (format_schema(text).text is None) == bool(parse_schema(text).diagnostics)
    lint_schema(parse_schema(text).tree)


WORDS = [
    *[
        "interface",
        "node",
        "edge",
        "implements",
        "enum",
        "Vector",
        "true",
        "null",
        "and",
        "key",
        "Person",
        "name",
        "String",
        "I32",
    ],
    *[
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        ":",
        ",",
        "?",
        "@",
        "=",
        "-",
        "->",
        "..",
        ";",
        "%",
        "é",
        '"',
        "//",
        "/*",
        "*/",
        "\\",
        "1",
        "2.5",
        "1e5",
        "9999999999999999999999",
    ],
    *['"text"', '"\\q"', "@key(", "@card(0..1)", "@default(", "enum(a, b)", "\n", "\r", "\t", "$"],
    *["node A {", "edge B: A -> A", "x: String", "interface I { a: I32 }", "\ufeff", "\x00", "'"],
    *["@description", "@embed(", "@range(x, 1..", '@check(x, "(")', "@rename_from(", "\ud800"],
]


@given(st.lists(st.sampled_from(WORDS), max_size=60), st.sampled_from(["", " "]))
def test_any_soup_of_words_gives_a_schema_or_diagnostics(words: list[str], glue: str) -> None:
    check_any_text(glue.join(words))


@given(st.text())
@example("\ufeff\ufeff")
@example("node A{a:enum(/*")
@example("@" * 50)
def test_any_text_gives_a_schema_or_diagnostics(text: str) -> None:
    check_any_text(text)


@given(drawn_schemas, seeds)
def test_any_damage_to_a_text_gives_a_schema_or_diagnostics(schema: Schema, seed: int) -> None:
    chance = random.Random(seed)
    text = print_schema(schema)
    for _ in range(chance.randint(1, 8)):
        at = chance.randint(0, len(text))
        end = min(len(text), at + chance.choice([0, 0, 1, 1, 5, 40]))
        text = text[:at] + chance.choice(["", *WORDS]) + text[end:]
    check_any_text(text)


@given(drawn_schemas, seeds)
def test_losing_one_token_never_hides_where_it_was(schema: Schema, seed: int) -> None:
    tokens = tokens_of(print_schema(schema))[:-1]
    if tokens:
        lost = random.Random(seed).randrange(len(tokens))
        check_any_text(" ".join(t.text for i, t in enumerate(tokens) if i != lost))
