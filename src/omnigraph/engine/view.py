"""Owns the only way to read rows: a pinned table version with an overlay of pending rows.

Queries, validation, merges and exports all read through a view, so none of them can miss rows that
are pending in a transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.substrait import deserialize_expressions

from omnigraph.engine.lookup import Lookups
from omnigraph.engine.overlay import Overlay
from omnigraph.errors import InvalidArgument
from omnigraph.lang.suggestions import near
from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import GraphType, system_columns
from omnigraph.plan.validate import key_texts
from omnigraph.store.tables import ADDRESS, Table
from omnigraph.telemetry import Ledger

_WORTH_A_ROW = 64 * 1024
"""Bytes that can be read at a stretch at the cost of a single row."""
_WORTH_A_LOCAL_ROW = 4 * 1024
_TEXT = 12
_NO_ADDRESSES = np.array([], dtype=np.uint64)


@dataclass(frozen=True)
class FoundRows:
    """Rows with given values. `positions` are indexes into the given values."""

    base_positions: np.ndarray
    addresses: np.ndarray
    pending_positions: np.ndarray
    pending: np.ndarray

    @property
    def positions(self) -> np.ndarray:
        return np.union1d(self.base_positions, self.pending_positions)


@dataclass(frozen=True)
class TableView:
    kind: GraphType
    table: Table
    overlay: Overlay
    lookups: Lookups

    @cached_property
    def schema(self) -> pa.Schema:
        return row_schema(self.kind)

    @cached_property
    def _columns(self) -> dict[str, str]:
        names = {name: name for name in system_columns(self.kind)}
        return names | {p.name: p.column for p in self.kind.properties}

    def column_of(self, name: str) -> str:
        """The table's column for a property or a system column."""
        return self._columns[name]

    def check_columns(self, columns: Sequence[str] | None) -> list[str]:
        if columns is None:
            return list(self._columns)
        for name in columns:
            if name not in self._columns:
                guess = near(name, list(self._columns))
                raise InvalidArgument(
                    f"{self.kind.name} has no property {name!r}.",
                    help=f"Did you mean {guess!r}?" if guess else "",
                )
        if len(set(columns)) < len(columns):
            raise InvalidArgument(f"A column of {self.kind.name} is asked for twice.")
        return list(columns)

    def check_filter(self, condition: pc.Expression | None) -> None:
        """Refuses a filter that names unknown properties, or that is no condition, before anything
        runs."""
        if condition is None:
            return
        if not isinstance(condition, pc.Expression):
            raise InvalidArgument(
                "A condition is a text or a pyarrow.compute expression, not "
                f"{type(condition).__name__}."
            )
        check_expression(self.kind, self.schema, condition)

    def count(self) -> int:
        if self.overlay.replaced:
            return int(self.overlay.rows.num_rows)
        return self.table.rows - len(self.overlay.hidden) + int(self.overlay.rows.num_rows)

    def scan(
        self,
        ledger: Ledger,
        *,
        columns: Sequence[str] | None = None,
        filter: pc.Expression | None = None,
        fragments: Sequence[int] | None = None,
        large: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """With `fragments`, only the rows of these fragments, without pending ones. `large` batches
        are for callers that read to the end."""
        names = self.check_columns(columns)
        self.check_filter(filter)
        schema = pa.schema([self.schema.field(name) for name in names])
        for batch in self._base_batches(names, filter, ledger, fragments=fragments, large=large):
            yield pa.RecordBatch.from_arrays([batch.column(name) for name in names], schema=schema)
        pending = self.overlay.rows
        if pending.num_rows and fragments is None:
            if filter is not None:
                pending = pending.filter(filter)
            yield from pending.select(names).cast(schema).to_batches()

    def base_rows(
        self,
        columns: Sequence[str],
        filter: pc.Expression | None,
        ledger: Ledger,
    ) -> pa.Table:
        """Visible rows of the table, with their addresses."""
        names = list(columns)
        schema = pa.schema(
            [self.schema.field(name) for name in names] + [pa.field(ADDRESS, pa.uint64())]
        )
        batches = [
            pa.RecordBatch.from_arrays(
                [batch.column(name) for name in (*names, ADDRESS)], schema=schema
            )
            for batch in self._base_batches(names, filter, ledger, addresses=True)
        ]
        return pa.Table.from_batches(batches, schema=schema)

    def addresses_where(self, condition: pc.Expression, ledger: Ledger) -> np.ndarray:
        """The addresses of visible rows of the table that meet a condition over its own columns."""
        if self.overlay.replaced or not self.table.marks:
            return _NO_ADDRESSES
        batches = self.table.scan([], ledger, filter=condition, addresses=True)
        found = np.concatenate([_NO_ADDRESSES, *[b.column(ADDRESS).to_numpy() for b in batches]])
        return found[~np.isin(found, self.overlay.hidden)] if len(self.overlay.hidden) else found

    def ends_where(self, condition: pc.Expression, ledger: Ledger) -> pa.Table:
        """Both ends, and the addresses, of an edge type's visible rows that meet a condition over
        the ends. The ends have the same names in every table."""
        names = ["src", "dst", ADDRESS]
        schema = pa.schema(
            [pa.field("src", pa.string()), pa.field("dst", pa.string()), (ADDRESS, pa.uint64())]
        )
        batches: Iterable[pa.RecordBatch] = ()
        if not self.overlay.replaced and self.table.marks:
            batches = self.table.scan(names[:2], ledger, filter=condition, addresses=True)
        arrays = [[batch.column(name) for name in names] for batch in batches]
        rows = pa.Table.from_batches(
            [pa.RecordBatch.from_arrays(columns, schema=schema) for columns in arrays], schema
        )
        if len(self.overlay.hidden):
            rows = rows.filter(pa.array(~np.isin(rows[ADDRESS].to_numpy(), self.overlay.hidden)))
        return rows

    def matching(
        self,
        condition: pc.Expression | None,
        columns: Sequence[str],
        ledger: Ledger,
        *,
        fragments: Sequence[int] | None = None,
    ) -> Iterator[pa.RecordBatch]:
        """The visible rows of the table, or of some fragments, that meet a condition over its own
        columns, batch by batch, with their addresses as a last column."""
        if self.overlay.replaced or not self.table.marks:
            return
        schema = pa.schema(
            [self.schema.field(name) for name in columns] + [pa.field(ADDRESS, pa.uint64())]
        )
        physical = [self._columns[name] for name in columns]
        for batch in self.table.scan(
            physical, ledger, filter=condition, addresses=True, fragments=fragments
        ):
            if len(self.overlay.hidden):
                visible = ~np.isin(batch.column(ADDRESS).to_numpy(), self.overlay.hidden)
                batch = batch.filter(pa.array(visible))
            if batch.num_rows:
                held = [batch.column(name) for name in (*physical, ADDRESS)]
                yield pa.RecordBatch.from_arrays(held, schema=schema)

    def located(
        self,
        columns: Sequence[str],
        ledger: Ledger,
        *,
        filter: pc.Expression | None = None,
        fragments: Sequence[int] | None = None,
        large: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """The visible rows of the table, or of some fragments, that meet a filter, batch by batch,
        with their addresses as a last column."""
        names = [*columns, ADDRESS]
        schema = pa.schema(
            [self.schema.field(name) for name in columns] + [pa.field(ADDRESS, pa.uint64())]
        )
        for batch in self._base_batches(
            list(columns), filter, ledger, addresses=True, fragments=fragments, large=large
        ):
            yield pa.RecordBatch.from_arrays([batch.column(n) for n in names], schema=schema)

    def pending_matches(self, condition: pc.Expression | None) -> np.ndarray:
        """Positions of the pending rows that meet a condition."""
        count = self.overlay.rows.num_rows
        everything = np.arange(count)
        if condition is None or not count:
            return everything
        numbered = self.overlay.rows.append_column("_position", pa.array(everything))
        matches: np.ndarray = numbered.filter(condition)["_position"].to_numpy()
        return matches

    def take(self, addresses: np.ndarray, columns: Sequence[str], ledger: Ledger) -> pa.Table:
        """Rows of the table in the order of the addresses, all of which must be live."""
        physical = [self._columns[name] for name in columns]
        rows = self.table.take(addresses, physical, ledger)
        order = np.argsort(rows[ADDRESS].to_numpy(), kind="stable")
        back = order[np.searchsorted(rows[ADDRESS].to_numpy()[order], addresses)]
        rows = rows.select(physical).take(pa.array(back)).rename_columns(list(columns))
        return rows.cast(pa.schema([self.schema.field(name) for name in columns]))

    def rows_at(self, addresses: np.ndarray, ledger: Ledger) -> pa.Table:
        """Whole rows at these addresses, in any order. If they are many for the size of their
        fragment, the fragment is read at a stretch: one by one they would take thousands of
        requests."""
        numbers, counts = np.unique(addresses >> np.uint64(32), return_counts=True)
        width = _row_width(self.schema)
        worth = _WORTH_A_ROW if self.table.is_remote else _WORTH_A_LOCAL_ROW
        dense = [
            int(number)
            for number, count in zip(numbers.tolist(), counts.tolist(), strict=True)
            if count * worth >= self.table.marks[number].physical * width
        ]
        names = self.schema.names
        parts = []
        if dense:
            physical = [self._columns[name] for name in names]
            for batch in self.table.scan(physical, ledger, addresses=True, fragments=dense):
                wanted = np.isin(batch.column(ADDRESS).to_numpy(), addresses)
                kept = batch.select(physical).filter(pa.array(wanted))
                parts.append(pa.Table.from_arrays(kept.columns, schema=self.schema))
        left = addresses[~np.isin(addresses >> np.uint64(32), dense)]
        if len(left):
            parts.append(self.take(left, names, ledger))
        return pa.concat_tables(parts) if parts else self.schema.empty_table()

    def fragment_rows(
        self, fragments: Sequence[int], ledger: Ledger, *, filter: pc.Expression | None = None
    ) -> pa.Table:
        """The live rows of some fragments. A filter may name only system columns."""
        names = self.schema.names
        physical = [self._columns[name] for name in names]
        batches = [
            pa.RecordBatch.from_arrays(batch.columns, schema=self.schema)
            for batch in self.table.scan(physical, ledger, fragments=fragments, filter=filter)
        ]
        return pa.Table.from_batches(batches, schema=self.schema)

    def fragment_ids_of(self, fragment: int, ledger: Ledger) -> pa.Array:
        """The ids of the live rows of a fragment."""
        batches = list(self.table.scan(["id"], ledger, fragments=[fragment]))
        return pa.concat_arrays([batch.column("id") for batch in batches])

    def live_offsets(self, fragment: int, ledger: Ledger) -> np.ndarray:
        """Which rows of a fragment are live. Reads its deletion file and no data."""
        batches = self.table.scan([], ledger, addresses=True, fragments=[fragment])
        parts = [batch.column(ADDRESS).to_numpy() for batch in batches]
        offsets: np.ndarray = np.concatenate([_NO_ADDRESSES, *parts]) & np.uint64(0xFFFFFFFF)
        return offsets

    def find(self, columns: tuple[str, ...], texts: Sequence[str], ledger: Ledger) -> FoundRows:
        """Where the view has rows whose columns have these canonical texts."""
        positions, addresses = self.find_stored(columns, texts, ledger)
        pending_positions, pending = self._find_pending(columns, texts)
        return FoundRows(positions, addresses, pending_positions, pending)

    def find_stored(
        self, columns: tuple[str, ...], texts: Sequence[str], ledger: Ledger
    ) -> tuple[np.ndarray, np.ndarray]:
        """Which texts visible rows of the table have, and the addresses of these rows."""
        if self.overlay.replaced:
            return np.array([], dtype=np.int64), _NO_ADDRESSES
        physical = tuple(self._columns[name] for name in columns)
        positions, addresses = self.lookups.find(self.table, physical, texts, ledger)
        if len(self.overlay.hidden) and len(addresses):
            visible = ~np.isin(addresses, self.overlay.hidden)
            positions, addresses = positions[visible], addresses[visible]
        return positions, addresses

    def _find_pending(
        self, columns: tuple[str, ...], texts: Sequence[str]
    ) -> tuple[np.ndarray, np.ndarray]:
        empty = np.array([], dtype=np.int64)
        if not self.overlay.rows.num_rows or not texts:
            return empty, empty
        wanted: dict[str, list[int]] = {}
        for position, text in enumerate(texts):
            wanted.setdefault(text, []).append(position)
        column = self.overlay.rows[columns[0]]
        if len(columns) == 1 and pa.types.is_string(column.type) and len(wanted) == len(texts):
            places = pc.index_in(column, value_set=pa.array(texts, pa.string()))
            rows = np.flatnonzero(places.is_valid().to_numpy())
            return places.drop_null().to_numpy().astype(np.int64), rows
        held = key_texts(self.overlay.rows, columns)
        pairs = [
            (position, row)
            for row, text in enumerate(held)
            if text is not None
            for position in wanted.get(text, ())
        ]
        if not pairs:
            return empty, empty
        found = np.array(pairs, dtype=np.int64)
        return found[:, 0], found[:, 1]

    def _base_batches(
        self,
        names: Sequence[str],
        condition: pc.Expression | None,
        ledger: Ledger,
        *,
        addresses: bool = False,
        fragments: Sequence[int] | None = None,
        large: bool = False,
    ) -> Iterator[pa.RecordBatch]:
        """Batches under their property names, without hidden rows."""
        if self.overlay.replaced or not self.table.marks:
            return
        pushed = None if condition is None else self._pushed(condition)
        later = condition if pushed is None else None
        read = list(self._columns) if later is not None else list(names)
        hidden = self.overlay.hidden
        located = addresses or bool(len(hidden))
        for batch in self.table.scan(
            [self._columns[name] for name in read],
            ledger,
            filter=pushed,
            addresses=located,
            fragments=fragments,
            large=large,
        ):
            batch = batch.rename_columns([*read, ADDRESS] if located else read)
            if len(hidden):
                visible = ~np.isin(batch.column(ADDRESS).to_numpy(), hidden)
                batch = batch.filter(pa.array(visible))
            if later is not None:
                batch = batch.filter(later)
            if batch.num_rows:
                yield batch

    def _pushed(self, condition: pc.Expression) -> pc.Expression | None:
        """The filter over the table's own columns, if Lance evaluates it exactly as Arrow does for
        pending rows. Floats are left out: Lance orders NaN and -0 totally, Arrow by IEEE, and one
        scan must not mix both."""
        renamed = any(name != column for name, column in self._columns.items())
        if renamed and not self.table.takes_filters:
            return None
        schema = self._filter_schema if renamed else _comparable(self.schema)
        try:
            message = condition.to_substrait(schema)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, KeyError):
            return None
        if not renamed:
            return condition
        # In this form columns are identified by position, which does not depend on their names.
        (bound,) = deserialize_expressions(message).expressions.values()
        return bound

    @cached_property
    def _filter_schema(self) -> pa.Schema:
        """The table's columns in their order, with the names that a filter may use."""
        names = {column: name for name, column in self._columns.items()}
        comparable = _comparable(self.schema)
        fields = []
        for place, column in enumerate(self.table.schema.names):
            at = comparable.get_field_index(names.get(column, ""))
            # No property begins with an underscore.
            fields.append(comparable.field(at) if at >= 0 else pa.field(f"_{place}", pa.int8()))
        return pa.schema(fields)


def check_expression(kind: GraphType, schema: pa.Schema, condition: pc.Expression) -> None:
    """Refuses an expression that is no condition over these columns."""
    try:
        schema.empty_table().filter(condition)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError, KeyError) as e:
        reason = str(e).split("\n", 1)[0]
        raise InvalidArgument(f"The filter does not fit {kind.name}: {reason}") from e


def _row_width(schema: pa.Schema) -> int:
    """The approximate size of a row. A blob is too large to be read unasked."""
    width = 0
    for column in schema:
        if pa.types.is_fixed_size_list(column.type):
            width += column.type.list_size * 4
        elif pa.types.is_large_binary(column.type) or pa.types.is_binary(column.type):
            width += _WORTH_A_ROW
        else:
            width += _TEXT
    return width


@lru_cache(maxsize=1024)
def _comparable(schema: pa.Schema) -> pa.Schema:
    exact = (
        pa.types.is_string,
        pa.types.is_boolean,
        pa.types.is_integer,
        pa.types.is_date,
        pa.types.is_timestamp,
    )
    return pa.schema([f for f in schema if any(check(f.type) for check in exact)])
