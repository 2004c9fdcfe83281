"""Owns parsing: `.gq` text becomes a tree and a list of all syntax errors.

After an error the parser goes back to the nearest place where the grammar allows an error, skips to
the next clause, projection, assignment, part of a query or brace that fits there, and goes on.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import Any, Final, cast

import msgspec

from omnigraph.lang.diagnostics import Diagnostic, Span
from omnigraph.lang.gq.explain import explain_open_block, explain_token, repair_keyword
from omnigraph.lang.gq.grammar import load_grammar
from omnigraph.lang.gq.reader import BEGINNINGS, Reader
from omnigraph.lang.gq.tree import Explain, File, Query
from omnigraph.lang.grammar_tables import Reduction, take
from omnigraph.lang.tokens import BAD, END, Token

LARGEST_TEXT: Final = 1_000_000
"""In characters. Nobody writes a longer text, and a program should use parameters instead."""
GIVEN_UP: Final = 1_000
"""A text with this many errors is not in our language; the rest is not read."""
_EXPLAINED: Final = 200
"""After this many errors only their number matters: nobody reads further, and wording takes
time."""
_DEEPEST: Final = 300
"""The limit of states on the stack: parentheses, blocks and operators that are open at one
place."""
_OPENING: Final = frozenset({"LPAR", "LSQB", "LBRACE", "NEG", "NOT"})
_ASKED: Final = frozenset({"VAR", "MINUS", "NAME"})


class Parsed(msgspec.Struct, frozen=True):
    """With errors, the tree holds what could be read in spite of them. `complete` is False if the
    parser gave up before the end."""

    file: File
    diagnostics: tuple[Diagnostic, ...]
    complete: bool = True


def parse_queries(text: str) -> Parsed:
    if len(text) > LARGEST_TEXT:
        message = f"the text has {len(text)} characters, and {LARGEST_TEXT} are read"
        help_ = "split it, or give large values as parameters"
        problem = Diagnostic(code="Q009", message=message, span=Span(0, 0), suggestion=help_)
        return Parsed(File((), Span(0, 0)), (problem,), complete=False)
    parser = _Parser(text)
    file = parser.parse()
    found = tuple(parser.diagnostics)
    return Parsed(_mark_broken(file, found) if found else file, found, not parser.has_given_up)


class _Parser:
    """Walks the LALR tables; `states` and `values` are the two stacks."""

    def __init__(self, text: str) -> None:
        self.grammar = load_grammar()
        self.diagnostics: list[Diagnostic] = []
        lexer = self.grammar.lexer
        self.reader = Reader(text, lexer.tokens(text, self.diagnostics.append), lexer.words)
        self.words = lexer.words
        self.states: list[int] = [self.grammar.start]
        self.values: list[Any] = []
        self.resumed_at = -1
        self.owed = 0
        self.has_given_up = False

    def parse(self) -> File:
        """The loop over all tokens, written for speed."""
        actions, moves = self.grammar.actions, self.grammar.moves
        states, values = self.states, self.values
        token = self._next()
        while True:
            action = actions[states[-1]].get(token.type)
            if action is None:
                token = self._recover(token)
            elif type(action) is int:
                if len(states) > _DEEPEST and token.type in _OPENING:
                    token = self._restart(token)
                    continue
                states.append(action)
                values.append(token)
                token = self._next()
            else:
                size, rule, build = cast(Reduction, action)
                children = values[len(values) - size :]
                del values[len(values) - size :], states[len(states) - size :]
                values.append(build(children))
                if rule == "file":
                    return cast(File, values[-1])
                states.append(moves[states[-1]][rule])

    def _next(self) -> Token:
        return self._read(self.reader.advance())

    def _read(self, token: Token) -> Token:
        row = self.grammar.actions[self.states[-1]]
        if token.type not in _ASKED and "REF" not in row:
            return token
        return self.reader.read(token, self._expects)

    def _expects(self, terminal: str) -> bool:
        # Most terminals are not even in the row, and then nothing has to be tried.
        if terminal not in self.grammar.actions[self.states[-1]]:
            return False
        return self.grammar.expects(self.states, terminal)

    def _recover(self, token: Token) -> Token:
        """Reports the token, prepares the stacks to go on, and returns the token to go on with."""
        closes = self._is_head(token) and self.grammar.fits_after_closing(self.states, token.type)
        # A second error at the token where the parser took up again has the same cause.
        if token.type != BAD and token.start != self.resumed_at and not closes:
            self.diagnostics.append(self._explain(token))
            repaired = repair_keyword(self.grammar, self.states, token, self.words)
            if repaired is not None:
                return repaired
        if len(self.diagnostics) >= GIVEN_UP:
            self.has_given_up = True
            self.reader.at = len(self.reader.tokens) - 1
            token = self.reader.tokens[-1]
        if not closes:
            self._give_up(token)
        token = self._skip(token)
        self._close_blocks(token)
        self.resumed_at = token.start
        return token

    def _is_head(self, token: Token) -> bool:
        if token.type == END:
            return True
        return token.type in self.words.values() and self.reader.is_head(token)

    def _close_blocks(self, token: Token) -> None:
        """Closes open blocks so that the token fits."""
        last = self.diagnostics[-1].span.start if self.diagnostics else -1
        is_told = self.has_given_up or last == token.start
        while not self._expects(token.type):
            if not self._expects("RBRACE"):
                self._leave(token)
                return
            if not is_told:
                self.diagnostics.append(explain_open_block(token))
                is_told = True
            self._feed(Token("RBRACE", "", token.start))

    def _restart(self, token: Token) -> Token:
        """Drops what is nested too deeply, up to the next query."""
        message = "this is nested too deeply"
        span = Span(token.start, token.end)
        help_ = "split the expression or the query"
        self.diagnostics.append(
            Diagnostic(code="Q010", message=message, span=span, suggestion=help_)
        )
        self._leave(token)
        while token.type != END and not self.reader.begins_query():
            token = self.reader.advance()
        return self._read(token)

    def _explain(self, token: Token) -> Diagnostic:
        if len(self.diagnostics) < _EXPLAINED:
            return explain_token(self.grammar, self.states, token, self.words)
        span = Span(token.start, token.end)
        return Diagnostic(code="Q001", message="unexpected text", span=span)

    def _give_up(self, token: Token) -> None:
        """Drops unfinished nodes, down to a place where an error is allowed, and puts it there.
        `owed` then counts the braces that were opened in the dropped part."""
        self.owed = 0
        while (error := self._error()) is None:
            self._pop()
        self._feed(Token(error, "", token.start))

    def _leave(self, token: Token) -> None:
        """Drops everything that is open, so that the next item of the file can begin."""
        while len(self.states) > 2:
            self._pop()
        self._give_up(token)

    def _error(self) -> str | None:
        return next((e for e in ("BROKEN", "ERROR") if self._expects(e)), None)

    def _pop(self) -> None:
        self.states.pop()
        value = self.values.pop()
        self.owed += type(value) is Token and value.type == "LBRACE"

    def _feed(self, token: Token) -> None:
        """Takes a token that is expected."""
        take(self.grammar.actions, self.grammar.moves, self.states, self.values, token)

    def _skip(self, token: Token) -> Token:
        """The next token with which the parser can go on, outside braces that it skips."""
        depth = 0
        while token.type != END:
            if self.reader.begins_query():
                return Token("QUERY", token.text, token.start)
            if depth == 0 and not (token.type == "RBRACE" and self.owed):
                read = self._read(self.reader.tokens[self.reader.at])
                if self._resumes(read):
                    return read
            if token.type == "LBRACE":
                depth += 1
            elif token.type == "RBRACE" and depth:
                depth -= 1
            elif token.type == "RBRACE":
                self.owed = max(self.owed - 1, 0)
            token = self.reader.advance()
        return token

    def _resumes(self, token: Token) -> bool:
        if token.type in {"LEAD", "RBRACE", "LBRACE", "OPTIONAL"}:
            return self._expects(token.type)
        after = self.reader.ahead(1).type
        if token.type == "NOT":
            return after == "LBRACE" and self._expects("NOT")
        if token.type == "NAME":
            return after == "COLON" and self._expects("NAME") and not self._expects("LEAD")
        if self._is_head(token):
            return self.grammar.fits_after_closing(self.states, token.type)
        if token.type == "VAR":
            # Projections begin with variables; clauses were told by LEAD.
            return self._expects("VAR") and not self._expects("LEAD")
        return token.type in BEGINNINGS and self._expects(token.type)


def _mark_broken(file: File, diagnostics: tuple[Diagnostic, ...]) -> File:
    """Marks queries with a syntax error inside, because the checker would miss what was dropped."""
    starts = sorted(d.span.start for d in diagnostics)

    def is_hit(span: Span) -> bool:
        at = bisect_left(starts, span.start)
        return at < len(starts) and starts[at] <= span.end

    items: list[Any] = []
    for item in file.items:
        marked: Any = item
        if isinstance(item, Query) and is_hit(item.span):
            marked = msgspec.structs.replace(item, is_broken=True)
        elif isinstance(item, Explain) and is_hit(item.span):
            query = msgspec.structs.replace(item.query, is_broken=True)
            marked = msgspec.structs.replace(item, query=query)
        items.append(marked)
    return File(tuple(items), file.span)
