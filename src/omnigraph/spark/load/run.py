"""Owns a load on Spark: executors read, shape, check, join and stage; this process pins the base,
decides, and publishes once for all types, on the same way as a load of one process."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from omnigraph.engine.aftermath import after_commit
from omnigraph.engine.graph_view import GraphView, view_of
from omnigraph.engine.load.bulk import BulkLoad, LoadOptions, refuse_load, repeated_load
from omnigraph.engine.load.indexing import prepare_indexes
from omnigraph.engine.load.rejected import RejectedRows, rejects_table
from omnigraph.engine.load.result import LoadResult
from omnigraph.engine.session import Session
from omnigraph.engine.write.durability import sync_actions
from omnigraph.errors import (
    BranchNotFound,
    Conflict,
    Denied,
    Invalid,
    JobRunning,
    OutcomeUnknown,
)
from omnigraph.model.catalog import encode_catalog
from omnigraph.model.version import GraphVersion
from omnigraph.plan.load.places import Reject
from omnigraph.runtime import reach
from omnigraph.spark.cluster import is_remote, passing_spool, require_executors, require_reachable
from omnigraph.spark.load.actions import stage_type
from omnigraph.spark.load.checks import all_checks
from omnigraph.spark.load.frame_sources import LoadSource, call_parts, find_frame_sources, kind_of
from omnigraph.spark.load.heartbeat import CREATES, JobHeartbeat
from omnigraph.spark.load.index import index_tables_on
from omnigraph.spark.load.job import Job, claim_job, forget_job, start_over
from omnigraph.spark.load.journal import Journal, digest
from omnigraph.spark.load.meter import Meter, watched_tasks
from omnigraph.spark.load.outcome import Outcome, base_of
from omnigraph.spark.load.pieces import Spool
from omnigraph.spark.load.reading import read_sources
from omnigraph.spark.load.rejected_files import RejectedFile, read_rejected_file
from omnigraph.spark.load.shape import ShapeJob
from omnigraph.spark.load.state import SparkState, TypePieces
from omnigraph.spark.tasks import ending_jobs
from omnigraph.telemetry import Ledger


def load(
    spark: Any, session: Session, source: Any, options: LoadOptions, reason: str
) -> LoadResult:
    if (done := repeated_load(session, options, Ledger())) is not None:
        if options.job is not None:
            forget_job(session, options.job)
        return replace(done, engine=SparkLoad.engine)
    sources = find_frame_sources(source, options.type, options.mapping)
    require_reachable(spark, session.root)
    require_executors(spark)
    operation = session.runtime.ulid()
    if options.job is not None:
        call = [call_parts(source) for source in sources]
        asked = [options.mode, options.branch, options.create_branch_from, options.on_error]
        job = claim_job(session, options.job, digest(call, asked))
        with ending_jobs(spark, operation):
            return SparkLoad(spark, session, sources, options, job.spool, job).run(reason)
    with (
        passing_spool(session, operation, remote=is_remote(spark)) as spool,
        ending_jobs(spark, operation),
    ):
        return SparkLoad(spark, session, sources, options, spool, None).run(reason)


class SparkLoad(BulkLoad):
    """A load on Spark; with a job one that goes on from what an earlier run of it left."""

    engine = "spark"

    def __init__(
        self,
        spark: Any,
        session: Session,
        sources: list[LoadSource],
        options: LoadOptions,
        spool: Spool,
        job: Job | None,
    ) -> None:
        sizes = [source.size for source in sources]
        total = None if None in sizes else sum(size or 0 for size in sizes)
        super().__init__(session, options, [source.label for source in sources], total)
        self._spark = spark
        self._sources = sources
        self._spool = spool
        self._job = job
        self._journal: Journal | None = None
        self._types: dict[str, TypePieces] = {}
        self._rejects: list[Reject] = []
        self._more = 0
        self._checked: list[Reject] = []
        self._aside: list[RejectedFile] = []
        self._checked_aside: list[RejectedFile] = []
        self._state: SparkState | None = None
        self._heartbeat: JobHeartbeat | None = None
        self._meter: Meter | None = None
        if job is not None:
            self._follow(job)

    def _follow(self, job: Job) -> None:
        self._job = job
        self._lineage = msgspec.structs.replace(self._lineage, operation=job.attempt.operation)

    # The life of it

    def run(self, reason: str) -> LoadResult:
        try:
            with self._metered():
                result = super().run(reason)
        except JobRunning:  # it is somebody else's by now, with all that it left
            if self._heartbeat is not None:
                self._heartbeat.end(keep=True)
            raise
        except BaseException as error:
            self._end(lasting=self._may_go_on(error))
            raise
        reach("job published")
        with after_commit("ending a load"):
            self._end(lasting=False)
        return result

    @contextlib.contextmanager
    def _metered(self) -> Iterator[None]:
        if self._options.progress is None:
            yield
            return
        with watched_tasks(self._spark, f"omnigraph-{self._session.runtime.ulid()}") as tasks:
            self._meter = Meter(self._options.progress, tasks, self._session.runtime)
            try:
                yield
            finally:
                self._meter.end()

    def _report(self, stage: str) -> None:
        if self._meter is not None:
            self._meter.begin(stage, self._rows or None, self._bytes, self._total)

    def _may_go_on(self, error: BaseException) -> bool:
        """Nobody knows whether it landed; or it is a job, and running it again may help."""
        if isinstance(error, OutcomeUnknown):
            return True
        wrong = isinstance(error, Invalid | Denied)
        return self._job is not None and not wrong

    def _end(self, *, lasting: bool) -> None:
        if self._heartbeat is not None:
            self._heartbeat.end(keep=lasting)
        if self._job is None:
            return
        if lasting and (self._heartbeat is not None or self._job.intent is not None):
            self._job.release()
            return
        if self._heartbeat is None and self._job.intent is not None:
            JobHeartbeat.forget(self._session, self._job.intent)
        self._job.remove()

    def _pin(self) -> GraphView:
        """A job that goes on rests on the version that it began with: what it staged fits no
        other. That it has not landed was asked of the newest one."""
        self._use_created_branch()
        head = super()._pin()
        self._base = head
        job = self._job
        if job is None or job.intent is None:
            return head
        base = base_of(self._session, job.intent, head.graph_version, self._ledger)
        if base is None:
            self._follow(start_over(job))
            return head
        return view_of(self._session, base, self._ledger)

    def _use_created_branch(self) -> None:
        """An earlier run of the job may have come to create the branch."""
        options, job = self._options, self._job
        if options.create_branch_from is None or job is None or job.intent is None:
            return
        try:
            self._session.live_head(options.branch, self._ledger)
        except BranchNotFound:
            return
        if job.intent.details.get(CREATES) == options.branch:
            self._options = replace(options, create_branch_from=None)

    def _outlived(self, head: GraphVersion) -> bool:
        """The intent is known to cleanup, so only what it said counts, not how long ago."""
        return self._heartbeat is None or self._heartbeat.since <= head.gc_cutoff

    def replan(self, head: GraphVersion) -> None:
        super().replan(head)
        self._note_plan()

    def _create_branch(self, source: str) -> None:
        if self._heartbeat is not None:
            self._heartbeat.creates(self._options.branch)
        super()._create_branch(source)
        reach("branch created")

    def _publish(self) -> Any:
        self._note_plan()
        return super()._publish()

    def _note_plan(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.require_held()
            self._heartbeat.staged(self.plan)
            reach("plan noted")

    def _forget_files(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.renew()

    # Reading

    def _read(self) -> None:
        self._report("reading")
        options = self._options
        named = options.branch if options.create_branch_from is None else None
        job = self._job
        self._heartbeat = JobHeartbeat(
            self._session,
            self.base,
            actor=options.commit.actor,
            branch=named,
            job=job,
            files=self._spool.prefix if job is None else job.prefix,
        )
        self._journal = None if job is None else job.journal
        catalog = self._base.catalog
        shape = ShapeJob(
            catalog=encode_catalog(catalog),
            names=tuple(self._names),
            complete=self._mode != "merge",
            every=self._every,
            operation=self._lineage.operation,
            spool=self._spool,
        )
        for source in self._sources:
            kind = kind_of(source, self._base)
            if kind is not None:
                self._types.setdefault(kind.table_key, TypePieces(kind))
        read = read_sources(self._spark, self._sources, shape, self._journal)
        for key, pieces in read.pieces.items():
            held = self._types.setdefault(key, TypePieces(catalog.by_key[key]))
            self._types[key] = replace(held, given=tuple(pieces))
        self._rejects, self._aside, self._more = read.rejects, read.aside, read.more
        self._rows, self._bytes = read.rows, read.bytes
        if read.failures:
            raise read.failures[0].error()
        self._halt()
        reach("load read")

    # Checking and staging

    def _resolve(self, snapshot: GraphView) -> None:
        self._report("checking")
        for held in self._types.values():
            if snapshot.catalog.by_key.get(held.kind.table_key) != held.kind:
                raise Conflict(f"The schema of {held.kind.name} changed while it was loaded.")
        if not self._recall(snapshot):
            self._check_and_stage(snapshot)
        reach("staged")
        self.plan = self._make_plan(snapshot)

    def _check_and_stage(self, snapshot: GraphView) -> None:
        assert self._heartbeat is not None
        self._state = state = SparkState(
            spark=self._spark,
            session=self._session,
            snapshot=snapshot,
            mode=self._mode,
            types=dict(self._types),
            spool=self._spool,
            names=tuple(self._names),
            every=self._every,
            journal=self._journal,
            round=self._heartbeat.round,
        )
        for _ in all_checks(state):
            self._halt()
        reach("load checked")
        self._heartbeat.require_held()
        self._report("writing")
        self._actions = [
            stage_type(state, held.kind)
            for held in state.types.values()
            if state.left(held.kind) or state.replaced(held.kind)
        ]
        reach("rows staged")
        if not self._replanned:
            self._report("indexing")
            build = partial(index_tables_on, self._spark, self._session.root)
            self._actions = prepare_indexes(
                self._session, snapshot, self._actions, self._ledger, build=build
            )
        self._checks = state.checks
        self._checked, self._checked_aside = state.rejects, state.aside
        self._note(snapshot)

    def _outcome_name(self, snapshot: GraphView) -> str:
        assert self._heartbeat is not None
        token, number = snapshot.graph_version.token, self._heartbeat.round
        return f"outcome-{digest(token, number, self._replanned)}"

    def _recall(self, snapshot: GraphView) -> bool:
        """What an earlier run has decided and staged on this very base."""
        if self._journal is None:
            return False
        held = self._journal.recall(self._outcome_name(snapshot), Outcome)
        if held is None:
            return False
        (outcome,) = held
        self._actions, self._checks = list(outcome.actions), set(outcome.checks)
        self._checked, self._checked_aside = list(outcome.rejects), list(outcome.aside)
        return True

    def _note(self, snapshot: GraphView) -> None:
        if self._journal is None:
            return
        sync_actions(self._session, snapshot.graph_version, self._actions, self._ledger)
        outcome = Outcome(
            actions=tuple(self._actions),
            checks=tuple(sorted(self._checks)),
            rejects=tuple(self._checked),
            aside=tuple(self._checked_aside),
        )
        self._journal.note(self._outcome_name(snapshot), [outcome], Outcome)

    def _told(self) -> list[Reject]:
        return self._rejects + self._checked

    def _put_aside(self) -> Sequence[Reject]:
        """Many of them never come to be in the memory of this process."""
        files = [*self._aside, *self._checked_aside]
        if not files:
            return tuple(self._told())
        written = (read_rejected_file(self._spool, file) for file in files)
        return RejectedRows(chain([rejects_table(self._told())], written))

    def _halt(self) -> None:
        """Ends the load at the first stage that refuses anything, unless rows are put aside."""
        rejects = self._rejects + ([] if self._state is None else self._state.rejects)
        unblamed = [] if self._state is None else self._state.unblamed
        more = self._more + (0 if self._state is None else self._state.more)
        refuse_load([] if self._every else rejects, unblamed, more, self._names)
