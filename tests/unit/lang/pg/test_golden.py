"""Golden pairs: each `.pg` under tests/golden/pg with the diagnostics (`.out`), the formatted text
(`.fmt`) and the schema (`.json`) that it must give. `UPDATE_GOLDEN=1` writes them anew."""

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
from omnigraph.lang.grammar_tables import Reduction
from omnigraph.lang.pg import TITLES, compile_schema, parse_schema
from omnigraph.lang.pg import parse as parse_module
from omnigraph.lang.pg.format import format_schema
from omnigraph.lang.pg.grammar import SchemaGrammar, load_grammar
from omnigraph.lang.pg.lint import lint_schema

GOLDEN = Path(__file__).parents[3] / "golden" / "pg"
INPUTS = sorted(GOLDEN.glob("*.pg"))
UPDATE = bool(os.environ.get("UPDATE_GOLDEN"))


def read(path: Path) -> str:
    return path.read_bytes().decode()


def results(path: Path) -> Iterator[tuple[str, str | None]]:
    """Suffix and content of each expected file; None if there must be none."""
    text = read(path)
    checked = compile_schema(text)
    diagnostics = checked.diagnostics
    if checked.schema is not None:
        diagnostics = lint_schema(parse_schema(text).tree)
    yield ".out", render_all(diagnostics, text, path.name) or None
    yield ".fmt", format_schema(text).text
    schema = msgspec.json.format(msgspec.json.encode(checked.schema), indent=2).decode() + "\n"
    yield ".json", schema if checked.schema is not None else None


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
    assert seen == set(TITLES)


def test_every_production_of_the_grammar_is_read_by_a_golden(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used: set[tuple[str, int]] = set()

    def note(reduction: Reduction, children: list[Any]) -> Any:
        used.add((reduction.rule, reduction.size))
        return reduction.build(children)

    grammar = load_grammar()
    noting = SchemaGrammar(
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
        parse_schema(read(path))
    productions = {
        (a.rule, a.size)
        for row in grammar.actions.values()
        for a in row.values()
        if isinstance(a, Reduction)
    }
    assert productions - used == set()
