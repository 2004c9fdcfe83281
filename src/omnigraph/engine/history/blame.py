"""Owns the origin of what an entity says: which commit last set each of its properties.

It follows the history of the entity and stops as soon as everything is explained. A merge did not
set what it took over from the other side, so that side is followed there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import pyarrow as pa

from omnigraph.engine.graph_view import GraphView, find_type, shown_commit, view_of
from omnigraph.engine.history.log import Parents
from omnigraph.engine.history.refs import History
from omnigraph.engine.history.table_diff import TypeDelta
from omnigraph.engine.history.timeline import by_id, check_id, delta_of, read_row
from omnigraph.engine.session import Session
from omnigraph.errors import Reclaimed
from omnigraph.model.catalog import GraphType, system_columns
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.plan.rows.compare import equal_values
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class Origin:
    """A property of an entity, its value, and the commit that last set it. The commit is None if
    cleanup has taken the versions from which it could be known."""

    property: str
    value: Any
    commit: Commit | None


def read_origins(
    session: Session, head: GraphView, type: str, id: str, ledger: Ledger
) -> list[Origin]:
    """Of each property, in the order of the schema; nothing if there is no such entity."""
    check_id(id)
    kind = find_type(head.catalog, type)
    row = read_row(head, kind, id)
    if row is None:
        return []
    names = _names(kind)
    search = _Search(session, kind.id, id, ledger)
    search.follow(head.graph_version, set(names))
    return [Origin(name, row[name], search.found.get(key)) for key, name in names.items()]


def _names(kind: GraphType) -> dict[str, str]:
    """Names by what stays when a property is renamed."""
    ends = {name: name for name in system_columns(kind)[1:]}
    return ends | {prop.id: prop.name for prop in kind.properties}


class _Search:
    def __init__(self, session: Session, type_id: str, id: str, ledger: Ledger) -> None:
        self.found: dict[str, Commit] = {}
        self._session = session
        self._type_id = type_id
        self._id = id
        self._ledger = ledger
        self._history = History(session, ledger)

    def follow(self, start: GraphVersion, left: set[str]) -> None:
        """Goes back along the first parents until all that is left is explained."""
        try:
            for new, old in pairwise(self._history.walk(start)):
                came = self._set_by(old, new, left)
                if not came:
                    continue
                taken = self._taken_over(new, came)
                if taken:
                    self.follow(*taken)
                for key in came - (taken[1] if taken else set()):
                    self.found[key] = shown_commit(self._session, new, self._ledger)
                left = left - came
                if not left:
                    return
        except Reclaimed:
            return

    def _set_by(self, old: GraphVersion, new: GraphVersion, left: set[str]) -> set[str]:
        delta = delta_of(self._session, old, new, self._type_id, self._id, self._ledger)
        if delta is None or delta.empty or delta.new is None:
            return set()
        if delta.inserts.num_rows:
            return set(left)
        keys = {name: key for key, name in _names(delta.new).items()}
        return left & {keys[name] for name in _changed(delta) if name in keys}

    def _taken_over(
        self, merge: GraphVersion, came: set[str]
    ) -> tuple[GraphVersion, set[str]] | None:
        """Where the other side of a merge stood, and what has the same value there."""
        if len(merge.commit.parents) < 2:
            return None
        parents = Parents(self._session, self._ledger, first_only=False).read(merge, None)
        theirs = parents[-1]
        mine, other = self._row(merge), self._row(theirs)
        if mine is None or other is None:
            return None
        same = {key for key in came if key in other and _equal(mine[key], other[key])}
        return (theirs, same) if same else None

    def _row(self, version: GraphVersion) -> dict[str, pa.Array] | None:
        view = view_of(self._session, version, self._ledger)
        kind = by_id(view, self._type_id)
        if kind is None:
            return None
        table = view.view(kind)
        found = table.find(("id",), [self._id], self._ledger)
        if not len(found.addresses):
            return None
        row = table.take(found.addresses, table.schema.names, self._ledger)
        return {key: row[name] for key, name in _names(kind).items()}


def _equal(left: pa.Array, right: pa.Array) -> bool:
    return bool(left.type == right.type and equal_values(left, right).all())


def _changed(delta: TypeDelta) -> Iterator[str]:
    for names in delta.changed:
        yield from names
