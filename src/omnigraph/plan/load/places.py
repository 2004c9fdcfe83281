"""Owns the place of a row of a load: its source and its line, in one number."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnigraph.model.violation import Violation

AT = "_at"
"""The column that carries the place of each row until it is written."""

_LINE_BITS = 40
Places = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class SourceName:
    """The name of a source in messages, and the unit in which its rows are counted."""

    name: str
    unit: str = "line"


@dataclass(frozen=True)
class Reject:
    """A row that is not loaded: its place, the reason, and its contents."""

    source: str
    line: int
    type: str
    rule: str
    reason: str
    row: str
    id: str | None = None
    property: str | None = None


def first_place(source: int, line: int) -> int:
    return source << _LINE_BITS | line


def places(source: int, first_line: int, count: int) -> Places:
    """Consecutive lines of one source."""
    start = first_place(source, first_line)
    return np.arange(start, start + count, dtype=np.int64)


def split_place(place: int) -> tuple[int, int]:
    return place >> _LINE_BITS, place & ((1 << _LINE_BITS) - 1)


def place_text(names: Sequence[SourceName], place: int) -> str:
    """`people.jsonl line 7`."""
    source, line = split_place(place)
    return f"{names[source].name} {names[source].unit} {line}"


def to_reject(
    names: Sequence[SourceName],
    place: int,
    violation: Violation,
    entity: str | None,
    row: str,
    first: int | None = None,
) -> Reject:
    """`first` is the place of the row that it repeats."""
    source, line = split_place(place)
    again = "" if first is None else f" It stands in {place_text(names, first)} already."
    return Reject(
        source=names[source].name,
        line=line,
        type=violation.type,
        rule=violation.rule,
        reason=violation.message + again,
        row=row,
        id=entity,
        property=violation.property,
    )


def to_violation(reject: Reject, names: Sequence[SourceName]) -> Violation:
    unit = next((n.unit for n in names if n.name == reject.source), "line")
    return Violation(
        type=reject.type,
        rule=reject.rule,
        message=f"{reject.source} {unit} {reject.line}: {reject.reason}",
        id=reject.id,
        property=reject.property,
        row=reject.line,
    )
