"""Owns how changes are shown: entities that were added, removed or changed, property by
property."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING, Any, Protocol

from omnigraph.cli.colours import Paint, cut, visible_width
from omnigraph.cli.value_text import count_text, literal_text, one_line
from omnigraph.model.changes import Change, Op

if TYPE_CHECKING:
    from omnigraph.engine.history.diff import QueryChange

SIGNS = {Op.INSERT: ("+", "green"), Op.UPDATE: ("~", "yellow"), Op.DELETE: ("-", "red")}
_SYSTEM = ("id", "src", "dst")
_EXAMPLES, _PROPERTIES = 3, 8
_WORDS = {"insert": "inserted", "update": "updated", "delete": "deleted"}


def query_change_lines(changes: Iterable[QueryChange], paint: Paint) -> Iterator[str]:
    for change in changes:
        sign, style = SIGNS[change.op]
        yield f"{paint('magenta', 'query')} {paint(style, sign)} {change.name}"


def query_counts(changes: Iterable[QueryChange]) -> dict[str, dict[str, int]]:
    """As counts of a type, if there is anything to count."""
    counts = Counter(str(change.op) for change in changes)
    return {"query": dict(counts)} if counts else {}


def change_lines(
    changes: Iterable[Change], paint: Paint, width: int | None, *, limit: int | None = None
) -> Iterator[str]:
    """Type by type, with at most `limit` entities of each type and the number of the others."""
    first = True
    for (kind, name), group in groupby(changes, key=lambda c: (c.kind, c.type)):
        if not first:
            yield ""
        first = False
        yield paint("bold", f"{kind} {name}")
        left = 0
        for number, change in enumerate(group):
            if limit is not None and number >= limit:
                left += 1
                continue
            yield from _entity(change, paint, width)
        if left:
            yield paint("dim", f"  … {count_text(left, 'more entity', 'more entities')}")


@dataclass
class _Many:
    """The changes of one type: how many, by what was done and by property, and some of them."""

    counts: Counter[str] = field(default_factory=Counter)
    properties: Counter[str] = field(default_factory=Counter)
    examples: list[Change] = field(default_factory=list)

    def add(self, change: Change) -> None:
        self.counts[str(change.op)] += 1
        self.properties.update(change.changed)
        if len(self.examples) < _EXAMPLES:
            self.examples.append(change)


def many_change_lines(changes: Iterable[Change], paint: Paint, width: int | None) -> Iterator[str]:
    """For more changes than anybody reads: counts by type and property, then a few examples."""
    types: dict[str, _Many] = {}
    for change in changes:
        types.setdefault(change.type, _Many()).add(change)
    heads = summary_lines({name: many.counts for name, many in types.items()}, paint)
    for head, many in zip(heads, types.values(), strict=True):
        yield head
        named = [f"{name} {count:,}" for name, count in many.properties.most_common(_PROPERTIES)]
        if named:
            yield paint("dim", _fit(f"    changed: {' · '.join(named)}", width))
    for many in types.values():
        yield ""
        yield from change_lines(many.examples, paint, width)
        if left := many.counts.total() - len(many.examples):
            yield paint("dim", f"  … {count_text(left, 'more entity', 'more entities')}")
    yield ""
    yield paint("dim", "--limit 100 shows that many of each type, --format jsonl all")


def summary_lines(summary: Mapping[str, Mapping[str, int]], paint: Paint) -> Iterator[str]:
    """Counts of a diff, a line for each type."""
    longest = max((visible_width(name) for name in summary), default=0)
    for name, counts in summary.items():
        signs = [
            paint(style, f"{sign}{counts[op]:,}")
            for op, (sign, style) in ((str(op), s) for op, s in SIGNS.items())
            if op in counts
        ]
        yield f"{name}{' ' * (longest - visible_width(name))}  {' '.join(signs)}"


class Counts(Protocol):
    @property
    def inserted(self) -> int: ...
    @property
    def updated(self) -> int: ...
    @property
    def deleted(self) -> int: ...


def count_lines(types: Mapping[str, Counts], paint: Paint) -> Iterator[str]:
    """What a write did, one line for each type."""
    summary = {
        name: {op: n for op, n in zip(_WORDS, (c.inserted, c.updated, c.deleted), strict=True) if n}
        for name, c in types.items()
    }
    return summary_lines({name: ops for name, ops in summary.items() if ops}, paint)


def summary_text(summary: Mapping[str, Mapping[str, int]]) -> str:
    """The same as a phrase: 3 inserted, 1 deleted."""
    totals: dict[str, int] = {}
    for counts in summary.values():
        for op, count in counts.items():
            totals[op] = totals.get(op, 0) + count
    shown = [f"{totals[op]:,} {word}" for op, word in _WORDS.items() if totals.get(op)]
    return ", ".join(shown) or "nothing changed"


def _entity(change: Change, paint: Paint, width: int | None) -> Iterator[str]:
    sign, style = SIGNS[change.op]
    row = change.after or change.before or {}
    ends = f" ({one_line(row['src'])} → {one_line(row['dst'])})" if change.kind == "edge" else ""
    head = f"  {sign} {one_line(change.id)}{ends}"
    if change.op is Op.UPDATE:
        yield paint(style, _fit(head, width))
        for name in change.changed:
            before = (change.before or {}).get(name)
            yield from _value_change(name, before, row.get(name), paint, width)
        return
    values = [
        f"{name}: {literal_text(value)}"
        for name, value in row.items()
        if name not in _SYSTEM and value is not None and value != change.id
    ]
    text = f"{head}  {', '.join(values)}" if values else head
    yield paint(style, _fit(text, width))


def _value_change(
    name: str, before: Any, after: Any, paint: Paint, width: int | None
) -> Iterator[str]:
    old, new = literal_text(before), literal_text(after)
    line = f"      {name}: {old} → {new}"
    if width is None or visible_width(line) <= width:
        yield f"      {name}: {paint('red', old)} → {paint('green', new)}"
        return
    # Too long for one line: one below the other, so that the difference can be seen.
    yield f"      {name}:"
    yield f"        {paint('red', cut(f'- {old}', width - 8))}"
    yield f"        {paint('green', cut(f'+ {new}', width - 8))}"


def _fit(text: str, width: int | None) -> str:
    return text if width is None else cut(text, width)
