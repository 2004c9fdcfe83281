"""Owns one load from its pinned base to its commit, whatever engine reads and resolves it. If
another writer was faster, everything from the check on is repeated."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import replace
from typing import Generic

from omnigraph.engine import branches_and_tags
from omnigraph.engine.graph_view import as_seen, full_view_of
from omnigraph.engine.history.refs import History
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.phases import H, LoadEngine, Pinned, ReadRows, Resolved
from omnigraph.engine.load.rejected import rejected_rows
from omnigraph.engine.load.repeated import load_lineage, published_commit, repeated_load
from omnigraph.engine.load.result import LoadResult
from omnigraph.engine.session import Session
from omnigraph.engine.write.precondition import pin_commit
from omnigraph.engine.write.publisher import publish, require_unprotected
from omnigraph.errors import BranchExists, BranchMoved, BranchNotFound, OmnigraphError
from omnigraph.model.catalog import EdgeType
from omnigraph.model.changes import TypeCounts
from omnigraph.model.options import CommitOptions
from omnigraph.model.refs import check_branch_name
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.plan.publish import PublishPlan, TableAction
from omnigraph.plan.rules.book import describe_added
from omnigraph.runtime import reach
from omnigraph.telemetry import Ledger


class Load(Generic[H]):
    """A load as the publisher sees it. Its phases are values that replace each other: `_pinned`,
    `_read`, `_resolved`, `plan`."""

    plan: PublishPlan
    _pinned: Pinned
    _read: ReadRows[H]
    _resolved: Resolved

    def __init__(
        self, session: Session, options: LoadOptions, engine: LoadEngine[H], ledger: Ledger
    ) -> None:
        self._session = session
        self._options = options
        self._engine = engine
        self._ledger = ledger

    @property
    def base(self) -> GraphVersion:
        return self._pinned.base.graph_version

    def run(self, reason: str) -> LoadResult:
        with self._engine.running():
            done = repeated_load(self._session, self._options, self._ledger)
            return self._run(reason) if done is None else done

    def _run(self, reason: str) -> LoadResult:
        self._pinned = self._engine.pin(self._pin(self._engine.remaining_options(self._options)))
        options = self._pinned.options
        seen = replace(self._pinned, base=as_seen(self._pinned.base))
        self._read = self._engine.read(seen)
        self._require_types()
        reach("load read")
        self._resolve()
        commit = None
        if self._resolved.actions:
            if options.create_branch_from is not None:
                self._create_branch(options.create_branch_from)
            commit = self._publish()
        read, resolved = self._read, self._resolved
        return LoadResult(
            branch=options.branch,
            mode=options.mode,
            commit=commit,
            counts=_counts(resolved.actions),
            engine=self._engine.name,
            reason=reason,
            rejected=rejected_rows(
                self._engine.spool,
                [*read.rejects, *resolved.rejects],
                [*read.files, *resolved.files],
            ),
            advice=self._advice() if commit is not None else (),
            io=self._ledger,
        )

    def _advice(self) -> tuple[str, ...]:
        """Edges that nothing can recognize are new in every merge."""
        if self._pinned.mode != "merge":
            return ()
        given = self._read.types.values()
        edges = [(t.kind, t.left) for t in given if t.generated and not t.kind.key and t.left]
        return tuple(describe_added(kind, n) for kind, n in edges if isinstance(kind, EdgeType))

    def _require_types(self) -> None:
        """Asks before anything is compared with what is there: a refusal would tell of it."""
        permissions, catalog = self._session.permissions, self._pinned.base.catalog
        for rows in self._read.types.values():
            overwrites = self._pinned.mode == "overwrite"
            permissions.require_write(catalog, rows.kind, deletes=overwrites)

    def _pin(self, options: LoadOptions) -> Pinned:
        """Finds the base that everything is checked against."""
        session, ledger = self._session, self._ledger
        lineage = load_lineage(session, options)
        if options.create_branch_from is not None:
            check_branch_name(options.branch)
            try:
                session.live_head(options.branch, ledger)
            except BranchNotFound:
                pass
            else:
                raise BranchExists(
                    f"The branch {options.branch!r} is there already; load into it without "
                    "create_branch_from, or choose another name."
                )
            head = History(session, ledger).resolve(options.create_branch_from)
            held = session
        else:
            head = session.live_head(options.branch, ledger)
            held = session.holding(options.branch, head.incarnation)
        if_commit = pin_commit(session, head, options.commit, ledger)
        if options.create_branch_from is None:
            require_unprotected(head, lineage.kind)
        return Pinned(held, options, lineage, full_view_of(session, head, ledger), if_commit)

    def _resolve(self, *, replanned: bool = False) -> None:
        self._resolved = self._engine.resolve(self._pinned, self._read, replanned=replanned)
        self.plan = self._make_plan()

    def _make_plan(self) -> PublishPlan:
        pinned, resolved = self._pinned, self._resolved
        version = pinned.base.graph_version
        return PublishPlan(
            branch=pinned.options.branch,
            base_version=version.version,
            base_incarnation=version.incarnation,
            actions=resolved.actions,
            lineage=pinned.lineage,
            checks={table: version.pins[table].content for table in resolved.checks},
            if_commit=None if pinned.options.create_branch_from else pinned.if_commit,
        )

    def _create_branch(self, source: str) -> None:
        """Creates the branch once nothing can be wrong with the rows any more. If its source has
        moved since they were checked, they are checked again."""
        options, checked = self._pinned.options, self.base
        self._engine.creating(options.branch)
        made = branches_and_tags.create_branch(
            self._pinned.session,
            options.branch,
            source,
            CommitOptions(options.commit.actor, options.commit.message),
            self._ledger,
        )
        session = self._pinned.session.holding(made.branch, made.incarnation)
        head = session.live_head(options.branch, self._ledger)
        base = full_view_of(session, head, self._ledger)
        self._pinned = replace(self._pinned, session=session, base=base)
        if (head.pins, head.catalog) == (checked.pins, checked.catalog):
            self.plan = self._make_plan()
        else:
            try:
                self._resolve()
            except BaseException:
                self._delete_branch()
                raise
        reach("branch created")

    def _delete_branch(self) -> None:
        """Deletes the branch that this load created, unless somebody has written to it."""
        options = self._pinned.options
        with contextlib.suppress(BranchMoved):  # somebody else has deleted it
            branches_and_tags.delete_branch(
                self._pinned.session,
                options.branch,
                CommitOptions(options.commit.actor),
                self._ledger,
            )

    def _publish(self) -> Commit:
        self._engine.note(self.plan)
        self._engine.report("publishing")
        session, options = self._pinned.session, self._pinned.options
        try:
            patience = options.commit.patience(session.settings.retry_for)
            published = publish(session, self, self._ledger, retry_for=patience)
        except OmnigraphError as error:
            if options.create_branch_from is not None and error.applied is False:
                self._delete_branch()
            raise
        if published.version is not None:
            return published.version.commit
        # Another process with the same key was faster.
        head = session.live_head(options.branch, self._ledger)
        return published_commit(session, published, head, self._ledger)

    # What the publisher asks for

    def replan(self, head: GraphVersion) -> None:
        base = full_view_of(self._pinned.session, head, self._ledger)
        self._pinned = replace(self._pinned, base=base)
        self._resolve(replanned=True)
        self._engine.note(self.plan)

    def stale(self, head: GraphVersion) -> bool:
        """Whether staged files may be gone now, or soon (hazard 7). Then they are forgotten."""
        if not self._engine.outlived(head):
            return False
        self._engine.renew()
        return True


def _counts(actions: Sequence[TableAction]) -> dict[str, TypeCounts]:
    counts: dict[str, TypeCounts] = {}
    for action in actions:
        name = action.table.split(":", 1)[1]
        name = action.table if name in counts else name
        fields = {f: getattr(action, f, 0) for f in ("inserted", "updated", "deleted", "rows")}
        rows = fields.pop("rows")
        fields["inserted"] = fields["inserted"] or rows
        counts[name] = TypeCounts(**fields)
    return counts
