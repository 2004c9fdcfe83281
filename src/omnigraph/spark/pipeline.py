"""Owns a load on Spark: executors read, shape, check, join and stage; this process pins the base,
decides, and publishes once for all types, on the same way as a load of one process."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from omnigraph.engine.load.bulk import BulkLoad, LoadOptions, refusal
from omnigraph.engine.load.indexing import prepare_indexes
from omnigraph.engine.load.result import LoadResult
from omnigraph.engine.load.sources import Source, find_sources
from omnigraph.engine.load.staging import FRAGMENT_ROWS
from omnigraph.engine.load.state import TOLD
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot, find_type
from omnigraph.errors import Conflict, InvalidArgument, OutcomeUnknown, StoreFailure
from omnigraph.model.catalog import GraphType, encode_catalog
from omnigraph.model.version import GraphVersion
from omnigraph.plan.load.places import Reject, SourceName
from omnigraph.plan.publish import Append, Overwrite, TableAction, Update, Upsert
from omnigraph.runtime import reach
from omnigraph.spark.checks import SparkState, TypePieces, all_checks, rows_origins
from omnigraph.spark.index import index_tables_on
from omnigraph.spark.pieces import Spool
from omnigraph.spark.pinned import group_fragments
from omnigraph.spark.session import SHARED, is_local, master_of
from omnigraph.spark.shape import (
    FilePart,
    Shaped,
    ShapeJob,
    plan_parts,
    shape_frame,
    shape_part,
    shape_source,
)
from omnigraph.spark.stage import StagedPieces, StagedRemovals, stage_pieces, stage_removals
from omnigraph.spark.tasks import ANSWERS, Failure, collect_answers, run_tasks
from omnigraph.spark.watch import Watch
from omnigraph.store.roots import Root

_FRAGMENT_BYTES = 512 << 20


@dataclass(frozen=True)
class FrameSource:
    """A DataFrame, all rows of which are of one type."""

    name: str
    frame: Any
    type: str

    @property
    def label(self) -> SourceName:
        return SourceName(self.name, "row")

    size = None


Given = Source | FrameSource


def load(
    spark: Any, session: Session, source: Any, options: LoadOptions, reason: str
) -> LoadResult:
    sources = _sources(source, options)
    remote = is_remote(spark)
    require_reachable(spark, session.root)
    if remote:
        run_tasks(spark, _probe, [0], _Probed)
    operation = session.runtime.ulid()
    with _spool(session, operation, shared=remote) as spool, _cancelled(spark, operation):
        return SparkLoad(spark, session, sources, options, spool).run(reason)


class _Probed(msgspec.Struct, frozen=True):
    """An executor that has what it needs."""

    lance: str


def _probe(_: int) -> Iterator[_Probed]:
    from importlib.metadata import version

    yield _Probed(version("pylance"))  # not there: a ModuleNotFoundError, as importing it


def is_remote(spark: Any) -> bool:
    """Whether executors may be elsewhere than on this machine."""
    return type(spark).__module__.startswith("pyspark.sql.connect") or not is_local(
        master_of(spark)
    )


def require_reachable(spark: Any, root: Root) -> None:
    if root.directory is None or not is_remote(spark):
        return
    if str(spark.conf.get(SHARED, "false")).lower() != "true":
        raise InvalidArgument(
            f"The graph {root.uri} is a directory of this machine, and the executors of "
            f"{master_of(spark) or 'Spark Connect'} may be on others.",
            help=f"If they all see this directory, say so: {SHARED}=true. Else use a root on an "
            "object store, or a local master.",
        )


@contextlib.contextmanager
def _spool(session: Session, operation: str, *, shared: bool) -> Iterator[Spool]:
    """Beside the graph if executors are elsewhere, else in the temporary directory."""
    if shared:
        spool = Spool(session.root, f"__spool/{operation}", session.settings)
        try:
            yield spool
        finally:
            spool.remove()
        return
    directory = Path(tempfile.mkdtemp(prefix="omnigraph-spark-"))
    try:
        yield Spool(Root(str(directory), directory), "pieces", session.settings)
    finally:
        shutil.rmtree(directory, ignore_errors=True)


@contextlib.contextmanager
def _cancelled(spark: Any, operation: str) -> Iterator[None]:
    """Whatever ends the load ends its jobs: Ctrl-C, a refusal, a failure."""
    tag = f"omnigraph-{operation}"
    spark.addTag(tag)
    try:
        yield
    except BaseException:
        spark.interruptTag(tag)
        raise
    finally:
        spark.removeTag(tag)


def _sources(source: Any, options: LoadOptions) -> list[Given]:
    if _is_frame(source):
        if options.type is None or options.mapping is not None:
            raise InvalidArgument(
                "Rows of a DataFrame do not say what they are.",
                help="Give their type: g.load(frame, type='Person'), after you have given the "
                "columns the names of the properties.",
            )
        return [FrameSource("rows", source, options.type)]
    if isinstance(source, Mapping) and source and all(map(_is_frame, source.values())):
        if options.type is not None:
            raise InvalidArgument("Give `type` or DataFrames by type, not both.")
        return [FrameSource(name, frame, name) for name, frame in source.items()]
    return list(find_sources(source, options.type, options.mapping))


def _is_frame(source: Any) -> bool:
    return type(source).__module__.startswith("pyspark.") and hasattr(source, "mapInArrow")


class SparkLoad(BulkLoad):
    """A load on Spark."""

    engine = "spark"

    def __init__(
        self,
        spark: Any,
        session: Session,
        sources: list[Given],
        options: LoadOptions,
        spool: Spool,
    ) -> None:
        sizes = [source.size for source in sources]
        total = None if None in sizes else sum(size or 0 for size in sizes)
        super().__init__(session, options, [source.label for source in sources], total)
        self._spark = spark
        self._sources = sources
        self._spool = spool
        self._types: dict[str, TypePieces] = {}
        self._rejects: list[Reject] = []
        self._more = 0
        self._state: SparkState | None = None
        self._watch: Watch | None = None

    def run(self, reason: str) -> LoadResult:
        unknown = False
        try:
            return super().run(reason)
        except OutcomeUnknown:
            unknown = True
            raise
        finally:
            if self._watch is not None:
                self._watch.end(keep=unknown)

    def stale(self, head: GraphVersion) -> bool:
        """The intent is known to cleanup, so only what it said counts, not how long ago."""
        return self._watch is None or self._watch.since <= head.gc_cutoff

    def replan(self, head: GraphVersion) -> None:
        super().replan(head)
        self._note_plan()

    def _publish(self) -> Any:
        self._note_plan()
        return super()._publish()

    def _note_plan(self) -> None:
        if self._watch is not None:
            self._watch.staged(self.plan)

    def _forget_files(self) -> None:
        """Fragments are staged anew on every base."""

    # Reading

    def _read(self) -> None:
        self._report("reading")
        options = self._options
        named = options.branch if options.create_branch_from is None else None
        self._watch = Watch(self._session, self.base, actor=options.actor, branch=named)
        catalog = self._base.catalog
        job = ShapeJob(
            catalog=encode_catalog(catalog),
            names=tuple(self._names),
            complete=self._mode != "merge",
            every=self._every,
            operation=self._lineage.operation,
            spool=self._spool,
        )
        for source in self._sources:
            kind = _kind_of(source, self._base)
            if kind is not None:
                self._types.setdefault(kind.table_key, TypePieces(kind))
        answers = [*self._files(job), *self._frames(job), *self._streams(job)]
        failures: list[tuple[int, Failure]] = []
        shifts: dict[int, int] = {}
        for number, answer in sorted(answers, key=lambda found: found[0]):
            if answer.failure is not None:
                failures.append((number, answer.failure))
            shift = shifts.get(number, 0)
            shifts[number] = shift + answer.lines
            self._rejects += [replace(r, line=r.line + shift) for r in answer.rejects]
            self._more += answer.more
            self._bytes += answer.bytes
            for piece in answer.pieces:
                self._rows += piece.rows
                held = self._types.setdefault(piece.table, TypePieces(catalog.by_key[piece.table]))
                shifted = msgspec.structs.replace(piece, shift=shift)
                self._types[piece.table] = replace(held, given=(*held.given, shifted))
        if failures:
            raise failures[0][1].error()
        self._halt()
        reach("load read")

    def _files(self, job: ShapeJob) -> list[tuple[int, Shaped]]:
        parts: list[FilePart] = []
        for number, source in enumerate(self._sources):
            if isinstance(source, Source) and source.path is not None:
                parts += plan_parts(number, _absolute(source))
        answers = run_tasks(self._spark, partial(shape_part, job), parts, Shaped)
        return [(parts[task].number, answer) for task, answer in answers]

    def _frames(self, job: ShapeJob) -> list[tuple[int, Shaped]]:
        answers: list[tuple[int, Shaped]] = []
        for number, source in enumerate(self._sources):
            if isinstance(source, FrameSource):
                shape = shape_frame(job, number, source.type)
                frame = source.frame.mapInArrow(shape, ANSWERS)
                answers += [(number, answer) for _, answer in collect_answers(frame, Shaped)]
        return answers

    def _streams(self, job: ShapeJob) -> list[tuple[int, Shaped]]:
        return [
            (number, shape_source(job, number, source))
            for number, source in enumerate(self._sources)
            if isinstance(source, Source) and source.path is None
        ]

    # Checking and staging

    def _resolve(self, snapshot: Snapshot) -> None:
        self._report("checking")
        for held in self._types.values():
            if snapshot.catalog.by_key.get(held.kind.table_key) != held.kind:
                raise Conflict(f"The schema of {held.kind.name} changed while it was loaded.")
        self._state = state = SparkState(
            spark=self._spark,
            session=self._session,
            snapshot=snapshot,
            mode=self._mode,
            types=dict(self._types),
            spool=self._spool,
            names=tuple(self._names),
            every=self._every,
        )
        for _ in all_checks(state):
            self._halt()
        reach("load checked")
        self._report("writing")
        self._staged_at = self._session.runtime.now()
        self._actions = [
            stage_type(state, held.kind)
            for held in state.types.values()
            if state.left(held.kind) or state.replaced(held.kind)
        ]
        if not self._replanned:
            self._report("indexing")
            build = partial(index_tables_on, self._spark, self._session.root.uri)
            self._actions = prepare_indexes(
                self._session, snapshot, self._actions, self._ledger, build=build
            )
        reach("staged")
        self._checks = state.checks
        self.plan = self._make_plan(snapshot)

    def _told(self) -> list[Reject]:
        return self._rejects + ([] if self._state is None else self._state.rejects)

    def _halt(self) -> None:
        """Ends the load at the first stage that refuses anything, unless rows are put aside."""
        rejects = self._told()
        if self._every or not rejects:
            return
        more = self._more + (0 if self._state is None else self._state.more)
        raise refusal(rejects[:TOLD], more + max(len(rejects) - TOLD, 0), self._names)


def _kind_of(source: Given, snapshot: Snapshot) -> GraphType | None:
    if isinstance(source, FrameSource):
        return find_type(snapshot.catalog, source.type)
    return source.kind(snapshot.catalog)


def _absolute(source: Source) -> Source:
    """Executors have working directories of their own."""
    assert source.path is not None
    return replace(source, path=Path(os.path.abspath(source.path)))  # noqa: PTH100


def stage_type(state: SparkState, kind: GraphType) -> TableAction:
    """Writes the rows of a type on executors and says what is to be published."""
    job = state.job(kind)
    # A task holds its rows while it sorts them, so wide rows count for more.
    sizes = [max(p.rows, p.bytes * FRAGMENT_ROWS // _FRAGMENT_BYTES) for p in job.pieces]
    groups = group_fragments(list(enumerate(sizes)), FRAGMENT_ROWS)
    answers = run_tasks(state.spark, partial(stage_pieces, job), groups, StagedPieces)
    staged = [answer for _, answer in answers]
    rows = sum(answer.rows for answer in staged)
    if rows != state.left(kind):
        raise StoreFailure(
            f"Executors staged {rows} rows of {kind.name}, not {state.left(kind)}; nothing was "
            "published."
        )
    fragments = tuple(fragment for answer in staged for fragment in answer.fragments)
    size = sum(answer.bytes for answer in staged)
    table = state.snapshot.view(kind).table
    if state.mode == "overwrite":
        return Overwrite(
            table=kind.table_key,
            base=table.version,
            fragments=fragments,
            rows=rows,
            deleted=table.rows,
            bytes=size,
        )
    removals = _removals(state, kind) if state.mode == "merge" and table.rows else []
    updated = sum(answer.rows for answer in removals)
    if not updated:
        fields = staged[0].fields
        return Append(
            table=kind.table_key, fragments=fragments, fields=fields, rows=rows, bytes=size
        )
    make = Upsert if rows > updated else Update
    return make(
        table=kind.table_key,
        base=table.version,
        updated_fragments=tuple(text for answer in removals for text in answer.updated),
        removed_fragments=tuple(number for answer in removals for number in answer.removed),
        fragments=fragments,
        inserted=rows - updated,
        updated=updated,
        deleted=0,
        bytes=size,
    )


def _removals(state: SparkState, kind: GraphType) -> list[StagedRemovals]:
    """Each fragment of the table that loses rows gets its deletion file from one task."""
    if state.types[kind.table_key].generated:
        return []
    origins = rows_origins(state, kind).selectExpr("shiftright(origin, 32) as part", "origin")
    staged = origins.groupBy("part").applyInArrow(stage_removals(state.job(kind)), ANSWERS)
    return [answer for _, answer in collect_answers(staged, StagedRemovals)]
