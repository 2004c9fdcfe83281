"""Owns the working state of a transaction: statements applied to a snapshot, in memory.

It is a function of the snapshot and the statements, so after a lost race it is simply made again on
the new snapshot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, assert_never

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as pads

from omnigraph.engine.condition import read_condition
from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.overlay import NEW, Overlay
from omnigraph.engine.view import FoundRows, TableView
from omnigraph.engine.write.assignments import always_null, set_values
from omnigraph.engine.write.recent import Looked
from omnigraph.engine.write.recorded_answers import Effect, Effects
from omnigraph.engine.write.selection import Selected, fetch_ahead, select_rows
from omnigraph.engine.write.statements import (
    AppendRows,
    DeleteRows,
    DeleteWhere,
    EmbedRows,
    OverwriteRows,
    Statement,
    UpdateRows,
    UpdateWhere,
    UpsertRows,
    Where,
    WhereText,
)
from omnigraph.errors import InvalidArgument, InvalidData
from omnigraph.lang.suggestions import near
from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import EdgeType, GraphType, NodeType, system_columns
from omnigraph.plan.rows.complete import complete_rows, shape_values
from omnigraph.plan.rows.stale import clear_stale, watched_sources
from omnigraph.plan.rows.typed import RowGroup
from omnigraph.plan.rules.book import ENDS, NewId, describe, describe_move, edges_of
from omnigraph.plan.validate import check_nulls, check_rows
from omnigraph.plan.values.rows import Bindings
from omnigraph.store.tables import ADDRESS

SHOWN = 100
_MANY_CHUNKS = 64


class Work:
    """Pending rows over a pinned snapshot. `checks` collects the tables that decisions depend on,
    `looked` the values that were looked up in each, None if it was read in any other way. An id
    that was found is not among them, because no added row can have it.
    `only_appended` holds for each type the rows of its appends, as long as nothing else has touched
    it. `effects` counts how many entities of each table the statements inserted, updated and
    deleted. If it `moves_edges`, a pending edge without a key may have other ends than the one that
    it replaces: statements refuse that, versions may differ so."""

    moves_edges = False

    def __init__(self, snapshot: GraphView) -> None:
        self.snapshot = snapshot
        self.overlays: dict[str, Overlay] = {}
        self.checks: set[str] = set()
        self.looked: dict[str, Looked | None] = {}
        self.only_appended: dict[str, list[pa.Table] | None] = {}
        self.effects: Effects = Counter()

    @property
    def ledger(self) -> Any:
        return self.snapshot.io

    def view(self, kind: GraphType) -> TableView:
        return self.snapshot.view(kind, self.overlays.get(kind.table_key))

    def read(self, kind: GraphType) -> TableView:
        """A view whose contents a decision will depend on."""
        self.checks.add(kind.table_key)
        self.looked[kind.table_key] = None
        return self.view(kind)

    def find(self, kind: GraphType, columns: tuple[str, ...], texts: Sequence[str]) -> FoundRows:
        """Rows with these values. A decision will depend on which there are, and on nothing else of
        the table."""
        self.checks.add(kind.table_key)
        found = self.view(kind).find(columns, texts, self.ledger)
        looked = self.looked.setdefault(kind.table_key, {})
        if looked is not None:
            there = found.positions.tolist() if columns == ("id",) else ()
            absent = set(texts) - {texts[position] for position in there}
            looked.setdefault(columns, set()).update(absent)
        return found

    @property
    def touched(self) -> list[GraphType]:
        by_key = self.snapshot.catalog.by_key
        return [by_key[key] for key, overlay in self.overlays.items() if overlay.touched]

    def apply(self, statement: Statement) -> int:
        """Returns how many entities of the type it affected."""
        kind = self.snapshot.type(statement.type)
        match statement:
            case UpsertRows():
                self._count(kind, "updated", statement.merged)
                return sum(self._upsert(kind, group) for group in statement.shaped.groups)
            case OverwriteRows():
                return self._overwrite(kind, statement)
            case AppendRows():
                return self._append(kind, statement)
            case UpdateRows():
                return self._update(kind, statement)
            case DeleteRows():
                return self._delete(kind, statement.where)
            case UpdateWhere():
                return self._update_where(kind, statement)
            case DeleteWhere():
                return self._delete_where(kind, statement)
            case EmbedRows():
                return self._embed(kind, statement)
            case _:
                assert_never(statement)

    def _overlay(self, kind: GraphType) -> Overlay:
        return self.overlays.get(kind.table_key) or Overlay.empty(kind)

    def _count(self, kind: GraphType, effect: Effect, entities: int) -> None:
        self.effects[kind.table_key, effect] += entities

    def _put(self, kind: GraphType, overlay: Overlay, *, appended: pa.Table | None = None) -> None:
        key = kind.table_key
        if overlay.rows.num_columns and overlay.rows.column(0).num_chunks > _MANY_CHUNKS:
            overlay = replace(overlay, rows=overlay.rows.combine_chunks())
        self.overlays[key] = overlay
        if appended is None:
            self.only_appended[key] = None
        elif (so_far := self.only_appended.setdefault(key, [])) is not None:
            so_far.append(appended)

    def change(
        self, kind: GraphType, rows: pa.Table, origins: np.ndarray, gone: np.ndarray
    ) -> None:
        """Puts rows and hides addresses without a check: the caller has examined the table and is
        responsible for the consequences."""
        self._put(kind, self._overlay(kind).hiding(gone).adding(rows, origins))

    def _append(self, kind: GraphType, statement: AppendRows) -> int:
        (group,) = statement.shaped.groups
        rows = group.table
        if not statement.generated_ids:
            ids = rows["id"].to_pylist()
            taken = self.find(kind, ("id",), ids).positions
            refuse(
                [
                    msgspec.structs.replace(
                        describe(NewId(kind), {"id": ids[position]}),
                        row=int(group.positions[position]),
                    )
                    for position in taken[:SHOWN].tolist()
                ],
                more=len(taken) - SHOWN,
            )
        origins = np.full(rows.num_rows, NEW, dtype=np.uint64)
        self._put(kind, self._overlay(kind).adding(rows, origins), appended=rows)
        self._count(kind, "inserted", rows.num_rows)
        return int(rows.num_rows)

    def _upsert(self, kind: GraphType, group: RowGroup) -> int:
        given = group.table
        ids = given["id"].to_pylist()
        view, found = self.view(kind), self.find(kind, ("id",), ids)
        origins = np.full(len(ids), NEW, dtype=np.uint64)
        origins[found.base_positions] = found.addresses
        overlay = view.overlay
        if len(found.pending):
            origins[found.pending_positions] = overlay.origins[found.pending]
        rows = self._complete(view, group, found, origins)
        self._put(kind, overlay.without(found.pending).adding(rows, origins))
        known = len(found.positions)
        self._count(kind, "updated", known)
        self._count(kind, "inserted", len(ids) - known)
        return len(ids)

    def _complete(
        self, view: TableView, group: RowGroup, found: Any, origins: np.ndarray
    ) -> pa.Table:
        """Full rows: given properties, then the entity's old values, then defaults."""
        kind, given = view.kind, group.table
        absent = [p.name for p in kind.properties if p.name not in group.given]
        known = np.union1d(found.base_positions, found.pending_positions)
        new = np.setdiff1d(np.arange(given.num_rows), known)
        whole, violations = complete_rows(kind, group, new)
        refuse(violations)
        if not len(known):
            return whole
        self._check_ends(view, given, found)
        if not absent:
            return whole
        watched = watched_sources(kind, group.given)
        wanted = [*absent, *watched]
        parts = [(new, whole.take(pa.array(new)).select(wanted))]
        if len(found.addresses):
            old = view.take(found.addresses, wanted, self.ledger)
            parts.append((found.base_positions, old))
        if len(found.pending):
            pending = view.overlay.rows.take(pa.array(found.pending)).select(wanted)
            parts.append((found.pending_positions, pending))
        order = np.argsort(np.concatenate([positions for positions, _ in parts]), kind="stable")
        kept = pa.concat_tables([rows for _, rows in parts]).take(pa.array(order))
        schema = row_schema(kind)
        columns = [kept[name] if name in absent else whole[name] for name in schema.names]
        rows = pa.Table.from_arrays(columns, schema=schema)
        return clear_stale(kind, group.given, rows, kept) if watched else rows

    def _check_ends(self, view: TableView, given: pa.Table, found: Any) -> None:
        """An edge keeps its ends: an edge with other ends is another edge."""
        if not isinstance(view.kind, EdgeType) or view.kind.key:
            return
        pairs = []
        if len(found.addresses):
            old = view.take(found.addresses, ENDS, self.ledger)
            pairs.append((found.base_positions, old))
        if len(found.pending):
            old = view.overlay.rows.take(pa.array(found.pending)).select(list(ENDS))
            pairs.append((found.pending_positions, old))
        for positions, old in pairs:
            new = given.take(pa.array(positions))
            for row in range(old.num_rows):
                for end in ENDS:
                    was, now = old[end][row].as_py(), new[end][row].as_py()
                    if was != now:
                        refuse([describe_move(view.kind, new["id"][row].as_py(), end, was, now)])

    def _overwrite(self, kind: GraphType, statement: OverwriteRows) -> int:
        (group,) = statement.shaped.groups
        origins = np.full(group.table.num_rows, NEW, dtype=np.uint64)
        empty = Overlay.empty(kind)
        rows = group.table if group.table.num_rows else empty.rows
        overlay = Overlay(rows, origins, empty.hidden, replaced=True)
        self._count(kind, "deleted", self.view(kind).count())
        self._count(kind, "inserted", group.table.num_rows)
        self._put(kind, overlay)
        return int(group.table.num_rows)

    def _update(self, kind: GraphType, statement: UpdateRows) -> int:
        view = self.read(kind)
        names = view.schema.names
        found = self._select(view, statement.where, names)
        _check_settable(kind, statement.set)
        pending = view.overlay.rows.take(pa.array(found.pending))
        old = pa.concat_tables([found.rows.select(names), pending]).cast(view.schema)
        if not old.num_rows:
            refuse(check_nulls(kind, [name for name, one in statement.set.items() if one is None]))
            return 0
        rows = clear_stale(kind, statement.set, _with_values(kind, old, statement.set), old)
        refuse(check_rows(kind, rows))
        return self._replace(view, found, rows)

    def _select(self, view: TableView, where: Where, names: list[str]) -> Selected:
        """The rows that meet a condition, in the table and among the pending ones."""
        if isinstance(where, WhereText):
            condition = read_condition(self.snapshot.catalog, view.kind, where.text, where.now)
            assert not isinstance(condition.test, pc.Expression)
            bindings = Bindings(now=where.now)
            return select_rows(view, condition.test, bindings, self.ledger, names)
        view.check_filter(where)
        base = view.base_rows(names, where, self.ledger)
        return Selected(base, base[ADDRESS].to_numpy(), view.pending_matches(where))

    def _update_where(self, kind: GraphType, statement: UpdateWhere) -> int:
        view, bindings = self.read(kind), statement.bindings
        conditions = [update.where for update in statement.updates]
        ahead = fetch_ahead(view, conditions, bindings, self.ledger)
        done = 0
        for update in statement.updates:
            view = self.view(kind)
            names = view.schema.names
            found = select_rows(view, update.where, bindings, self.ledger, names, ahead=ahead)
            if not found.count:
                refuse(check_nulls(kind, always_null(update.values, bindings)))
                continue
            old = found.rows
            if len(found.pending):
                pending = view.overlay.rows.take(pa.array(found.pending))
                old = pa.concat_tables([old, pending]).cast(view.schema)
            rows = set_values(kind, old, update.values, bindings)
            done += self._replace(view, found, rows)
        return done

    def _replace(self, view: TableView, found: Selected, rows: pa.Table) -> int:
        """Puts other rows in place of those found, in the same order."""
        origins = np.concatenate([found.addresses, view.overlay.origins[found.pending]])
        overlay = view.overlay.without(found.pending).adding(rows, origins.astype(np.uint64))
        self._put(view.kind, overlay)
        self._count(view.kind, "updated", rows.num_rows)
        return int(rows.num_rows)

    def _delete(self, kind: GraphType, where: Where) -> int:
        view = self.read(kind)
        return self._remove(view, self._select(view, where, ["id"]))

    def _delete_where(self, kind: GraphType, statement: DeleteWhere) -> int:
        view = self.read(kind)
        found = select_rows(view, statement.where, statement.bindings, self.ledger, ["id"])
        return self._remove(view, found)

    def _embed(self, kind: GraphType, statement: EmbedRows) -> int:
        """Stores vectors where the text is still the embedded one and nobody has set another
        vector."""
        given, vector, view = statement.rows, statement.property, self.read(kind)
        ids = given["id"].combine_chunks()
        found = view.find(("id",), ids.to_pylist(), self.ledger)
        base = view.rows_at(found.addresses, self.ledger)
        addresses = np.full(len(ids), NEW, dtype=np.uint64)
        addresses[found.base_positions] = found.addresses
        stored = pc.index_in(base["id"], value_set=ids).to_numpy().astype(np.int64)
        places = np.concatenate([stored, found.pending_positions])
        origins = np.concatenate([addresses[stored], view.overlay.origins[found.pending]])
        pending = view.overlay.rows.take(pa.array(found.pending))
        old = pa.concat_tables([base, pending]).cast(view.schema)
        same = pc.equal(old[statement.source], given["text"].take(pa.array(places)))
        kept = np.flatnonzero(pc.and_(pc.fill_null(same, False), old[vector].is_null()))
        if not len(kept):
            return 0
        place = old.schema.get_field_index(vector)
        rows = old.take(pa.array(kept)).set_column(
            place, old.schema.field(place), given["vector"].take(pa.array(places[kept]))
        )
        replaced = found.pending[kept[kept >= len(stored)] - len(stored)]
        overlay = view.overlay.without(replaced)
        self._put(kind, overlay.adding(rows, origins[kept].astype(np.uint64)))
        # Pending rows were counted by the statement that added them.
        self._count(kind, "updated", int(np.count_nonzero(kept < len(stored))))
        return len(kept)

    def _remove(self, view: TableView, found: Selected) -> int:
        if not found.count:
            return 0
        kind, overlay = view.kind, view.overlay
        ids = found.rows["id"].to_pylist()
        ids += overlay.rows["id"].take(pa.array(found.pending)).to_pylist()
        self._put(kind, overlay.without(found.pending).hiding(found.addresses))
        self._count(kind, "deleted", len(ids))
        if isinstance(kind, NodeType):
            self._cascade(kind, ids)
        return len(ids)

    def _cascade(self, node: NodeType, ids: list[str]) -> None:
        """Removes the edges of a removed node."""
        for edge, end in edges_of(self.snapshot.catalog, node):
            view = self.read(edge)
            found = view.find((end,), ids, self.ledger)
            if len(found.addresses) or len(found.pending):
                pending = np.unique(found.pending)
                self._put(edge, view.overlay.without(pending).hiding(found.addresses))
                self._count(edge, "deleted", len(found.addresses) + len(pending))


def refuse(violations: Any, *, more: int = 0) -> None:
    """Raises an error if there is anything to refuse."""
    violations = list(violations)
    if not violations:
        return
    rest = len(violations) - 1 + max(more, 0)
    message = violations[0].message
    if rest:
        message += f" (and {rest} more)"
    raise InvalidData(message, violations=violations, more=max(more, 0))


def _check_settable(kind: GraphType, values: Mapping[str, Any]) -> None:
    if not values:
        raise InvalidArgument(f"The update of {kind.name} sets nothing.")
    names = {p.name for p in kind.properties}
    for name in values:
        if name in system_columns(kind) or name in kind.key:
            raise InvalidArgument(
                f"{kind.name}.{name} is part of the entity's identity and cannot be set.",
                help="Delete the entity and insert another.",
            )
        if name not in names:
            guess = near(name, names)
            raise InvalidArgument(
                f"{kind.name} has no property {name!r}.",
                help=f"Did you mean {guess!r}?" if guess else "",
            )


def _with_values(kind: GraphType, old: pa.Table, values: Mapping[str, Any]) -> pa.Table:
    """The rows with some properties set, to constants or to expressions over the old row."""
    expressions = {n: v for n, v in values.items() if isinstance(v, pc.Expression)}
    computed = None
    if expressions:
        try:
            computed = pads.dataset(old).to_table(columns=expressions)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError, pa.ArrowTypeError) as error:
            reason = str(error).split("\n", 1)[0]
            raise InvalidArgument(
                f"A value for {kind.name} cannot be computed: {reason}"
            ) from error
    given = {
        n: computed[n] if computed is not None and n in expressions else v
        for n, v in values.items()
    }
    columns, violations = shape_values(kind, given, old.num_rows)
    refuse(violations)
    rows = old
    for name, column in columns.items():
        position = rows.schema.get_field_index(name)
        rows = rows.set_column(position, rows.schema.field(position), column)
    return rows
