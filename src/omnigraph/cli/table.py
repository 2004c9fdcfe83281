"""Owns tables of text: columns as wide as what is in them, cut only to fit a terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from omnigraph.cli.paint import Paint, cut, pad, visible_width
from omnigraph.cli.texts import cell_text

_GAP = "  "
_NARROWEST = 6


def draw_table(
    names: Sequence[str], rows: Sequence[Sequence[Any]], paint: Paint, width: int | None
) -> Iterator[str]:
    """Numbers to the right, everything else to the left; null is dim."""
    if not names:
        return
    heads = [cell_text(name) for name in names]
    cells = [[cell_text(value) for value in row] for row in rows]
    widths = [
        max([visible_width(head), *(visible_width(row[at]) for row in cells)])
        for at, head in enumerate(heads)
    ]
    widths = fit_widths(widths, width)
    right = [_is_number([row[at] for row in rows]) for at in range(len(heads))]
    yield _line(
        [paint("bold", cut(h, w)) for h, w in zip(heads, widths, strict=True)], widths, right
    )
    yield paint("dim", _GAP.join("─" * w for w in widths))
    for row, shown in zip(rows, cells, strict=True):
        texts = [
            paint("dim", cut(text, w)) if value is None else cut(text, w)
            for value, text, w in zip(row, shown, widths, strict=True)
        ]
        yield _line(texts, widths, right)


def fit_widths(widths: list[int], available: int | None) -> list[int]:
    """The widest columns give way first, none below a few characters."""
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
    """Whether a column holds numbers, and nothing else but null."""
    found = [value for value in values if value is not None]
    return bool(found) and all(
        isinstance(value, int | float) and not isinstance(value, bool) for value in found
    )
