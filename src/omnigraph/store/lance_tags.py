"""Owns the Lance tags of tables: names under which any reader of Lance finds a branch's rows.

They are a courtesy: nothing here reads them back to decide anything.
"""

from __future__ import annotations

from omnigraph.store.lance_errors import explained
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger


def point_tag(table: Table, name: str, ledger: Ledger) -> bool:
    """Points a tag at this version. Returns whether it was at another one before."""
    own, version = table.own_handle(), int(table.version)
    with explained(table.location):
        tags = own.tags
        known = {tag: int(held["version"]) for tag, held in tags.list().items()}
        changed = known.get(name) != version
        if changed and name in known:
            tags.update(name, version)
        elif changed:
            tags.create(name, version)
    table.book(ledger, "tag")
    return changed
