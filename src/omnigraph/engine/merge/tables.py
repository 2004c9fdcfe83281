"""Owns the merge of tables: for each type whether it is kept, taken by pointer or merged by row."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from omnigraph.engine.merge.answers import check_places, read_answers
from omnigraph.engine.merge.base import MergeBase
from omnigraph.engine.merge.check import check_merge
from omnigraph.engine.merge.columns import find_narrowed, settle_columns
from omnigraph.engine.merge.commit import commit_merge
from omnigraph.engine.merge.sides import kind_in, pin_in, same_rows
from omnigraph.engine.merge.state import Merging
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot
from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.model.conflicts import ConflictKind, MergeConflict
from omnigraph.plan.merge import Row, Strategy, merge_rows
from omnigraph.plan.publish import Register, Rename, TableAction, Tombstone
from omnigraph.plan.schema_merge.references import adopt_ids
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class MergedTables:
    """`catalog` is the merged one with the columns that the tables have."""

    catalog: Catalog
    actions: tuple[TableAction, ...]
    adopted: tuple[str, ...]
    changes: dict[str, dict[str, int]]
    conflicts: tuple[MergeConflict, ...]


def merge_tables(
    session: Session,
    base: MergeBase,
    ours: Snapshot,
    theirs: Snapshot,
    catalog: Catalog,
    strategy: Strategy,
    ledger: Ledger,
    *,
    dry_run: bool,
) -> MergedTables:
    """Nothing becomes visible here: versions are made that only the returned actions know. With
    `dry_run` nothing is written at all."""
    known = adopt_ids(base.catalog, ours.catalog, theirs.catalog)
    m = Merging(
        session,
        base,
        ours,
        Snapshot(theirs.graph_version, known, session, ledger),
        catalog,
        strategy,
        ledger,
        dry_run,
    )
    check_places(m)
    answered = read_answers(m)
    m.conflicts += find_narrowed(m, merged=answered.keys())
    if m.conflicts:  # rows of one side cannot be rows of the other
        return _outcome(m)
    m.catalog = settle_columns(m, merged=answered.keys())
    for kind in m.catalog.types:
        _merge_type(m, kind, answered.get(kind.table_key, {}))
    _drop_types(m)
    work = check_merge(m)
    if not m.conflicts:
        commit_merge(m, work)
    return _outcome(m)


def _outcome(m: Merging) -> MergedTables:
    return MergedTables(
        m.catalog, tuple(m.actions), tuple(m.adopted), m.changes, tuple(m.conflicts)
    )


def _merge_type(m: Merging, kind: GraphType, answers: dict[str, Row | None]) -> None:
    mine, yours = kind_in(m.ours, kind), kind_in(m.theirs, kind)
    if mine is None:
        if yours is not None:
            _take_new_type(m, kind)
        return
    if mine.table_key != kind.table_key:
        m.actions.append(Rename(table=mine.table_key, to=kind.table_key))
    if yours is None and not answers:
        return
    _check_dropped_properties(m, kind)
    if not answers:
        if same_rows(m.theirs, m.ours, kind) or not m.changed(m.theirs, kind):
            return
        if m.takes(kind):
            pin = pin_in(m.theirs, kind)
            assert pin is not None
            m.pointed[kind.table_key] = pin
            return
    left, right = m.side(m.ours, kind), m.side(m.theirs, kind)
    contested = m.base.table(kind).contested
    if right.empty and not answers and not contested:
        return
    result = merge_rows(kind, left, right, m.strategy, answers, contested)
    m.conflicts += result.conflicts
    m.merged[kind.table_key] = result


def _take_new_type(m: Merging, kind: GraphType) -> None:
    pin = pin_in(m.theirs, kind)
    assert pin is not None
    pin = msgspec.structs.replace(pin, key=kind.table_key, type_id=kind.id)
    m.actions.append(Register(table=kind.table_key, pin=pin))
    m.adopted.append(kind.table_key)
    m.arrived.append(kind)


def _drop_types(m: Merging) -> None:
    """A type that one side dropped goes, unless the other side went on writing to it."""
    kept = {kind.id for kind in m.catalog.types}
    for kind in m.base.types():
        if kind.id in kept:
            continue
        mine, yours = kind_in(m.ours, kind), kind_in(m.theirs, kind)
        if mine is not None:
            m.actions.append(Tombstone(table=mine.table_key))
        if (mine is None) == (yours is None):
            continue
        writer, dropper = (m.ours, "theirs") if mine is not None else (m.theirs, "ours")
        if m.strategy.side(kind.name) == dropper or not m.changed(writer, kind):
            continue
        if m.delta(writer, kind).empty:
            continue
        writing = "ours" if dropper == "theirs" else "theirs"
        m.conflicts.append(
            MergeConflict(
                ConflictKind.SCHEMA,
                kind.table_key,
                None,
                f"{dropper} dropped {kind.table_key}, {writing} changed its rows.",
                base=kind.name,
                ours=None if mine is None else mine.name,
                theirs=None if yours is None else yours.name,
            )
        )


def _check_dropped_properties(m: Merging, kind: GraphType) -> None:
    """A property that one side dropped goes, unless the other side went on setting it."""
    was = m.base.kind(kind)
    kept = {p.id for p in kind.properties}
    for prop in was.properties if was is not None else ():
        if prop.id in kept:
            continue
        for side, writing, dropper in ((m.ours, "ours", "theirs"), (m.theirs, "theirs", "ours")):
            now = kind_in(side, kind)
            names = [p.name for p in now.properties if p.id == prop.id] if now is not None else []
            if not names or not m.changed(side, kind):
                continue
            if m.strategy.side(kind.name, prop.name) == dropper:
                continue
            if any(names[0] in changed for changed in m.delta(side, kind).changed):
                m.conflicts.append(
                    MergeConflict(
                        ConflictKind.SCHEMA,
                        kind.table_key,
                        None,
                        f"{dropper} dropped {kind.name}.{prop.name}, {writing} changed its values.",
                        property=prop.name,
                        base=prop.name,
                        ours=names[0] if writing == "ours" else None,
                        theirs=names[0] if writing == "theirs" else None,
                    )
                )
