"""Owns the rows of one type by position: a number for each row of its files, deleted ones included,
and then one for each pending row.

Positions follow from the version's list of files, so finding a row by its id reads nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.columns import Columns
from omnigraph.engine.overlay import Overlay
from omnigraph.engine.query.adjacency.vertices import Vertices
from omnigraph.engine.view import TableView
from omnigraph.model.catalog import GraphType
from omnigraph.store.fragments import FragmentMark
from omnigraph.telemetry import Ledger

_FEW = 512
_ONE_BY_ONE = 8


class Books(Protocol):
    """Knows on which ledger requests are booked at the moment."""

    ledger: Ledger


class TypeRows:
    """The rows of one view. `base` is where the positions of this type begin among a query's
    numbers."""

    def __init__(self, view: TableView, columns: Columns, base: int, books: Books) -> None:
        self.view = view
        self.base = base
        self.vertices: Vertices | None = None
        """The numbers of its ids, once they were asked for: while these rows are used they stay
        the same, whatever the cache lets go."""
        self._columns = columns
        self._books = books

    @property
    def kind(self) -> GraphType:
        return self.view.kind

    @property
    def ledger(self) -> Ledger:
        """Where requests are booked at the moment."""
        return self._books.ledger

    @property
    def is_plain(self) -> bool:
        """Whether nothing is pending, so that derived values may be kept with the table version."""
        return not self.view.overlay.touched

    @cached_property
    def marks(self) -> list[FragmentMark]:
        return [] if self.view.overlay.replaced else list(self.view.table.marks.values())

    @cached_property
    def starts(self) -> np.ndarray:
        """The first position of each fragment, and the end of the last one."""
        return np.array(list(accumulate((m.physical for m in self.marks), initial=0)), np.int64)

    @property
    def stored(self) -> int:
        """The number of positions in files. Pending rows come after them."""
        return int(self.starts[-1])

    @cached_property
    def capacity(self) -> int:
        return self.stored + int(self.view.overlay.rows.num_rows)

    @cached_property
    def _ordinals(self) -> dict[int, int]:
        return {mark.id: ordinal for ordinal, mark in enumerate(self.marks)}

    def with_nothing_pending(self) -> TypeRows:
        """The same rows without the pending ones."""
        if self.is_plain:
            return self
        view = replace(self.view, overlay=Overlay.empty(self.kind))
        plain = TypeRows(view, self._columns, self.base, self._books)
        plain.vertices = self.vertices
        return plain

    def remember(self, key: tuple[Any, ...], make: Callable[[], tuple[Any, int]]) -> Any:
        """Keeps a value derived from the table version, with its size, as long as there is room."""
        whole = (self.view.table.location, self.view.table.version, *key)
        found = self._columns.get(whole)
        if found is None:
            found, size = make()
            self._columns.keep(whole, found, size)
        return found

    def remember_with_pending(
        self, key: tuple[Any, ...], make: Callable[[], tuple[Any, int]]
    ) -> Any:
        """The same for what is derived from pending rows as well, until others are pending."""
        if self.is_plain:
            return self.remember(key, make)
        overlay = self.view.overlay

        def made() -> tuple[Any, int]:
            found, size = make()
            return (overlay, found), size  # while it is kept nobody else has its id

        return self.remember((*key, id(overlay)), made)[1]

    # Which rows there are

    @cached_property
    def live(self) -> np.ndarray:
        """The positions of all live rows, ascending."""
        if self.is_plain:
            key = (self.view.table.location, self.view.table.version, "live")
            found: np.ndarray = self._columns.remember(key, self._stored_live)
            return found
        stored = self._stored_live()
        if len(self.view.overlay.hidden):
            hidden = self.positions_of(self.view.overlay.hidden)
            stored = stored[~np.isin(stored, hidden)]
        return np.concatenate([stored, np.arange(self.stored, self.capacity, dtype=np.int64)])

    def _stored_live(self) -> np.ndarray:
        if all(mark.deletion is None for mark in self.marks):
            return np.arange(self.stored, dtype=np.int64)
        parts = [np.array([], np.int64)]
        for start, mark in zip(self.starts.tolist(), self.marks, strict=False):
            if mark.deletion is None:
                parts.append(np.arange(start, start + mark.physical, dtype=np.int64))
            else:
                offsets = self._columns.live_offsets(self.view.table, mark, self._books.ledger)
                parts.append(offsets + start)
        return np.concatenate(parts)

    @property
    def count(self) -> int:
        return self.view.count()

    # Positions and addresses

    def positions_of(self, addresses: np.ndarray) -> np.ndarray:
        if len(addresses) <= _ONE_BY_ONE:
            starts, ordinals = self.starts, self._ordinals
            found = [starts[ordinals[a >> 32]] + (a & 0xFFFFFFFF) for a in addresses.tolist()]
            return np.array(found, np.int64)
        fragments = (addresses >> np.uint64(32)).astype(np.int64)
        offsets = (addresses & np.uint64(0xFFFFFFFF)).astype(np.int64)
        numbers, inverse = np.unique(fragments, return_inverse=True)
        begins = np.array([self.starts[self._ordinals[n]] for n in numbers.tolist()], np.int64)
        return begins[inverse] + offsets if len(numbers) else offsets

    def addresses_of(self, positions: np.ndarray) -> np.ndarray:
        ordinals = np.searchsorted(self.starts, positions, side="right") - 1
        numbers = np.array([mark.id for mark in self.marks], np.uint64)
        offsets = (positions - self.starts[ordinals]).astype(np.uint64)
        addresses: np.ndarray = (numbers[ordinals] << np.uint64(32)) | offsets
        return addresses

    def find(self, columns: tuple[str, ...], texts: Sequence[str]) -> tuple[np.ndarray, np.ndarray]:
        """Which of the texts have rows, and the positions of these rows."""
        found = self.view.find(columns, texts, self._books.ledger)
        if not len(found.pending):
            return found.base_positions, self.positions_of(found.addresses)
        which = np.concatenate([found.base_positions, found.pending_positions])
        positions = np.concatenate(
            [self.positions_of(found.addresses), found.pending + self.stored]
        )
        return which, positions

    def matching(self, condition: pc.Expression) -> np.ndarray:
        """Positions of the stored rows that meet a condition over the table's columns, filtered by
        Lance, and of all pending rows."""
        addresses = self.view.addresses_where(condition, self._books.ledger)
        pending = np.arange(self.stored, self.capacity, dtype=np.int64)
        return np.concatenate([np.sort(self.positions_of(addresses)), pending])

    def wants(self, names: Sequence[str]) -> bool:
        """Whether these columns were used often enough to be read into memory."""
        table = self.view.table
        columns = [self.view.column_of(name) for name in names]
        if not self._columns.fits(table, columns):
            return False
        # Every fragment is asked, so that each counts the touch.
        asked = [
            self._columns.worth_reading(table, mark, column, 1)
            for mark in self.marks
            for column in columns
        ]
        return all(asked)

    def touching(self, near: str, far: str, ids: pa.Array) -> tuple[pa.Table, np.ndarray]:
        """For an edge type: both ends of the edges that have one of these ids at one end, and their
        positions."""
        condition = pc.field(near).isin(ids)
        stored = self.view.ends_where(condition, self._books.ledger)
        pending = self.view.pending_matches(condition)
        held = stored.select([near, far])
        given = self.view.overlay.rows.select([near, far]).take(pending).cast(held.schema)
        rows = pa.concat_tables([held, given])
        places = [self.positions_of(stored["_rowaddr"].to_numpy()), pending + self.stored]
        return rows, np.concatenate(places)

    # Values

    def is_held(self, name: str) -> bool:
        return self.held(name) is not None

    def held(self, name: str) -> list[pa.Array] | None:
        """The stored column of each fragment, if all are in memory."""
        table, column = self.view.table, self.view.column_of(name)
        found = []
        for mark in self.marks:
            part = self._columns.held(table, mark, column)
            if part is None:
                return None
            found.append(part)
        return found

    def derived(self, name: str, ordinal: int, what: str, make: Callable[[], np.ndarray]) -> Any:
        """Keeps what follows from the column of one fragment, as the column itself is kept."""
        table, column, mark = self.view.table, self.view.column_of(name), self.marks[ordinal]
        return self._columns.derived(table, mark, column, what, make)

    def fits(self, names: Sequence[str]) -> bool:
        """Whether these columns of all rows may be kept in memory."""
        return self._columns.fits(self.view.table, [self.view.column_of(n) for n in names])

    def take(self, name: str, positions: np.ndarray) -> pa.Array:
        """The values of a column at positions, null where a position is below zero."""
        if self.view.overlay.touched:
            return self._take_mixed(name, positions)
        return self._take_stored(name, positions)

    def whole(self, name: str) -> pa.Array:
        """The column at every position. The values at positions of deleted rows mean nothing."""
        stored = self._whole_stored(name)
        pending = self.view.overlay.rows
        if not pending.num_rows:
            return stored
        return pa.concat_arrays([stored, *pending[name].cast(stored.type).chunks])

    def _whole_stored(self, name: str) -> pa.Array:
        table = self.view.table
        column = self.view.column_of(name)
        if len(self.marks) == 1:
            return self._columns.read(table, self.marks, column, self._books.ledger)[0]

        def join() -> pa.Array:
            parts = self._columns.read(table, self.marks, column, self._books.ledger)
            return pa.concat_arrays(parts) if parts else pa.array([], self._type(name))

        if self.view.overlay.replaced:
            return join()
        return self._columns.remember((table.location, table.version, column, "whole"), join)

    def _type(self, name: str) -> pa.DataType:
        return self.view.schema.field(name).type

    def _take_mixed(self, name: str, positions: np.ndarray) -> pa.Array:
        pending = positions >= self.stored
        if not pending.any():
            return self._take_stored(name, positions)
        stored = self._take_stored(name, np.where(pending, -1, positions))
        rows = self.view.overlay.rows[name].cast(stored.type)
        given = rows.take(pa.array(positions - self.stored, mask=~pending)).combine_chunks()
        return pc.if_else(pa.array(pending), given, stored)

    def _take_stored(self, name: str, positions: np.ndarray) -> pa.Array:
        if len(positions) == 1 and positions[0] >= 0:  # as with every point query
            ordinal = int(self.starts.searchsorted(positions[0], side="right")) - 1
            held = self._held(name, self.marks[ordinal], 1)
            if held is not None:
                return held.slice(int(positions[0] - self.starts[ordinal]), 1)
        elif len(positions) and len(self.marks) == 1:
            held = self._held(name, self.marks[0], len(positions))
            if held is not None:
                return _taken(held, positions)
        if not len(positions) or positions.max() < 0:
            return pa.nulls(len(positions), self._type(name))
        if len(positions) > _FEW and self.fits([name]):
            return self._whole_stored(name).take(_indices(positions))
        return self._take_pieces(name, positions)

    def _held(self, name: str, mark: FragmentMark, rows: int) -> pa.Array | None:
        """The column of a fragment, if it is in memory or so many rows make it worth reading."""
        table, column = self.view.table, self.view.column_of(name)
        held = self._columns.held(table, mark, column)
        if held is None and self._columns.worth_reading(table, mark, column, rows):
            held = self._columns.read(table, [mark], column, self._books.ledger)[0]
        return held

    def _take_pieces(self, name: str, positions: np.ndarray) -> pa.Array:
        """By fragment: columns in memory are used, and the others are read through Lance at
        once."""
        there = positions >= 0
        ordinals = np.where(there, np.searchsorted(self.starts, positions, side="right") - 1, -1)
        parts: list[pa.Array] = []
        places: list[np.ndarray] = []
        asked: list[np.ndarray] = []
        for ordinal in np.unique(ordinals[there]).tolist():
            where = np.flatnonzero(ordinals == ordinal)
            held = self._held(name, self.marks[ordinal], len(where))
            if held is None:
                asked.append(where)
                continue
            parts.append(held.take(pa.array(positions[where] - self.starts[ordinal])))
            places.append(where)
        if asked:
            where = np.concatenate(asked)
            parts.append(self._take_through_lance(name, positions[where]))
            places.append(where)
        order = np.full(len(positions), -1, np.int64)
        order[np.concatenate(places)] = np.arange(int(there.sum()))
        return pa.concat_arrays(parts).take(_indices(order))

    def _take_through_lance(self, name: str, positions: np.ndarray) -> pa.Array:
        distinct, inverse = np.unique(positions, return_inverse=True)
        rows = self.view.take(self.addresses_of(distinct), [name], self._books.ledger)
        return rows[name].combine_chunks().take(pa.array(inverse))


def _indices(positions: np.ndarray) -> pa.Array:
    if not len(positions) or positions.min() >= 0:
        return pa.array(positions)
    return pa.array(positions, mask=positions < 0)


def _taken(held: pa.Array, positions: np.ndarray) -> pa.Array:
    """For a few numbers numpy is quicker to start than Arrow."""
    if len(positions) > _FEW or held.null_count or not _is_number(held.type):
        return held.take(_indices(positions))
    if positions.min() < 0:
        return held.take(_indices(positions))
    return pa.array(held.to_numpy()[positions])


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
