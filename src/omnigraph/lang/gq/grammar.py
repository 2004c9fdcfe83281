"""Owns gq.lark at run time: its LALR tables and its lexer."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

from omnigraph.lang.gq.reader import Lexer
from omnigraph.lang.grammar_tables import Actions, Moves, after, expects, load_tables


class Grammar(NamedTuple):
    """The tables as `omnigraph.lang.grammar_tables` describes them."""

    actions: Actions
    moves: Moves
    start: int
    lexer: Lexer

    def expects(self, states: list[int], terminal: str) -> bool:
        """Whether the terminal would be accepted with these states on the stack."""
        return expects(self.actions, self.moves, states, terminal, "file")

    def fits_after_closing(self, states: list[int], terminal: str) -> bool:
        """Whether the terminal would be accepted once some of the open blocks are closed."""
        while not self.expects(states, terminal):
            if not self.expects(states, "RBRACE"):
                return False
            states = after(self.actions, self.moves, states, "RBRACE")
        return True


def grammar_text() -> str:
    return (files("omnigraph.lang.gq") / "gq.lark").read_text(encoding="utf-8")


@cache
def load_grammar() -> Grammar:
    from omnigraph.lang.gq.build import TreeBuilder

    tables = load_tables("omnigraph.lang.gq", TreeBuilder())
    return Grammar(tables.actions, tables.moves, tables.start, Lexer(tables.terminals))
