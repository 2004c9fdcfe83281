"""Owns the words of `.pg`: text to tokens, one at a time, with the terminals of pg.lark.

Which words are keywords depends on what follows them, so every word stays usable as a name. Text
that is no token is reported here and comes out as a BAD token; the parser decides how to go on.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Final

import msgspec

from omnigraph.lang.diagnostics import Diagnostic, Span

Report = Callable[[Diagnostic], None]

BAD: Final = "BAD"
END: Final = "$END"
CONSTRAINTS: Final = ("key", "unique", "index", "range", "check")
DECLARATIONS: Final = ("INTERFACE", "NODE", "EDGE")
SMALLEST_INTEGER: Final = -(2**63)
LARGEST_INTEGER: Final = 2**64 - 1

_SKIP: Final = r"(?:[ \t\r\n\f]|//[^\r\n]*|/\*(?:[^*]|\*(?!/))*+\*/)*+"
_BEFORE_PUNCTUATION = re.compile(_SKIP + r"[:,)=(]")
_BEFORE_PARENTHESIS = re.compile(_SKIP + r"\(")
_BEFORE_COLON = re.compile(_SKIP + r":")
_BEFORE_CONSTRAINT = re.compile(rf"{_SKIP}(?:{'|'.join(CONSTRAINTS)})(?!\w){_SKIP}\(")
_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))")
_ESCAPES: Final = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_BAD: Final = {
    "BAD_STRING": r'"(?:[^"\\\r\n]|\\[^\r\n])*+\\?',
    "BAD_COMMENT": r"/\*(?s:.*)",
    "BAD_NUMBER": r"[0-9]\w*+(?:\.\w++)*+",
    "BAD_NAME": r"\w++",
    "BAD_CHARACTER": r"[^\x00-\x7f]++|(?s:.)",
}


class Token(msgspec.Struct, frozen=True, gc=False):
    """`type` is the name of a terminal."""

    type: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class _Scanner:
    """One pattern that eats white space and then always matches one of the named terminals."""

    def __init__(self, terminals: Mapping[str, str], last: str) -> None:
        self.kinds = ("", *terminals, END)
        groups = "|".join(f"({pattern})" for pattern in terminals.values())
        self.pattern = re.compile(rf"[ \t\r\n\f]*+(?:{groups}|({last}))")


class Lexer:
    """`patterns` are the terminals of the grammar that text can match by itself; `words` are the
    keywords, each with its terminal."""

    def __init__(self, patterns: Mapping[str, str], words: Mapping[str, str]) -> None:
        plain = {name: p for name, p in patterns.items() if name not in {"WHITE", "VALUE"}}
        inside = ("LPAR", "VALUE", "COMMA", "STRING", "LINE_COMMENT", "BLOCK_COMMENT")
        self._plain = _Scanner(plain | _BAD, r"\Z")
        self._values = _Scanner({name: patterns[name] for name in inside}, "")
        self._words = dict(words)

    def tokens(
        self, text: str, report: Report, *, start: int = 0, comments: list[Token] | None = None
    ) -> Iterator[Token]:
        """The tokens from `start` on; the last is END. Comments go to `comments`, if given."""
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
                if kind in _COMMENTS:
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
        """The terminal of a match that is not plain to see."""
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


def integer_value(text: str) -> int:
    """Zero for one that is too long to read: the lexer has reported it."""
    return int(text) if len(text) < 1000 else 0


def string_value(text: str) -> str:
    """What a string token says, without its quotes; unknown escapes stay as they are."""
    if "\\" not in text:
        return text[1:-1]
    value = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2], m[0]), text)
    # Two escapes may be the halves of one character; a lone half has been reported.
    return value[1:-1].encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _keyword(keyword: str, kind: str, text: str, end: int, after_at: bool) -> str:
    """The terminal of a word that may be a keyword, by what stands around it."""
    if keyword in {"TRUE", "FALSE", "NULL", "RESERVED"}:
        return keyword
    if keyword in {"ENUM", "VECTOR"}:
        return keyword if not after_at and _BEFORE_PARENTHESIS.match(text, end) else kind
    return kind if after_at or _BEFORE_PUNCTUATION.match(text, end) else keyword


def _bad(code: str, begin: int, length: int, message: str, suggestion: str | None) -> Diagnostic:
    span = Span(begin, begin + length)
    return Diagnostic(code=code, message=message, span=span, suggestion=suggestion)


def _read_string(found: str, begin: int, report: Report) -> str:
    if "\\" in found:
        for match in _ESCAPE.finditer(found):
            if match[1] is None and match[2] not in _ESCAPES:
                message = f"strings do not know the escape `{match[0]}`"
                help_ = 'use \\" \\\\ \\n \\r \\t or \\u with four hexadecimal digits'
                report(_bad("P005", begin + match.start(), len(match[0]), message, help_))
    if _has_lone_surrogate(found):
        message = "half of a surrogate pair stands alone"
        report(_bad("P005", begin, len(found), message, "write the character itself"))
    return "STRING"


def _has_lone_surrogate(found: str) -> bool:
    if "\\u" not in found and found.isascii():
        return False
    value = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else "_", found)
    try:
        value.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        return True
    return False


def _read_integer(found: str, begin: int, report: Report) -> str:
    if len(found) > 19 and not integer_value(found[:999]) <= LARGEST_INTEGER:
        message = "this integer is larger than any that can be stored"
        report(_bad("P006", begin, len(found), message, f"the largest is {LARGEST_INTEGER}"))
    return "INTEGER"


def _read_float(found: str, begin: int, report: Report) -> str:
    if math.isinf(float(found)):
        message = "this number is larger than any that can be stored"
        report(_bad("P006", begin, len(found), message, None))
    return "FLOAT"


def _bad_number(found: str, begin: int, report: Report) -> str:
    message = f"`{shorten(found)}` is not a number"
    help_ = "write 12, 1.5 or 1.5e3"
    report(_bad("P006", begin, len(found), message, help_))
    return BAD


def _bad_string(found: str, begin: int, report: Report) -> str:
    message = "this string has no closing quote on its line"
    report(_bad("P003", begin, len(found), message, 'add `"`; a line break is written \\n'))
    return BAD


def _bad_comment(found: str, begin: int, report: Report) -> str:
    del found
    report(_bad("P004", begin, 2, "this comment has no end", "close it with `*/`"))
    return BAD


def _bad_name(found: str, begin: int, report: Report) -> str:
    message = f"`{shorten(found)}` is not a name"
    help_ = "names use the letters a-z and A-Z, digits and `_`, and do not begin with a digit"
    report(_bad("P002", begin, len(found), message, help_))
    return BAD


def _bad_character(found: str, begin: int, report: Report) -> str:
    shown = f"`{shorten(found)}`" if found.isprintable() else f"U+{ord(found[0]):04X}"
    help_ = "strings are written in double quotes" if found == "'" else None
    report(_bad("P002", begin, len(found), f"{shown} has no meaning here", help_))
    return BAD


def shorten(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


_PLAIN: Final = frozenset(
    {"LBRACE", "RBRACE", "LPAR", "RPAR", "LSQB", "RSQB", "COLON", "COMMA", "QMARK", "EQUAL"}
    | {"MINUS", "ARROW", "DOTS", "VALUE"}
)
_NAMES: Final = frozenset({"NAME", "TYPE"})
_COMMENTS: Final = frozenset({"LINE_COMMENT", "BLOCK_COMMENT"})
_READERS: Final[dict[str, Callable[[str, int, Report], str]]] = {
    "STRING": _read_string,
    "INTEGER": _read_integer,
    "FLOAT": _read_float,
    "BAD_STRING": _bad_string,
    "BAD_COMMENT": _bad_comment,
    "BAD_NUMBER": _bad_number,
    "BAD_NAME": _bad_name,
    "BAD_CHARACTER": _bad_character,
}
