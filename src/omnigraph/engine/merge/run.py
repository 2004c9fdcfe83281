"""Owns merging as a write: which tables are taken whole, which are merged row by row, and the
commit.

The cost follows the size of the change. A table that one side changed is taken by reference. Of a
table that both changed, only the fragments that differ are read, and fragments that the source
appended are shared.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import NoneType
from typing import Any, Literal

import msgspec

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.history.ancestry import contains, find_merge_bases, joined, origin_of
from omnigraph.engine.history.restore import plan_actions
from omnigraph.engine.merge.base import MergeBase
from omnigraph.engine.merge.check import check_merge
from omnigraph.engine.merge.commit import write_merge
from omnigraph.engine.merge.queries import (
    MergedQueries,
    merge_stored,
    queries_change,
    split_answers,
)
from omnigraph.engine.merge.state import CheckedMerge
from omnigraph.engine.merge.tables import merge_inputs, merge_tables
from omnigraph.engine.session import Session
from omnigraph.engine.write.lineage import find_repeated, make_lineage
from omnigraph.engine.write.precondition import pin_commit
from omnigraph.engine.write.publisher import publish
from omnigraph.errors import BranchMoved, Conflict, InvalidArgument, MergeFailed, SelfMerge
from omnigraph.lang.pg.print import print_schema
from omnigraph.model.catalog import Catalog, declared
from omnigraph.model.conflicts import ConflictKind, MergeConflict
from omnigraph.model.options import CommitOptions
from omnigraph.model.stored_queries import QueriesChange
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.plan.merge import Side, Strategy
from omnigraph.plan.publish import (
    Adopt,
    Lineage,
    Merged,
    PublishPlan,
    SchemaChange,
    TableAction,
)
from omnigraph.plan.schema_merge import align, merge_schemas
from omnigraph.plan.successor import point_to
from omnigraph.telemetry import Ledger

Outcome = Literal["already_up_to_date", "fast_forward", "merged"]


@dataclass(frozen=True)
class Merge:
    """What a merge did, or with `dry_run` would do. `changes` counts rows by type; `queries` are
    the stored queries that it sets or removes."""

    outcome: Outcome
    commit: Commit | None
    base: str | None = None
    adopted: tuple[str, ...] = ()
    changes: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    conflicts: tuple[MergeConflict, ...] = ()
    queries: tuple[str, ...] = ()
    repeated: bool = False
    """An earlier call with the same idempotency key had done it."""
    io: Ledger = field(default_factory=Ledger, repr=False)

    def _repr_html_(self) -> str:
        from omnigraph.show.changes import merge_view

        commit = None if self.commit is None else self.commit.id
        return merge_view(self.outcome, commit, self.changes, self.conflicts)


def merge_branches(
    session: Session,
    source: str,
    into: str,
    options: CommitOptions,
    *,
    strategy: str | Mapping[str, str] | None,
    resolve: Mapping[tuple[str, str], Mapping[str, Any] | None] | None,
    dry_run: bool,
) -> Merge:
    """All or nothing. If the target moves meanwhile, the merge is repeated on its new head."""
    if source == into:
        raise SelfMerge(f"The branch {source!r} cannot be merged into itself.")
    ledger = Ledger()
    chosen = read_strategy(strategy, resolve)
    said = make_lineage(
        session,
        "merge",
        options,
        source,
        into,
        strategy,
        resolve,
        message=f"merge {source} into {into}",
    )
    first = None if dry_run else find_repeated(session, into, said, ledger)
    if first is not None:
        outcome: Outcome = "fast_forward" if first.forwarded else "merged"
        return Merge(outcome, first.commit, repeated=True, io=ledger)
    deadline = session.runtime.monotonic() + options.patience(session.settings.retry_for)
    seen, theirs = session.runtime.now(), session.live_head(source, ledger)
    session = session.holding(source, theirs.incarnation)
    while True:
        ours = session.live_head(into, ledger)
        session = session.holding(into, ours.incarnation)
        pinned = pin_commit(session, ours, options, ledger)
        if session.outlived(seen, ours):
            # Its pinned files may be gone (hazard 7), so the merge starts again from the current
            # state.
            seen, theirs = session.runtime.now(), session.live_head(source, ledger)
        try:
            call = _MergeCall(said, pinned, options.patience(session.settings.retry_for), dry_run)
            return _merge(session, ours, theirs, seen, chosen, call, ledger)
        except (BranchMoved, MergeFailed):
            raise
        except Conflict:
            if session.runtime.monotonic() > deadline:
                raise


@dataclass(frozen=True)
class _MergeCall:
    """What the merge commit records, and the condition under which it is made."""

    lineage: Lineage
    if_commit: str | None
    retry_for: float
    dry_run: bool


def read_strategy(
    strategy: str | Mapping[str, str] | None,
    resolve: Mapping[tuple[str, str], Mapping[str, Any] | None] | None,
) -> Strategy:
    if strategy is not None and not isinstance(strategy, str | Mapping):
        raise InvalidArgument(
            f"A strategy is 'ours', 'theirs' or a mapping, not {type(strategy).__name__}."
        )
    given = {"*": strategy} if isinstance(strategy, str) else dict(strategy or {})
    sides: dict[str, Side] = {}
    for place, side in given.items():
        if side not in ("ours", "theirs"):
            raise InvalidArgument(
                f"The strategy {side!r} is not known.", help="There are 'ours' and 'theirs'."
            )
        sides[place] = "ours" if side == "ours" else "theirs"
    for key, row in (resolve or {}).items():
        named = isinstance(key, tuple) and len(key) == 2
        if not named or not isinstance(row, Mapping | NoneType):
            raise InvalidArgument(
                f"What resolves a conflict is a row, or None, by (type, id), not {key!r}: "
                f"{type(row).__name__}."
            )
    rows = (
        None if resolve is None else {k: None if v is None else dict(v) for k, v in resolve.items()}
    )
    return Strategy(everywhere=sides.pop("*", None), places=sides, rows=rows)


def _merge(
    session: Session,
    ours: GraphVersion,
    theirs: GraphVersion,
    seen: int,
    strategy: Strategy,
    call: _MergeCall,
    ledger: Ledger,
) -> Merge:
    dry_run = call.dry_run
    if contains(ours, origin_of(session, theirs, ledger)):
        return Merge("already_up_to_date", None, io=ledger)
    if contains(theirs, origin_of(session, ours, ledger)):
        if strategy.rows:
            raise InvalidArgument(
                f"{theirs.branch!r} has everything that {ours.branch!r} has, so there is nothing "
                "to resolve.",
                help="Merge without `resolve`, or write the rows to the branch.",
            )
        commit = None
        if not dry_run:
            commit = _fast_forward(session, ours, theirs, seen, call, ledger)
        return Merge("fast_forward", commit, ours.commit.id, io=ledger)
    mine, yours = (session.read_catalog(side.catalog, ledger) for side in (ours, theirs))
    aligned = align(mine, yours)
    base = MergeBase(session, find_merge_bases(session, [ours], theirs, ledger), aligned, ledger)
    left = GraphView(ours, aligned(mine), session, ledger)
    right = GraphView(theirs, aligned(yours), session, ledger)
    catalog = _merge_catalogs(base.catalog, left.catalog, right.catalog)
    of_rows, answers = split_answers(strategy)
    inputs = merge_inputs(session, base, left, right, catalog, of_rows, ledger)
    checked = check_merge(merge_tables(inputs))
    stored = merge_stored(session, base, (ours, theirs), catalog, strategy, answers, ledger)
    if dry_run:
        return _result(checked, stored, base, None, ledger)
    if checked.conflicts or stored.conflicts:
        raise failed((*checked.conflicts, *stored.conflicts))
    actions = write_merge(checked)
    schema = _write_schema(session, ours, theirs, checked.catalog, ledger)
    queries = queries_change(session, stored, ledger)
    call = _joining(call, ours, theirs)
    commit = _publish(session, ours, theirs, seen, schema, queries, actions, call, ledger)
    return _result(checked, stored, base, commit, ledger)


def failed(conflicts: tuple[MergeConflict, ...]) -> MergeFailed:
    rest = f" (and {len(conflicts) - 1} more)" if len(conflicts) > 1 else ""
    return MergeFailed(conflicts[0].message + rest, conflicts=conflicts)


def _result(
    checked: CheckedMerge,
    stored: MergedQueries,
    base: MergeBase,
    commit: Commit | None,
    ledger: Ledger,
) -> Merge:
    return Merge(
        "merged",
        commit,
        base.commit,
        checked.adopted,
        checked.changes,
        (*checked.conflicts, *stored.conflicts),
        stored.changed,
        io=ledger,
    )


def _fast_forward(
    session: Session,
    ours: GraphVersion,
    theirs: GraphVersion,
    seen: int,
    call: _MergeCall,
    ledger: Ledger,
) -> Commit:
    """A commit that makes the target show what the source shows: tables and schema by reference."""
    schema = None
    if theirs.catalog != ours.catalog:
        schema = SchemaChange(schema=theirs.schema, catalog=theirs.catalog)
    actions = tuple(
        msgspec.structs.replace(action, published=True) if isinstance(action, Adopt) else action
        for action in plan_actions(ours, theirs)
    )
    call = _joining(call, ours, theirs, forwarded=True)
    queries = QueriesChange(queries=theirs.queries)
    return _publish(session, ours, theirs, seen, schema, queries, actions, call, ledger)


def _merge_catalogs(base: Catalog, ours: Catalog, theirs: Catalog) -> Catalog:
    """Schemas merge first: a side that did not change its schema takes the other's."""
    if theirs in (base, ours):
        return ours
    if ours == base:
        return theirs
    merged = merge_schemas(base, ours, theirs)
    if merged.catalog is not None:
        return merged.catalog
    raise failed(
        tuple(
            MergeConflict(
                ConflictKind.SCHEMA,
                conflict.type,
                None,
                conflict.message,
                property=conflict.property,
                base=conflict.base,
                ours=conflict.ours,
                theirs=conflict.theirs,
            )
            for conflict in merged.conflicts
        )
    )


def _write_schema(
    session: Session, ours: GraphVersion, theirs: GraphVersion, catalog: Catalog, ledger: Ledger
) -> SchemaChange | None:
    """The merged schema, unless the target has it already."""
    if catalog.digest == ours.catalog:
        return None
    if catalog.digest == theirs.catalog:
        return SchemaChange(schema=theirs.schema, catalog=theirs.catalog)
    text = print_schema(declared(catalog))
    schema_hash, catalog_hash = session.write_schema(text, catalog, ledger)
    return SchemaChange(schema=schema_hash, catalog=catalog_hash)


def _joining(
    call: _MergeCall, ours: GraphVersion, theirs: GraphVersion, *, forwarded: bool = False
) -> _MergeCall:
    """The call, with the second parent that its commit will have."""
    merged = Merged(
        commit=theirs.commit.id,
        at=point_to(theirs),
        ancestry=joined(ours, theirs),
        forwarded=forwarded,
    )
    return replace(call, lineage=msgspec.structs.replace(call.lineage, merged=merged))


def _publish(
    session: Session,
    ours: GraphVersion,
    theirs: GraphVersion,
    seen: int,
    schema: SchemaChange | None,
    queries: QueriesChange,
    actions: tuple[TableAction, ...],
    call: _MergeCall,
    ledger: Ledger,
) -> Commit:
    plan = PublishPlan(
        branch=ours.branch,
        base_version=ours.version,
        base_incarnation=ours.incarnation,
        actions=actions,
        lineage=call.lineage,
        # The merge depends on all of our tables, so any change starts it again.
        reads={key: pin.content for key, pin in ours.pins.items()},
        schema=schema,
        queries=queries,
        if_commit=call.if_commit,
    )
    published = publish(
        session,
        _Pinned(plan, ours, session, seen),
        ledger,
        retry_for=call.retry_for,
        after=session.files_of(theirs),
    )
    version = published.version or published.first
    assert version is not None
    return version.commit


@dataclass
class _Pinned:
    """A merge as the publisher sees it: bound to one head, and repeated by its caller."""

    plan: PublishPlan
    base: GraphVersion
    session: Session
    seen: int

    def replan(self, head: GraphVersion) -> None:
        raise Conflict("The branch moved while it was merged.")

    def stale(self, head: GraphVersion) -> bool:
        # A commit that changed no table still changed the past of our side.
        return head.version != self.base.version or self.session.outlived(self.seen, head)
