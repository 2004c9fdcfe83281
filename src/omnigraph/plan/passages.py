"""Owns passages: the part of a text in which words were found, short enough to read. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from typing import Final

LENGTH: Final = 160
_MARK: Final = "**"
_CUT: Final = "…"
_WORD: Final = re.compile(r"\w+")
_LONGEST: Final = 1 << 20
"""How many letters of a text are searched."""


def passage(text: str, words: Collection[str], cut: Callable[[str], list[str]]) -> str:
    """The stretch of about 160 letters that contains the most of the words, with each word marked;
    the beginning of the text if there is none. `cut` splits a text into words as the search
    does."""
    spans = _spans(text[:_LONGEST], words, cut)
    start = _best_start(spans)
    if start:
        space = text.find(" ", start, start + LENGTH // 4)
        start = space + 1 if space >= 0 else start
    end = min(len(text), start + LENGTH)
    if end < len(text):
        space = text.rfind(" ", start + LENGTH // 2, end)
        end = space if space > 0 else end
    parts = [_CUT] if start else []
    here = start
    for low, high in spans:
        if low < here or high > end:
            continue
        parts += [text[here:low], _MARK, text[low:high], _MARK]
        here = high
    parts.append(text[here:end])
    if end < len(text):
        parts.append(_CUT)
    return "".join(parts)


def _spans(
    text: str, words: Collection[str], cut: Callable[[str], list[str]]
) -> list[tuple[int, int]]:
    """The places of the words. Scripts without spaces between words come as one piece, within which
    words are searched literally."""
    found: list[tuple[int, int]] = []
    for match in _WORD.finditer(text):
        piece = cut(match[0])
        if not any(word in words for word in piece):
            continue
        if len(piece) == 1:
            found.append(match.span())
            continue
        here, lowered = 0, match[0].lower()
        for word in piece:
            low = lowered.find(word, here)
            if low < 0:
                continue
            here = low + len(word)
            if word in words:
                found.append((match.start() + low, match.start() + here))
    return found


def _best_start(spans: list[tuple[int, int]]) -> int:
    if not spans:
        return 0
    best, most = 0, 0
    last = 0
    for place, (low, _) in enumerate(spans):
        last = max(last, place)
        while last + 1 < len(spans) and spans[last + 1][1] <= low + LENGTH - LENGTH // 4:
            last += 1
        if last - place + 1 > most:
            best, most = low, last - place + 1
    return max(0, best - LENGTH // 4) if best > LENGTH // 4 else 0
