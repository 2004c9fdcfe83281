"""Owns text tables: columns as wide as their contents, cut only to fit a terminal."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from omnigraph.cli.colours import Paint, cut, pad, visible_width
from omnigraph.cli.value_text import cell_text

_GAP = "  "
_NARROWEST = 6
_TOGETHER = 1000


def draw_table(
    names: Sequence[str], rows: Iterable[Sequence[Any]], paint: Paint, width: int | None
) -> Iterator[str]:
    """Numbers are aligned to the right, everything else to the left, and null is dim. Rows are
    drawn a thousand at a time, so a table may have any number of them. Columns get wider where
    later rows need it."""
    if not names:
        return
    heads = [cell_text(name) for name in names]
    needed = [visible_width(head) for head in heads]
    right: list[bool] | None = None
    waiting = iter(rows)
    while (block := list(islice(waiting, _TOGETHER))) or right is None:
        cells = [[cell_text(value) for value in row] for row in block]
        for texts in cells:
            needed = [max(w, visible_width(text)) for w, text in zip(needed, texts, strict=True)]
        widths = fit_widths(needed, width)
        if right is None:
            right = [_is_number([row[at] for row in block]) for at in range(len(heads))]
            titles = [paint("bold", cut(h, w)) for h, w in zip(heads, widths, strict=True)]
            yield _line(titles, widths, right)
            yield paint("dim", _GAP.join("─" * w for w in widths))
        for row, shown in zip(block, cells, strict=True):
            fitting = [
                paint("dim", cut(text, w)) if value is None else cut(text, w)
                for value, text, w in zip(row, shown, widths, strict=True)
            ]
            yield _line(fitting, widths, right)


def fit_widths(widths: list[int], available: int | None) -> list[int]:
    """The widest columns shrink first, none below a few characters."""
    if available is None:
        return widths
    widths = list(widths)
    left = available - len(_GAP) * (len(widths) - 1)
    while sum(widths) > left:
        widest = max(range(len(widths)), key=lambda at: widths[at])
        if widths[widest] <= _NARROWEST:
            break
        below = max([w for w in widths if w < widths[widest]], default=_NARROWEST)
        excess = sum(widths) - left
        widths[widest] = max(widths[widest] - excess, below - 1, _NARROWEST)
    return widths


def _line(texts: Sequence[str], widths: Sequence[int], right: Sequence[bool]) -> str:
    padded = [pad(t, w, right=r) for t, w, r in zip(texts, widths, right, strict=True)]
    return _GAP.join(padded).rstrip()


def _is_number(values: Sequence[Any]) -> bool:
    """Whether a column holds only numbers and nulls."""
    found = [value for value in values if value is not None]
    return bool(found) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in found
    )
