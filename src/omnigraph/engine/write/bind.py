"""Owns binding: it carries out one table action on the head's version of the table, which nobody
can see yet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, assert_never

import msgspec
import pyarrow as pa

from omnigraph.engine.session import Session
from omnigraph.errors import Conflict
from omnigraph.model.version import GraphVersion, TablePin, TableStatistics
from omnigraph.plan.publish import (
    AddColumns,
    Adopt,
    Append,
    Delete,
    DropColumns,
    Index,
    Overwrite,
    Register,
    Rename,
    Rewrite,
    TableAction,
    Tombstone,
    Update,
    Upsert,
)
from omnigraph.store import commits
from omnigraph.store.indexes import Segment, replace_segments
from omnigraph.store.staging import StagedDeletes
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

_NO_CHANGE = TableStatistics()
_SEGMENT_DECODER = msgspec.json.Decoder(Segment)  # made before there are threads


@dataclass(frozen=True)
class Bound:
    """A `pin` of None removes the table from the graph. `unsynced` are files that must be durable
    before anybody sees it."""

    pin: TablePin | None
    before: Table | None = None
    after: Table | None = None
    statistics: TableStatistics = _NO_CHANGE
    unsynced: tuple[str, ...] = ()


def merge_pins(
    head: GraphVersion, bound: Sequence[tuple[TableAction, Bound]]
) -> dict[str, TablePin]:
    """The head's pins, changed by the actions. Types are removed first, then all renames happen at
    once (two names may be swapped), and then new types are added."""
    pins = dict(head.pins)
    for action, result in bound:
        match action:
            case Tombstone():
                pins.pop(action.table, None)
            case Rename() | Register():
                pass
            case _:
                if result.pin is not None:
                    pins[action.table] = result.pin
    renames = {action.table: action.to for action, _ in bound if isinstance(action, Rename)}
    moved = [msgspec.structs.replace(pins.pop(old), key=new) for old, new in renames.items()]
    pins |= {pin.key: pin for pin in moved}
    pins |= {action.pin.key: action.pin for action, _ in bound if isinstance(action, Register)}
    return pins


def bind_action(session: Session, action: TableAction, head: GraphVersion, ledger: Ledger) -> Bound:
    match action:
        case Register(pin=pin, unsynced=unsynced):
            return Bound(pin, unsynced=unsynced)
        case Tombstone():
            return Bound(None)
        case Rename():
            return Bound(_pin(head, action))
        case DropColumns():
            return Bound(_renewed(_pin(head, action), session))
        case Adopt():
            return _adopt(session, action, head, ledger)
    pin = _pin(head, action)
    table = session.tables.open(pin.location, pin.lance_version, ledger)
    match action:
        case Append():
            new = _ready(session, action, pin, ledger) or commits.append(
                table, action.fragments, action.fields, ledger
            )
            stats = TableStatistics(inserted=action.rows, bytes=action.bytes)
            return Bound(_moved(pin, new, session), table, new, stats, new.unsynced)
        case Upsert() | Update() | Delete():
            deletes = StagedDeletes(action.updated_fragments, action.removed_fragments)
            new = _ready(session, action, pin, ledger) or commits.change(
                table, action.base, deletes, action.fragments, ledger
            )
            stats = TableStatistics(
                inserted=action.inserted,
                updated=action.updated,
                deleted=action.deleted,
                bytes=action.bytes,
            )
            return Bound(_moved(pin, new, session), table, new, stats, new.unsynced)
        case Overwrite():
            new = _ready(session, action, pin, ledger) or commits.overwrite(
                table, action.base, action.fragments, ledger
            )
            stats = TableStatistics(
                inserted=action.rows, deleted=action.deleted, bytes=action.bytes
            )
            return Bound(_moved(pin, new, session), table, new, stats, new.unsynced)
        case Rewrite() | Index():
            new = _maintained(session, table, action, ledger)
            return Bound(_moved(pin, new), table, new, unsynced=new.unsynced)
        case AddColumns():
            new = _add_columns(table, action, ledger)
            return Bound(_moved(pin, new, session), table, new, unsynced=new.unsynced)
        case _:
            assert_never(action)


def _maintained(session: Session, table: Table, action: Rewrite | Index, ledger: Ledger) -> Table:
    """A version staged on this very base is used as it is."""
    if action.staged is not None and action.base == table.version:
        made = session.tables.open(table.location, action.staged, ledger)
        return made.carrying(action.unsynced)
    if isinstance(action, Index):
        return _indexed(table, action, ledger)
    new = commits.rewrite(table, [(group.old, group.new) for group in action.groups], ledger)
    if action.index is None:
        return new
    try:
        return _indexed(new, action.index, ledger)
    except Conflict:
        return new  # segments can wait; the rows are in place


def _indexed(table: Table, action: Index, ledger: Ledger) -> Table:
    segments = [_SEGMENT_DECODER.decode(raw) for raw in action.segments]
    return replace_segments(table, action.files, segments, ledger, removed=action.removed)


def _ready(session: Session, action: Any, pin: TablePin, ledger: Ledger) -> Table | None:
    """The version that was prepared for this action, if it was made from this base."""
    made = action.prepared
    if made is None or made.base != pin.lance_version:
        return None
    ready = session.tables.open(pin.location, made.version, ledger)
    return ready.carrying(made.unsynced)


def _adopt(session: Session, action: Adopt, head: GraphVersion, ledger: Ledger) -> Bound:
    """Takes an existing version, with the id of its content and, if it was made for this commit,
    the files that must be made durable."""
    before = _pin(head, action)
    if before.lance_version != action.base:
        raise Conflict(f"{action.table} was written to.")
    number = max(action.pin.table_version, before.table_version) + 1
    pin = msgspec.structs.replace(action.pin, key=action.table, table_version=number)
    if action.published:
        return Bound(pin, statistics=action.statistics)
    old = session.tables.open(before.location, before.lance_version, ledger)
    new = session.tables.open(pin.location, pin.lance_version, ledger)
    return Bound(pin, old, new, action.statistics, action.unsynced)


def _pin(head: GraphVersion, action: Any) -> TablePin:
    pin = head.pins.get(action.table)
    if pin is None:
        raise Conflict(f"{action.table} is no longer in the graph.")
    return pin


def _moved(pin: TablePin, table: Table, changes: Session | None = None) -> TablePin:
    """The pin of a table's next version. `changes` is the session in which it gets a new content
    id, None if no reader can tell it from the version before."""
    moved = msgspec.structs.replace(
        pin,
        table_version=pin.table_version + 1,
        lance_version=table.version,
        rows=table.rows,
        fragments=len(table.marks),
    )
    if changes is None:
        return moved
    return msgspec.structs.replace(moved, content=changes.runtime.ulid())


def advanced(pin: TablePin, table: Table, session: Session) -> TablePin:
    """The pin of a table's next version, which shows something else."""
    return _moved(pin, table, session)


def _renewed(pin: TablePin, session: Session) -> TablePin:
    """The same table version, which readers see differently."""
    return msgspec.structs.replace(
        pin, table_version=pin.table_version + 1, content=session.runtime.ulid()
    )


def _add_columns(table: Table, action: AddColumns, ledger: Ledger) -> Table:
    columns = pa.ipc.read_schema(pa.py_buffer(action.columns))
    fill = None
    if action.fill is not None:
        fill = pa.ipc.open_stream(pa.py_buffer(action.fill)).read_next_batch()
    return commits.add_columns(table, action.base, columns, fill, action.casts, ledger)
