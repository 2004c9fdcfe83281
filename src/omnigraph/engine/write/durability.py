"""Owns the durability of a plan that another process may publish: every file that it names is on
disk before the plan is written.

Otherwise a power cut could leave the plan and lose the files.
"""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.engine.session import Session
from omnigraph.model.version import GraphVersion
from omnigraph.plan.publish import Append, Delete, Overwrite, TableAction, Update, Upsert
from omnigraph.store.durability import sync_fragments, sync_keys
from omnigraph.telemetry import Ledger


def sync_actions(
    session: Session, base: GraphVersion, actions: Iterable[TableAction], ledger: Ledger
) -> None:
    """Syncs the files of the rows that actions bring, staged on this base. Plans of maintenance and
    of schema changes are never written down."""
    if session.root.directory is None:
        return
    for action in actions:
        match action:
            case Append() | Overwrite():
                staged = action.fragments
            case Upsert() | Update() | Delete():
                staged = (*action.fragments, *action.updated_fragments)
            case _:
                continue
        pin = base.pins[action.table]
        table = session.tables.open(pin.location, pin.lance_version, ledger)
        sync_fragments(table, staged)
        if action.prepared is not None:
            sync_keys(session.root, action.prepared.unsynced)
