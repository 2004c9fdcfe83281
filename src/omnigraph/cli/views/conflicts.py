"""Owns how conflicts are shown: the base, the value of each side, and how to go on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from omnigraph.cli.colours import Paint, cut, fold
from omnigraph.cli.value_text import count_text, literal_text, one_line
from omnigraph.model.conflicts import ConflictKind, MergeConflict

_SHOWN = 20
_PLACES = 12
_EXAMPLES = 3
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
    """Each conflict with its three values, labelled with the names that the user knows. If there
    are many, first how many there are of each place, then an example of the largest ones."""
    shown = conflicts
    if len(conflicts) > _SHOWN:
        places = Counter(map(place_of, conflicts)).most_common()
        yield ""
        longest = max(len(place) for place, _ in places[:_PLACES])
        digits = len(f"{places[0][1]:,}")
        for place, count in places[:_PLACES]:
            yield f"  {paint('bold', place)}{' ' * (longest - len(place))}  {count:>{digits},}"
        if len(places) > _PLACES:
            rest = sum(count for _, count in places[_PLACES:])
            others = count_text(len(places) - _PLACES, "other place")
            yield paint("dim", f"  … and {rest:,} in {others}")
        first = {place_of(one): one for one in reversed(conflicts)}
        shown = [first[place] for place, _ in places[:_EXAMPLES]]
    for conflict in shown:
        yield ""
        yield from _conflict(conflict, paint, width, ("before", ours, theirs))
    if len(shown) < len(conflicts):
        yield ""
        more = count_text(len(conflicts) - len(shown), "more conflict")
        yield paint("dim", f"… {more}; --json shows all")


def place_of(conflict: MergeConflict) -> str:
    """What a strategy can name: a property of a type, or a type."""
    return f"{conflict.type}.{conflict.property}" if conflict.property else conflict.type


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
    solvable = [c for c in conflicts if c.kind is not ConflictKind.SCHEMA]
    found = Counter(place_of(c) for c in solvable if c.property) or Counter(map(place_of, solvable))
    places = [place for place, _ in found.most_common()]
    if places and len(conflicts) > _SHOWN:
        sides = (f"--strategy {place}=theirs" for place in places[:_EXAMPLES])
        rows.append((f"{merge} {' '.join(sides)}", "group by group"))
    elif places:
        rows.append((f"{merge} --strategy {places[0]}=theirs", "by type or property"))
    if places:
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
