"""Owns the drawing of a log: commits in the order of the graph become lanes, as data and as lines
of text.

A lane holds one line, which leads to one parent. Lines to the same parent are one line, so a branch
bends into the line that it was forked from right below its oldest commit. A line keeps its lane for
as long as it can, and a lane that became free is used again, so there are never more lanes than
simultaneous lines.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from omnigraph.errors import InvalidArgument

EdgeKind = Literal["straight", "fork", "merge", "cut"]
Style = Literal["unicode", "ascii"]


@dataclass(frozen=True)
class LogEntry:
    """A commit as the drawing sees it. `labels` are the branches and tags at it."""

    id: str
    parents: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True)
class LaneEdge:
    """A piece of a line, from one row to the next, on its way to `parent`.

    `fork` bends into the line that a branch came from, `merge` leads to a second parent, `cut` to
    a parent outside of the page: it ends before the next row.
    """

    from_lane: int
    to_lane: int
    parent: str
    kind: EdgeKind


@dataclass(frozen=True)
class LaneRow:
    """A commit, its lane, and every line below it."""

    entry: LogEntry
    lane: int
    edges: tuple[LaneEdge, ...]

    @property
    def width(self) -> int:
        """How many lanes this row and the lines below it need."""
        return 1 + max([self.lane, *(max(e.from_lane, e.to_lane) for e in self.edges)])


def draw_lanes(commits: Sequence[LogEntry]) -> tuple[LaneRow, ...]:
    """Children come before their parents, each commit once; parents may be missing."""
    places = {entry.id: place for place, entry in enumerate(commits)}
    lanes = _Lanes()
    rows = []
    for place, entry in enumerate(commits):
        if places[entry.id] != place:
            raise InvalidArgument(f"The commit {entry.id} is given twice.")
        early = next((p for p in entry.parents if places.get(p, place + 1) <= place), None)
        if early is not None:
            raise InvalidArgument(f"The commit {early} is given before its child {entry.id}.")
        rows.append(lanes.draw(entry, {p for p in entry.parents if p in places}))
    return tuple(rows)


class _Lanes:
    """The parent to which the line in each lane leads. None is a free lane."""

    def __init__(self) -> None:
        self._waiting: list[str | None] = []

    def draw(self, entry: LogEntry, shown: set[str]) -> LaneRow:
        lane = self._lane_of(entry.id)
        if lane is None:
            lane = self._take(entry.id, near=0, blocked=set())
        self._waiting[lane] = None
        passing = [(place, parent) for place, parent in enumerate(self._waiting) if parent]
        edges: list[LaneEdge] = []
        moved: set[int] = set()  # their bends are still drawn below this row
        for number, parent in enumerate(dict.fromkeys(entry.parents)):
            kind: EdgeKind = "merge" if number else "straight"
            there = self._lane_of(parent)
            if there is None or parent not in shown:
                target = self._take(parent, near=lane, blocked=moved)
                edges.append(LaneEdge(lane, target, parent, kind if parent in shown else "cut"))
            elif there > lane and not number:
                # The first parents are the main line: it stays, and the other one bends.
                self._waiting[there], self._waiting[lane] = None, parent
                moved.add(there)
                edges.append(LaneEdge(lane, lane, parent, "straight"))
                edges.append(LaneEdge(there, lane, parent, "fork"))
            else:
                edges.append(LaneEdge(lane, there, parent, "merge" if number else "fork"))
        edges += [LaneEdge(at, at, parent, "straight") for at, parent in passing if at not in moved]
        for edge in edges:
            if edge.kind == "cut":
                self._waiting[edge.to_lane] = None
        return LaneRow(entry, lane, tuple(sorted(edges, key=_by_lanes)))

    def _lane_of(self, parent: str) -> int | None:
        return self._waiting.index(parent) if parent in self._waiting else None

    def _take(self, parent: str, *, near: int, blocked: set[int]) -> int:
        """The closest free lane, preferably to the right."""
        free = [
            place
            for place, waiting in enumerate(self._waiting)
            if waiting is None and place not in blocked
        ]
        if free:
            lane = min(free, key=lambda place: (abs(place - near), place < near))
        else:
            lane = len(self._waiting)
            self._waiting.append(None)
        self._waiting[lane] = parent
        return lane


def _by_lanes(edge: LaneEdge) -> tuple[int, int]:
    return edge.from_lane, edge.to_lane


_UP, _DOWN, _LEFT, _RIGHT = 1, 2, 4, 8
_GLYPHS = {
    0: " ",
    _UP | _DOWN: "│",
    _LEFT | _RIGHT: "─",
    _UP | _DOWN | _LEFT | _RIGHT: "┼",
    _UP | _DOWN | _RIGHT: "├",
    _UP | _DOWN | _LEFT: "┤",
    _UP | _LEFT: "╯",
    _UP | _RIGHT: "╰",
    _DOWN | _LEFT: "╮",
    _DOWN | _RIGHT: "╭",
}
_NODE, _CUT = "●", "~"
_ASCII = str.maketrans("●│", "*|")


def render_lanes(rows: Sequence[LaneRow], style: Style = "unicode") -> list[str]:
    """The drawing as lines of text: one for each commit, and between them the bends."""
    if style not in ("unicode", "ascii"):
        raise InvalidArgument(f"The style {style!r} is neither 'unicode' nor 'ascii'.")
    lines: list[str] = []
    for row, below in zip(rows, [*rows[1:], None], strict=False):
        lines.append(_commit_line(row, style))
        bends = _bends(row, style)
        ends = not any(edge.from_lane == row.lane for edge in row.edges)
        if ends and not bends and below is not None and below.lane == row.lane:
            # A commit without parents has no line below it, and the next commit must not seem
            # connected.
            bends = [_cells({edge.to_lane for edge in row.edges})]
        lines += [_plain(cells, style) for cells in bends]
    return lines


def _commit_line(row: LaneRow, style: Style) -> str:
    cells = _cells({edge.from_lane for edge in row.edges} | {row.lane})
    cells[2 * row.lane] = _NODE
    labels = f"({', '.join(row.entry.labels)})" if row.entry.labels else ""
    words = " ".join(word for word in (labels, row.entry.text or row.entry.id) if word)
    # Text that people wrote must not move the cursor or reverse the line.
    shown = "".join(c if c.isprintable() else "?" for c in words)
    return f"{_plain(cells, style)} {shown}"


def _bends(row: LaneRow, style: Style) -> list[list[str]]:
    """The lines of text below a commit: one for each bend, so that none can be taken for
    another, then one for the lines that end here."""
    node = row.lane
    open_lanes = {edge.from_lane for edge in row.edges} | {node}
    goes_on = any(edge.to_lane == node for edge in row.edges)
    bends = [edge for edge in row.edges if edge.from_lane != edge.to_lane]
    bends.sort(key=lambda edge: abs(edge.from_lane - edge.to_lane))
    lines = []
    for number, edge in enumerate(bends, 1):
        above = set(open_lanes)
        if edge.from_lane == node:
            open_lanes.add(edge.to_lane)
        else:
            open_lanes.discard(edge.from_lane)
        if number == len(bends) and not goes_on:
            open_lanes.discard(node)
        draw = _arc if style == "unicode" else _slope
        lines.append(draw(above, open_lanes, edge))
    cuts = {edge.to_lane for edge in row.edges if edge.kind == "cut"}
    if cuts:
        cells = _cells({edge.to_lane for edge in row.edges})
        for lane in cuts:
            cells[2 * lane] = _CUT
        lines.append(cells)
    return lines


def _cells(lanes: set[int]) -> list[str]:
    """A line of text without bends: lanes are two characters apart."""
    return [
        c for lane in range(1 + max(lanes, default=-1)) for c in ("│ " if lane in lanes else "  ")
    ]


def _arc(above: set[int], below: set[int], bend: LaneEdge) -> list[str]:
    """A line from lane to lane, across those between."""
    low, high = sorted((bend.from_lane, bend.to_lane))
    cells = []
    for lane in range(1 + max(above | below)):
        mask = (_UP if lane in above else 0) | (_DOWN if lane in below else 0)
        mask |= (_LEFT if low < lane <= high else 0) | (_RIGHT if low <= lane < high else 0)
        cells += [_GLYPHS[mask], "─" if low <= lane < high else " "]
    return cells


def _slope(above: set[int], below: set[int], bend: LaneEdge) -> list[str]:
    """The same as Git draws it: down from where the line comes from, then along the ground."""
    low, high = sorted((bend.from_lane, bend.to_lane))
    cells = []
    for lane in range(1 + max(above | below)):
        ground = "_" if low < lane < high else " "
        cells += ["│" if lane in above & below else ground, "_" if low <= lane < high else " "]
    left = bend.to_lane < bend.from_lane
    cells[2 * bend.from_lane + (-1 if left else 1)] = "/" if left else "\\"
    return cells


def _plain(cells: Iterable[str], style: Style) -> str:
    text = "".join(cells).rstrip()
    return text.translate(_ASCII) if style == "ascii" else text
