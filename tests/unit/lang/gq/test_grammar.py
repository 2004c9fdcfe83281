"""The grammar file: no conflicts, in the package, and lark only when it is needed."""

from __future__ import annotations

import logging
import subprocess
import sys

import pytest
from lark import Lark, logger

from omnigraph.lang.gq.grammar import grammar_text, load_grammar
from omnigraph.lang.gq.reader import BEGINNINGS, OPERATOR_WORDS, RESERVED


def conflicts(grammar: str, caplog: pytest.LogCaptureFixture) -> list[str]:
    """What lark resolves by itself when it makes the tables."""
    caplog.clear()
    logger.propagate, level = True, logger.level
    logger.setLevel(logging.DEBUG)
    try:
        Lark(grammar, start="file", parser="lalr", lexer="basic", debug=True)
    finally:
        logger.propagate = False
        logger.setLevel(level)
    return [message for message in caplog.messages if "conflict" in message.lower()]


def test_lark_resolves_no_conflict_of_the_grammar(caplog: pytest.LogCaptureFixture) -> None:
    assert conflicts(grammar_text(), caplog) == []


def test_a_conflict_would_be_seen(caplog: pytest.LogCaptureFixture) -> None:
    ambiguous = grammar_text().replace("| NEG unary", "| MINUS unary")
    assert conflicts(ambiguous, caplog) != []


def test_the_reader_knows_the_words_of_the_grammar() -> None:
    words = load_grammar().lexer.words
    assert set(BEGINNINGS) <= set(words.values())
    assert set(words) >= OPERATOR_WORDS
    assert not set(words) & RESERVED


def test_the_tables_are_made_once() -> None:
    assert load_grammar() is load_grammar()


def imported_after(statement: str) -> set[str]:
    """The modules of a fresh interpreter that has run the statement."""
    code = f"{statement}\nimport sys\nprint(*sorted(sys.modules))"
    command = [sys.executable, "-c", code]
    return set(subprocess.run(command, capture_output=True, text=True, check=True).stdout.split())


def test_lark_is_not_imported_even_when_a_text_is_parsed() -> None:
    assert "lark" not in imported_after(
        "import omnigraph.lang.gq, omnigraph.lang.gq.format, omnigraph.lang.gq.lint"
    )
    assert "lark" not in imported_after("import omnigraph.lang.gq as gq; gq.parse_queries('')")


def test_the_language_imports_no_more_of_arrow_than_the_model_does() -> None:
    model = imported_after("import omnigraph.model.catalog")
    lang = imported_after("import omnigraph.lang.gq; omnigraph.lang.gq.parse_queries('match {')")
    assert {m for m in lang - model if m.startswith(("pyarrow", "numpy", "lance"))} == set()
