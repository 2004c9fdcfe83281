"""Owns reverting: a new commit that undoes what one commit did to rows and stored queries,
three-way.

The state after the commit is the base, and the state before it is the goal. Where a later commit
changed the same value again, the head wins.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.engine.graph_view import full_view_of
from omnigraph.engine.history.diff import make_diff
from omnigraph.engine.history.refs import History
from omnigraph.engine.history.table_diff import TypeDelta
from omnigraph.engine.history.undo import Undone, undo_type
from omnigraph.engine.session import Session
from omnigraph.engine.stored_queries import StoredQueries, require_fitting
from omnigraph.engine.write.integrity import check_integrity
from omnigraph.engine.write.lineage import find_repeated, make_lineage
from omnigraph.engine.write.precondition import pin_commit
from omnigraph.engine.write.publisher import publish, require_unprotected
from omnigraph.engine.write.stage import StagedAppends, stage_work
from omnigraph.engine.write.work import SHOWN, Work, refuse
from omnigraph.errors import InvalidArgument, RefNotFound, RevertFailed
from omnigraph.model.catalog import Catalog, NodeType
from omnigraph.model.conflicts import ConflictKind, MergeConflict
from omnigraph.model.options import CommitOptions
from omnigraph.model.refs import CommitRef, parse_ref
from omnigraph.model.stored_queries import Queries, QueriesChange
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.model.violation import Violation
from omnigraph.plan.merge import Strategy
from omnigraph.plan.publish import Lineage, PublishPlan
from omnigraph.plan.query_merge import merge_queries
from omnigraph.plan.rules.book import Orphans, describe, ends_of
from omnigraph.plan.validate import check_rows
from omnigraph.runtime import reach
from omnigraph.telemetry import Ledger

KIND = "revert"


@dataclass
class Reversal:
    """A revert as the publisher sees it. It is planned again on every new head."""

    session: Session
    deltas: Sequence[TypeDelta]
    queries: tuple[Queries, Queries]
    lineage: Lineage
    if_commit: str | None
    ledger: Ledger
    plan: PublishPlan = field(init=False)
    _base: GraphVersion | None = None
    _staged_at: int = 0

    @property
    def base(self) -> GraphVersion:
        assert self._base is not None
        return self._base

    def stale(self, head: GraphVersion) -> bool:
        age = (self.session.runtime.now() - self._staged_at) / 1e6
        return self._staged_at <= head.gc_cutoff or age >= self.session.settings.grace / 2

    def replan(self, head: GraphVersion) -> None:
        require_unprotected(head, KIND)
        self._base = head
        work = Work(full_view_of(self.session, head, self.ledger))
        queries = self._undo_queries(head, work.snapshot.catalog)
        self._undo(work)
        check_integrity(work)
        self._staged_at = self.session.runtime.now()
        staged = stage_work(work, StagedAppends(), self.ledger)
        reach("staged")
        self.plan = PublishPlan(
            branch=head.branch,
            base_version=head.version,
            base_incarnation=head.incarnation,
            actions=staged.actions,
            lineage=self.lineage,
            checks={table: head.pins[table].content for table in work.checks},
            queries=queries,
            if_commit=self.if_commit,
        )

    def _undo_queries(self, head: GraphVersion, catalog: Catalog) -> QueriesChange | None:
        """None where the commit changed none."""
        before, after = self.queries
        if before == after:
            return None
        held = StoredQueries.shared_by(self.session)
        now = held.read(head.queries, self.ledger)
        undone = merge_queries(after, now, before, Strategy(), {})
        if undone.conflicts:
            raise RevertFailed(undone.conflicts[0].message, conflicts=undone.conflicts)
        require_fitting(undone.queries, catalog)
        return QueriesChange(queries=held.write(undone.queries, self.ledger))

    def _undo(self, work: Work) -> None:
        conflicts: list[MergeConflict] = []
        violations: list[Violation] = []
        removed: dict[str, list[str]] = {}
        work.moves_edges = True
        kinds = {kind.id: kind for kind in work.snapshot.catalog.types}
        for delta in self.deltas:
            assert delta.new is not None
            kind = kinds.get(delta.new.id)
            if kind is None:
                conflicts.append(_dropped(delta.new.name))
                continue
            undone: Undone = undo_type(delta, work.read(kind), self.ledger)
            conflicts += undone.conflicts
            violations += check_rows(kind, undone.rows)
            work.change(kind, undone.rows, undone.origins, undone.gone)
            if isinstance(kind, NodeType):
                removed[kind.name] = undone.removed
        if conflicts:
            rest = f" (and {len(conflicts) - 1} more)" if len(conflicts) > 1 else ""
            raise RevertFailed(conflicts[0].message + rest, conflicts=conflicts)
        violations += islice(_orphans(work, removed), SHOWN)
        refuse(violations[:SHOWN], more=len(violations) - SHOWN)


def revert(
    session: Session,
    commit: str,
    branch: str,
    options: CommitOptions,
    ledger: Ledger,
) -> Commit:
    """Returns the head's own commit if there is nothing left to undo."""
    lineage = make_lineage(session, KIND, options, commit, branch)
    if (first := find_repeated(session, branch, lineage, ledger)) is not None:
        return first.commit
    history = History(session, ledger)
    head = session.live_head(branch, ledger)
    pinned = pin_commit(session, head, options, ledger)
    require_unprotected(head, KIND)
    version = _find(history, commit, branch)
    parent = next(islice(history.walk(version), 1, None), None)
    if parent is None:
        raise InvalidArgument(
            f"Commit {version.commit.id} is the first one: there is nothing before it."
        )
    if parent.catalog != version.catalog:
        raise InvalidArgument(
            f"Commit {version.commit.id} changed the schema; a revert undoes changes of rows.",
            help=f"restore({parent.commit.id!r}) brings back everything as it was before it.",
        )
    old, new = full_view_of(session, parent, ledger), full_view_of(session, version, ledger)
    deltas = list(make_diff(old, new, types=None, kinds=None, ops=None).deltas())
    said = options.message or f"revert {version.commit.id}"
    lineage = msgspec.structs.replace(lineage, message=said)
    held = StoredQueries.shared_by(session)
    queries = (held.read(parent.queries, ledger), held.read(version.queries, ledger))
    reversal = Reversal(session, deltas, queries, lineage, pinned, ledger)
    reversal.replan(head)
    plan = reversal.plan
    if not plan.actions and (plan.queries is None or plan.queries.queries == head.queries):
        return head.commit
    patience = options.patience(session.settings.retry_for)
    published = publish(session, reversal, ledger, retry_for=patience)
    made = published.version or published.first
    assert made is not None
    return made.commit


def _find(history: History, commit: str, branch: str) -> GraphVersion:
    """Looks on the branch itself first, which is cheap, and then everywhere."""
    ref = parse_ref(commit)
    if isinstance(ref, CommitRef) and ref.branch is None:
        try:
            return history.resolve(f"{branch}@{ref.commit}")
        except RefNotFound:
            pass
    return history.resolve(commit)


def _dropped(name: str) -> MergeConflict:
    return MergeConflict(
        ConflictKind.SCHEMA, name, None, f"The type {name} was dropped by a later commit."
    )


def _orphans(work: Work, removed: dict[str, list[str]]) -> Iterator[Violation]:
    """Edges that would lose a node. Whether they go too is for the user to decide."""
    catalog = work.snapshot.catalog
    for edge in catalog.edges:
        for end, node in ends_of(catalog, edge):
            ids = removed.get(node.name)
            if not ids:
                continue
            view = work.read(edge)
            found = view.find((end,), ids, work.ledger)
            parts = [view.overlay.rows.take(pa.array(found.pending)).select(["id", end])]
            if len(found.addresses):
                parts.append(view.take(np.unique(found.addresses), ["id", end], work.ledger))
            for row in pa.concat_tables(parts).to_pylist():
                yield describe(Orphans(node, edge, end), {"id": row["id"], "node": row[end]})
