"""Owns parsing: `.pg` text becomes a tree and a list of all syntax errors.

After an error the parser goes back to the nearest place where the grammar allows an error, skips to
the next declaration, property, constraint or brace that fits there, and goes on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, cast

import msgspec

from omnigraph.lang.diagnostics import Diagnostic, Span
from omnigraph.lang.grammar_tables import Reduction, take
from omnigraph.lang.pg.explain import explain_open_body, explain_token, repair_keyword
from omnigraph.lang.pg.grammar import load_grammar
from omnigraph.lang.pg.lexer import DECLARATIONS, starts_property
from omnigraph.lang.pg.tree import Name, SchemaTree
from omnigraph.lang.tokens import BAD, END, Token

GIVEN_UP = 10_000
"""A text with this many errors is not in our language; the rest is not read."""
_EXPLAINED = 200
"""After this many errors only their number matters: nobody reads further, and wording takes
time."""


class ParsedSchema(msgspec.Struct, frozen=True):
    """With errors, the tree holds what could be read in spite of them. `complete` is False if there
    were so many that the parser gave up before the end."""

    tree: SchemaTree
    diagnostics: tuple[Diagnostic, ...]
    complete: bool = True


def parse_schema(text: str) -> ParsedSchema:
    parser = _SchemaParser(text)
    tree = parser.parse()
    return ParsedSchema(tree, tuple(parser.diagnostics), len(parser.diagnostics) < GIVEN_UP)


class _SchemaParser:
    """Walks the LALR tables; `states` and `values` are the two stacks."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.grammar = load_grammar()
        self.diagnostics: list[Diagnostic] = []
        self.states: list[int] = [self.grammar.start]
        self.values: list[Any] = []
        self.tokens = self._lex(0)

    def parse(self) -> SchemaTree:
        """The loop over all tokens, written for speed."""
        actions, moves = self.grammar.actions, self.grammar.moves
        states, values = self.states, self.values
        token = next(self.tokens)
        while True:
            action = actions[states[-1]].get(token.type)
            if action is None:
                token = self._recover(token)
            elif type(action) is int:
                states.append(action)
                values.append(token)
                token = next(self.tokens)
            else:
                size, rule, build = cast(Reduction, action)
                children = values[len(values) - size :]
                del values[len(values) - size :], states[len(states) - size :]
                values.append(build(children))
                if rule == "schema":
                    return cast(SchemaTree, values[-1])
                states.append(moves[states[-1]][rule])

    def _lex(self, start: int) -> Iterator[Token]:
        return self.grammar.lexer.tokens(self.text, self.diagnostics.append, start=start)

    def _recover(self, token: Token) -> Token:
        """Reports the token, prepares the stacks to go on, and returns the token to go on with."""
        closes = token.type in (*DECLARATIONS, END) and self.grammar.expects(self.states, "RBRACE")
        if token.type != BAD and not closes:
            self.diagnostics.append(self._explain(token))
            repaired = repair_keyword(self.grammar, self.states, token)
            if repaired is not None:
                return repaired
        if len(self.diagnostics) >= GIVEN_UP:
            token = Token(END, "", token.start)
        word = self.values[-1] if token.type == "COLON" and self.values else None
        self._give_up(token)
        token = self._skip(self._back(word) or token)
        if not self.grammar.expects(self.states, token.type):
            if len(self.diagnostics) < GIVEN_UP:
                self.diagnostics.append(explain_open_body(token))
            self._feed(Token("RBRACE", "", token.start))
        return token

    def _explain(self, token: Token) -> Diagnostic:
        if len(self.diagnostics) < _EXPLAINED:
            return explain_token(self.grammar, self.states, token)
        span = Span(token.start, token.end)
        return Diagnostic(code="P001", message="unexpected text", span=span)

    def _give_up(self, token: Token) -> None:
        """Drops unfinished nodes, down to a place where an error is allowed, and puts it there."""
        while (error := self._error()) is None:
            self._pop()
            if _is_annotation(self.values[-2:]):
                # Its arguments were wrong; without them there would only be another error.
                self._pop()
                self._pop()
        self._feed(Token(error, "", token.start))

    def _error(self) -> str | None:
        return next((e for e in ("BROKEN", "ERROR") if self.grammar.expects(self.states, e)), None)

    def _pop(self) -> None:
        self.states.pop()
        self.values.pop()

    def _back(self, word: object) -> Token | None:
        """The word before a colon, if a property can begin with it here: an unclosed parenthesis
        has swallowed it."""
        start = word.start if isinstance(word, Token) else -1
        if isinstance(word, Name):
            start = word.span.start
        if start < 0 or not self.grammar.expects(self.states, "NAME"):
            return None
        self.tokens = self._lex(start)
        return next(self.tokens)

    def _feed(self, token: Token) -> None:
        """Takes a token that is expected."""
        take(self.grammar.actions, self.grammar.moves, self.states, self.values, token)

    def _skip(self, token: Token) -> Token:
        """The next token with which the parser can go on, outside braces that it skips."""
        depth = 0
        while token.type not in DECLARATIONS and token.type != END:
            if len(self.diagnostics) >= GIVEN_UP:
                return Token(END, "", token.start)
            if token.type == "VALUE":
                # The values of an enum that was never closed are words like all others.
                self.tokens = self._lex(token.start)
            elif depth == 0 and self._resumes(token):
                return token
            elif token.type == "LBRACE":
                depth += 1
            elif token.type == "RBRACE":
                depth = max(depth - 1, 0)
            token = next(self.tokens)
        return token

    def _resumes(self, token: Token) -> bool:
        if token.type in {"LBRACE", "RBRACE", "CONSTRAINT"}:
            return self.grammar.expects(self.states, token.type)
        return starts_property(token, self.text) and self.grammar.expects(self.states, token.type)


def _is_annotation(values: list[Any]) -> bool:
    """Whether the stack ends with `@name`."""
    return [v.type for v in values if isinstance(v, Token)] == ["AT", "NAME"]
