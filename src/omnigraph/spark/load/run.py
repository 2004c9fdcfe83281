"""Owns the engine of a load on Spark: executors read, shape, check, join and stage. This process
decides, and keeps what the next run of a job needs to continue."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from omnigraph.engine.after_commit import after_commit
from omnigraph.engine.graph_view import full_view_of
from omnigraph.engine.load.checks import check_load
from omnigraph.engine.load.indexing import prepare_indexes
from omnigraph.engine.load.operation import Load
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.phases import Pinned, ReadRows, Resolved, require_kinds
from omnigraph.engine.load.repeated import repeated_load
from omnigraph.engine.load.result import LoadResult
from omnigraph.engine.load.spool import Spool
from omnigraph.engine.load.state import refuse_load
from omnigraph.engine.session import Session
from omnigraph.engine.write.durability import sync_actions
from omnigraph.errors import BranchNotFound, Denied, Invalid, JobRunning, OutcomeUnknown
from omnigraph.model.catalog import encode_catalog
from omnigraph.model.version import GraphVersion
from omnigraph.plan.publish import PublishPlan
from omnigraph.runtime import reach
from omnigraph.spark.cluster import is_remote, passing_spool, require_executors, require_reachable
from omnigraph.spark.load.actions import stage_type
from omnigraph.spark.load.frame_sources import LoadSource, call_parts, find_frame_sources, kind_of
from omnigraph.spark.load.heartbeat import CREATES, JobHeartbeat
from omnigraph.spark.load.index import index_tables_on
from omnigraph.spark.load.job import Job, base_of, begin_or_resume_job, forget_job, start_over
from omnigraph.spark.load.journal import Journal, digest
from omnigraph.spark.load.progress import Meter, watched_tasks
from omnigraph.spark.load.reading import read_sources
from omnigraph.spark.load.relations import SparkRelations
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
        return replace(done, engine=SparkEngine.name)
    sources = find_frame_sources(source, options.type, options.mapping)
    require_reachable(spark, session.root)
    require_executors(spark)
    operation = session.runtime.ulid()
    if options.job is not None:
        call = [call_parts(source) for source in sources]
        asked = [options.mode, options.branch, options.create_branch_from, options.on_error]
        job = begin_or_resume_job(session, options.job, digest(call, asked))
        with ending_jobs(spark, operation):
            return _run(spark, session, sources, options, job.spool, job, reason)
    with (
        passing_spool(session, operation, remote=is_remote(spark)) as spool,
        ending_jobs(spark, operation),
    ):
        return _run(spark, session, sources, options, spool, None, reason)


def _run(
    spark: Any,
    session: Session,
    sources: list[LoadSource],
    options: LoadOptions,
    spool: Spool,
    job: Job | None,
    reason: str,
) -> LoadResult:
    ledger = Ledger()
    engine = SparkEngine(spark, session, sources, options, spool, job, ledger)
    return Load(session, options, engine, ledger).run(reason)


class SparkEngine:
    """The `LoadEngine` on Spark. With a job, it continues from what an earlier run left."""

    name = "spark"

    def __init__(
        self,
        spark: Any,
        session: Session,
        sources: list[LoadSource],
        options: LoadOptions,
        spool: Spool,
        job: Job | None,
        ledger: Ledger,
    ) -> None:
        sizes = [source.size for source in sources]
        self.spool = spool
        self._spark = spark
        self._session = session
        self._sources = sources
        self._options = options
        self._ledger = ledger
        self._names = tuple(source.label for source in sources)
        self._total = None if None in sizes else sum(size or 0 for size in sizes)
        self._every = options.on_error == "quarantine"
        self._read_counts = (0, 0)
        self._job = job
        self._journal: Journal | None = None
        self._heartbeat: JobHeartbeat | None = None
        self._meter: Meter | None = None

    # The life of it

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        try:
            with self._metered():
                yield
        except JobRunning:  # somebody else has taken it over, with all that it left
            if self._heartbeat is not None:
                self._heartbeat.end(keep=True)
            raise
        except BaseException as error:
            self._end(lasting=self._may_go_on(error))
            raise
        reach("job published")
        with after_commit("ending a load"):
            self._end(lasting=False)

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

    def report(self, stage: str) -> None:
        if self._meter is not None:
            rows, size = self._read_counts
            self._meter.begin(stage, rows or None, size, self._total)

    def _may_go_on(self, error: BaseException) -> bool:
        """Whether it is unknown if the load landed, or it is a job, so that running it again may
        help."""
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

    def remaining_options(self, options: LoadOptions) -> LoadOptions:
        """An earlier run of the job may have created the branch."""
        job = self._job
        if options.create_branch_from is None or job is None or job.intent is None:
            return options
        try:
            self._session.live_head(options.branch, self._ledger)
        except BranchNotFound:
            return options
        if job.intent.details.get(CREATES) != options.branch:
            return options
        return replace(options, create_branch_from=None)

    def pin(self, pinned: Pinned) -> Pinned:
        """A resumed job depends on the version with which it began, because its staged files fit no
        other. The newest version has shown that it has not landed."""
        if self._job is None:
            return pinned
        base = pinned.base
        if self._job.intent is not None:
            session, head = pinned.session, pinned.base.graph_version
            earlier = base_of(session, self._job.intent, head, self._ledger)
            if earlier is None:
                self._job = start_over(self._job)
            else:
                base = full_view_of(session, earlier, self._ledger)
        operation = self._job.attempt.operation
        lineage = msgspec.structs.replace(pinned.lineage, operation=operation)
        return replace(pinned, lineage=lineage, base=base)

    def creating(self, branch: str) -> None:
        if self._heartbeat is not None:
            self._heartbeat.creates(branch)

    def note(self, plan: PublishPlan) -> None:
        if self._heartbeat is not None:
            self._heartbeat.require_held()
            self._heartbeat.staged(plan)
            reach("plan noted")

    def outlived(self, head: GraphVersion) -> bool:
        """Cleanup knows the intent, so only its announcements count, not the age of the files."""
        return self._heartbeat is None or self._heartbeat.since <= head.gc_cutoff

    def renew(self) -> None:
        if self._heartbeat is not None:
            self._heartbeat.renew()

    # Reading

    def read(self, pinned: Pinned) -> ReadRows[TypePieces]:
        self.report("reading")
        options, job = pinned.options, self._job
        self._heartbeat = JobHeartbeat(
            pinned.session,
            pinned.base.graph_version,
            actor=options.commit.actor,
            branch=options.branch if options.create_branch_from is None else None,
            job=job,
            files=self.spool.prefix if job is None else job.prefix,
        )
        self._journal = None if job is None else job.journal
        catalog = pinned.base.catalog
        shape = ShapeJob(
            catalog=encode_catalog(catalog),
            names=self._names,
            complete=pinned.mode != "merge",
            every=self._every,
            operation=pinned.lineage.operation,
            spool=self.spool,
        )
        types: dict[str, TypePieces] = {}
        for source in self._sources:
            kind = kind_of(source, pinned.base)
            if kind is not None:
                types.setdefault(kind.table_key, TypePieces(kind))
        read = read_sources(self._spark, self._sources, shape, self._journal)
        for key, pieces in read.pieces.items():
            types[key] = TypePieces(catalog.by_key[key], tuple(pieces))
        self._read_counts = (read.rows, read.bytes)
        if read.failures:
            raise read.failures[0].error()
        refuse_load([] if self._every else read.rejects, [], read.more, self._names)
        return ReadRows(types, tuple(read.rejects), tuple(read.aside))

    # Checking and staging

    def resolve(self, pinned: Pinned, read: ReadRows[TypePieces], *, replanned: bool) -> Resolved:
        self.report("checking")
        require_kinds(pinned.base, [rows.kind for rows in read.types.values()])
        assert self._heartbeat is not None
        token, number = pinned.base.graph_version.token, self._heartbeat.round
        name = f"outcome-{digest(token, number, replanned)}"
        earlier = None if self._journal is None else self._journal.recall(name, Resolved)
        if self._journal is not None and earlier is not None:
            # The decisions and staged files of an earlier run on this very base.
            resolved = self._journal.only(name, earlier)
        else:
            resolved = self._check_and_stage(pinned, read, replanned=replanned)
            if self._journal is not None:
                version = pinned.base.graph_version
                sync_actions(pinned.session, version, resolved.actions, self._ledger)
                self._journal.note(name, [resolved], Resolved)
        reach("staged")
        return resolved

    def _check_and_stage(
        self, pinned: Pinned, read: ReadRows[TypePieces], *, replanned: bool
    ) -> Resolved:
        assert self._heartbeat is not None
        state = SparkState(
            spark=self._spark,
            session=pinned.session,
            snapshot=pinned.base,
            mode=pinned.mode,
            types=dict(read.types),
            spool=self.spool,
            names=self._names,
            every=self._every,
            ledger=self._ledger,
            journal=self._journal,
            round=self._heartbeat.round,
        )
        check_load(SparkRelations(state))
        reach("load checked")
        self._heartbeat.require_held()
        self.report("writing")
        actions = [
            stage_type(state, held.kind)
            for held in state.types.values()
            if held.left or state.replaced(held.kind)
        ]
        reach("rows staged")
        if not replanned:
            self.report("indexing")
            build = partial(index_tables_on, self._spark, self._session.root)
            actions = prepare_indexes(
                pinned.session, pinned.base, actions, self._ledger, build=build
            )
        return state.resolved(actions)
