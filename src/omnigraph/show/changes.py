"""Owns the view of changes: what a diff leads to, and what a merge did or could not do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Final, Literal

from omnigraph.model.changes import Change, Op
from omnigraph.model.conflicts import MergeConflict
from omnigraph.show.markup import (
    Markup,
    coloured,
    counted,
    escaped,
    faint,
    line,
    table,
    value_text,
    view,
)

SHOWN: Final = 50
_GREEN, _AMBER, _RED = "#2e9e5b", "#b7791f", "#c9364f"
_SIGNS: Final = {
    Op.INSERT: coloured(_GREEN, "+"),
    Op.UPDATE: coloured(_AMBER, "~"),
    Op.DELETE: coloured(_RED, "−"),
}
_DONE: Final = {
    "already_up_to_date": "Nothing was to be merged",
    "fast_forward": "Brought forward",
    "merged": "Merged",
}
_MEANT: Final = {
    "already_up_to_date": "There is nothing to merge.",
    "fast_forward": "It would be brought forward.",
    "merged": "It would be merged.",
}
_OPS: Final = {"insert": "+", "update": "~", "delete": "−"}


def changes_view(
    changes: Iterable[Change], counts: Mapping[str, Mapping[str, int]], *others: str
) -> str:
    """`others` are sentences about what is no entity: steps of the schema, stored queries."""
    total = sum(number for ops in counts.values() for number in ops.values())
    shown = list(islice(changes, SHOWN))
    if not total and not others:
        return view(line(faint("Nothing changed.")))
    return view(
        _summary(counts),
        *(line(other) for other in others),
        table(("", "type", "id", "what"), (_row(change) for change in shown)),
        line(faint(counted(len(shown), "change", total))),
    )


def merge_view(
    outcome: Literal["already_up_to_date", "fast_forward", "merged"],
    commit: str | None,
    counts: Mapping[str, Mapping[str, int]],
    conflicts: Sequence[MergeConflict],
) -> str:
    if not conflicts:
        done = f"{_DONE[outcome]} in commit {commit}." if commit else _MEANT[outcome]
        return view(line(done), _summary(counts))
    shown = conflicts[:SHOWN]
    heads = ("kind", "type", "id", "property", "before", "ours", "theirs")
    rows = (
        (str(one.kind), one.type, one.id, one.property or "", one.base, one.ours, one.theirs)
        for one in shown
    )
    words = f"{counted(len(conflicts), 'conflict')} must be settled first."
    return view(
        line(coloured(_RED, words), " Give strategy= or resolve= to merge."),
        table(heads, rows),
        line(faint(counted(len(shown), "conflict", len(conflicts)))),
    )


def _summary(counts: Mapping[str, Mapping[str, int]]) -> Markup:
    parts: list[object] = []
    for name, ops in counts.items():
        told = " ".join(f"{_OPS.get(op, op)}{number:,}" for op, number in ops.items())
        parts += [Markup(f"<b>{escaped(name)}</b>"), f" {told}   "]
    return line(*parts)


def _row(change: Change) -> Iterator[Any]:
    yield _SIGNS[change.op]
    yield change.type
    yield change.id
    yield _what(change)


def _what(change: Change) -> Markup:
    before, after = change.before or {}, change.after or {}
    if change.op is Op.UPDATE:
        return Markup(
            "<br>".join(
                Markup(
                    f"{escaped(name)}: {coloured(_RED, _short(before.get(name)))} → "
                    f"{coloured(_GREEN, _short(after.get(name)))}"
                )
                for name in change.changed
            )
        )
    row = after or before
    ends = ("src", "dst") if change.kind == "edge" else ()
    told = [f"{row[end]}" for end in ends if end in row]
    said = " → ".join(told)
    rest = ", ".join(
        f"{name}: {_short(value)}"
        for name, value in row.items()
        if value is not None and name not in ("id", *ends)
    )
    return escaped("   ".join(part for part in (said, rest) if part))


def _short(value: Any) -> str:
    return "null" if value is None else value_text(value)
