"""Owns the relations of a load in this process: its rows and the graph's, joined by DuckDB.

A few stored rows are looked up by value; for many rows the whole column is joined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.duckdb_sql import Joins, SqlRows, as_keys
from omnigraph.engine.load.completing import complete_merge
from omnigraph.engine.load.local_rows import LocalRows
from omnigraph.engine.load.relations import LoadRelations
from omnigraph.engine.load.spool import Room
from omnigraph.engine.load.state import ORIGIN, TOLD, LoadState, shown_rows
from omnigraph.engine.view import TableView
from omnigraph.model.catalog import GraphType, NodeType
from omnigraph.plan.load.places import AT, to_reject
from omnigraph.plan.rules import joins
from omnigraph.plan.rules.book import End, Ends, Rule, UniqueRule, describe
from omnigraph.plan.validate import key_column, key_texts
from omnigraph.store.tables import ADDRESS

FEW = 10_000
"""Up to this many values are looked up one by one; more are joined with the whole column."""

_NOWHERE = pa.table({"v": pa.array([], pa.string()), ADDRESS: pa.array([], pa.uint64())})


class LocalRelations(LoadRelations[LocalRows, SqlRows]):
    """`LoadRelations` over the Arrow tables of a load in this process."""

    def __init__(self, state: LoadState[LocalRows], joins: Joins, room: Room) -> None:
        super().__init__(state)
        self._joins = joins
        self._room = room

    def ask(self, sql: str, **named: SqlRows) -> SqlRows:
        return self._joins.ask(sql, **named)

    def sized(self, relation: SqlRows, rows: int) -> SqlRows:
        return relation

    def many(self, kind: GraphType) -> bool:
        return False

    def may_exceed(
        self, kind: GraphType, columns: tuple[str, ...], most: int = 1, *, stored: bool = False
    ) -> bool:
        return stored or self.left(kind) > most

    # Relations

    def keys(self, kind: GraphType, columns: tuple[str, ...]) -> list[str]:
        return ["k0"] if self._by_text(kind) else [f"k{i}" for i in range(len(columns))]

    def _by_text(self, kind: GraphType) -> bool:
        """A few rows are compared by texts, as in a lookup; many are compared by their values."""
        return self.left(kind) <= FEW

    def arriving(
        self, kind: GraphType, names: tuple[str, ...] = (), unique: tuple[str, ...] = ()
    ) -> SqlRows:
        table = self._table(kind)
        assert table is not None
        origin = [ORIGIN] if ORIGIN in table.column_names else []
        shown = [f"{AT} AS place", *(f"{name} AS origin" for name in origin), *names]
        held = table.select(list(dict.fromkeys([AT, *origin, *names, *unique])))
        if unique and self._by_text(kind):
            held = held.append_column("_key", key_column(table, unique))
            shown.append("_key AS k0")
        elif unique:
            shown.append(as_keys(kind, unique))
        return SqlRows.of(held, ", ".join(shown))

    def stored(
        self, kind: GraphType, names: tuple[str, ...] = (), unique: tuple[str, ...] = ()
    ) -> SqlRows:
        table = self._table(kind)
        assert table is not None
        if not unique:
            (name,) = names
            found = self._locate(kind, name, pa.table({"v": pc.unique(table[name])}))
            return SqlRows.of(pa.table({"address": found[ADDRESS], name: found["v"]}))
        view = self.state.view(kind)
        if self._by_text(kind):
            texts = [text for text in key_texts(table, unique) if text is not None]
            found_texts = view.find(unique, texts, self.state.ledger)
            held = pa.array(texts, pa.string()).take(pa.array(found_texts.base_positions))
            return SqlRows.of(pa.table({"address": found_texts.addresses, "k0": held}))
        shown = f"{ADDRESS} AS address, {as_keys(kind, unique)}"
        return SqlRows(lambda: self._column_reader(view, unique), shown)

    def origins(self, kind: GraphType) -> SqlRows:
        table = self._table(kind)
        assert table is not None
        return SqlRows.of(pa.table({"origin": table[ORIGIN].drop_null()}))

    def before(self, kind: GraphType, names: tuple[str, ...], end: End | None = None) -> SqlRows:
        read = [name for name in names if name != "address"]
        shown = ", ".join(f"{ADDRESS} AS address" if n == "address" else n for n in names)
        if end is not None:
            read, shown = [*read, end], f"{shown}, {end} AS node"
        view = self.state.view(kind)
        return SqlRows(lambda: self._column_reader(view, read), shown)

    def nodes(self, node: NodeType) -> SqlRows | None:
        """If the node type is replaced, the arriving nodes are all there are."""
        assert self.replaced(node)
        rows = self._table(node)
        return None if rows is None else SqlRows.of(rows.select(["id"]))

    def missing(self, rule: Ends) -> SqlRows:
        table = self._table(rule.kind)
        assert table is not None
        lost = self._nowhere(pc.unique(table[rule.end]), rule.node)
        rows = table.filter(pc.is_in(table[rule.end], value_set=lost))
        return SqlRows.of(pa.table({"place": rows[AT], "node": rows[rule.end]}))

    def alive(self, sources: SqlRows, node: NodeType) -> SqlRows:
        table = sources.table()
        lost = self._nowhere(table["src"].combine_chunks(), node)
        return SqlRows.of(table.filter(pc.invert(pc.is_in(table["src"], value_set=lost))))

    def _nowhere(self, ids: pa.Array, node: NodeType) -> pa.Array:
        """The distinct ids that belong to no node."""
        wanted = pa.table({"node": ids})
        arriving = self._table(node)
        if arriving is not None and wanted.num_rows:
            nodes = SqlRows.of(arriving.select(["id"]))
            wanted = joins.loose(self, SqlRows.of(wanted), nodes).table()
        if wanted.num_rows:
            known = self._locate(node, "id", wanted.rename_columns(["v"]))
            kept = pc.invert(pc.is_in(wanted["node"], value_set=known["v"].combine_chunks()))
            wanted = wanted.filter(kept)
        return wanted["node"].combine_chunks()

    # What is found

    def is_empty(self, relation: SqlRows) -> bool:
        return not relation.table().num_rows

    def refuse(self, rule: Rule, found: SqlRows) -> int:
        rows = found.table().sort_by("place")
        if isinstance(rule, UniqueRule) and rows.num_rows:
            rows = rows.append_column("text", self._texts(rule, rows["place"]))
        state = self.state
        told = rows.slice(0, state.named(rows.num_rows))
        state.more += rows.num_rows - told.num_rows
        shown = self._shown(rule.kind, told["place"].to_numpy())
        for row in told.to_pylist():
            entity, text = shown[row["place"]]
            why = describe(rule, {"id": entity} | row)
            first = row.get("first")
            state.rejects.append(to_reject(state.names, row["place"], why, entity, text, first))
        if state.every and rows.num_rows:
            state.drop(rule.kind, rows["place"].to_numpy())
        return int(rows.num_rows)

    def _texts(self, rule: UniqueRule, places: pa.ChunkedArray) -> pa.Array:
        table = self._table(rule.kind)
        assert table is not None
        held = table.filter(pc.is_in(table[AT], value_set=places.combine_chunks())).sort_by(AT)
        return pa.array(key_texts(held, rule.columns), pa.string())

    def _shown(self, kind: GraphType, places: np.ndarray) -> dict[int, tuple[str, str]]:
        """Rows as they came, by place: their id and a text."""
        texts: dict[int, tuple[str, str]] = {}
        for part in self.state.types[kind.table_key].given:
            texts |= shown_rows(part.table, places)
        return texts

    def report(self, rule: Rule, found: SqlRows) -> None:
        rows = found.table()
        first: list[dict[str, Any]] = rows.slice(0, TOLD).to_pylist()
        self.state.unblamed += [describe(rule, {"n": 0} | row) for row in first]
        self.state.more += rows.num_rows - len(first)

    # Merges

    def complete(self) -> None:
        state = self.state
        for key, held in list(state.types.items()):
            view = state.snapshot.view(held.kind)
            ids = pa.table({"v": pc.unique(held.table["id"])})
            known = _NOWHERE if held.generated else self._locate(held.kind, "id", ids)
            merged = complete_merge(view, held.parts_left(), known, self._room, state.ledger)
            told = merged.refused[: state.named(len(merged.refused))]
            state.more += len(merged.refused) - len(told)
            shown = self._shown(held.kind, np.array([place for place, _ in told], np.int64))
            state.rejects += [
                to_reject(state.names, place, why, *shown[place]) for place, why in told
            ]
            state.types[key] = replace(held, table=merged.table)

    # Lookups

    def _table(self, kind: GraphType) -> pa.Table | None:
        """Arriving rows that are not refused, or None if there are none."""
        rows = self.state.types.get(kind.table_key)
        return None if rows is None or not rows.left else rows.table

    def _locate(self, kind: GraphType, column: str, values: pa.Table) -> pa.Table:
        """Finds which of the distinct texts in the column `v` the table holds: `v`, and the address
        of each row that has it."""
        view = self.state.view(kind)
        if self.replaced(kind) or not view.table.rows or not values.num_rows:
            return _NOWHERE
        if values.num_rows <= FEW:
            texts = values["v"].to_pylist()
            found = view.find((column,), texts, self.state.ledger)
            held = values["v"].take(pa.array(found.base_positions))
            return pa.table({"v": held, ADDRESS: pa.array(found.addresses)})
        return self._joins.sql(
            f'SELECT v, {ADDRESS} FROM wanted JOIN base ON v = base."{column}"',
            wanted=values,
            base=self._column_reader(view, [column]),
        )

    def _column_reader(self, view: TableView, columns: Sequence[str]) -> pa.RecordBatchReader:
        """Reads some columns of the whole table, with the address of each row."""
        schema = pa.schema(
            [view.schema.field(name) for name in columns] + [pa.field(ADDRESS, pa.uint64())]
        )
        return pa.RecordBatchReader.from_batches(schema, view.located(columns, self.state.ledger))
