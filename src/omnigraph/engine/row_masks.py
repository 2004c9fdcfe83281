"""Owns which rows of a table somebody does not see: their addresses, kept by the version of the
table and the rule, and never by who asks."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.cache import Cache, Key
from omnigraph.engine.permissions import Sight
from omnigraph.engine.session import Session
from omnigraph.engine.view import TableView
from omnigraph.model.catalog import Catalog, EdgeType, NodeType
from omnigraph.model.row_rule import RowRule, columns_of
from omnigraph.plan.row_masks import visible_rows
from omnigraph.store.tables import ADDRESS
from omnigraph.telemetry import Ledger

_NO_ADDRESSES = np.array([], dtype=np.uint64)
_NO_IDS = pa.array([], pa.string())


class RowMasks:
    """The masks of one view of a graph. `door` opens tables without any."""

    def __init__(
        self, session: Session, catalog: Catalog, sight: Sight, door: Callable[..., TableView]
    ) -> None:
        self._cache = Cache.shared_by(session)
        self._nodes = catalog.node_names
        self._sight = sight
        self._door = door

    def hidden(self, view: TableView, ledger: Ledger) -> np.ndarray:
        """Addresses of rows that are not seen: an edge is seen if both of its ends are."""
        kind, rule = view.kind, self._sight.rule(view.kind)
        if self._sight.sees_all(kind):
            return _NO_ADDRESSES
        ends: list[tuple[str, NodeType]] = []
        if isinstance(kind, EdgeType):
            named = (("src", kind.source), ("dst", kind.target))
            ends = [(end, self._nodes[name]) for end, name in named]
            ends = [one for one in ends if not self._sight.sees_all(one[1])]
        doors = [(end, self._door(node)) for end, node in ends]
        key: Key = (
            "row mask",
            *_names(view, rule),
            *(part for end, one in doors for part in (end, *_names(one, self._rule(one)))),
        )
        found: np.ndarray | None = self._cache.get(key)
        if found is None:
            gone = [(end, self._hidden_ids(one, ledger)) for end, one in doors]
            found = _look(view, rule, gone, ledger)
            self._cache.keep(key, found, found.nbytes)
        return found

    def _rule(self, view: TableView) -> RowRule:
        return self._sight.rule(view.kind)

    def _hidden_ids(self, view: TableView, ledger: Ledger) -> pa.Array:
        """Ids of the nodes that are not seen."""
        rule = self._rule(view)
        key: Key = ("hidden ids", *_names(view, rule))
        found: pa.Array | None = self._cache.get(key)
        if found is None:
            parts = [
                batch.column("id").filter(pa.array(~visible_rows(rule, batch)))
                for batch in _rows(view, rule, ("id",), ledger)
            ]
            found = pa.concat_arrays([_NO_IDS, *parts])
            self._cache.keep(key, found, found.nbytes)
        return found


def _names(view: TableView, rule: RowRule) -> tuple[object, ...]:
    # A property may have another column in another version of the schema.
    columns = tuple(view.column_of(name) for name in sorted(columns_of(rule)))
    return (view.table.location, view.table.version, rule, columns)


def _rows(
    view: TableView, rule: RowRule, more: tuple[str, ...], ledger: Ledger
) -> Iterator[pa.RecordBatch]:
    names = sorted(columns_of(rule) | {*more})
    return view.located(names, ledger, large=True)


def _look(
    view: TableView, rule: RowRule, gone: list[tuple[str, pa.Array]], ledger: Ledger
) -> np.ndarray:
    parts = [_NO_ADDRESSES]
    for batch in _rows(view, rule, tuple(end for end, _ in gone), ledger):
        seen = visible_rows(rule, batch)
        for end, ids in gone:
            lost = pc.is_in(batch.column(end), value_set=ids)
            seen &= ~lost.to_numpy(zero_copy_only=False)
        parts.append(batch.column(ADDRESS).to_numpy()[~seen])
    return np.concatenate(parts)
