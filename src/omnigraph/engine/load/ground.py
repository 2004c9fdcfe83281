"""Owns the relations of a load in this process: its rows and the graph's, as DuckDB joins them. Of
stored rows a few are looked up by value; where there are many, the whole column is joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.joins import Rows, as_keys
from omnigraph.engine.load.state import FEW, ORIGIN, TOLD, LoadState
from omnigraph.model.catalog import GraphType, NodeType
from omnigraph.plan.load.places import AT
from omnigraph.plan.rules import joins
from omnigraph.plan.rules.book import End, Ends, Rule, Unique, describe
from omnigraph.plan.validate import key_column, key_texts
from omnigraph.store.tables import ADDRESS


@dataclass(frozen=True)
class LocalGround:
    """`Ground` over the state of a load in this process."""

    state: LoadState

    @property
    def snapshot(self) -> GraphView:
        return self.state.snapshot

    @property
    def every(self) -> bool:
        return self.state.every

    @property
    def kinds(self) -> Sequence[GraphType]:
        return [rows.kind for rows in self.state.rows.values()]

    def ask(self, sql: str, **named: Rows) -> Rows:
        return self.state.joins.ask(sql, **named)

    def sized(self, relation: Rows, rows: int) -> Rows:
        return relation

    def generated(self, kind: GraphType) -> bool:
        return self.state.rows[kind.table_key].generated

    def left(self, kind: GraphType) -> int:
        rows = self.state.arriving(kind)
        return 0 if rows is None else int(rows.num_rows)

    def many(self, kind: GraphType) -> bool:
        return False

    def replaced(self, kind: GraphType) -> bool:
        return self.state.replaced(kind)

    def replacing(self, kind: GraphType) -> bool:
        rows = self.state.arriving(kind)
        return rows is not None and ORIGIN in rows.column_names

    def keeps(self, kind: GraphType) -> bool:
        return not self.replaced(kind) and self.state.view(kind).table.rows > 0

    def may_exceed(
        self, kind: GraphType, columns: tuple[str, ...], most: int = 1, *, stored: bool = False
    ) -> bool:
        return stored or self.left(kind) > most

    # Relations

    def keys(self, kind: GraphType, columns: tuple[str, ...]) -> list[str]:
        return ["k0"] if self._by_text(kind) else [f"k{i}" for i in range(len(columns))]

    def _by_text(self, kind: GraphType) -> bool:
        """A few rows are compared by texts, as they are looked up; many by their values."""
        return self.left(kind) <= FEW

    def arriving(
        self, kind: GraphType, names: tuple[str, ...] = (), unique: tuple[str, ...] = ()
    ) -> Rows:
        table = self.state.arriving(kind)
        assert table is not None
        origin = [ORIGIN] if ORIGIN in table.column_names else []
        shown = [f"{AT} AS place", *(f"{name} AS origin" for name in origin), *names]
        held = table.select(list(dict.fromkeys([AT, *origin, *names, *unique])))
        if unique and self._by_text(kind):
            held = held.append_column("_key", key_column(table, unique))
            shown.append("_key AS k0")
        elif unique:
            shown.append(as_keys(kind, unique))
        return Rows.of(held, ", ".join(shown))

    def stored(
        self, kind: GraphType, names: tuple[str, ...] = (), unique: tuple[str, ...] = ()
    ) -> Rows:
        state, table = self.state, self.state.arriving(kind)
        assert table is not None
        if not unique:
            (name,) = names
            found = state.locate(kind, name, pa.table({"v": pc.unique(table[name])}))
            return Rows.of(pa.table({"address": found[ADDRESS], name: found["v"]}))
        view = state.view(kind)
        if self._by_text(kind):
            texts = [text for text in key_texts(table, unique) if text is not None]
            found_texts = view.find(unique, texts, state.ledger)
            held = pa.array(texts, pa.string()).take(pa.array(found_texts.base_positions))
            return Rows.of(pa.table({"address": found_texts.addresses, "k0": held}))
        shown = f"{ADDRESS} AS address, {as_keys(kind, unique)}"
        return Rows(lambda: state.column_reader(view, unique), shown)

    def origins(self, kind: GraphType) -> Rows:
        table = self.state.arriving(kind)
        assert table is not None
        return Rows.of(pa.table({"origin": table[ORIGIN].drop_null()}))

    def before(self, kind: GraphType, names: tuple[str, ...], end: End | None = None) -> Rows:
        read = [*names] if end is None else [*names, end]
        shown = ", ".join([*names] if end is None else [*names, f"{end} AS node"])
        view = self.state.view(kind)
        return Rows(lambda: self.state.column_reader(view, read), shown)

    def nodes(self, node: NodeType) -> Rows | None:
        """The node type is replaced, so those that arrive are all."""
        assert self.replaced(node)
        rows = self.state.arriving(node)
        return None if rows is None else Rows.of(rows.select(["id"]))

    def missing(self, rule: Ends) -> Rows:
        table = self.state.arriving(rule.kind)
        assert table is not None
        lost = self._nowhere(pc.unique(table[rule.end]), rule.node)
        rows = table.filter(pc.is_in(table[rule.end], value_set=lost))
        return Rows.of(pa.table({"place": rows[AT], "node": rows[rule.end]}))

    def alive(self, sources: Rows, node: NodeType) -> Rows:
        table = sources.table()
        lost = self._nowhere(table["src"].combine_chunks(), node)
        return Rows.of(table.filter(pc.invert(pc.is_in(table["src"], value_set=lost))))

    def _nowhere(self, ids: pa.Array, node: NodeType) -> pa.Array:
        """Those of the distinct ids that are no node."""
        wanted = pa.table({"node": ids})
        arriving = self.state.arriving(node)
        if arriving is not None and wanted.num_rows:
            nodes = Rows.of(arriving.select(["id"]))
            wanted = joins.loose(self, Rows.of(wanted), nodes).table()
        if wanted.num_rows:
            known = self.state.locate(node, "id", wanted.rename_columns(["v"]))
            kept = pc.invert(pc.is_in(wanted["node"], value_set=known["v"].combine_chunks()))
            wanted = wanted.filter(kept)
        return wanted["node"].combine_chunks()

    # What is found

    def is_empty(self, relation: Rows) -> bool:
        return not relation.table().num_rows

    def refuse(self, rule: Rule, found: Rows) -> int:
        rows = found.table().sort_by("place")
        if isinstance(rule, Unique) and rows.num_rows:
            rows = rows.append_column("text", self._texts(rule, rows["place"]))
        self.state.refuse_for(rule, rows)
        return int(rows.num_rows)

    def _texts(self, rule: Unique, places: pa.ChunkedArray) -> pa.Array:
        table = self.state.arriving(rule.kind)
        assert table is not None
        held = table.filter(pc.is_in(table[AT], value_set=places.combine_chunks())).sort_by(AT)
        return pa.array(key_texts(held, rule.columns), pa.string())

    def tell(self, rule: Rule, found: Rows) -> None:
        rows = found.table()
        first: list[dict[str, Any]] = rows.slice(0, TOLD).to_pylist()
        self.state.unblamed += [describe(rule, {"n": 0} | row) for row in first]
        self.state.more += rows.num_rows - len(first)
