"""Owns the state of the indexes in a snapshot: which ones the schema asks for, and how many rows
each covers.

Rows that no index covers are found as well, only more slowly.
"""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.engine.graph_view import GraphView, pin_of
from omnigraph.model.catalog import system_columns
from omnigraph.model.indexes import IndexKind
from omnigraph.plan.optimize import wanted_indexes
from omnigraph.store.fragments import FragmentMark


@dataclass(frozen=True)
class IndexState:
    """The index of one property. It covers `covered` of `rows` rows."""

    type: str
    property: str
    kind: IndexKind
    rows: int
    covered: int


def index_states(snapshot: GraphView) -> list[IndexState]:
    """In the order of the schema. Within a type, ids and ends of edges come first."""
    found = []
    for kind in snapshot.catalog.types:
        if snapshot.sight is not None and not snapshot.sight.sees_all(kind):
            continue  # how many rows an index covers tells how many there are
        pin = pin_of(snapshot, kind)
        names = {name: name for name in system_columns(kind)}
        names |= {prop.column: prop.name for prop in kind.properties}
        marks: dict[int, FragmentMark] = {}
        covered: dict[str, set[int]] = {}
        if pin.fragments:
            table = snapshot.view(kind).table
            marks = table.marks
            for segment in table.segments:
                covered.setdefault(segment.name, set()).update(segment.fragments)
        for spec in wanted_indexes(kind):
            there = covered.get(spec.name, set())
            held = sum(mark.rows for mark in marks.values() if mark.id in there)
            found.append(IndexState(kind.name, names[spec.column], spec.kind, pin.rows, held))
    return found
