"""Owns the check of a merge: the rows that it would bring together obey every rule.

Only what changed is looked at: their rows where ours changed something that they depend on, and
the rows of either side where the other side brought new rules.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.merge.commit import widened
from omnigraph.engine.merge.sides import converted, fits, kind_in, pin_in
from omnigraph.engine.merge.state import Merging
from omnigraph.engine.overlay import NEW, Overlay
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.view import TableView
from omnigraph.engine.write.integrity import check_sources, find_violations
from omnigraph.engine.write.work import Work
from omnigraph.model.catalog import EdgeType, GraphType, NodeType
from omnigraph.model.conflicts import ConflictKind, MergeConflict
from omnigraph.model.violation import Violation
from omnigraph.plan.merge import RowMerge
from omnigraph.plan.validate import check_rows
from omnigraph.telemetry import Ledger

_KINDS = {
    "endpoint": ConflictKind.ORPHAN_EDGE,
    "orphan": ConflictKind.ORPHAN_EDGE,
    "unique": ConflictKind.UNIQUE_VIOLATION,
    "card": ConflictKind.CARDINALITY_VIOLATION,
}


@dataclass(frozen=True)
class Checked:
    """The merged rows over our side, as the merged schema sees it. `wide` are those of our tables
    that had to be given columns."""

    work: Work
    wide: frozenset[str]


def check_merge(m: Merging) -> Checked:
    """Adds a conflict to the merge for every rule that is broken."""
    wide = frozenset(kind.table_key for kind in m.catalog.types if _needs_columns(m, kind))
    taken = _taken_rows(m)
    snapshot = _as_merged(m, wide, looked_at={key for key, _ in taken})
    work = Work(snapshot)
    if m.dry_run:
        for key in wide:
            work.overlays[key] = _read_whole(m, m.catalog.by_key[key])
    for key, rows in m.merged.items():
        view = work.view(m.catalog.by_key[key])
        work.overlays[key] = _overlaid(m, view, rows)
    looked = Work(snapshot)
    looked.overlays = dict(work.overlays)
    removed: dict[str, Sequence[str]] = {}
    violations: list[Violation] = []
    for key, rows in [*m.merged.items(), *taken]:
        kind = m.catalog.by_key[key]
        if key not in looked.overlays:
            looked.overlays[key] = _overlay(looked.view(kind), rows, m.ledger)
        if isinstance(kind, NodeType):
            removed[key] = rows.deletes
        violations += check_rows(kind, rows.upserts)
    for kind in m.catalog.types:
        violations += _check_ours(m, kind, looked)
    for kind in m.arrived:
        if isinstance(kind, EdgeType) and _ends_changed(m, kind):
            looked.overlays[kind.table_key] = _all_new(m, kind)
    violations += find_violations(looked, removed)
    for edge in m.catalog.edges:
        violations += _check_thinned(m, edge, looked, violations)
    m.conflicts += [_conflict(m, violation) for violation in violations]
    return Checked(work, wide)


def _needs_columns(m: Merging, kind: GraphType) -> bool:
    mine = kind_in(m.ours, kind)
    return mine is not None and not fits(kind, mine) and kind.table_key not in m.pointed


def _as_merged(m: Merging, wide: frozenset[str], looked_at: Collection[str]) -> Snapshot:
    """Our side under the merged schema; what comes from theirs as it is there, except for the
    tables whose changes are looked at, which lie over ours."""
    pins = []
    for kind in m.catalog.types:
        pin = pin_in(m.ours, kind) or pin_in(m.theirs, kind)
        if kind.table_key in m.pointed and kind.table_key not in looked_at:
            pin = m.pointed[kind.table_key]
        assert pin is not None
        if kind.table_key in wide and not m.dry_run:
            table = widened(m, kind, pin)
            pin = msgspec.structs.replace(pin, lance_version=table.version)
        pins.append(msgspec.structs.replace(pin, key=kind.table_key))
    version = msgspec.structs.replace(m.ours.graph_version, tables=tuple(pins))
    return Snapshot(version, m.catalog, m.session, m.ledger)


def _read_whole(m: Merging, kind: GraphType) -> Overlay:
    """Our rows with the columns that the merge brings, when nothing may be written."""
    mine = kind_in(m.ours, kind)
    assert mine is not None
    view = m.ours.view(mine)
    rows = pa.Table.from_batches(view.scan(m.ledger), schema=view.schema)
    return _replacing(converted(rows, mine, kind))


def _all_new(m: Merging, kind: GraphType) -> Overlay:
    return _replacing(m.side(m.theirs, kind).inserts)


def _replacing(rows: pa.Table) -> Overlay:
    origins = np.full(rows.num_rows, NEW, dtype=np.uint64)
    return Overlay(rows, origins, np.array([], dtype=np.uint64), replaced=True)


def _overlaid(m: Merging, view: TableView, rows: RowMerge) -> Overlay:
    """Also counts what the merge does to our rows."""
    known = view.find(("id",), rows.upserts["id"].to_pylist(), m.ledger).positions
    gone = view.find(("id",), list(rows.deletes), m.ledger).positions
    counts = {
        "insert": rows.upserts.num_rows - len(known),
        "update": len(known),
        "delete": len(gone),
    }
    if any(counts.values()):
        m.changes[view.kind.name] = {op: count for op, count in counts.items() if count}
    return _overlay(view, rows, m.ledger)


def _overlay(view: TableView, rows: RowMerge, ledger: Ledger) -> Overlay:
    ids = rows.upserts["id"].to_pylist()
    found = view.find(("id",), ids, ledger)
    origins = np.full(len(ids), NEW, dtype=np.uint64)
    origins[found.base_positions] = found.addresses
    gone = view.find(("id",), list(rows.deletes), ledger)
    pending = np.union1d(found.pending, gone.pending).astype(np.int64)
    return view.overlay.without(pending).adding(rows.upserts, origins).hiding(gone.addresses)


def _taken_rows(m: Merging) -> list[tuple[str, RowMerge]]:
    """Of tables taken by pointer the rows that came and went, if our side changed what they
    depend on or brought rules that they have not met."""
    found = []
    for key in m.pointed:
        kind = m.catalog.by_key[key]
        if kind == kind_in(m.theirs, kind) and not _depends(m, kind):
            continue
        delta = m.side(m.theirs, kind)
        rows = pa.concat_tables([delta.inserts, delta.after])
        found.append((key, RowMerge(rows, tuple(delta.deletes["id"].to_pylist()), ())))
    return found


def _depends(m: Merging, kind: GraphType) -> bool:
    """Whether our side changed a table that rows of this type refer to or are referred to by."""
    related: set[str] = set()
    for edge in m.catalog.edges:
        ends = {f"node:{edge.source}", f"node:{edge.target}"}
        if edge.table_key == kind.table_key:
            related |= ends
        elif kind.table_key in ends:
            related.add(edge.table_key)
    return any(m.changed(m.ours, m.catalog.by_key[key]) for key in related)


def _ends_changed(m: Merging, kind: EdgeType) -> bool:
    ends = {f"node:{kind.source}", f"node:{kind.target}"}
    return any(m.changed(m.ours, m.catalog.by_key[key]) for key in ends)


def _check_ours(m: Merging, kind: GraphType, looked: Work) -> list[Violation]:
    """Our changes, where the merge brings rules that they have not met: checked in place, and
    made part of what is looked at."""
    mine = kind_in(m.ours, kind)
    if mine is None or mine == kind or not m.changed(m.ours, kind):
        return []
    delta = m.side(m.ours, kind)
    rows = pa.concat_tables([delta.inserts, delta.after])
    done = m.merged.get(kind.table_key)
    if done is not None:
        decided = pa.concat_arrays(
            [done.upserts["id"].combine_chunks(), pa.array(done.deletes, pa.string())]
        )
        rows = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=decided)))
    if not rows.num_rows:
        return []
    view = looked.view(kind)
    looked.overlays[kind.table_key] = _overlay(view, RowMerge(rows, (), ()), m.ledger)
    return check_rows(kind, rows)


def _check_thinned(
    m: Merging, kind: EdgeType, looked: Work, told: Sequence[Violation]
) -> list[Violation]:
    """Nodes of which our side took edges, where the merge brings another minimum."""
    mine = kind_in(m.ours, kind)
    if mine is None or not isinstance(mine, EdgeType) or mine.card == kind.card:
        return []
    if not m.changed(m.ours, kind):
        return []
    known = {one.id for one in told if one.rule == "card" and one.type == kind.name}
    sources = set(m.side(m.ours, kind).deletes["src"].to_pylist()) - known
    return list(check_sources(looked, kind, sorted(sources)))


def _conflict(m: Merging, violation: Violation) -> MergeConflict:
    """With what the entity is on each side, or how many edges a node has."""
    kind = m.catalog.find(violation.type)
    values: list[Any] = [None, None, None]
    if kind is not None and violation.id is not None:
        if violation.rule == "card":
            sides = (m.base.table(kind).snapshot, m.ours, m.theirs)
            values = [_count_edges(m, side, kind, violation.id) for side in sides]
        else:
            now = [m.entity(side, kind, violation.id) for side in (m.ours, m.theirs)]
            rows = [m.was(kind, violation.id), *now]
            name = violation.property
            values = [
                row[name] if row is not None and name is not None and name in row else row
                for row in rows
            ]
    return MergeConflict(
        _KINDS.get(violation.rule, ConflictKind.VALUE_CONSTRAINT_VIOLATION),
        violation.type,
        violation.id,
        violation.message,
        property=violation.property,
        base=values[0],
        ours=values[1],
        theirs=values[2],
    )


def _count_edges(m: Merging, side: Snapshot, kind: GraphType, source: str) -> int:
    known = kind_in(side, kind)
    if known is None:
        return 0
    return len(side.view(known).find(("src",), [source], m.ledger).addresses)
