"""The tables that lie beside a grammar are those of the grammar."""

from __future__ import annotations

from importlib.resources import files

import pytest

from omnigraph.lang.grammar_making import GRAMMARS, make_tables
from omnigraph.lang.grammar_tables import TABLES


@pytest.mark.parametrize("package", GRAMMARS)
def test_the_tables_are_those_of_the_grammar(package: str) -> None:
    grammar, root = GRAMMARS[package]
    made = make_tables((files(package) / grammar).read_text(encoding="utf-8"), root)
    assert (files(package) / TABLES).read_bytes() == made, (
        "The grammar has changed: python -m omnigraph.lang.grammar_making"
    )
