"""Owns the diff of two snapshots, which is computed type by type as it is read."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa

from omnigraph.engine.graph_view import GraphView, find_type
from omnigraph.engine.history.table_diff import TypeDelta, diff_type
from omnigraph.engine.stored_queries import queries_of_view
from omnigraph.errors import InvalidArgument
from omnigraph.model.catalog import GraphType
from omnigraph.model.changes import Change, Op
from omnigraph.plan.migrate import MigrationPlan, plan_between
from omnigraph.plan.schema_merge import align
from omnigraph.show.markup import counted
from omnigraph.telemetry import Ledger

_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class QueryChange:
    """A stored query that changed: its text on each side, None where it is not."""

    name: str
    before: str | None
    after: str | None

    @property
    def op(self) -> Op:
        if self.before is None:
            return Op.INSERT
        return Op.DELETE if self.after is None else Op.UPDATE


class DiffLike(Protocol):
    """The changes that lead from one version to another, wherever they are computed."""

    def __iter__(self) -> Iterator[Change]: ...

    def summary(self) -> dict[str, dict[str, int]]: ...

    @property
    def io(self) -> Ledger: ...

    @property
    def types(self) -> frozenset[str] | None: ...

    @property
    def schema(self) -> MigrationPlan: ...

    @property
    def queries(self) -> tuple[QueryChange, ...]: ...


class ShownChanges:
    """How changes show themselves in a notebook."""

    def _repr_html_(self: DiffLike) -> str:
        from omnigraph.show.changes import changes_view

        others = [f"schema: {counted(len(self.schema.steps), 'step')}"] if self.schema.steps else []
        if self.queries:
            others.append(f"stored queries: {', '.join(one.name for one in self.queries)}")
        return changes_view(self, self.summary(), *others)


@dataclass(frozen=True)
class Diff(ShownChanges):
    """The changes that lead from one snapshot to another. Iterating yields `Change`s. Nothing is
    read before that, and each type is read when its turn comes."""

    old: GraphView
    new: GraphView
    types: frozenset[str] | None
    kinds: frozenset[str]
    ops: frozenset[Op]
    io: Ledger = field(default_factory=Ledger, repr=False)

    def __iter__(self) -> Iterator[Change]:
        for delta in self.deltas():
            yield from _changes(delta, self.ops)

    def deltas(self) -> Iterator[TypeDelta]:
        """Changes as Arrow tables, one object for each type that changed."""
        for before, after in self._pairs():
            delta = diff_type(
                None if before is None else self._aligned.view(before),
                None if after is None else self.new.view(after),
                self.io,
            )
            if not delta.empty:
                yield delta

    def summary(self) -> dict[str, dict[str, int]]:
        """Counts by type and operation."""
        counts = {}
        for delta in self.deltas():
            sizes = {
                Op.INSERT: delta.inserts.num_rows,
                Op.UPDATE: delta.after.num_rows,
                Op.DELETE: delta.deletes.num_rows,
            }
            kind = delta.new or delta.old
            assert kind is not None
            shown = {str(op): n for op, n in sizes.items() if n and op in self.ops}
            if shown:
                counts[kind.name] = shown
        return counts

    @property
    def schema(self) -> MigrationPlan:
        """What changed in the schema: the steps that lead from the old one to the new one."""
        return plan_between(self._aligned.catalog, self.new.catalog)

    @property
    def queries(self) -> tuple[QueryChange, ...]:
        """What changed among the stored queries, by name."""
        old, new = queries_of_view(self.old), queries_of_view(self.new)
        return tuple(
            QueryChange(name, old.get(name), new.get(name))
            for name in sorted({*old, *new})
            if old.get(name) != new.get(name)
        )

    @cached_property
    def _aligned(self) -> GraphView:
        """The old snapshot, in which types and properties that both have carry the ids of the new
        one."""
        aligned = align(self.new.catalog, self.old.catalog)
        return replace(self.old, catalog=aligned(self.old.catalog))

    def _pairs(self) -> Iterator[tuple[GraphType | None, GraphType | None]]:
        """Types paired by their stable ids, so that a renamed type is still the same type."""
        olds = {kind.id: kind for kind in self._aligned.catalog.by_key.values()}
        for new in self.new.catalog.by_key.values():
            old = olds.pop(new.id, None)
            if self._wanted(new) or (old is not None and self._wanted(old)):
                yield old, new
        for old in olds.values():
            if self._wanted(old):
                yield old, None

    def _wanted(self, kind: GraphType) -> bool:
        if kind.table_key.split(":", 1)[0] not in self.kinds:
            return False
        return self.types is None or bool(self.types & {kind.name, kind.table_key})


def make_diff(
    old: GraphView,
    new: GraphView,
    *,
    types: Sequence[str] | None,
    kinds: Sequence[str] | None,
    ops: Sequence[str] | None,
) -> Diff:
    for name in types or ():
        if old.catalog.find(name) is None:
            find_type(new.catalog, name)
    return Diff(
        old,
        new,
        None if types is None else frozenset(types),
        _chosen("kind", kinds, ("node", "edge")),
        frozenset(Op(op) for op in _chosen("operation", ops, tuple(Op))),
    )


def _chosen(what: str, given: Sequence[str] | None, known: Collection[str]) -> frozenset[str]:
    if given is None:
        return frozenset(known)
    for name in given:
        if name not in known:
            raise InvalidArgument(
                f"{name!r} is not a {what} of change.", help=f"There are {', '.join(known)}."
            )
    return frozenset(given)


def _changes(delta: TypeDelta, ops: frozenset[Op]) -> Iterator[Change]:
    kind = delta.new or delta.old
    assert kind is not None
    side, name = kind.table_key.split(":", 1)
    if Op.DELETE in ops:
        for row in _dicts(delta.deletes):
            yield Change(Op.DELETE, side, name, row["id"], row, None)
    if Op.INSERT in ops:
        for row in _dicts(delta.inserts):
            yield Change(Op.INSERT, side, name, row["id"], None, row)
    if Op.UPDATE in ops:
        pairs = zip(_dicts(delta.before), _dicts(delta.after), delta.changed, strict=True)
        for before, after, changed in pairs:
            yield Change(Op.UPDATE, side, name, after["id"], before, after, changed)


def _dicts(rows: pa.Table) -> Iterator[dict[str, Any]]:
    for batch in rows.to_batches(max_chunksize=_ROWS_AT_ONCE):
        yield from batch.to_pylist()
