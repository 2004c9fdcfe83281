"""Owns pg.lark at run time: its LALR tables and its lexer."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from omnigraph.lang.grammar_tables import Actions, Moves, expects, load_tables
from omnigraph.lang.pg.lexer import SchemaLexer


class SchemaGrammar(NamedTuple):
    """The tables as `omnigraph.lang.grammar_tables` describes them."""

    actions: Actions
    moves: Moves
    start: int
    lexer: SchemaLexer

    def expects(self, states: list[int], terminal: str) -> bool:
        """Whether the terminal would be accepted with these states on the stack."""
        return expects(self.actions, self.moves, states, terminal, "schema")


def grammar_text() -> str:
    return (files("omnigraph.lang.pg") / "pg.lark").read_text(encoding="utf-8")


@cache
def load_grammar() -> SchemaGrammar:
    from omnigraph.lang.pg.build import SchemaTreeBuilder

    tables = load_tables("omnigraph.lang.pg", SchemaTreeBuilder())
    return SchemaGrammar(tables.actions, tables.moves, tables.start, SchemaLexer(*tables.terminals))
