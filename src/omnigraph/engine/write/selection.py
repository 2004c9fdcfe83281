"""Owns which rows meet the condition of a mutation: by a lookup, by a filter that Lance evaluates,
or by reading the columns that the condition needs. Pending rows are tested by the condition
itself."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.condition import push_tests
from omnigraph.engine.view import TableView
from omnigraph.errors import ValueOutOfRange
from omnigraph.lang.gq.checked import Expression
from omnigraph.model.violation import show_text
from omnigraph.plan.lookups import Lookup, find_lookup, split_tests
from omnigraph.plan.values import holds
from omnigraph.plan.values.rows import Bindings, RowLeaves, used_columns
from omnigraph.store.tables import ADDRESS
from omnigraph.telemetry import Ledger

AT_ONCE = 65_536
"""Rows that are tested together: a column of texts may be too large for one array."""
_FEW = 1000


@dataclass(frozen=True)
class Selected:
    """`rows` of the table with their `addresses`, and the positions of `pending` rows."""

    rows: pa.Table
    addresses: np.ndarray
    pending: np.ndarray

    @property
    def count(self) -> int:
        return int(self.rows.num_rows) + len(self.pending)


@dataclass(frozen=True)
class Ahead:
    """Whole rows that were read for several statements at once, by address."""

    addresses: np.ndarray
    rows: pa.Table | None = None

    def take(self, addresses: np.ndarray, names: Sequence[str]) -> pa.Table | None:
        """None if some of them are missing."""
        if self.rows is None or not np.isin(addresses, self.addresses).all():
            return None
        places = np.searchsorted(self.addresses, addresses)
        return self.rows.select(list(names)).take(pa.array(places))


NOTHING_AHEAD = Ahead(np.array([], dtype=np.uint64))


def fetch_ahead(
    view: TableView, conditions: Sequence[Expression], bindings: Bindings, ledger: Ledger
) -> Ahead:
    """The rows of all conditions that give an id, in one read instead of one for each."""
    if len(conditions) < 2 or view.table.blobs:
        return NOTHING_AHEAD
    texts: dict[str, None] = {}
    for where in conditions:
        lookup = find_lookup(view.kind, split_tests(where), bindings)
        if lookup is not None and lookup.columns == ("id",):
            texts |= dict.fromkeys(lookup.texts)
    _, addresses = view.find_stored(("id",), list(texts), ledger)
    if not len(addresses):
        return NOTHING_AHEAD
    addresses = np.sort(addresses)
    return Ahead(addresses, view.take(addresses, view.schema.names, ledger).combine_chunks())


def select_rows(
    view: TableView,
    where: Expression,
    bindings: Bindings,
    ledger: Ledger,
    columns: Sequence[str],
    *,
    ahead: Ahead = NOTHING_AHEAD,
) -> Selected:
    """`columns` of the rows that meet the condition, including `id`."""
    pending = _pending(view, where, bindings)
    tests = split_tests(where)
    lookup = find_lookup(view.kind, tests, bindings)
    if lookup is not None:
        found = _look_up(view, lookup, bindings, ledger, columns, ahead)
        if found is not None:
            return Selected(*found, pending)
    return Selected(*_scan(view, tests, bindings, ledger, columns), pending)


def _pending(view: TableView, where: Expression, bindings: Bindings) -> np.ndarray:
    rows = view.overlay.rows
    if not rows.num_rows:
        return np.array([], dtype=np.int64)
    return np.flatnonzero(_kept((where,), rows, view, bindings))


def _look_up(
    view: TableView,
    lookup: Lookup,
    bindings: Bindings,
    ledger: Ledger,
    columns: Sequence[str],
    ahead: Ahead,
) -> tuple[pa.Table, np.ndarray] | None:
    """None if so many rows have the values that reading everything is cheaper."""
    positions, addresses = view.find_stored(lookup.columns, lookup.texts, ledger)
    names = list(columns)
    by_id = lookup.columns == ("id",)
    ids = pa.array([lookup.texts[n] for n in positions.tolist() if by_id], pa.string())
    if by_id and not lookup.rest and names == ["id"]:
        return pa.table({"id": ids}), addresses
    if len(addresses) > _FEW:
        if not by_id:
            return None
        located = _whole(view, ids, addresses, ledger)
    else:
        needed = (name for test in lookup.rest for name in used_columns(test))
        read = list(dict.fromkeys([*names, *needed]))
        addresses = np.sort(addresses)
        here = ahead.take(addresses, read)
        located = _take(view, addresses, read, ledger) if here is None else (here, addresses)
    rows, addresses = _tested(view, located, lookup.rest, bindings)
    return rows.select(names), addresses


def _take(
    view: TableView, addresses: np.ndarray, names: list[str], ledger: Ledger
) -> tuple[pa.Table, np.ndarray]:
    if not len(addresses):
        schema = pa.schema([view.schema.field(name) for name in names])
        return schema.empty_table(), addresses
    return view.take(addresses, names, ledger), addresses


def _tested(
    view: TableView,
    located: tuple[pa.Table, np.ndarray],
    tests: Sequence[Expression],
    bindings: Bindings,
) -> tuple[pa.Table, np.ndarray]:
    rows, addresses = located
    if not tests or not rows.num_rows:
        return rows, addresses
    kept = _kept(tests, rows, view, bindings)
    return rows.filter(pa.array(kept)), addresses[kept]


def _scan(
    view: TableView,
    tests: Sequence[Expression],
    bindings: Bindings,
    ledger: Ledger,
    columns: Sequence[str],
) -> tuple[pa.Table, np.ndarray]:
    """First finds the rows, from the columns that decide it, and then reads the rest of them."""
    together, rest = push_tests(view, tests, bindings)
    names = list(dict.fromkeys(["id", *(c for test in rest for c in used_columns(test))]))
    parts = list(_kept_batches(view, together, names, rest, bindings, ledger))
    ids = pa.chunked_array([ids for ids, _ in parts], pa.string()).combine_chunks()
    addresses = np.concatenate([np.array([], np.uint64), *[found for _, found in parts]])
    if list(columns) == ["id"]:
        return pa.table({"id": ids}), addresses
    if not len(addresses):
        return _take(view, addresses, list(columns), ledger)
    rows, addresses = _whole(view, ids, addresses, ledger)
    return rows.select(list(columns)), addresses


def _kept_batches(
    view: TableView,
    condition: pc.Expression | None,
    names: list[str],
    tests: Sequence[Expression],
    bindings: Bindings,
    ledger: Ledger,
) -> Iterator[tuple[pa.Array, np.ndarray]]:
    for batch in view.matching(condition, names, ledger):
        if tests:
            rows = pa.Table.from_batches([batch])
            batch = batch.filter(pa.array(_kept(tests, rows, view, bindings)))
        if batch.num_rows:
            yield batch.column("id"), batch.column(ADDRESS).to_numpy()


def _whole(
    view: TableView, ids: pa.Array, addresses: np.ndarray, ledger: Ledger
) -> tuple[pa.Table, np.ndarray]:
    """Whole rows with their addresses."""
    rows = view.rows_at(addresses, ledger)
    places = pc.index_in(rows["id"].combine_chunks(), value_set=ids)
    return rows, addresses[places.to_numpy()]


def _kept(
    tests: Sequence[Expression], rows: pa.Table, view: TableView, bindings: Bindings
) -> np.ndarray:
    """Where all tests hold. An error during the computation names its row."""

    def decide(part: pa.Table) -> np.ndarray:
        leaves = RowLeaves(bindings, part)
        kept = np.ones(part.num_rows, dtype=bool)
        for test in tests:
            kept &= holds(test, leaves).to_numpy(zero_copy_only=False)
        return kept

    parts = [np.array([], dtype=bool)]
    for start in range(0, rows.num_rows, AT_ONCE):
        part = rows.slice(start, AT_ONCE)
        try:
            parts.append(decide(part))
        except ValueOutOfRange as error:
            raise blame_row(error, part, decide, view.kind.name) from None
    return np.concatenate(parts)


def blame_row(
    error: ValueOutOfRange,
    rows: pa.Table,
    compute: Callable[[pa.Table], object],
    type_name: str,
) -> ValueOutOfRange:
    """The error with the name of the first row in which it happens, found by bisection."""
    low, high = 0, rows.num_rows
    while high - low > 1:
        middle = (low + high) // 2
        try:
            compute(rows.slice(low, middle - low))
        except ValueOutOfRange as found:
            error, high = found, middle
        else:
            low = middle
    entity = show_text(rows["id"][low].as_py())
    return ValueOutOfRange(f"{type_name} '{entity}': {error.message}", help=error.hint)
