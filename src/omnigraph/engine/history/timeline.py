"""Owns the history of one entity: its state at a ref, and every commit that changed it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa

from omnigraph.engine.graph_view import GraphView, find_type, shown_commit, view_of
from omnigraph.engine.history.refs import History
from omnigraph.engine.history.table_diff import TypeDelta, diff_type
from omnigraph.engine.session import Session
from omnigraph.errors import HistoryGap, InvalidArgument, Reclaimed
from omnigraph.model.catalog import GraphType
from omnigraph.model.changes import Change, Op
from omnigraph.model.version import Commit, GraphVersion, TablePin
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class Moment:
    """A commit that changed an entity, and how it changed it."""

    commit: Commit
    change: Change


def read_entity(snapshot: GraphView, type: str, id: str) -> dict[str, Any] | None:
    """One entity, found by its key, in the schema of the snapshot."""
    check_id(id)
    return read_row(snapshot, snapshot.type(type), id)


def read_moments(
    session: Session, head: GraphView, type: str, id: str, ledger: Ledger
) -> Iterator[Moment]:
    """Newest first, along the first parents and across forks. Commits that did not change the table
    are skipped unread, and of the others only the differences are read. If the entity is older than
    the oldest version left by cleanup, an error follows the last known moment."""
    check_id(id)
    history = History(session, ledger)
    type_id = _type_id(session, history, head, type, ledger)
    return _moments(session, history, head.graph_version, type_id, id, ledger)


def check_id(id: str) -> None:
    if not isinstance(id, str):
        raise InvalidArgument(f"An entity is named by the text of its id, not by {id!r}.")


def _moments(
    session: Session,
    history: History,
    head: GraphVersion,
    type_id: str,
    id: str,
    ledger: Ledger,
) -> Iterator[Moment]:
    oldest = head
    existed: bool | None = None
    try:
        for new, old in pairwise(history.walk(head)):
            oldest = old
            change = _change(session, old, new, type_id, id, ledger)
            if change is not None:
                existed = change.before is not None
                yield Moment(shown_commit(session, new, ledger), change)
    except Reclaimed as error:
        snapshot = view_of(session, oldest, ledger)
        if existed is None:
            kind = by_id(snapshot, type_id)
            existed = kind is not None and read_row(snapshot, kind, id) is not None
        if existed:
            raise HistoryGap(
                f"{id!r} was there at commit {oldest.commit.id}; what happened to it before has "
                "been reclaimed.",
                help="",
            ) from error


def _change(
    session: Session, old: GraphVersion, new: GraphVersion, type_id: str, id: str, ledger: Ledger
) -> Change | None:
    delta = delta_of(session, old, new, type_id, id, ledger)
    return None if delta is None or delta.empty else _change_of(delta, id)


def delta_of(
    session: Session, old: GraphVersion, new: GraphVersion, type_id: str, id: str, ledger: Ledger
) -> TypeDelta | None:
    """What one entity became between two versions; None if its table stayed the same."""
    was, now = _pin(old, type_id), _pin(new, type_id)
    if was is None and now is None:
        return None
    if was is not None and now is not None and was.content == now.content:
        return None
    before, after = view_of(session, old, ledger), view_of(session, new, ledger)
    old_kind, new_kind = by_id(before, type_id), by_id(after, type_id)
    return diff_type(
        None if old_kind is None else before.view(old_kind),
        None if new_kind is None else after.view(new_kind),
        ledger,
        entity=id,
    )


def _change_of(delta: TypeDelta, id: str) -> Change:
    kind = delta.new or delta.old
    assert kind is not None
    side, name = kind.table_key.split(":", 1)
    if delta.inserts.num_rows:
        return Change(Op.INSERT, side, name, id, None, _row(delta.inserts))
    if delta.deletes.num_rows:
        return Change(Op.DELETE, side, name, id, _row(delta.deletes), None)
    return Change(
        Op.UPDATE, side, name, id, _row(delta.before), _row(delta.after), delta.changed[0]
    )


def _row(rows: pa.Table) -> dict[str, Any]:
    (row,) = rows.to_pylist()
    found: dict[str, Any] = row
    return found


def read_row(snapshot: GraphView, kind: GraphType, id: str) -> dict[str, Any] | None:
    view = snapshot.view(kind)
    found = view.find(("id",), [id], snapshot.io)
    if not len(found.addresses):
        return None
    return _row(view.take(found.addresses, view.schema.names, snapshot.io))


def _type_id(session: Session, history: History, head: GraphView, type: str, ledger: Ledger) -> str:
    """The type that has this name now or, if there is none, the last one that had it."""
    if isinstance(type, str) and head.catalog.find(type) is None:
        known = head.catalog.digest
        try:
            for version in history.walk(head.graph_version):
                if version.catalog != known:
                    known = version.catalog
                    seen = view_of(session, version, ledger).catalog
                    if (kind := seen.find(type)) is not None:
                        return kind.id
        except Reclaimed:
            pass
    return find_type(head.catalog, type).id


def by_id(snapshot: GraphView, type_id: str) -> GraphType | None:
    return next((kind for kind in snapshot.catalog.types if kind.id == type_id), None)


def _pin(version: GraphVersion, type_id: str) -> TablePin | None:
    return next((pin for pin in version.tables if pin.type_id == type_id), None)
