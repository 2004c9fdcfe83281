"""Owns how comments are placed in formatted text, in the same way for both languages."""

from __future__ import annotations

import re
from typing import Final

from omnigraph.lang.tokens import Token

INDENT: Final = "    "
LINE_END: Final = re.compile(r"\r\n|\r|\n")


def comment_text(token: Token, depth: int) -> str:
    """A comment as it is printed at this depth: the stars of a block are aligned."""
    if token.type == "LINE_COMMENT":
        return token.text.rstrip()
    first, *others = LINE_END.split(token.text)
    if others and all(line.lstrip().startswith("*") for line in others):
        others = [f"{INDENT * depth} {line.strip()}" for line in others]
    return "\n".join([first, *others])
