"""Owns colours: the names of styles, and when they are printed at all."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import wrap
from typing import IO

from omnigraph.cli.options import Color

_CODES = {
    "bold": "1",
    "dim": "2",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "blue": "34",
    "magenta": "35",
    "cyan": "36",
    "title": "1;36",
    "wrong": "1;31",
}
_ESCAPES = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True)
class Paint:
    """Called with a style and a text, returns the text in that style, or unchanged without
    colours."""

    on: bool = False

    def __call__(self, style: str, text: str) -> str:
        if not self.on or not text:
            return text
        return f"\x1b[{_CODES[style]}m{text}\x1b[0m"


def choose_paint(when: Color, stream: IO[str], environment: Mapping[str, str]) -> Paint:
    """`NO_COLOR` (https://no-color.org) overrides the terminal; an explicit option overrides
    both."""
    if when != "auto":
        return Paint(when == "always")
    if environment.get("NO_COLOR"):
        return Paint(False)
    if environment.get("FORCE_COLOR"):
        return Paint(True)
    return Paint(stream.isatty() and environment.get("TERM") != "dumb")


def bare(text: str) -> str:
    """The text without colour codes."""
    return _ESCAPES.sub("", text)


def visible_width(text: str) -> int:
    """How many columns the text takes on a terminal."""
    text = bare(text)
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def pad(text: str, width: int, *, right: bool = False) -> str:
    space = " " * (width - visible_width(text))
    return space + text if right else text + space


def fold(text: str, width: int | None, *, indent: str = "") -> list[str]:
    """A sentence as lines that fit a terminal, broken between words; one line without a
    terminal."""
    if width is None or visible_width(text) + len(indent) <= width:
        return [indent + text]
    room = max(width, len(indent) + 20)
    return wrap(
        text,
        room,
        initial_indent=indent,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def cut(text: str, width: int) -> str:
    """A text without colours, shortened to a width."""
    if visible_width(text) <= width:
        return text
    kept = text[: max(0, width - 1)]
    while kept and visible_width(kept) > width - 1:
        kept = kept[:-1]
    return f"{kept}…" if width > 0 else ""
