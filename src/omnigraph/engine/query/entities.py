"""Owns the numbers of a query's entities. Every type has a range of its own, so one number
identifies an entity and its type, and an entity has the same number in all variables."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.columns import Columns
from omnigraph.engine.query.rows import TypeRows
from omnigraph.engine.view import TableView
from omnigraph.model.catalog import GraphType
from omnigraph.plan.values.kinds import cast
from omnigraph.telemetry import Ledger

NONE = np.array([], np.int64)


class Entities:
    """The types that a query uses. Each is opened when it is first needed."""

    def __init__(
        self, view: Callable[[GraphType], TableView], columns: Columns, ledger: Ledger
    ) -> None:
        self._view = view
        self.columns = columns
        self.ledger = ledger
        self._rows: dict[str, TypeRows] = {}
        self._next = 0

    def go_on(self, view: Callable[[GraphType], TableView], ledger: Ledger) -> None:
        """The same types for another query, which pays for its own requests."""
        self._view = view
        self.ledger = ledger

    def rows(self, kind: GraphType) -> TypeRows:
        found = self._rows.get(kind.table_key)
        if found is None:
            found = TypeRows(self._view(kind), self.columns, self._next, self)
            self._next += max(1, found.capacity)  # an empty type has its own range too
            self._rows[kind.table_key] = found
        return found

    def of_type(self, kind: GraphType, numbers: np.ndarray) -> np.ndarray:
        """Which numbers are entities of the type."""
        rows = self.rows(kind)
        return (numbers >= rows.base) & (numbers < rows.base + rows.capacity)

    def split(
        self, kinds: Sequence[GraphType], numbers: np.ndarray
    ) -> Iterator[tuple[int, TypeRows, np.ndarray | None, np.ndarray]]:
        """For each type that occurs: its index among the types, its rows, where it occurs (None for
        everywhere) and the positions there."""
        if len(kinds) == 1:
            rows = self.rows(kinds[0])
            positions = numbers - rows.base if rows.base else numbers
            yield 0, rows, None, positions
            return
        for place, kind in enumerate(kinds):
            where = np.flatnonzero(self.of_type(kind, numbers))
            if len(where):
                rows = self.rows(kind)
                yield place, rows, where, numbers[where] - rows.base

    def values(
        self,
        kinds: Sequence[GraphType],
        names: Sequence[str],
        numbers: np.ndarray,
        target: pa.DataType,
    ) -> pa.Array:
        """A column of the entities, under the name that each type has for it."""
        parts: list[pa.Array] = []
        places: list[np.ndarray] = []
        for place, rows, where, positions in self.split(kinds, numbers):
            part = rows.take(names[place], _nulls_below(positions, numbers, where))
            if pa.types.is_struct(part.type):  # a blob: only its presence can be tested
                part = pc.if_else(part.is_null(), pa.scalar(None, target), pa.scalar(b"", target))
            if where is None:
                return cast(part, target)
            parts.append(cast(part, target))
            places.append(where)
        order = np.full(len(numbers), -1, np.int64)
        if not parts:
            return pa.nulls(len(numbers), target)
        order[np.concatenate(places)] = np.arange(sum(len(p) for p in places))
        return pa.concat_arrays(parts).take(pa.array(order, mask=order < 0))


def _nulls_below(
    positions: np.ndarray, numbers: np.ndarray, where: np.ndarray | None
) -> np.ndarray:
    """A null stays null after the base is subtracted."""
    if where is not None or not len(numbers):
        return positions
    if numbers[0] >= 0 and (len(numbers) == 1 or numbers.min() >= 0):
        return positions
    return np.where(numbers < 0, -1, positions)
