"""The grammar file: no conflicts, in the package, and lark only when it is needed."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
from lark import Lark, logger

from omnigraph.lang.pg.grammar import grammar_text, load_grammar
from omnigraph.lang.pg.lexer import CONSTRAINTS, DECLARATIONS


def conflicts(grammar: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What lark resolves by itself when it makes the tables."""
    caplog.clear()
    logger.propagate, level = True, logger.level
    logger.setLevel(logging.DEBUG)
    try:
        Lark(grammar, start="schema", parser="lalr", lexer="basic", debug=True)
    finally:
        logger.propagate = False
        logger.setLevel(level)
    return [message for message in caplog.messages if "conflict" in message.lower()]


def test_lark_resolves_no_conflict_of_the_grammar(caplog: pytest.LogCaptureFixture) -> None:
    assert conflicts(grammar_text(), caplog) == []


def test_a_conflict_would_be_seen(caplog: pytest.LogCaptureFixture) -> None:
    ambiguous = grammar_text().replace("CONSTRAINT NAME LPAR", "AT NAME LPAR")
    assert conflicts(ambiguous, caplog) != []


def test_the_lexer_knows_the_words_and_terminals_of_the_grammar() -> None:
    text = grammar_text()
    for terminal in (*DECLARATIONS, "IMPLEMENTS", "ENUM", "VECTOR", "VALUE", "NAME", "TYPE"):
        assert f"\n{terminal}: " in text
    assert "CONSTRAINT" in text
    assert {"key", "unique", "index", "range", "check"} == set(CONSTRAINTS)


def test_the_tables_are_made_once() -> None:
    assert load_grammar() is load_grammar()


def imported_after(statement: str) -> set[str]:
    """The modules of a fresh interpreter that has run the statement."""
    code = f"{statement}\nimport sys\nprint(*sorted(sys.modules))"
    command = [sys.executable, "-c", code]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_lark_is_not_imported_even_when_a_text_is_parsed() -> None:
    assert "lark" not in imported_after(
        "import omnigraph.lang.diagnostics, omnigraph.lang.pg, omnigraph.lang.pg.format, "
        "omnigraph.lang.pg.lint, omnigraph.lang.pg.print"
    )
    assert "lark" not in imported_after("import omnigraph.lang.pg as pg; pg.compile_schema('')")


def test_the_language_imports_no_more_of_arrow_than_the_model_does() -> None:
    model = imported_after("import omnigraph.model.schema, omnigraph.model.types")
    lang = imported_after("import omnigraph.lang.pg; omnigraph.lang.pg.compile_schema('node A {}')")
    assert {m for m in lang - model if m.startswith(("pyarrow", "numpy", "lance"))} == set()
