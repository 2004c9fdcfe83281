"""Owns the merge of tables: whether each type is kept, taken by reference, or merged row by row."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.merge.base import MergeBase
from omnigraph.engine.merge.columns import find_narrowed, settle_columns
from omnigraph.engine.merge.resolutions import check_places, read_answers
from omnigraph.engine.merge.sides import kind_in, pin_in, same_rows
from omnigraph.engine.merge.state import MergedRows, MergeInputs
from omnigraph.engine.session import Session
from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.model.conflicts import ConflictKind, MergeConflict
from omnigraph.model.version import TablePin
from omnigraph.plan.merge import Row, RowMerge, SideDelta, Strategy, merge_rows
from omnigraph.plan.publish import Rename, TableAction, Tombstone
from omnigraph.plan.schema_merge.references import adopt_ids
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class _Decided:
    """What becomes of one type: nothing, or one of these."""

    pointed: TablePin | None = None
    rows: RowMerge | None = None
    arrived: bool = False
    actions: tuple[TableAction, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()


def merge_inputs(
    session: Session,
    base: MergeBase,
    ours: GraphView,
    theirs: GraphView,
    catalog: Catalog,
    strategy: Strategy,
    ledger: Ledger,
) -> MergeInputs:
    known = adopt_ids(base.catalog, ours.catalog, theirs.catalog)
    renamed = GraphView(theirs.graph_version, known, session, ledger)
    return MergeInputs(session, base, ours, renamed, catalog, strategy, ledger)


def merge_tables(m: MergeInputs) -> MergedRows:
    """Reads what each side did and writes nothing."""
    check_places(m)
    answered = read_answers(m)
    narrowed = tuple(find_narrowed(m, merged=answered.keys()))
    if narrowed:  # rows of one side cannot become rows of the other
        return MergedRows(m, conflicts=narrowed, whole=False)
    m = replace(m, catalog=settle_columns(m, merged=answered.keys()))
    decided = {
        kind.table_key: _merge_type(m, kind, answered.get(kind.table_key, {}))
        for kind in m.catalog.types
    }
    dropped = list(_drop_types(m))
    every = [*decided.values(), *dropped]
    return MergedRows(
        m,
        rows={key: one.rows for key, one in decided.items() if one.rows is not None},
        pointed={key: one.pointed for key, one in decided.items() if one.pointed is not None},
        arrived=tuple(kind for kind in m.catalog.types if decided[kind.table_key].arrived),
        actions=tuple(action for one in every for action in one.actions),
        conflicts=tuple(conflict for one in every for conflict in one.conflicts),
    )


def _merge_type(m: MergeInputs, kind: GraphType, answers: dict[str, Row | None]) -> _Decided:
    mine, yours = kind_in(m.ours, kind), kind_in(m.theirs, kind)
    if mine is None:
        return _Decided() if yours is None else _take_new_type(m, kind, answers)
    actions: tuple[TableAction, ...] = ()
    if mine.table_key != kind.table_key:
        actions = (Rename(table=mine.table_key, to=kind.table_key),)
    if yours is None and not answers:
        return _Decided(actions=actions)
    conflicts = tuple(_find_dropped_properties(m, kind))
    kept = _Decided(actions=actions, conflicts=conflicts)
    if not answers:
        if same_rows(m.theirs, m.ours, kind) or not m.changed(m.theirs, kind):
            return kept
        if m.takes(kind):
            return replace(kept, pointed=pin_in(m.theirs, kind))
    left, right = m.side(m.ours, kind), m.side(m.theirs, kind)
    contested = m.base.table(kind).contested
    if right.empty and not answers and not contested:
        return kept
    result = merge_rows(kind, left, right, m.strategy, answers, contested)
    return replace(kept, rows=result, conflicts=(*conflicts, *result.conflicts))


def _take_new_type(m: MergeInputs, kind: GraphType, answers: dict[str, Row | None]) -> _Decided:
    """Their table by pointer; answers are changes to it."""
    if not answers:
        return _Decided(arrived=True)
    none = row_schema(kind).empty_table()
    nothing = SideDelta(none, none, none, none)
    return _Decided(rows=merge_rows(kind, nothing, nothing, m.strategy, answers), arrived=True)


def _drop_types(m: MergeInputs) -> Iterator[_Decided]:
    """A type that one side dropped is dropped, unless the other side wrote to it."""
    kept = {kind.id for kind in m.catalog.types}
    for kind in m.base.types():
        if kind.id in kept:
            continue
        mine, yours = kind_in(m.ours, kind), kind_in(m.theirs, kind)
        if mine is not None:
            yield _Decided(actions=(Tombstone(table=mine.table_key),))
        if (mine is None) == (yours is None):
            continue
        writer, dropper = (m.ours, "theirs") if mine is not None else (m.theirs, "ours")
        if m.strategy.side(kind.name) == dropper or not m.changed(writer, kind):
            continue
        if m.delta(writer, kind).empty:
            continue
        writing = "ours" if dropper == "theirs" else "theirs"
        conflict = MergeConflict(
            ConflictKind.SCHEMA,
            kind.table_key,
            None,
            f"{dropper} dropped {kind.table_key}, {writing} changed its rows.",
            base=kind.name,
            ours=None if mine is None else mine.name,
            theirs=None if yours is None else yours.name,
        )
        yield _Decided(conflicts=(conflict,))


def _find_dropped_properties(m: MergeInputs, kind: GraphType) -> Iterator[MergeConflict]:
    """A property that one side dropped is dropped, unless the other side set it."""
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
                yield MergeConflict(
                    ConflictKind.SCHEMA,
                    kind.table_key,
                    None,
                    f"{dropper} dropped {kind.name}.{prop.name}, {writing} changed its values.",
                    property=prop.name,
                    base=prop.name,
                    ours=names[0] if writing == "ours" else None,
                    theirs=names[0] if writing == "theirs" else None,
                )
