"""Owns what the lexers of both languages share: tokens, strings, numbers, and invalid text.

Each language has its own letter for the codes of invalid text (`P003`, `Q003`).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

import msgspec

from omnigraph.lang.diagnostics import Diagnostic, Span

Report = Callable[[Diagnostic], None]
Reader = Callable[[str, int, Report], str]
"""Takes the text of a match and its position, reports errors in it, and returns its terminal."""

BAD: Final = "BAD"
END: Final = "$END"
SMALLEST_INTEGER: Final = -(2**63)
LARGEST_INTEGER: Final = 2**64 - 1
COMMENTS: Final = frozenset({"LINE_COMMENT", "BLOCK_COMMENT"})
# A group that is repeated possessively, `(…)*+`, matches wrongly before Python 3.11.5.
BAD_PATTERNS: Final = {
    "BAD_STRING": r'"[^"\\\r\n]*+(?:\\[^\r\n][^"\\\r\n]*+)*\\?',
    "BAD_COMMENT": r"/\*(?s:.*)",
    "BAD_NUMBER": r"[0-9]\w*+(?:\.\w++)*",
    "BAD_NAME": r"\w++",
    "BAD_CHARACTER": r"[^\x00-\x7f]++|(?s:.)",
}

_ESCAPE = re.compile(r"\\(?:u([0-9A-Fa-f]{4})|(.))")
_ESCAPES: Final = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


class Token(msgspec.Struct, frozen=True, gc=False):
    """`type` is the name of a terminal."""

    type: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Scanner:
    """One pattern that skips white space and then always matches one of the named terminals."""

    def __init__(self, terminals: Mapping[str, str], last: str) -> None:
        self.kinds = ("", *terminals, END)
        groups = "|".join(f"({pattern})" for pattern in terminals.values())
        self.pattern = re.compile(rf"[ \t\r\n\f]*+(?:{groups}|({last}))")


def integer_value(text: str) -> int:
    """Zero for a number that is too long to read; the lexer has reported it."""
    return int(text) if len(text) < 1000 else 0


def string_value(text: str) -> str:
    """The text of a string token, without its quotes. Unknown escapes stay as they are."""
    if "\\" not in text:
        return text[1:-1]
    value = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else _ESCAPES.get(m[2], m[0]), text)
    # Two escapes may be the halves of one character; a lone half has been reported.
    return value[1:-1].encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def shorten(text: str, limit: int = 40) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


def readers(letter: str) -> dict[str, Reader]:
    """For each terminal that needs a closer look, the function that does it."""
    return {name: partial(read, letter) for name, read in _READERS.items()}


def _bad(code: str, begin: int, length: int, message: str, suggestion: str | None) -> Diagnostic:
    span = Span(begin, begin + length)
    return Diagnostic(code=code, message=message, span=span, suggestion=suggestion)


def _read_string(letter: str, found: str, begin: int, report: Report) -> str:
    if "\\" in found:
        for match in _ESCAPE.finditer(found):
            if match[1] is None and match[2] not in _ESCAPES:
                message = f"strings do not know the escape `{match[0]}`"
                help_ = 'use \\" \\\\ \\n \\r \\t or \\u with four hexadecimal digits'
                report(_bad(f"{letter}005", begin + match.start(), len(match[0]), message, help_))
    if _has_lone_surrogate(found):
        message = "half of a surrogate pair stands alone"
        report(_bad(f"{letter}005", begin, len(found), message, "write the character itself"))
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


def _read_integer(letter: str, found: str, begin: int, report: Report) -> str:
    if len(found) > 19 and not integer_value(found[:999]) <= LARGEST_INTEGER:
        message = "this integer is larger than any that can be stored"
        help_ = f"the largest is {LARGEST_INTEGER}"
        report(_bad(f"{letter}006", begin, len(found), message, help_))
    return "INTEGER"


def _read_float(letter: str, found: str, begin: int, report: Report) -> str:
    if math.isinf(float(found)):
        message = "this number is larger than any that can be stored"
        report(_bad(f"{letter}006", begin, len(found), message, None))
    return "FLOAT"


def _bad_number(letter: str, found: str, begin: int, report: Report) -> str:
    message = f"`{shorten(found)}` is not a number"
    report(_bad(f"{letter}006", begin, len(found), message, "write 12, 1.5 or 1.5e3"))
    return BAD


def _bad_string(letter: str, found: str, begin: int, report: Report) -> str:
    message = "this string has no closing quote on its line"
    help_ = 'add `"`; a line break is written \\n'
    report(_bad(f"{letter}003", begin, len(found), message, help_))
    return BAD


def _bad_comment(letter: str, found: str, begin: int, report: Report) -> str:
    del found
    report(_bad(f"{letter}004", begin, 2, "this comment has no end", "close it with `*/`"))
    return BAD


def _bad_name(letter: str, found: str, begin: int, report: Report) -> str:
    message = f"`{shorten(found)}` is not a name"
    help_ = "names use the letters a-z and A-Z, digits and `_`, and do not begin with a digit"
    report(_bad(f"{letter}002", begin, len(found), message, help_))
    return BAD


def _bad_character(letter: str, found: str, begin: int, report: Report) -> str:
    shown = f"`{shorten(found)}`" if found.isprintable() else f"U+{ord(found[0]):04X}"
    help_ = "strings are written in double quotes" if found == "'" else None
    report(_bad(f"{letter}002", begin, len(found), f"{shown} has no meaning here", help_))
    return BAD


_READERS: Final[dict[str, Callable[[str, str, int, Report], str]]] = {
    "STRING": _read_string,
    "INTEGER": _read_integer,
    "FLOAT": _read_float,
    "BAD_STRING": _bad_string,
    "BAD_COMMENT": _bad_comment,
    "BAD_NUMBER": _bad_number,
    "BAD_NAME": _bad_name,
    "BAD_CHARACTER": _bad_character,
}
