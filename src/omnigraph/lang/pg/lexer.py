"""Owns the words of `.pg`: text becomes tokens, one at a time, with the terminals of pg.lark.

Whether a word is a keyword depends on what follows it, so every word can be used as a name. Invalid
text is reported here and becomes a BAD token; the parser decides how to go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from omnigraph.lang.tokens import BAD_PATTERNS, COMMENTS, END, Report, Scanner, Token, readers

CONSTRAINTS: Final = ("key", "unique", "index", "range", "check")
DECLARATIONS: Final = ("INTERFACE", "NODE", "EDGE")

_SKIP: Final = r"(?:[ \t\r\n\f]++|//[^\r\n]*+|/\*[^*]*+(?:\*(?!/)[^*]*+)*\*/)*"
_BEFORE_PUNCTUATION = re.compile(_SKIP + r"[:,)=(]")
_BEFORE_PARENTHESIS = re.compile(_SKIP + r"\(")
_BEFORE_COLON = re.compile(_SKIP + r":")
_BEFORE_CONSTRAINT = re.compile(rf"{_SKIP}(?:{'|'.join(CONSTRAINTS)})(?!\w){_SKIP}\(")


class SchemaLexer:
    """`patterns` are the terminals of the grammar that text can match by itself. `words` are the
    keywords with their terminals."""

    def __init__(self, patterns: Mapping[str, str], words: Mapping[str, str]) -> None:
        plain = {name: p for name, p in patterns.items() if name not in {"WHITE", "VALUE"}}
        inside = ("LPAR", "VALUE", "COMMA", "STRING", "LINE_COMMENT", "BLOCK_COMMENT")
        self._plain = Scanner(plain | BAD_PATTERNS, r"\Z")
        self._values = Scanner({name: patterns[name] for name in inside}, "")
        self._words = dict(words)

    def tokens(
        self, text: str, report: Report, *, start: int = 0, comments: list[Token] | None = None
    ) -> Iterator[Token]:
        """The tokens from `start` on; the last is END. Comments are appended to `comments`, if
        given."""
        position = start or int(text.startswith("\ufeff"))
        kind, after_at = "", False
        while True:
            inside = kind == "ENUM"
            scanner = self._values if inside else self._plain
            for match in scanner.pattern.finditer(text, position):
                index = match.lastindex or 0
                kind, found, begin = scanner.kinds[index], match[index], match.start(index)
                if kind in _PLAIN:
                    yield Token(kind, found, begin)
                    continue
                if kind in COMMENTS:
                    if comments is not None:
                        comments.append(Token(kind, found, begin))
                    continue
                if kind == END:
                    position = match.end()
                    break
                kind = self._decide(kind, found, begin, after_at, text, report)
                after_at = kind == "AT"
                yield Token(kind, found, begin)
                if kind == "ENUM":
                    position = begin + len(found)
                    break
            # The values of an enum end where no more of them are, plain text at its end only.
            if kind == END and not inside:
                yield Token(END, "", match.start())
                return

    def _decide(
        self, kind: str, found: str, begin: int, after_at: bool, text: str, report: Report
    ) -> str:
        """The terminal of a match that is not obvious."""
        if kind in _NAMES:
            if found not in self._words:
                return kind
            return _keyword(self._words[found], kind, text, begin + len(found), after_at)
        if kind == "AT":
            return "CONSTRAINT" if _BEFORE_CONSTRAINT.match(text, begin + 1) else kind
        return _READERS[kind](found, begin, report) if kind in _READERS else kind


def starts_property(token: Token, text: str) -> bool:
    """Whether a property begins here, judged by the token and the colon after it."""
    return bool(token.text[:1].isidentifier() and _BEFORE_COLON.match(text, token.end))


def _keyword(keyword: str, kind: str, text: str, end: int, after_at: bool) -> str:
    """The terminal of a word that may be a keyword, depending on its surroundings."""
    if keyword in {"TRUE", "FALSE", "NULL", "RESERVED"}:
        return keyword
    if keyword in {"ENUM", "VECTOR"}:
        return keyword if not after_at and _BEFORE_PARENTHESIS.match(text, end) else kind
    return kind if after_at or _BEFORE_PUNCTUATION.match(text, end) else keyword


_PLAIN: Final = frozenset(
    {"LBRACE", "RBRACE", "LPAR", "RPAR", "LSQB", "RSQB", "COLON", "COMMA", "QMARK", "EQUAL"}
    | {"MINUS", "ARROW", "DOTS", "VALUE"}
)
_NAMES: Final = frozenset({"NAME", "TYPE"})
_READERS: Final = readers("P")
