"""Owns the base of a merge: one version or, if there are several, the merge that they imply.

After merges in both directions at once, two heads have several newest common ancestors. If one of
them were taken, a change could win over a later revert of it. So, as in git, the bases are merged
with each other first, against their own bases, but only in memory and only the rows in which they
differ. A value on which they conflict does not exist at the base: see `contested` in `plan.merge`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.history.ancestry import find_merge_bases
from omnigraph.engine.history.table_diff import TypeDelta
from omnigraph.engine.merge.sides import delta_as, diff_sides, entities_in, kind_in, same_rows
from omnigraph.engine.session import Session
from omnigraph.engine.stored_queries import StoredQueries
from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.model.stored_queries import Queries
from omnigraph.model.version import GraphVersion
from omnigraph.plan.merge import (
    Contested,
    Row,
    SideDelta,
    Strategy,
    changes_of,
    merge_rows,
    same_row,
)
from omnigraph.plan.query_merge import merge_queries
from omnigraph.plan.schema_merge import merge_schemas
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class BaseTable:
    """The rows of a type in a version. `rows` replaces some of them by id, with None for a deleted
    one. `contested` has the meaning that it has in `plan.merge`."""

    snapshot: GraphView
    rows: Mapping[str, Row | None] = field(default_factory=dict)
    contested: Contested = field(default_factory=dict)

    @property
    def imagined(self) -> bool:
        return bool(self.rows or self.contested)


class MergeBase:
    """What two heads have in common: one or more `versions`, newest first. `align` gives types the
    ids that they have in the merge."""

    def __init__(
        self,
        session: Session,
        versions: Sequence[GraphVersion],
        align: Callable[[Catalog], Catalog],
        ledger: Ledger,
    ) -> None:
        self.versions = tuple(versions)
        self._session = session
        self._align = align
        self._ledger = ledger
        self._snapshots = [
            GraphView(v, align(session.read_catalog(v.catalog, ledger)), session, ledger)
            for v in versions
        ]
        self._below: dict[int, MergeBase] = {}
        self._tables: dict[str, BaseTable] = {}
        self.catalog = self._catalog()

    @property
    def commit(self) -> str:
        return self.versions[0].commit.id

    def types(self) -> list[GraphType]:
        """Every type that one of the versions has, once."""
        known: dict[str, GraphType] = {}
        for snapshot in self._snapshots:
            known = {kind.id: kind for kind in snapshot.catalog.types} | known
        return list(known.values())

    def kind(self, kind: GraphType) -> GraphType | None:
        """A type as it is at the base."""
        found = next((known for known in self.catalog.types if known.id == kind.id), None)
        return found or next((known for known in self.types() if known.id == kind.id), None)

    def table(self, kind: GraphType) -> BaseTable:
        """The type's rows at the base, in the form of the given type."""
        if kind.id not in self._tables:
            table = BaseTable(self._snapshots[0])
            for step in range(1, len(self._snapshots)):
                table = self._joined(kind, table, step)
            self._tables[kind.id] = table
        return self._tables[kind.id]

    def _joined(self, kind: GraphType, table: BaseTable, step: int) -> BaseTable:
        """Merges what the earlier versions imply with the version of this step. If only one of them
        changed a table, its table is taken without reading rows."""
        other = BaseTable(self._snapshots[step])
        if not table.imagined and same_rows(table.snapshot, other.snapshot, kind):
            return table
        below = self._base_of(step).table(kind)
        if not below.imagined:
            if same_rows(other.snapshot, below.snapshot, kind):
                return table
            if not table.imagined and same_rows(table.snapshot, below.snapshot, kind):
                return other
        if kind_in(table.snapshot, kind) is None or kind_in(other.snapshot, kind) is None:
            return other if kind_in(table.snapshot, kind) is None else table
        left = delta_between(kind, below, table, self._ledger)
        right = delta_between(kind, below, other, self._ledger)
        merged = merge_rows(
            kind, left, right, Strategy(), {}, {**table.contested, **below.contested}
        )
        rows = dict(table.rows)
        rows |= {row["id"]: row for row in merged.upserts.to_pylist()}
        rows |= dict.fromkeys(merged.deletes)
        unsure = dict(table.contested)
        for conflict in merged.conflicts:
            assert conflict.id is not None
            found = frozenset({conflict.property or "id"})
            unsure[conflict.id] = unsure.get(conflict.id, frozenset()) | found
        return BaseTable(table.snapshot, rows, unsure)

    def _base_of(self, step: int) -> MergeBase:
        if step not in self._below:
            before, version = self.versions[:step], self.versions[step]
            found = find_merge_bases(self._session, before, version, self._ledger)
            self._below[step] = MergeBase(self._session, found, self._align, self._ledger)
        return self._below[step]

    def queries(self) -> tuple[Queries, frozenset[str]]:
        """The stored queries at the base, and the names that have no one text there."""
        held = StoredQueries.shared_by(self._session)
        found = held.read(self.versions[0].queries, self._ledger)
        contested: frozenset[str] = frozenset()
        for step in range(1, len(self.versions)):
            other = held.read(self.versions[step].queries, self._ledger)
            if found == other and not contested:
                continue
            below, unsure = self._base_of(step).queries()
            merged = merge_queries(below, found, other, Strategy(), {}, contested | unsure)
            found, contested = merged.queries, merged.contested
        return found, contested

    def _catalog(self) -> Catalog:
        """If the schemas contradict each other, the newest one is taken."""
        catalog = self._snapshots[0].catalog
        for step in range(1, len(self._snapshots)):
            other = self._snapshots[step].catalog
            if catalog == other:
                continue
            below = self._base_of(step).catalog
            if catalog == below:
                catalog = other
            elif other != below:
                catalog = merge_schemas(below, catalog, other).catalog or catalog
        return catalog


def delta_between(
    kind: GraphType,
    was: BaseTable,
    now: BaseTable,
    ledger: Ledger,
    *,
    known: TypeDelta | None = None,
) -> SideDelta:
    """What leads from one to the other. Entities that are contested in either appear in it too,
    changed or not. `known` is the delta between the versions alone."""
    delta = known or diff_sides(was.snapshot, now.snapshot, kind, ledger)
    plain = delta_as(kind, delta)
    touched = sorted({*was.rows, *now.rows, *was.contested, *now.contested})
    if not touched:
        return plain
    told = changes_of(plain, only=touched)
    stayed = entities_in(was.snapshot, kind, [one for one in touched if one not in told], ledger)
    pairs: list[tuple[Row | None, Row | None]] = []
    for entity in touched:
        before, after = told.get(entity, (stayed.get(entity), stayed.get(entity)))
        before, after = was.rows.get(entity, before), now.rows.get(entity, after)
        unsure = entity in was.contested or entity in now.contested
        if unsure or not _same(before, after):
            pairs.append((before, after))
    return _with(kind, plain, touched, pairs)


def _same(a: Row | None, b: Row | None) -> bool:
    if a is None or b is None:
        return a is b
    return same_row(a, b)


def _with(
    kind: GraphType,
    plain: SideDelta,
    touched: Sequence[str],
    pairs: Iterable[tuple[Row | None, Row | None]],
) -> SideDelta:
    """A delta in which some entities changed in another way."""
    schema = row_schema(kind)
    ids = pa.array(touched, pa.string())

    def joined(rows: pa.Table, more: list[Row]) -> pa.Table:
        left = rows.filter(pc.invert(pc.is_in(rows["id"], value_set=ids)))
        return pa.concat_tables([left, pa.Table.from_pylist(more, schema=schema)])

    came = [after for before, after in pairs if before is None and after is not None]
    went = [before for before, after in pairs if before is not None and after is None]
    both = [(b, a) for b, a in pairs if b is not None and a is not None]
    return SideDelta(
        inserts=joined(plain.inserts, came),
        deletes=joined(plain.deletes, went),
        before=joined(plain.before, [before for before, _ in both]),
        after=joined(plain.after, [after for _, after in both]),
    )
