"""Owns what a load knows while it checks: its rows by type, which of them are refused, and the
graph that they come to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.joins import Joins
from omnigraph.engine.view import TableView
from omnigraph.model.catalog import GraphType
from omnigraph.model.violation import Violation
from omnigraph.plan.load.places import AT, Reject, SourceName, to_reject
from omnigraph.plan.load.shaping import show_row
from omnigraph.plan.rules.book import NewId, OneRow, Rule, describe
from omnigraph.store.tables import ADDRESS
from omnigraph.telemetry import Ledger

Mode = Literal["append", "merge", "overwrite"]
ORIGIN = "_origin"
"""The column with the address of the row that a row replaces; null for a new entity."""

FEW = 10_000
"""Up to so many values are looked up one by one; more are joined with the whole column."""

TOLD = 100


@dataclass
class TypeRows:
    """Whole rows of one type with their places, in a merge also with what they replace."""

    kind: GraphType
    table: pa.Table
    generated: bool


@dataclass
class LoadState:
    """`given` are the rows of each type as they came, to show those that are refused; `checks`
    collects the tables on which a decision rests; `unblamed` is what no single row is to blame
    for."""

    snapshot: GraphView
    rows: dict[str, TypeRows]
    mode: Mode
    joins: Joins
    names: Sequence[SourceName]
    ledger: Ledger
    every: bool
    given: dict[str, list[pa.Table]] = field(default_factory=dict)
    checks: set[str] = field(default_factory=set)
    rejects: list[Reject] = field(default_factory=list)
    unblamed: list[Violation] = field(default_factory=list)
    more: int = 0

    def view(self, kind: GraphType) -> TableView:
        self.checks.add(kind.table_key)
        return self.snapshot.view(kind)

    def replaced(self, kind: GraphType) -> bool:
        """Whether nothing of the type's table is left."""
        return self.mode == "overwrite" and kind.table_key in self.rows

    def arriving(self, kind: GraphType) -> pa.Table | None:
        rows = self.rows.get(kind.table_key)
        return None if rows is None or not rows.table.num_rows else rows.table

    def locate(self, kind: GraphType, column: str, values: pa.Table) -> pa.Table:
        """Of the distinct texts in the column `v` those that the table holds: `v` and the
        address of each row that has it."""
        view = self.view(kind)
        empty = pa.table({"v": pa.array([], pa.string()), ADDRESS: pa.array([], pa.uint64())})
        if self.replaced(kind) or not view.table.rows or not values.num_rows:
            return empty
        if values.num_rows <= FEW:
            texts = values["v"].to_pylist()
            found = view.find((column,), texts, self.ledger)
            held = values["v"].take(pa.array(found.base_positions))
            return pa.table({"v": held, ADDRESS: pa.array(found.addresses)})
        return self.joins.sql(
            f'SELECT v, {ADDRESS} FROM wanted JOIN base ON v = base."{column}"',
            wanted=values,
            base=self.column_reader(view, [column]),
        )

    def column_reader(self, view: TableView, columns: Sequence[str]) -> pa.RecordBatchReader:
        """Some columns of the whole table, with the address of each row."""
        schema = pa.schema(
            [view.schema.field(name) for name in columns] + [pa.field(ADDRESS, pa.uint64())]
        )
        return pa.RecordBatchReader.from_batches(schema, view.located(columns, self.ledger))

    def refuse(self, kind: GraphType, found: Sequence[tuple[int, Violation]]) -> None:
        """Rows, by place, with what is wrong; they take no further part."""
        if not found:
            return
        places = np.array([place for place, _ in found], dtype=np.int64)
        told = places if self.every else places[: max(TOLD - len(self.rejects), 0)]
        shown = self._shown(kind, told)
        self.more += len(places) - len(told)
        self.rejects += [
            to_reject(self.names, place, violation, *shown[place])
            for place, violation in found[: len(told)]
        ]
        self._drop(kind, places)

    def refuse_for(self, rule: Rule, rows: pa.Table) -> None:
        """Rows that a join found to break a rule, by `place`. Without `every` they stay: what
        hangs on them is not wrong for that."""
        kind = rule.kind
        told = rows if self.every else rows.slice(0, max(TOLD - len(self.rejects), 0))
        self.more += rows.num_rows - told.num_rows
        shown = self._shown(kind, told["place"].to_numpy())
        for row in told.to_pylist():
            entity, text = shown[row["place"]]
            why = describe(rule, {"id": entity} | row)
            reject = to_reject(self.names, row["place"], why, entity, text, row.get("first"))
            self.rejects.append(reject)
        if rows.num_rows and (self.every or isinstance(rule, OneRow | NewId)):
            self._drop(kind, rows["place"].to_numpy())

    def _shown(self, kind: GraphType, places: np.ndarray) -> dict[int, tuple[str, str]]:
        """The rows as they came."""
        texts: dict[int, tuple[str, str]] = {}
        for table in self.given.get(kind.table_key, [self.rows[kind.table_key].table]):
            texts |= shown_rows(table, places)
        return texts

    def _drop(self, kind: GraphType, places: np.ndarray) -> None:
        held = self.rows[kind.table_key]
        keep = pc.invert(pc.is_in(held.table[AT], value_set=pa.array(places)))
        self.rows[kind.table_key] = TypeRows(kind, held.table.filter(keep), held.generated)


def shown_rows(table: pa.Table, at: Any) -> dict[int, tuple[str, str]]:
    """Id and shown row of some places."""
    if not len(at):
        return {}
    rows = table.filter(pc.is_in(table[AT], value_set=pa.array(at)))
    shown = [name for name in rows.column_names if name not in (AT, ORIGIN)]
    found = {}
    for row, place in zip(rows.select(shown).to_pylist(), rows[AT].to_pylist(), strict=True):
        found[place] = (row["id"], show_row({k: v for k, v in row.items() if v is not None}))
    return found
