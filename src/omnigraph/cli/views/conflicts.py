"""Owns how conflicts are shown: the base, the value of each side, and how to go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from omnigraph.cli.colours import Paint, cut, fold
from omnigraph.cli.value_text import count_text, literal_text, one_line
from omnigraph.model.conflicts import ConflictKind, MergeConflict

_SHOWN = 20
_SYSTEM = ("id",)
_ABSENT = "(not there)"


def conflict_lines(
    conflicts: Sequence[MergeConflict],
    paint: Paint,
    width: int | None,
    *,
    ours: str = "ours",
    theirs: str = "theirs",
) -> Iterator[str]:
    """Each conflict with its three values, labelled with the names that the user knows."""
    for conflict in conflicts[:_SHOWN]:
        yield ""
        yield from _conflict(conflict, paint, width, ("before", ours, theirs))
    if len(conflicts) > _SHOWN:
        yield ""
        more = count_text(len(conflicts) - _SHOWN, "more conflict")
        yield paint("dim", f"… {more}; --json shows all")


def way_out(
    conflicts: Sequence[MergeConflict],
    source: str,
    into: str,
    paint: Paint,
    width: int | None = None,
) -> Iterator[str]:
    """Commands that would resolve these conflicts. The explanation of a command stands below it if
    it does not fit beside it."""
    target = "" if into == "main" else f" --into {into}"
    merge = f"omnigraph merge {source}{target}"
    rows = [
        (f"{merge} --strategy theirs", f"{source} wins everywhere"),
        (f"{merge} --strategy ours", f"{into} wins everywhere"),
    ]
    places = [f"{c.type}.{c.property}" for c in conflicts if c.property] or [
        c.type for c in conflicts if c.kind is not ConflictKind.SCHEMA
    ]
    if places:
        rows.append((f"{merge} --strategy {places[0]}=theirs", "by type or property"))
        rows.append((f"{merge} --resolve FILE", "entity by entity"))
    yield ""
    yield paint("bold", "To go on")
    longest = max(len(line) for line, _ in rows)
    narrow = width is not None and longest + 4 + max(len(why) for _, why in rows) > width
    for line, why in rows:
        if narrow:
            yield f"  {paint('cyan', line)}"
            yield f"      {paint('dim', why)}"
        else:
            yield f"  {paint('cyan', line)}{' ' * (longest - len(line))}  {paint('dim', why)}"
    yield "  or change one of the branches and merge again."


def _conflict(
    conflict: MergeConflict, paint: Paint, width: int | None, sides: tuple[str, str, str]
) -> Iterator[str]:
    place = " ".join(
        part for part in (conflict.type, one_line(conflict.id or ""), conflict.property) if part
    )
    yield f"{paint('wrong', str(conflict.kind))} {paint('bold', place)}"
    yield from fold(conflict.message, width, indent="  ")
    values = (conflict.base, conflict.ours, conflict.theirs)
    if all(value is None for value in values) and conflict.property is None:
        return
    longest = max(len(one_line(side)) for side in sides)
    styles = ("dim", "green", "yellow")
    for side, value, style in zip(sides, values, styles, strict=True):
        room = None if width is None else width - longest - 6
        shown = _side(value, values, conflict.property is not None)
        shown = shown if room is None else cut(shown, room)
        yield f"    {paint(style, one_line(side).ljust(longest))}  {shown}"


def _side(value: Any, all_of: tuple[Any, ...], is_value: bool) -> str:
    """A value, or for a row the properties that differ between the sides."""
    if is_value:
        return literal_text(value)
    if value is None:
        return _ABSENT
    if not isinstance(value, dict):
        return literal_text(value)
    rows = [row for row in all_of if isinstance(row, dict)]
    differing = [
        name
        for name in value
        if name not in _SYSTEM and any(row.get(name) != value[name] for row in rows)
    ]
    names = differing or [name for name in value if name not in _SYSTEM]
    return ", ".join(f"{name}: {literal_text(value[name])}" for name in names)
