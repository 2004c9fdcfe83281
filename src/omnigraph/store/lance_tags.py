"""Owns the Lance tags of tables: names under which any reader of Lance finds a branch's rows.

They are a courtesy: nothing here reads them back to decide anything.
"""

from __future__ import annotations

from omnigraph.store.lance_errors import explained
from omnigraph.store.oddities import find_odd, require_plain
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

_TAGS = "_refs"


def point_tag(table: Table, name: str, ledger: Ledger) -> bool:
    """Points a tag at this version. Returns whether it was at another one before."""
    _require_plain_tags(table)
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


def _require_plain_tags(table: Table) -> None:
    """Lance reads all tags of a table, and would wait for a pipe or follow a link."""
    if table.directory is None:
        return
    below = f"{table.location}/{_TAGS}"
    odd = find_odd(table.directory / below, depth=1)
    require_plain(table.directory, [below, *(f"{below}/{name}" for name in odd)])
