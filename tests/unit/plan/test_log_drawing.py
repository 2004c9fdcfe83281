"""Drawings of logs: golden pages, and laws that every page obeys.

A page is `tests/golden/lanes/<name>.log`, one commit a line: `id (labels): parents "text"`. The
drawing lies beside it; `UPDATE_GOLDEN=1` writes it anew: look at it before it is committed.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InvalidArgument
from omnigraph.plan.log_drawing import LaneRow, LogEntry, draw_lanes, render_lanes

GOLDEN = Path(__file__).parents[2] / "golden" / "lanes"
CASES = sorted(path.stem for path in GOLDEN.glob("*.log"))
_LINE = re.compile(r'(\S+)(?: \((.*?)\))?:((?: [^"\s]+)*)(?: "(.*)")?')


def read_page(text: str) -> list[LogEntry]:
    page = []
    for line in text.splitlines():
        match = _LINE.fullmatch(line)
        assert match, line
        labels = tuple(match[2].split(", ")) if match[2] else ()
        words = f"{match[1]} {match[4]}" if match[4] else ""
        page.append(LogEntry(match[1], tuple(match[3].split()), labels, words))
    return page


@pytest.mark.parametrize("case", CASES)
def test_the_drawing_is_the_one_that_was_agreed(case: str) -> None:
    rows = draw_lanes(read_page((GOLDEN / f"{case}.log").read_text(encoding="utf-8")))
    drawn = "\n".join([*render_lanes(rows), "", *render_lanes(rows, "ascii"), ""])
    path = GOLDEN / f"{case}.txt"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(drawn, encoding="utf-8")
    assert drawn == path.read_text(encoding="utf-8")
    page = [row.entry for row in rows]
    assert edges_of_text(render_lanes(rows)) == edges_of_page(page)


@st.composite
def pages(draw: Any) -> list[LogEntry]:
    """Any DAG in DAG order; parents may be outside of the page, or named twice."""
    size = draw(st.integers(0, 14))
    reach = draw(st.integers(1, 6))
    page = []
    for place in range(size):
        later = [f"c{n}" for n in range(place + 1, min(size, place + 1 + reach))]
        parents = draw(st.lists(st.sampled_from([*later, "out1", "out2"]), max_size=3))
        page.append(LogEntry(f"c{place}", tuple(parents)))
    return page


def edges_of_page(page: list[LogEntry]) -> set[tuple[str, str]]:
    shown = {entry.id for entry in page}
    return {(entry.id, p) for entry in page for p in entry.parents if p in shown}


def edges_of_text(lines: list[str], node_at: str = "●", bar: str = "│") -> set[tuple[str, str]]:
    """Follows the lines with a finger: which commits does the drawing say are whose parents?"""
    found: set[tuple[str, str]] = set()
    above: dict[int, set[str]] = {}  # by column, the commits that a line comes from
    node, place = "", -1
    for line in lines:
        if node_at in line:
            place = line.index(node_at)
            node = next(w for w in line[place:].split() if re.fullmatch(r"[a-z]\d+", w))
            found |= {(child, node) for child in above.get(place, set())}
            drawn = {column for column in range(0, place, 2) if line[column] == bar}
            assert drawn <= above.keys(), line
            above = {
                at: who for at, who in above.items() if at in drawn or line[at : at + 1] == bar
            }
            above[place] = {node}
            continue
        if bend := read_arc(line, place) or read_slope(line):
            start, end = bend
            coming = {node} if start == place else above.pop(start)
            above[end] = above.get(end, set()) | coming
            if start == place and line.ljust(start + 1)[start] in " ╯╰":
                del above[start]
        # A line goes on where it is drawn, or where it has just bent to.
        above = {
            at: who
            for at, who in above.items()
            if line[at : at + 1] not in ("", " ", "~", "─", "_") or (bend and at == bend[1])
        }
    return found


def read_arc(line: str, place: int) -> tuple[int, int] | None:
    """From which column to which a line bends."""
    if "─" not in line:
        return None
    ends = [at for at, glyph in enumerate(line) if glyph in "├╰╭┤╯╮"]
    low, high = min(ends), max(ends)
    assert set(line[low + 1 : high : 2]) == {"─"}, line
    assert set(line[low + 2 : high : 2]) <= {"─", "┼"}, line
    assert place in (low, high), line
    other = low + high - place
    return (other, place) if line[other] in "╯╰" else (place, other)


def read_slope(line: str) -> tuple[int, int] | None:
    if "/" in line:
        end = line.index("_") - 1 if "_" in line else line.index("/") - 1
        return line.index("/") + 1, end
    if "\\" in line:
        end = line.rindex("_") + 1 if "_" in line else line.index("\\") + 1
        return line.index("\\") - 1, end
    return None


@given(pages())
def test_the_text_can_be_read_back_as_the_graph_that_it_draws(page: list[LogEntry]) -> None:
    rows = draw_lanes(page)
    assert edges_of_text(render_lanes(rows)) == edges_of_page(page)
    assert edges_of_text(render_lanes(rows, "ascii"), "*", "|") == edges_of_page(page)


@given(pages())
def test_every_commit_is_drawn_once_and_in_order(page: list[LogEntry]) -> None:
    rows = draw_lanes(page)
    assert [row.entry for row in rows] == page
    for style in ("unicode", "ascii"):
        lines = render_lanes(rows, style)
        marked = [line for line in lines if "●" in line or "*" in line]
        assert [line.split()[-1] for line in marked] == [entry.id for entry in page]
        assert not any(line != line.rstrip() for line in lines)


def lane_below(row: LaneRow, lane: int, parent: str) -> int:
    (edge,) = [e for e in row.edges if (e.from_lane, e.parent) == (lane, parent)]
    return edge.to_lane


@given(pages())
def test_every_line_leads_from_the_child_to_the_parent_without_a_gap(page: list[LogEntry]) -> None:
    rows = draw_lanes(page)
    places = {entry.id: place for place, entry in enumerate(page)}
    for start, row in enumerate(rows):
        own = [edge for edge in row.edges if edge.from_lane == row.lane]
        assert sorted(edge.parent for edge in own) == sorted(set(row.entry.parents))
        for parent in set(row.entry.parents):
            lane = lane_below(row, row.lane, parent)
            if parent not in places:
                continue
            for between in rows[start + 1 : places[parent]]:
                assert lane != between.lane
                lane = lane_below(between, lane, parent)
            assert lane == rows[places[parent]].lane


@given(pages())
def test_lines_never_collide_and_end_only_where_they_should(page: list[LogEntry]) -> None:
    rows = draw_lanes(page)
    shown = {entry.id for entry in page}
    arriving: dict[int, str] = {}
    for row in rows:
        assert arriving.pop(row.lane, row.entry.id) == row.entry.id
        assert row.entry.id not in arriving.values()
        passing = {e.from_lane: e.parent for e in row.edges if e.from_lane != row.lane}
        assert passing == arriving
        assert len(passing) == len([e for e in row.edges if e.from_lane != row.lane])
        arriving = {}
        for edge in row.edges:
            assert (edge.kind == "cut") == (edge.parent not in shown)
            assert arriving.setdefault(edge.to_lane, edge.parent) == edge.parent
        cut = [edge.to_lane for edge in row.edges if edge.kind == "cut"]
        arriving = {lane: parent for lane, parent in arriving.items() if lane not in cut}
        assert len(set(arriving.values())) == len(arriving)
    assert not arriving


@given(pages())
def test_there_are_never_more_lanes_than_there_were_lines_at_once(page: list[LogEntry]) -> None:
    most = 1
    for row in draw_lanes(page):
        fresh = row.lane not in {edge.from_lane for edge in row.edges}
        most = max(most, len(row.edges) + fresh)
        assert row.width <= most


@given(pages())
def test_the_kinds_of_edges_tell_forks_from_merges(page: list[LogEntry]) -> None:
    for row in draw_lanes(page):
        for edge in row.edges:
            if edge.kind == "straight":
                assert edge.from_lane == edge.to_lane
            if edge.kind == "merge":
                assert edge.from_lane == row.lane
                assert edge.parent in row.entry.parents
                assert edge.parent != row.entry.parents[0]
            if edge.kind == "fork":
                assert edge.from_lane > edge.to_lane


def test_the_first_parents_of_the_first_commit_stay_on_the_left() -> None:
    page = read_page("d: c x\nx: a\nc: b y\ny: b\nb: a\na:")
    lanes = {row.entry.id: row.lane for row in draw_lanes(page)}
    assert [lanes[name] for name in "dcba"] == [0, 0, 0, 0]


def test_labels_and_words_stand_behind_the_commit_and_cannot_move_the_cursor() -> None:
    entry = LogEntry("c", (), ("main", "tag: v1"), "one\ntwo \x1b[31mred \u202eback é 日本")
    assert render_lanes(draw_lanes([entry])) == ["● (main, tag: v1) one?two ?[31mred ?back é 日本"]
    assert render_lanes(draw_lanes([LogEntry("c")]), "ascii") == ["* c"]
    assert render_lanes(()) == []


def test_a_commit_twice_or_a_parent_before_its_child_is_refused() -> None:
    with pytest.raises(InvalidArgument, match="c is given twice"):
        draw_lanes([LogEntry("c"), LogEntry("c")])
    with pytest.raises(InvalidArgument, match="p is given before its child c"):
        draw_lanes([LogEntry("p"), LogEntry("c", ("p",))])
    with pytest.raises(InvalidArgument, match="c is given before its child c"):
        draw_lanes([LogEntry("c", ("c",))])
    style: Any = "ansi"
    with pytest.raises(InvalidArgument, match="'ansi' is neither"):
        render_lanes((), style)
