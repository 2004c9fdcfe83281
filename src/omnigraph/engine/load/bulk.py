"""Owns what every load has in common, wherever its rows are: its options, the base that it is
checked against, and its commit."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from omnigraph.engine import names
from omnigraph.engine.graph_view import GraphView, view_of
from omnigraph.engine.history.refs import History
from omnigraph.engine.load.result import LoadResult, OnLoadProgress, Progress
from omnigraph.engine.load.state import TOLD, Mode
from omnigraph.engine.session import Session, hash_call
from omnigraph.engine.write.precondition import pin_commit
from omnigraph.engine.write.published import Published, hash_key, recall
from omnigraph.engine.write.publisher import publish, require_unprotected
from omnigraph.errors import (
    BranchExists,
    BranchMoved,
    BranchNotFound,
    IdempotencyMismatch,
    InvalidArgument,
    InvalidData,
    OmnigraphError,
)
from omnigraph.model.changes import TypeCounts
from omnigraph.model.options import NO_OPTIONS, CommitOptions
from omnigraph.model.refs import check_branch_name
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.model.violation import Violation
from omnigraph.model.words import plain_words, read_word
from omnigraph.plan.digest import digest_values
from omnigraph.plan.load.places import Reject, SourceName, to_violation
from omnigraph.plan.publish import Lineage, PublishPlan, TableAction
from omnigraph.store.objects import Absent
from omnigraph.telemetry import Ledger


@dataclass(frozen=True, kw_only=True)
class LoadOptions:
    """What `Graph.load` was asked for, beside the source."""

    type: str | None = None
    mode: str = "append"
    branch: str = "main"
    create_branch_from: str | None = None
    mapping: Any = None
    on_error: str = "abort"
    engine: str = "auto"
    progress: OnLoadProgress | None = field(default=None, repr=False)
    commit: CommitOptions = NO_OPTIONS
    stream: tuple[str, int] | None = None
    job: str | None = None
    names: tuple[str, ...] = ()
    """The files as they were named; what is no file has no name to be told apart by."""

    def __post_init__(self) -> None:
        plain_words(self)
        if self.job is not None and self.commit.idempotency_key is not None:
            raise InvalidArgument(
                "A job is known by its name: give `job` or `idempotency_key`, not both."
            )
        if self.stream is not None:
            stream, batch = self.stream
            read_word("stream_id", stream)
            if not isinstance(batch, int) or not 0 <= batch < 2**63:
                raise InvalidArgument(f"The batch of a stream is a number, not {batch!r}.")

    @property
    def key(self) -> str | None:
        """The hash of what must not be loaded twice: the name of a job is such a key too."""
        if self.job is not None:
            return hash_call(f"job/{self.job}")
        return hash_key(self.commit.idempotency_key)


class BulkLoad(ABC):
    """A load as the publisher sees it. What is left to an engine: to read its sources once, and
    to check what was read against a snapshot and stage it, once for each base."""

    engine: ClassVar[str]
    plan: PublishPlan
    _base: GraphView

    def __init__(
        self,
        session: Session,
        options: LoadOptions,
        names: list[SourceName],
        total_bytes: int | None = None,
    ) -> None:
        self._session = session
        self._options = options
        self._mode: Mode = options.mode  # type: ignore[assignment]
        self._every = options.on_error == "quarantine"
        self._ledger = Ledger()
        self._names = names
        self._total = total_bytes
        self._rows = 0
        self._bytes = 0
        self._replanned = False
        self._pinned: str | None = None
        self._actions: list[TableAction] = []
        self._checks: set[str] = set()
        self._lineage = _lineage(session, options)

    @property
    def base(self) -> GraphVersion:
        return self._base.graph_version

    @abstractmethod
    def _read(self) -> None:
        """Reads and shapes everything, once."""

    @abstractmethod
    def _resolve(self, snapshot: GraphView) -> None:
        """Checks everything against a snapshot and stages it: sets the actions, the tables that
        decisions rest on, and the plan."""

    @abstractmethod
    def _told(self) -> list[Reject]:
        """The rows that are put aside."""

    @abstractmethod
    def _outlived(self, head: GraphVersion) -> bool:
        """Whether a cleanup that this head knows of may have taken what was staged."""

    @abstractmethod
    def _forget_files(self) -> None:
        """What was staged may be gone by now."""

    def _put_aside(self) -> Sequence[Reject]:
        return tuple(self._told())

    def run(self, reason: str) -> LoadResult:
        if (done := repeated_load(self._session, self._options, self._ledger)) is not None:
            return done
        self._base = self._pin()
        options = self._options  # a job that goes on finds the branch that it created
        self._read()
        self._resolve(self._base)
        commit = None
        if self._actions:
            if options.create_branch_from is not None:
                self._create_branch(options.create_branch_from)
            commit = self._publish()
        return LoadResult(
            branch=options.branch,
            mode=options.mode,
            commit=commit,
            counts=_counts(self._actions),
            engine=self.engine,
            reason=reason,
            rejected=self._put_aside(),
            io=self._ledger,
        )

    def _pin(self) -> GraphView:
        """The base that everything is checked against."""
        options, session = self._options, self._session
        name = options.branch
        if options.create_branch_from is not None:
            name = options.create_branch_from
            check_branch_name(options.branch)
            try:
                session.live_head(options.branch, self._ledger)
            except BranchNotFound:
                pass
            else:
                raise BranchExists(
                    f"The branch {options.branch!r} is there already; load into it without "
                    "create_branch_from, or choose another name."
                )
            head = History(session, self._ledger).resolve(name)
        else:
            head = session.live_head(name, self._ledger)
            self._session = session.holding(name, head.incarnation)
        self._pinned = pin_commit(session, head, options.commit, self._ledger)
        if options.create_branch_from is None:
            require_unprotected(head, self._lineage.kind)
        return view_of(session, head, self._ledger)

    # Publishing

    def _make_plan(self, snapshot: GraphView) -> PublishPlan:
        pins = snapshot.graph_version.pins
        return PublishPlan(
            branch=self._options.branch,
            base_version=snapshot.version,
            base_incarnation=snapshot.graph_version.incarnation,
            actions=tuple(self._actions),
            lineage=self._lineage,
            checks={table: pins[table].content for table in self._checks},
            if_commit=None if self._options.create_branch_from else self._pinned,
        )

    def _create_branch(self, source: str) -> None:
        """The branch is made when nothing can be wrong with the rows any more, unless its source
        has moved since they were checked: then they are checked again."""
        checked = self.base
        made = names.create_branch(
            self._session,
            self._options.branch,
            source,
            CommitOptions(self._options.commit.actor, self._options.commit.message),
            self._ledger,
        )
        self._session = self._session.holding(made.branch, made.incarnation)
        head = self._session.live_head(self._options.branch, self._ledger)
        self._base = view_of(self._session, head, self._ledger)
        if (head.pins, head.catalog) == (checked.pins, checked.catalog):
            self.plan = self._make_plan(self._base)
            return
        try:
            self._resolve(self._base)
        except BaseException:
            self._delete_branch()
            raise

    def _delete_branch(self) -> None:
        """The branch that this load made, and that nothing came to."""
        options = self._options
        with contextlib.suppress(BranchMoved):  # somebody else has deleted it
            names.delete_branch(
                self._session, options.branch, CommitOptions(options.commit.actor), self._ledger
            )

    def _publish(self) -> Any:
        self._report("publishing")
        try:
            patience = self._options.commit.patience(self._session.settings.retry_for)
            published = publish(self._session, self, self._ledger, retry_for=patience)
        except OmnigraphError as error:
            if self._options.create_branch_from is not None and error.applied is False:
                self._delete_branch()
            raise
        if published.version is not None:
            return published.version.commit
        # Another process with the same key was faster.
        head = self._session.live_head(self._options.branch, self._ledger)
        return _commit_of(self._session, published, head, self._ledger)

    def replan(self, head: GraphVersion) -> None:
        self._replanned = True  # whoever waits behind this load does not wait for its indexes
        self._base = view_of(self._session, head, self._ledger)
        self._resolve(self._base)

    def stale(self, head: GraphVersion) -> bool:
        """What was staged may be gone by now, or soon (hazard 7): then it is forgotten."""
        if not self._outlived(head):
            return False
        self._forget_files()
        return True

    def _report(self, stage: str) -> None:
        if self._options.progress is not None:
            self._options.progress(Progress(stage, self._rows, self._bytes, self._total))


def _lineage(session: Session, options: LoadOptions) -> Lineage:
    return Lineage(
        kind="load",
        operation=session.runtime.ulid(),
        actor=options.commit.actor,
        message=options.commit.message,
        key=options.key,
        call=digest_values([options.type, options.mode, options.branch, *options.names]),
        stream=None if options.stream is None else hash_call(options.stream[0]),
        batch=0 if options.stream is None else options.stream[1],
    )


def repeated_load(session: Session, options: LoadOptions, ledger: Ledger) -> LoadResult | None:
    """What is answered to a load with the key of an earlier one, or of the same batch of a stream:
    before its source is looked at, or anything else."""
    if options.key is None and options.stream is None:
        return None
    try:
        head = session.live_head(options.branch, ledger)
    except BranchNotFound:
        return None
    try:
        known = recall(session, _lineage(session, options), head, ledger)
    except IdempotencyMismatch as error:
        if options.job is None:
            raise
        raise IdempotencyMismatch(
            f"The job {options.job!r} has loaded something else.",
            help="Nothing was changed; give a new load a new name.",
        ) from error
    if known is None:
        return None
    return LoadResult(
        branch=options.branch,
        mode=options.mode,
        commit=_commit_of(session, known, head, ledger),
        counts={},
        engine="spark" if options.engine == "spark" else "local",
        reason="it was loaded before",
        repeated=True,
        io=ledger,
    )


def _commit_of(session: Session, known: Published, head: GraphVersion, ledger: Ledger) -> Commit:
    """The commit of a batch is on this branch, or on the one that it was made from. If nothing is
    left there but its id, that is what there is to tell."""
    if known.first is not None:
        return known.first.commit
    marks = [mark for mark in head.streams.values() if mark.commit == known.commit]
    for mark in marks:
        with contextlib.suppress(Absent):
            held = session.read_record(head.branch, mark.version, ledger).commit
            if held.id == mark.commit:
                return held
    with contextlib.suppress(OmnigraphError):
        return History(session, ledger).resolve(known.commit).commit
    return Commit(id=known.commit, parents=(), kind="load", created_at=0, operation="")


def refuse_load(
    rejects: Sequence[Reject],
    unblamed: Sequence[Violation],
    more: int,
    names: Sequence[SourceName],
) -> None:
    """Ends a load that has rows to refuse, or that no single row is to blame for, with everything
    that it can name."""
    violations = [to_violation(reject, names) for reject in rejects[:TOLD]] + list(unblamed)
    if not violations:
        return
    more += max(len(rejects) - TOLD, 0)
    rest = len(violations) - 1 + more
    at = {"source": rejects[0].source, "line": rejects[0].line} if rejects else {}
    raise InvalidData(
        violations[0].message + (f" (and {rest} more)" if rest else ""),
        violations=violations,
        more=more,
        **at,
    )


def _counts(actions: list[TableAction]) -> dict[str, TypeCounts]:
    counts: dict[str, TypeCounts] = {}
    for action in actions:
        name = action.table.split(":", 1)[1]
        name = action.table if name in counts else name
        given = {f: getattr(action, f, 0) for f in ("inserted", "updated", "deleted", "rows")}
        rows = given.pop("rows")
        given["inserted"] = given["inserted"] or rows
        counts[name] = TypeCounts(**given)
    return counts
