"""Golden pairs: each `.gq` under tests/golden/gq with the diagnostics (`.out`), the formatted text
(`.fmt`) and the summary of its queries (`.json`) that it must give. `UPDATE_GOLDEN=1` writes them
anew."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import pytest

from omnigraph.lang.diagnostics import render_all
from omnigraph.lang.gq import TITLES, compile_file, compile_query, parse_queries
from omnigraph.lang.gq import parse as parse_module
from omnigraph.lang.gq.format import format_queries
from omnigraph.lang.gq.grammar import Grammar, load_grammar
from omnigraph.lang.gq.lint import lint_file
from omnigraph.lang.grammar_tables import Reduction
from tests.unit.lang.gq.world import catalog

GOLDEN = Path(__file__).parents[3] / "golden" / "gq"
INPUTS = sorted(GOLDEN.glob("*.gq"))
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))
ASKED_BY_NAME = {"Q013"}
"""Codes that no text has by itself: a name that was asked for is not in it."""


def read(path: Path) -> str:
    return path.read_bytes().decode()


def results(path: Path) -> Iterator[tuple[str, str | None]]:
    """Suffix and content of each expected file; None if there must be none."""
    text = read(path)
    errors = compile_file(text, catalog()).diagnostics
    linted = lint_file(parse_queries(text).file, catalog())
    yield ".out", render_all(errors or linted.diagnostics, text, path.name) or None
    yield ".fmt", format_queries(text).text
    summary = msgspec.json.format(msgspec.json.encode(linted.queries), indent=2).decode() + "\n"
    yield ".json", summary if linted.queries else None


@pytest.mark.parametrize("path", INPUTS, ids=lambda path: path.stem)
def test_a_text_gives_its_golden_results(path: Path) -> None:
    for suffix, content in results(path):
        expected = path.with_suffix(suffix)
        if UPDATE and content is None:
            expected.unlink(missing_ok=True)
        elif UPDATE and content is not None:
            expected.write_bytes(content.encode())
        assert (read(expected) if expected.exists() else None) == content


def test_every_expected_file_belongs_to_an_input() -> None:
    names = {path.stem for path in INPUTS}
    assert {path.stem for path in GOLDEN.iterdir()} == names


def test_every_code_has_a_golden_and_every_golden_code_a_title() -> None:
    shown = "".join(read(path) for path in GOLDEN.glob("*.out"))
    seen = set(re.findall(r"^(?:error|warning)\[(\w+)\]: ", shown, re.MULTILINE))
    assert seen == set(TITLES) - ASKED_BY_NAME


def test_a_query_that_is_not_in_the_text_is_told_with_a_near_name() -> None:
    text = "query one() { match { $p: Person } return { $p } }"
    (missing,) = compile_query(text, catalog(), "onw").diagnostics
    assert (missing.code, missing.suggestion) == ("Q013", "did you mean `one`?")
    assert compile_query(text, catalog()).query is not None
    (none,) = compile_query("", catalog()).diagnostics
    assert none.code == "Q013"
    (two,) = compile_query(text + text.replace("one", "two"), catalog()).diagnostics
    assert two.suggestion == "name one of one, two"


def test_every_production_of_the_grammar_is_read_by_a_golden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: set[tuple[str, int]] = set()

    def note(reduction: Reduction, children: list[Any]) -> Any:
        used.add((reduction.rule, reduction.size))
        return reduction.build(children)

    grammar = load_grammar()
    noting = Grammar(
        {
            state: {
                terminal: Reduction(a.size, a.rule, partial(note, a))
                if isinstance(a, Reduction)
                else a
                for terminal, a in row.items()
            }
            for state, row in grammar.actions.items()
        },
        grammar.moves,
        grammar.start,
        grammar.lexer,
    )
    monkeypatch.setattr(parse_module, "load_grammar", lambda: noting)
    for path in INPUTS:
        parse_queries(read(path))
    productions = {
        (a.rule, a.size)
        for row in grammar.actions.values()
        for a in row.values()
        if isinstance(a, Reduction)
    }
    assert sorted(productions - used) == []
