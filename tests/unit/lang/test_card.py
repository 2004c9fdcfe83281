"""The card of both languages: short, complete, and right, also its grammar."""

from __future__ import annotations

import re

import pytest
from lark import Lark
from lark.exceptions import LarkError

from omnigraph.lang.card import READS, SCHEMA, WRITES, grammar_rules, language_card
from omnigraph.lang.gq import compile_file
from omnigraph.lang.gq.check.functions import AGGREGATES, FUNCTIONS, TEXT_TESTS
from omnigraph.lang.gq.check.searches import FUNCTIONS as SEARCHES
from omnigraph.lang.gq.grammar import grammar_text
from omnigraph.lang.pg import compile_schema
from omnigraph.model.types import Base
from tests.unit.lang.gq.world import catalog_of

EXAMPLES = [*READS, *WRITES]
OF_THE_SHELL = {"branch", "create", "merge", "list", "from", "into", "explain", "analyze"}
TERMINALS = r"""
NAME: /[a-z_][A-Za-z0-9_]*/
TYPE: /[A-Z][A-Za-z0-9_]*/
VAR: /\$[a-z_][A-Za-z0-9_]*/
STRING: /"(?:[^"\\\r\n]|\\[^\r\n])*"/
FLOAT: /[0-9]+\.[0-9]+/
INTEGER: /[0-9]+/
VALUE: /[A-Za-z0-9_-]+/
%ignore /[ \t\r\n]+/
%ignore /\/\/[^\r\n]*/
"""


def words() -> set[str]:
    found = set(re.findall(r'^[A-Z_]+: "([a-z_]+)"', grammar_text(), re.MULTILINE))
    assert len(found) > 30
    return found


def parser_of(package: str, start: str) -> Lark:
    """The grammar as the card tells it, read by a parser that needs no hints."""
    rules = grammar_rules(package).items()
    told = "\n".join(f"{name}: {' | '.join(each)}" for name, each in rules)
    used = set(re.findall(r"\b[A-Z]+\b", told))
    kept = [line for line in TERMINALS.splitlines() if line.split(":")[0] in used or "%" in line]
    return Lark(told + "\n" + "\n".join(kept), parser="earley", lexer="dynamic", start=start)


def test_the_card_is_one_page() -> None:
    assert len(language_card()) < 8_500
    assert len(language_card().splitlines()) < 190


def test_every_function_and_word_and_type_is_on_the_card() -> None:
    card = language_card()
    for name in (*FUNCTIONS, *AGGREGATES, *TEXT_TESTS, *SEARCHES, *Base, "coalesce"):
        assert re.search(rf"\b{name}\b", card), name
    for word in words() - (OF_THE_SHELL - {"explain", "analyze"}):
        assert f'"{word}"' in card, word


@pytest.mark.parametrize("example", EXAMPLES, ids=[words for words, _ in EXAMPLES])
def test_an_example_is_right(example: tuple[str, str]) -> None:
    checked = compile_schema(SCHEMA)
    assert checked.schema is not None, checked.diagnostics
    found = compile_file(example[1], catalog_of(checked.schema)).diagnostics
    assert found == (), found


def test_the_examples_leave_no_word_out() -> None:
    said = set(re.findall(r"[a-z_]+", " ".join(text for _, text in EXAMPLES)))
    missing = words() - said - OF_THE_SHELL
    assert missing <= {"starts_with", "ends_with", "asc", "true", "false"}, missing


def test_the_grammar_on_the_card_reads_what_the_program_reads() -> None:
    queries = parser_of("omnigraph.lang.gq", "file")
    for _, text in EXAMPLES:
        queries.parse(text)
    for wrong in ("match { $p: Person } return $p.name", "match ($p)-[knows]->($q) return { $p }"):
        with pytest.raises(LarkError):
            queries.parse(wrong)
    schemas = parser_of("omnigraph.lang.pg", "schema")
    schemas.parse(SCHEMA)
    with pytest.raises(LarkError):
        schemas.parse("node Person { name String }")


def test_nothing_that_only_mistakes_need_is_on_the_card() -> None:
    assert not re.search(r"wreck|broken|ERROR|BROKEN", language_card())
