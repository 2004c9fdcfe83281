"""Owns diagnostics: an error as a value with a place in the text, and how it is shown."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable
from enum import StrEnum

import msgspec

REPORTED = 100
"""The largest number of diagnostics for one text. One more then says how many are left out."""
SHOWN_COLUMNS = 100
"""A longer line is cut around the marked place."""
_LINE_END = re.compile(r"\r\n|\r|\n")
_TAB = 4


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


class Span(msgspec.Struct, frozen=True, order=True, gc=False):
    """Characters [start, end) of the text."""

    start: int
    end: int


class Diagnostic(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`replacement` is the text that was probably meant in place of the span."""

    code: str
    message: str
    span: Span
    severity: Severity = Severity.ERROR
    expected: tuple[str, ...] = ()
    suggestion: str | None = None
    replacement: str | None = None


class Position(msgspec.Struct, frozen=True, order=True):
    """Line and column, both from 1; a column is a character (code point), whatever its width."""

    line: int
    column: int


class Located(msgspec.Struct, frozen=True, kw_only=True):
    """The JSON form of a diagnostic: offsets for programs, lines and columns for editors."""

    code: str
    severity: Severity
    message: str
    path: str | None
    span: Span
    start: Position
    end: Position
    expected: tuple[str, ...]
    suggestion: str | None


class Source:
    """A text in which many positions are looked up. Its lines are split once."""

    def __init__(self, text: str, path: str | None = None) -> None:
        self.text = text
        self.path = path
        self._starts = [0, *(match.end() for match in _LINE_END.finditer(text))]

    def position(self, offset: int) -> Position:
        """An offset past the end is the end."""
        offset = max(0, min(offset, len(self.text)))
        line = bisect_right(self._starts, offset)
        return Position(line, offset - self._starts[line - 1] + 1)

    def line(self, number: int) -> str:
        """The text of a line, without its line break."""
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r\n")

    def locate(self, diagnostic: Diagnostic) -> Located:
        return Located(
            code=diagnostic.code,
            severity=diagnostic.severity,
            message=diagnostic.message,
            path=self.path,
            span=diagnostic.span,
            start=self.position(diagnostic.span.start),
            end=self.position(diagnostic.span.end),
            expected=diagnostic.expected,
            suggestion=diagnostic.suggestion,
        )


def position(text: str, offset: int) -> Position:
    return Source(text).position(offset)


def sort_diagnostics(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """By place, then by code: the order in which a reader meets them."""
    return tuple(sorted(diagnostics, key=lambda d: (d.span, d.code)))


def limit_diagnostics(
    diagnostics: tuple[Diagnostic, ...], code: str, counted: str = ""
) -> tuple[Diagnostic, ...]:
    """The first ones, and one with this code that counts the rest."""
    left = len(diagnostics) - REPORTED
    if left <= 0:
        return diagnostics
    end = diagnostics[REPORTED - 1].span.end
    message = f"{counted}{left} more problem{'s' if left > 1 else ''} after this one"
    more = Diagnostic(code=code, message=message, span=Span(end, end))
    return (*diagnostics[:REPORTED], more)


def render(diagnostic: Diagnostic, text: str, path: str | None = None) -> str:
    """The diagnostic for a terminal: what, where, the line with carets, and what to do."""
    return _render(diagnostic, Source(text, path), SHOWN_COLUMNS)


def render_all(
    diagnostics: Iterable[Diagnostic],
    text: str,
    path: str | None = None,
    *,
    columns: int = SHOWN_COLUMNS,
) -> str:
    """Every diagnostic, separated by blank lines, or an empty text. At most `columns` columns of a
    line of the source are shown."""
    source = Source(text, path)
    return "\n".join(_render(diagnostic, source, columns) for diagnostic in diagnostics)


def encode_diagnostics(
    diagnostics: Iterable[Diagnostic], text: str, path: str | None = None
) -> bytes:
    source = Source(text, path)
    return msgspec.json.encode([source.locate(diagnostic) for diagnostic in diagnostics])


def _render(diagnostic: Diagnostic, source: Source, columns: int) -> str:
    start, end = source.position(diagnostic.span.start), source.position(diagnostic.span.end)
    shown, indent, carets = _marked(source.line(start.line), start, end, columns)
    gutter = " " * len(str(start.line))
    lines = [
        f"{diagnostic.severity}[{diagnostic.code}]: {diagnostic.message}",
        f"{gutter}--> {source.path or '<text>'}:{start.line}:{start.column}",
        f"{gutter} |",
        f"{start.line} | {shown}",
        f"{gutter} | {' ' * indent}{'^' * carets}",
    ]
    if end.line > start.line:
        lines[-1] += f" … to line {end.line}"
    if diagnostic.expected:
        lines.append(f"{gutter} = expected: {_alternatives(diagnostic.expected)}")
    if diagnostic.suggestion is not None:
        lines.append(f"{gutter} = help: {diagnostic.suggestion}")
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _alternatives(words: tuple[str, ...]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} or {words[-1]}"


def _marked(line: str, start: Position, end: Position, columns: int) -> tuple[str, int, int]:
    """The line as shown, and how many of its columns stand before and under the carets."""
    first = min(start.column - 1, len(line))
    last = end.column - 1 if end.line == start.line else len(line)
    last = max(first, min(last, len(line)))
    # Characters are never narrower than nothing, so cutting by characters bounds the columns
    # well enough, and a megabyte on one line is never laid out.
    left = max(0, min(first - columns // 2, len(line) - columns))
    right = min(len(line), left + columns)
    before = ("…" if left else "") + _laid_out(line[left:first])
    marked = _laid_out(line[first : min(last, right)])
    after = _laid_out(line[min(last, right) : right]) + ("…" if right < len(line) else "")
    return before + marked + after, _width(before), max(1, _width(marked))


def _laid_out(text: str) -> str:
    """Tabs become spaces, and characters that would move the cursor become replacement
    characters."""
    return "".join(
        " " * _TAB if c == "\t" else c if unicodedata.category(c) not in _UNSHOWN else "\ufffd"
        for c in text
    )


_UNSHOWN = frozenset({"Cc", "Cs", "Zl", "Zp", "Cf"})


def _width(text: str) -> int:
    """The number of columns on a terminal: wide characters take two, combining ones none."""
    return sum(
        0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1
        for c in text
    )
