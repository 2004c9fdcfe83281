"""A three-way merge as the issue words it, over plain dicts, with no regard to cost.

A state maps (type, id) to a row. Written without a look at the code that it judges.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
State = dict[tuple[str, str], Row]
Told = tuple[str, str, str, str | None]


@dataclass(frozen=True)
class Outcome:
    """What the merged graph holds, and all conflicts as (kind, type, id, property)."""

    state: State
    conflicts: frozenset[Told]


def merge_states(
    base: State,
    ours: State,
    theirs: State,
    edges: Mapping[str, Any],
    prefer: str | None = None,
) -> Outcome:
    """`edges` maps each edge type to the node types of its ends; `prefer` is the strategy."""
    merged: State = {}
    conflicts: set[Told] = set()
    for entity in {*base, *ours, *theirs}:
        was, mine, yours = (side.get(entity) for side in (base, ours, theirs))
        if equal(mine, yours) or equal(was, yours):
            result = mine
        elif equal(was, mine):
            result = yours
        elif mine is None or yours is None:
            if prefer is None:
                conflicts.add(("DeleteVsUpdate", *entity, None))
            result = yours if prefer == "theirs" else mine
        else:
            result = _merge_rows(entity, was, mine, yours, prefer, conflicts)
        if result is not None:
            merged[entity] = result
    for (kind, identity), row in merged.items():
        ends = (("src", "from"), ("dst", "to"))
        for (end, name), node in zip(ends, edges.get(kind, ()), strict=False):
            if (node, row[end]) not in merged:
                conflicts.add(("OrphanEdge", kind, identity, name))
    return Outcome(merged, frozenset(conflicts))


def _merge_rows(
    entity: tuple[str, str],
    was: Row | None,
    mine: Row,
    yours: Row,
    prefer: str | None,
    conflicts: set[Told],
) -> Row:
    result = {}
    for name in mine:
        before = None if was is None else was[name]
        if equal(mine[name], yours[name]) or (was is not None and equal(before, yours[name])):
            result[name] = mine[name]
        elif was is not None and equal(before, mine[name]):
            result[name] = yours[name]
        else:
            kind = "DivergentInsert" if was is None else "DivergentUpdate"
            if prefer is None:
                conflicts.add((kind, *entity, name))
            result[name] = yours[name] if prefer == "theirs" else mine[name]
    return result


def equal(a: Any, b: Any) -> bool:
    """NaN is NaN, wherever it stands."""
    if isinstance(a, float) and isinstance(b, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(equal(a[n], b[n]) for n in a)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)
