"""Owns the three-way merge of rows: two deltas against one base, by id and by property. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import GraphType
from omnigraph.model.conflicts import ConflictKind, MergeConflict
from omnigraph.plan.rows.row_type import ENDS
from omnigraph.plan.rows.stale import embedded_from

Side = Literal["ours", "theirs"]
Row = dict[str, Any]
Contested = Mapping[str, frozenset[str]]


_ABSENT: tuple[Row | None, Row | None] = (None, None)


@dataclass(frozen=True)
class Strategy:
    """Which side wins where both changed the same: everywhere, by type, or by `Type.property`
    (an end of an edge has either of its names). `rows` are answers given for single entities: a
    row, or None to have it deleted."""

    everywhere: Side | None = None
    places: Mapping[str, Side] | None = None
    rows: Mapping[tuple[str, str], Row | None] | None = None

    def side(self, type_name: str, property_name: str | None = None) -> Side | None:
        places = self.places or {}
        for name in () if property_name is None else (property_name, ENDS.get(property_name)):
            if f"{type_name}.{name}" in places:
                return places[f"{type_name}.{name}"]
        return places.get(type_name, self.everywhere)


@dataclass(frozen=True)
class SideDelta:
    """What one side did to a type, as rows of the merged type. `before` and `after` lie row by
    row beside each other."""

    inserts: pa.Table
    deletes: pa.Table
    before: pa.Table
    after: pa.Table

    @property
    def empty(self) -> bool:
        return not (self.inserts.num_rows or self.deletes.num_rows or self.after.num_rows)


@dataclass(frozen=True)
class RowMerge:
    """What has to happen to our rows: whole rows to put by id, ids to delete."""

    upserts: pa.Table
    deletes: tuple[str, ...]
    conflicts: tuple[MergeConflict, ...]


def merge_rows(
    kind: GraphType,
    ours: SideDelta,
    theirs: SideDelta,
    strategy: Strategy,
    answers: Mapping[str, Row | None],
    contested: Contested | None = None,
) -> RowMerge:
    """Their changes carried over to our rows. An entity that only they changed is taken as it
    is; one that both changed is merged property by property; one that is answered is what the
    answer says.

    `contested` names by id the properties that had no one value at the base, because there were
    several bases: there neither side can say that it changed nothing. `id` among them means that
    it was contested whether the entity was there. Such entities stand in the deltas of both
    sides, changed or not, unless a side does not have them and the base did not either."""
    contested = contested or {}
    both = sorted((_ids(ours) & _ids(theirs) | contested.keys()) - answers.keys())
    decided = pa.array([*both, *answers], pa.string())
    taken = [
        rows.filter(pc.invert(pc.is_in(rows["id"], value_set=decided)))
        for rows in (theirs.inserts, theirs.after, theirs.deletes)
    ]
    removed = taken.pop()["id"].to_pylist()
    conflicts: list[MergeConflict] = []
    merged: list[Row] = []
    mine, yours = (changes_of(delta, only=both) for delta in (ours, theirs))
    for entity in both:
        left, right = mine.get(entity, _ABSENT), yours.get(entity, _ABSENT)
        unsure = contested.get(entity, frozenset())
        result = _merge_entity(kind, entity, left, right, unsure, strategy, conflicts)
        current = left[1]
        if result is None:
            if current is not None:
                removed.append(entity)
        elif current is None or not same_row(result, current):
            merged.append(result)
    for entity, answer in answers.items():
        if answer is None:
            removed.append(entity)
        else:
            merged.append(answer)
    schema = row_schema(kind)
    taken.append(pa.Table.from_pylist(merged, schema=schema))
    upserts = pa.concat_tables([rows.cast(schema) for rows in taken])
    return RowMerge(upserts, tuple(removed), tuple(conflicts))


def _merge_entity(
    kind: GraphType,
    entity: str,
    mine: tuple[Row | None, Row | None],
    yours: tuple[Row | None, Row | None],
    unsure: frozenset[str],
    strategy: Strategy,
    conflicts: list[MergeConflict],
) -> Row | None:
    """The merged row, None for a deleted one; conflicts are added to the list."""
    (base, ours), (_, theirs) = mine, yours
    if ours is None and theirs is None:
        return None
    if ours is None or theirs is None:
        side = strategy.side(kind.name)
        if side is None:
            conflicts.append(_deleted_and_changed(kind, entity, base, ours, theirs))
            return ours
        return ours if side == "ours" else theirs
    result = dict(ours)
    follow = dict(embedded_from(kind))
    for name in ours:
        if name == "id" or name in follow or _same(ours[name], theirs[name]):
            continue
        was = None if base is None else base[name]
        if base is not None and not unsure & {"id", name}:
            if _same(theirs[name], was):
                continue
            if _same(ours[name], was):
                result[name] = theirs[name]
                continue
        side = strategy.side(kind.name, name)
        if side is None:
            conflicts.append(_diverged(kind, entity, name, base, ours, theirs))
        elif side == "theirs":
            result[name] = theirs[name]
    for vector, source in follow.items():
        result[vector] = _merge_vector(vector, source, base, ours, theirs, result)
    return result


def _merge_vector(
    vector: str, source: str, base: Row | None, ours: Row, theirs: Row, result: Row
) -> Any:
    """A vector goes with its text, so it is never in conflict. Two of one text may differ, because
    a provider does not give the same numbers twice; then any of them will do."""
    mine, yours = ours[vector], theirs[vector]
    if not _same(ours[source], theirs[source]):
        return mine if _same(result[source], ours[source]) else yours
    if base is not None and _same(base[source], ours[source]) and _same(mine, base[vector]):
        return yours
    return yours if mine is None else mine


def changes_of(delta: SideDelta, *, only: Sequence[str]) -> dict[str, tuple[Any, Any]]:
    """Some changed entities as (before, after); None is absent."""
    found: dict[str, tuple[Any, Any]] = {}
    for row in _rows(delta.inserts, only):
        found[row["id"]] = (None, row)
    for row in _rows(delta.deletes, only):
        found[row["id"]] = (row, None)
    for before, after in zip(_rows(delta.before, only), _rows(delta.after, only), strict=True):
        found[after["id"]] = (before, after)
    return found


def _rows(table: pa.Table, only: Sequence[str]) -> list[Row]:
    chosen = pc.is_in(table["id"], value_set=pa.array(only, pa.string()))
    rows: list[Row] = table.filter(chosen).to_pylist()
    return rows


def _ids(delta: SideDelta) -> set[str]:
    return {
        entity
        for rows in (delta.inserts, delta.deletes, delta.after)
        for entity in rows["id"].to_pylist()
    }


def _same(a: Any, b: Any) -> bool:
    """NaN equals NaN, also inside lists."""
    if isinstance(a, float) and isinstance(b, float):
        return a == b or (a != a and b != b)
    if isinstance(a, list) and isinstance(b, list):
        return len(a) == len(b) and all(_same(x, y) for x, y in zip(a, b, strict=True))
    return bool(a == b)


def same_row(a: Row, b: Row) -> bool:
    return all(_same(a[name], b[name]) for name in a)


def _deleted_and_changed(
    kind: GraphType, entity: str, base: Row | None, ours: Row | None, theirs: Row | None
) -> MergeConflict:
    deleted, changed = ("ours", "theirs") if ours is None else ("theirs", "ours")
    return MergeConflict(
        ConflictKind.DELETE_VS_UPDATE,
        kind.name,
        entity,
        f"{kind.name} {entity!r} was deleted by {deleted} and changed by {changed}.",
        base=base,
        ours=ours,
        theirs=theirs,
    )


def _diverged(
    kind: GraphType, entity: str, name: str, base: Row | None, ours: Row, theirs: Row
) -> MergeConflict:
    inserted, told = base is None, ENDS.get(name, name)
    verb = "was inserted by both with a different" if inserted else "was changed by both in"
    return MergeConflict(
        ConflictKind.DIVERGENT_INSERT if inserted else ConflictKind.DIVERGENT_UPDATE,
        kind.name,
        entity,
        f"{kind.name} {entity!r} {verb} {told}: {ours[name]!r} (ours), {theirs[name]!r} (theirs).",
        property=name,
        base=None if base is None else base[name],
        ours=ours[name],
        theirs=theirs[name],
    )
