"""Owns the reading rules of `.gq`: which terminal a word or sign is, depending on its surroundings.

The text is first split into tokens. The parser then asks about each token as it meets it, because a
word is a keyword only where the grammar has a place for it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Final

from omnigraph.lang.grammar_tables import Terminals
from omnigraph.lang.tokens import BAD_PATTERNS, COMMENTS, END, Report, Scanner, Token, readers

Expects = Callable[[str], bool]

RESERVED: Final = frozenset({"and", "or", "not", "is", "in", "null", "true", "false"})
OPERATOR_WORDS: Final = frozenset({"contains", "starts_with", "ends_with"})
BEGINNINGS: Final = ("QUERY", "MATCH", "INSERT", "UPDATE", "DELETE", "BRANCH", "EXPLAIN")
"""The keywords that begin an item of a file."""

_NAMES: Final = frozenset({"NAME", "TYPE"})
_OPERANDS: Final = frozenset(
    {"VAR", "NAME", "TYPE", "STRING", "INTEGER", "FLOAT", "LPAR", "LSQB", "LBRACE"}
    | {"TRUE", "FALSE", "NULL", "NOT"}
)
_OPENING: Final = frozenset({"LPAR", "LSQB", "LBRACE"})
_CLOSING: Final = frozenset({"RPAR", "RSQB", "RBRACE"})
_ARGUMENTS: Final = 4096
"""How many tokens are looked through for the comma between two arguments."""
QUANTIFIERS: Final = ("any", "all", "none")
_WAYS: Final = ("all", "shortest")
_BLOCKS: Final = frozenset({"OPTIONAL", "EXISTS", "COUNT"})
_HEADS: Final = frozenset({"MATCH", "RETURN", "ORDER"})
_REF = re.compile(r"[A-Za-z0-9_.\-]+(?:/[A-Za-z0-9_.\-]+)*")
_END: Final = Token(END, "", 0)


class Lexer:
    def __init__(self, terminals: Terminals) -> None:
        patterns = {n: p for n, p in terminals.patterns.items() if n != "WHITE"}
        self._scanner = Scanner(patterns | BAD_PATTERNS, r"\Z")
        self._reserved = {w: t for w, t in terminals.words.items() if w in RESERVED}
        self.words: Mapping[str, str] = {
            w: t for w, t in terminals.words.items() if w not in RESERVED
        }

    def tokens(self, text: str, report: Report, comments: list[Token] | None = None) -> list[Token]:
        """All tokens; the last is END. Comments are appended to `comments`, if given."""
        found: list[Token] = []
        kinds, reserved = self._scanner.kinds, self._reserved
        after_dot = False
        for match in self._scanner.pattern.finditer(text, int(text.startswith("\ufeff"))):
            index = match.lastindex or 0
            kind, word, begin = kinds[index], match[index], match.start(index)
            if kind in COMMENTS:
                if comments is not None:
                    comments.append(Token(kind, word, begin))
                continue
            if kind == "NAME":
                if word in reserved and not after_dot:
                    kind = reserved[word]
            elif kind in _READERS:
                kind = _READERS[kind](word, begin, report)
            found.append(Token(kind, word, begin))
            if kind == END:
                break
            after_dot = kind == "DOT"
        return found


class Reader:
    """The tokens of one text and the position of the parser. `parameters` are those of the query
    that is being read."""

    def __init__(self, text: str, tokens: list[Token], words: Mapping[str, str]) -> None:
        self.text = text
        self.tokens = tokens
        self.at = -1
        self.parameters: frozenset[str] = frozenset()
        self._words = words

    def advance(self) -> Token:
        """The next token, as it is in the text."""
        if self.at < len(self.tokens) - 1:
            self.at += 1
        return self.tokens[self.at]

    def ahead(self, distance: int) -> Token:
        at = self.at + distance
        return self.tokens[at] if at < len(self.tokens) else _END

    def read(self, token: Token, expects: Expects) -> Token:
        """The token with its terminal at this place."""
        if token.type == "VAR":
            if self._leads(token) and expects("LEAD"):
                return Token("LEAD", token.text, token.start)
            if self._names_path(token) and expects("PATH"):
                return Token("PATH", token.text, token.start)
        elif token.type == "MINUS":
            if not expects("MINUS"):
                return Token("NEG", token.text, token.start)
        elif expects("REF"):
            return self._ref(token)
        elif token.type == "NAME":
            return self._read_name(token, expects)
        return token

    def begins_query(self) -> bool:
        """Whether `query name (` begins here, which can be nothing else."""
        return (
            self.ahead(0).text == "query"
            and self.ahead(1).type == "NAME"
            and self.ahead(2).type == "LPAR"
        )

    def keyword(self, token: Token) -> str | None:
        """The terminal of a word that is a keyword if the grammar has a place for it."""
        terminal = self._words.get(token.text)
        if token.type != "NAME" or terminal is None:
            return None
        after = self.ahead(1).type
        if terminal in _BLOCKS and after != "LBRACE":
            return None
        if token.text in OPERATOR_WORDS and (after == "COLON" or self._has_two_arguments()):
            return None
        if terminal == "DISTINCT" and after not in _OPERANDS:
            return None
        if terminal == "CASE" and self.ahead(1).text != "when":
            return None
        return terminal

    def _has_two_arguments(self) -> bool:
        """Whether parentheses with a comma follow: `contains($p.name, "a")` is a call, whatever
        stands before it."""
        depth = 0
        for distance in range(1, _ARGUMENTS):
            kind = self.ahead(distance).type
            depth += (kind in _OPENING) - (kind in _CLOSING)
            if depth <= 0 or kind == END:
                return False
            if depth == 1 and kind == "COMMA":
                return True
        return False

    def is_head(self, token: Token) -> bool:
        """Whether the word can only begin a part of a query. If it does not fit, something before
        it was not closed."""
        if self.begins_query():
            return True
        if self._words.get(token.text) not in _HEADS:
            return False
        if token.text == "return" and self.ahead(1).text == "distinct":
            return self.ahead(2).type == "LBRACE"
        # An edge may have this name; its bounds then follow.
        bounds = self.ahead(2).type == "INTEGER" and self.ahead(3).type in {"COMMA", "RBRACE"}
        return self.ahead(1).type == "LBRACE" and not bounds

    def _read_name(self, token: Token, expects: Expects) -> Token:
        if token.text in QUANTIFIERS and self._quantifies() and expects("QUANTIFIER"):
            return Token("QUANTIFIER", token.text, token.start)
        keyword = self.keyword(token)
        if keyword is not None and (expects(keyword) or self.is_head(token)):
            if keyword == "QUERY":
                self.parameters = self._declared()
            elif expects("BRANCH"):
                # Only between items of a file, so a bare body begins.
                self.parameters = frozenset()
            return Token(keyword, token.text, token.start)
        after = self.ahead(1).type
        if after == "LPAR" and expects("CALL"):
            return Token("CALL", token.text, token.start)
        if after == "EQUAL" and expects("ARG"):
            return Token("ARG", token.text, token.start)
        return token

    def _quantifies(self) -> bool:
        """Whether `($x in` follows."""
        return [self.ahead(n).type for n in (1, 2, 3)] == ["LPAR", "VAR", "IN"]

    def _declared(self) -> frozenset[str]:
        """The parameters of the query whose first token is here."""
        found: set[str] = set()
        distance = 3
        # A brace or the next query ends the parameters, even if they were never closed.
        while self.ahead(distance).type not in {"LBRACE", END}:
            if self.ahead(distance).text == "query":
                break
            if self.ahead(distance).type == "VAR":
                found.add(self.ahead(distance).text)
            distance += 1
        return frozenset(found)

    def _leads(self, token: Token) -> bool:
        """Whether a variable begins a binding or traversal, judged by what follows it."""
        after = self.ahead(1)
        if after.type in {"COLON", "VAR", "LPAR", "STAR", "TYPE"}:
            return True
        if after.type == "NAME":
            return after.text not in OPERATOR_WORDS or self._is_hop(token)
        return after.type == "LT" and self._is_undirected(1)

    def _names_path(self, token: Token) -> bool:
        """Whether `$p =` names the traversal that follows. Else it is a filter, and what follows
        its right side is another clause: `$a = $b  $c: Person`."""
        if self.ahead(1).type != "EQUAL" or token.text == "$_" or token.text in self.parameters:
            return False
        word = self.ahead(2)
        if word.text in _WAYS and word.type == "NAME":
            return True
        if word.type != "VAR" or word.text in self.parameters:
            return False
        after = self.ahead(3).type
        if after in _NAMES:
            return self._is_end(4)
        if after == "STAR":
            return self._is_end(4) and self.ahead(4).text not in self.parameters
        if after == "LT":
            return self._is_undirected(3)
        return after == "LPAR" and self._is_choice(4)

    def _is_end(self, distance: int) -> bool:
        """Whether a hop can end before this token: with its bounds, or its other end."""
        kind = self.ahead(distance).type
        return kind == "VAR" or (kind == "LBRACE" and self.ahead(distance + 1).type == "INTEGER")

    def _is_choice(self, distance: int) -> bool:
        """Whether `a|b)` and what a hop ends with stands here."""
        while self.ahead(distance).type in _NAMES:
            if self.ahead(distance + 1).type == "RPAR":
                return self._is_end(distance + 2)
            if self.ahead(distance + 1).type != "PIPE":
                return False
            distance += 2
        return False

    def _is_hop(self, token: Token) -> bool:
        """Whether `contains` and the like are edges: they are between two bare variables of a
        match."""
        following = self.ahead(2)
        if following.type == "LBRACE":
            return True
        if following.type != "VAR" or self.ahead(3).type == "DOT":
            return False
        return token.text not in self.parameters and following.text not in self.parameters

    def _is_undirected(self, distance: int) -> bool:
        """Whether the `<` here begins a hop: `<name|name>` or `<*>`."""
        distance += 1
        if self.ahead(distance).type == "STAR":
            return self.ahead(distance + 1).type == "GT"
        while self.ahead(distance).type in _NAMES:
            if self.ahead(distance + 1).type == "GT":
                return True
            if self.ahead(distance + 1).type != "PIPE":
                return False
            distance += 2
        return False

    def _ref(self, token: Token) -> Token:
        """The name of a branch may contain signs that are tokens elsewhere."""
        if token.type == "STRING":
            return Token("REF", token.text, token.start)
        found = _REF.match(self.text, token.start)
        if found is None or token.type == END:
            return token
        while self.ahead(1).start < found.end() and self.ahead(1).type != END:
            self.at += 1
        return Token("REF", found[0], token.start)


_READERS: Final = readers("Q")
