"""Owns how commits are shown: as rows for programs, as lines for people, as a drawing with
lanes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from omnigraph.cli.colours import Paint, cut, visible_width
from omnigraph.cli.value_text import literal_text, one_line, time_text
from omnigraph.model.version import UNSEEN, Commit
from omnigraph.plan.log_drawing import LogEntry, draw_lanes, render_lanes

if TYPE_CHECKING:
    from omnigraph.engine.history.blame import Origin

Labels = Mapping[str, tuple[str, ...]]
_INDENT = "  "
_VALUE = 40


class Seen:
    """The commits of a log that a reader sees, with their labels, at most `limit`. A label of a
    commit that is left out goes to the next one that is shown: that is what its branch shows."""

    def __init__(
        self, commits: Iterable[Commit], labels: Labels, limit: int | None, *, all_kinds: bool
    ) -> None:
        self._commits = iter(commits)
        self._labels = labels
        self._limit = limit
        self._all_kinds = all_kinds
        self._before: dict[str, str | None] = {}
        self.hidden = 0

    def __iter__(self) -> Iterator[tuple[Commit, tuple[str, ...]]]:
        moved: dict[str, tuple[str, ...]] = {}
        left = self._limit
        while left is None or left > 0:
            commit = next(self._commits, None)
            if commit is None:
                return
            labels = (*moved.pop(commit.id, ()), *self._labels.get(commit.id, ()))
            if commit.kind in UNSEEN and not self._all_kinds:
                self.hidden += 1
                before = self._before[commit.id] = next(iter(commit.parents), None)
                if before is not None and labels:
                    moved[before] = (*moved.get(before, ()), *labels)
                continue
            left = None if left is None else left - 1
            yield commit, labels

    def connected(self) -> tuple[list[Commit], dict[str, tuple[str, ...]]]:
        """All of them, each with the commits that are shown as its parents."""
        found = list(self)
        commits = [
            replace(c, parents=tuple(p for one in c.parents if (p := self._shown(one))))
            for c, _ in found
        ]
        return commits, {commit.id: labels for commit, labels in found if labels}

    def _shown(self, id: str) -> str | None:
        found: str | None = id
        while found in self._before:
            found = self._before[found]
        return found


def log_lines(
    commits: Sequence[Commit], labels: Labels, paint: Paint, width: int | None, *, oneline: bool
) -> Iterator[str]:
    for commit in commits:
        yield _first_line(commit, labels.get(commit.id, ()), paint, width)
        if not oneline:
            yield _fit(_INDENT + about_commit(commit), width, paint)


def graph_lines(
    commits: Sequence[Commit],
    labels: Labels,
    paint: Paint,
    width: int | None,
    *,
    oneline: bool,
    unicode: bool,
) -> Iterator[str]:
    """The same with the lanes of branches and merges before each line."""
    rows = draw_lanes([LogEntry(c.id, c.parents, (), "@") for c in commits])
    drawn = iter(render_lanes(rows, "unicode" if unicode else "ascii"))
    bar, node = ("│", "●") if unicode else ("|", "*")
    line = next(drawn, None)
    for row, commit in zip(rows, commits, strict=True):
        assert line is not None
        lanes = line[: -len("@")]
        left = None if width is None else width - len(lanes)
        head = _first_line(commit, labels.get(commit.id, ()), paint, left)
        yield _painted(lanes, paint, node) + head
        if not oneline:
            going = {edge.from_lane for edge in row.edges}
            high = max([row.lane, *going])
            below = "".join(f"{bar} " if lane in going else "  " for lane in range(high + 1))
            about = _fit(_INDENT + about_commit(commit), left, paint)
            yield _painted(below.ljust(len(lanes)), paint, node) + about
        line = next(drawn, None)
        while line is not None and not line.endswith("@"):
            yield _painted(line, paint, node)
            line = next(drawn, None)


def blame_lines(origins: Sequence[Origin], paint: Paint) -> Iterator[str]:
    """A line for each property: its value, and the commit that set it."""
    names = max(len(one.property) for one in origins)
    values = [cut(literal_text(one.value), _VALUE) for one in origins]
    wide = max(visible_width(value) for value in values)
    for one, value in zip(origins, values, strict=True):
        shown = value + " " * (wide - visible_width(value))
        yield f"{paint('bold', one.property.ljust(names))}  {shown}  {_origin(one.commit, paint)}"


def _origin(commit: Commit | None, paint: Paint) -> str:
    if commit is None:
        return paint("dim", "before what cleanup has left")
    words = (commit.message or "").strip().splitlines()
    parts = [commit.actor and one_line(commit.actor), time_text(commit.created_at)]
    about = ", ".join(part for part in parts if part)
    message = f"  {one_line(words[0])}" if words else ""
    return f"{paint('cyan', commit.id)}  {paint('dim', about)}{message}"


def about_commit(commit: Commit) -> str:
    """Who, when, what kind of commit, and how many entities it changed."""
    parts = [commit.actor and one_line(commit.actor), time_text(commit.created_at), commit.kind]
    shown = ", ".join(part for part in parts if part)
    counts = statistics_text(commit)
    return f"{shown}: {counts}" if counts else shown


def statistics_text(commit: Commit) -> str:
    texts = []
    for key, s in commit.statistics.items():
        signs = [f"{sign}{n:,}" for sign, n in _signed(s.inserted, s.updated, s.deleted) if n]
        if signs:
            texts.append(f"{key.split(':', 1)[1]} {' '.join(signs)}")
    return ", ".join(texts)


def label_text(labels: Sequence[str], paint: Paint) -> str:
    if not labels:
        return ""
    shown = ", ".join(
        paint("yellow" if label.startswith("tag: ") else "green", one_line(label))
        for label in labels
    )
    return f" ({shown})"


def _signed(inserted: int, updated: int, deleted: int) -> tuple[tuple[str, int], ...]:
    return ("+", inserted), ("~", updated), ("-", deleted)


def _first_line(commit: Commit, labels: Sequence[str], paint: Paint, width: int | None) -> str:
    words = (commit.message or "").strip().splitlines()
    message = one_line(words[0]) if words else ""
    before = f"{commit.id}{label_text(labels, Paint())}"
    if width is not None:
        message = cut(message, width - visible_width(before) - 1)
    shown = f"{paint('cyan', commit.id)}{label_text(labels, paint)}"
    return f"{shown} {message}" if message else shown


def _fit(text: str, width: int | None, paint: Paint) -> str:
    return paint("dim", text if width is None else cut(text, width))


def _painted(lanes: str, paint: Paint, node: str) -> str:
    """The lines of the drawing are dim, so the commits stand out."""
    return node.join(paint("dim", part) for part in lanes.split(node)) if paint.on else lanes
