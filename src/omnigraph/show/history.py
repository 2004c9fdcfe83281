"""Owns the drawing of a log as a picture: a line for each commit, lanes for lines of commits."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.plan.log_drawing import LaneEdge, LaneRow, render_lanes
from omnigraph.show.markup import Markup, escaped, view

_ROW, _LANE, _DOT = 24, 16, 5
_COLOURS = ("#2f6fdb", "#d9730d", "#2e9e5b", "#a54bd1", "#c9364f", "#0f9aa8", "#8a7a1c", "#6b7280")
_LONGEST = 120


class Lanes(tuple[LaneRow, ...]):
    """The rows of a drawn log. As text it is the drawing in lines; a notebook shows the picture."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(render_lanes(self))

    def _repr_html_(self) -> str:
        return view_of_lanes(self)


def view_of_lanes(rows: Lanes) -> str:
    lanes = max((row.width for row in rows), default=1)
    left = lanes * _LANE + 10
    widest = max((len(_words(row)) + sum(map(_chip, row.entry.labels)) for row in rows), default=0)
    width, height = left + 16 + 8 * widest, max(1, len(rows)) * _ROW
    body = "".join(part for place, row in enumerate(rows) for part in _drawn(row, place, left))
    return view(
        Markup(
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
            f'viewBox="0 0 {width} {height}" font-family="ui-monospace,monospace" font-size="12" '
            f'fill="currentColor" role="img">{body}</svg>'
        )
    )


def _drawn(row: LaneRow, place: int, left: int) -> Iterator[str]:
    y = place * _ROW + _ROW // 2
    yield from (_line(edge, y) for edge in row.edges)
    colour = _colour(row.lane)
    yield f'<circle cx="{_x(row.lane)}" cy="{y}" r="{_DOT}" fill="{colour}"/>'
    x = left
    for label in row.entry.labels:
        size = 8 * len(label) + 10
        yield (
            f'<rect x="{x}" y="{y - 9}" width="{size}" height="18" rx="4" fill="{colour}"/>'
            f'<text x="{x + 5}" y="{y + 4}" fill="#fff">{escaped(label)}</text>'
        )
        x += size + 6
    yield f'<text x="{x}" y="{y + 4}">{escaped(_words(row))}</text>'


def _line(edge: LaneEdge, y: int) -> str:
    x, to = _x(edge.from_lane), _x(edge.to_lane)
    lane = max(edge.from_lane, edge.to_lane)
    dashed = ' stroke-dasharray="2 3"' if edge.kind == "cut" else ""
    below, middle = y + _ROW, y + _ROW // 2
    path = f"M{x} {y}C{x} {middle} {to} {middle} {to} {below}"
    return f'<path d="{path}" fill="none" stroke="{_colour(lane)}" stroke-width="2"{dashed}/>'


def _words(row: LaneRow) -> str:
    text = "".join(char if char.isprintable() else "?" for char in row.entry.text or row.entry.id)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _chip(label: str) -> int:
    return len(label) + 2


def _x(lane: int) -> int:
    return lane * _LANE + 10


def _colour(lane: int) -> str:
    return _COLOURS[lane % len(_COLOURS)]
