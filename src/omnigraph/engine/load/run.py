"""Owns a load from its arguments to its commit: read, check, stage, publish, and all of it again
from the check on when another writer was faster."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.engine import branches
from omnigraph.engine.executors import configured_master, find_executor, registered
from omnigraph.engine.history import History
from omnigraph.engine.load.checks import check_duplicates, check_new, check_rules
from omnigraph.engine.load.completing import Part, complete_merge, system_rows
from omnigraph.engine.load.indexing import prepare_indexes
from omnigraph.engine.load.joins import Joins
from omnigraph.engine.load.reading import Reader
from omnigraph.engine.load.result import LoadResult, OnLoadProgress, Progress, TypeCounts
from omnigraph.engine.load.sources import Source, estimate_rows, find_sources
from omnigraph.engine.load.spool import Room, Spool
from omnigraph.engine.load.staging import StagedFiles, stage_load
from omnigraph.engine.load.state import TOLD, LoadState, Mode, TypeRows
from omnigraph.engine.publisher import Publisher, require_unprotected
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot
from omnigraph.errors import (
    BranchExists,
    BranchNotFound,
    Conflict,
    InvalidArgument,
    InvalidData,
    OmnigraphError,
    PreconditionFailed,
)
from omnigraph.model.catalog import GraphType
from omnigraph.model.version import GraphVersion
from omnigraph.plan.load.choice import LoadFacts, resolve_engine
from omnigraph.plan.load.numbering import number_ids
from omnigraph.plan.load.places import Reject, to_violation
from omnigraph.plan.load.shaping import TypedRows
from omnigraph.plan.publish import Lineage, PublishPlan, TableAction
from omnigraph.runtime import reach
from omnigraph.telemetry import Ledger

_MODES = ("append", "merge", "overwrite")
_ON_ERROR = ("abort", "quarantine")
_ENGINES = ("auto", "local", "spark")
_CHUNK = 16 << 20


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
    actor: str | None = None
    message: str | None = None
    if_commit: str | None = None
    retry_for: float = 30.0


def load(session: Session, source: Any, options: LoadOptions) -> LoadResult:
    _one_of("mode", options.mode, _MODES)
    _one_of("on_error", options.on_error, _ON_ERROR)
    _one_of("engine", options.engine, _ENGINES)
    spark = registered("spark")
    owned = type(source).__module__.startswith("pyspark.")
    sources: list[Source] = []
    if options.engine != "spark" and not owned:
        sources = find_sources(source, options.type, options.mapping)
    # Whoever has not touched Spark does not wait for it to be imported.
    running = spark and "pyspark" in sys.modules and options.engine == "auto"
    facts = LoadFacts(
        rows=estimate_rows(sources) if sources else None,
        spark_source=owned,
        session=running and find_executor("spark").active(),
        master=configured_master(),
    )
    choice = resolve_engine(
        options.engine, facts, spark_rows=session.settings.spark_rows, registered=spark
    )
    if choice.engine == "spark":
        given: Mapping[str, Any] = {
            name: getattr(options, name) for name in LoadOptions.__dataclass_fields__
        }
        return find_executor("spark").load(session, source, reason=choice.reason, options=given)
    with tempfile.TemporaryDirectory(prefix="omnigraph-load-") as directory:
        return _LocalLoad(session, sources, options, Path(directory)).run(choice.reason)


def _one_of(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        listed = ", ".join(repr(word) for word in allowed)
        raise InvalidArgument(f"`{name}` is one of {listed}, not {value!r}.")


@dataclass
class _Gathered:
    """Everything that was read of one type."""

    kind: GraphType
    spools: dict[frozenset[str], Spool] = field(default_factory=dict)
    generated: bool = True


class _LocalLoad:
    """A load in this process, as the publisher sees it."""

    plan: PublishPlan

    def __init__(
        self, session: Session, sources: list[Source], options: LoadOptions, directory: Path
    ) -> None:
        self._session = session
        self._sources = sources
        self._options = options
        self._mode: Mode = options.mode  # type: ignore[assignment]
        self._every = options.on_error == "quarantine"
        self._ledger = Ledger()
        self._names = [source.label for source in sources]
        self._memory = session.settings.load_memory
        self._room = Room(self._memory // 4, directory)
        self._joins = Joins(self._memory // 2, directory)
        self._gathered: dict[str, _Gathered] = {}
        self._parts: dict[str, list[Part]] = {}
        self._rejects: list[Reject] = []
        self._more = 0
        self._rows = 0
        self._bytes = 0
        self._ids = 0
        self._files = StagedFiles()
        self._staged_at = 0
        self._replanned = False
        self._actions: list[TableAction] = []
        self._lineage = Lineage(
            kind="load",
            operation=session.runtime.ulid(),
            actor=options.actor,
            message=options.message,
        )
        sizes = [source.size for source in sources]
        self._total = None if None in sizes else sum(size or 0 for size in sizes)

    @property
    def base(self) -> GraphVersion:
        return self._base.graph_version

    def run(self, reason: str) -> LoadResult:
        try:
            return self._run(reason)
        finally:
            self._joins.close()

    def _run(self, reason: str) -> LoadResult:
        options = self._options
        self._base = self._pin()
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
            engine="local",
            reason=reason,
            rejected=tuple(self._told()),
            io=self._ledger,
        )

    def _pin(self) -> Snapshot:
        """The base that everything is checked against."""
        options, session = self._options, self._session
        name = options.branch
        if options.create_branch_from is not None:
            name = options.create_branch_from
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
        if options.if_commit is not None and head.commit.id != options.if_commit:
            raise PreconditionFailed(
                f"The branch {name!r} is at commit {head.commit.id}, not at {options.if_commit}."
            )
        if options.create_branch_from is None:
            require_unprotected(head, self._lineage.kind)
        return session.snapshot(head, self._ledger)

    # Reading

    def _read(self) -> None:
        reader = Reader(
            catalog=self._base.catalog,
            names=self._names,
            complete=self._mode != "merge",
            every=self._every,
            new_ids=self._new_ids,
            chunk_bytes=min(_CHUNK, max(self._memory // 32, 1 << 16)),
            seen=self._saw,
        )
        for number, source in enumerate(self._sources):
            if (kind := source.kind(self._base.catalog)) is not None:
                self._gathered.setdefault(kind.table_key, _Gathered(kind))
            for shaped in reader.read(number, source):
                self._rejects += shaped.rejects
                self._more += shaped.more
                for rows in shaped.groups:
                    self._gather(rows)
                if not self._every and len(self._rejects) >= TOLD:
                    self._halt()
                self._report("reading")
        self._halt()
        for key, gathered in self._gathered.items():
            tables = [(given, spool.table()) for given, spool in gathered.spools.items()]
            self._parts[key] = [Part(given, table) for given, table in tables]
        reach("load read")

    def _new_ids(self, count: int) -> pa.Array:
        first, self._ids = self._ids, self._ids + count
        return number_ids(self._lineage.operation, first, count)

    def _saw(self, count: int) -> None:
        self._bytes += count

    def _gather(self, rows: TypedRows) -> None:
        held = self._gathered.setdefault(rows.kind.table_key, _Gathered(rows.kind))
        held.generated = held.generated and rows.generated
        given = rows.given if self._mode == "merge" else frozenset()
        spool = held.spools.get(given)
        if spool is None:
            spool = held.spools[given] = Spool(self._room, rows.table.schema)
        spool.add(rows.table)
        self._rows += rows.table.num_rows

    # Checking

    def _resolve(self, snapshot: Snapshot) -> None:
        """Checks everything against a snapshot and stages it."""
        self._report("checking")
        self._state = state = LoadState(
            snapshot=snapshot,
            rows={key: self._type_rows(key, snapshot) for key in self._parts},
            mode=self._mode,
            joins=self._joins,
            names=self._names,
            ledger=self._ledger,
            every=self._every,
            given={key: [part.table for part in parts] for key, parts in self._parts.items()},
        )
        check_duplicates(state)
        self._halt()
        if self._mode == "append":
            check_new(state)
        elif self._mode == "merge":
            for key, parts in self._parts.items():
                complete_merge(state, state.rows[key].kind, parts, self._room)
        self._halt()
        check_rules(state)
        self._halt()
        reach("load checked")
        self._report("writing")
        self._staged_at = self._session.runtime.now()
        self._actions = stage_load(state, self._files, self._memory, self._ledger)
        if not self._replanned:
            self._report("indexing")
            self._actions = prepare_indexes(self._session, snapshot, self._actions, self._ledger)
        reach("staged")
        self.plan = self._make_plan(snapshot)

    def _type_rows(self, key: str, snapshot: Snapshot) -> TypeRows:
        gathered, parts = self._gathered[key], self._parts[key]
        kind = gathered.kind
        if snapshot.catalog.by_key.get(key) != kind:
            raise Conflict(f"The schema of {kind.name} changed while it was loaded.")
        if self._mode == "merge" and parts:
            return TypeRows(kind, system_rows(kind, parts), gathered.generated)
        if parts:
            return TypeRows(kind, parts[0].table, gathered.generated)
        return TypeRows(kind, pa.table({"id": pa.array([], pa.string())}), gathered.generated)

    def _told(self) -> list[Reject]:
        return self._rejects + self._state.rejects

    def _halt(self) -> None:
        """Ends the load at the first stage that refuses anything, unless rows are put aside."""
        state = getattr(self, "_state", None)
        rejects = self._rejects + (state.rejects if state is not None else [])
        if self._every or not rejects:
            return
        more = self._more + (state.more if state is not None else 0)
        raise refusal(rejects, more, self._names)

    # Publishing

    def _make_plan(self, snapshot: Snapshot) -> PublishPlan:
        pins = snapshot.graph_version.pins
        return PublishPlan(
            branch=self._options.branch,
            base_version=snapshot.version,
            base_incarnation=snapshot.graph_version.incarnation,
            actions=tuple(self._actions),
            lineage=self._lineage,
            checks={table: pins[table].content_version for table in self._state.checks},
            if_commit=None if self._options.create_branch_from else self._options.if_commit,
        )

    def _create_branch(self, source: str) -> None:
        """The branch is made when nothing can be wrong with the rows any more."""
        branches.create_branch(self._session, self._options.branch, source, self._ledger)
        head = self._session.live_head(self._options.branch, self._ledger)
        snapshot = self._session.snapshot(head, self._ledger)
        same = head.pins == self._base.graph_version.pins
        self._base = snapshot
        if same and head.catalog == snapshot.graph_version.catalog:
            self.plan = self._make_plan(snapshot)
        else:
            self._resolve(snapshot)

    def _publish(self) -> Any:
        self._report("publishing")
        try:
            published = Publisher(self._session).publish(
                self, self._ledger, retry_for=self._options.retry_for
            )
        except OmnigraphError as error:
            if self._options.create_branch_from is not None and error.applied is False:
                branches.delete_branch(
                    self._session, self._options.branch, self._options.actor, self._ledger
                )
            raise
        assert published.version is not None
        return published.version.commit

    def replan(self, head: GraphVersion) -> None:
        self._replanned = True  # whoever waits behind this load does not wait for its indexes
        self._base = self._session.snapshot(head, self._ledger)
        self._resolve(self._base)

    def stale(self, head: GraphVersion) -> bool:
        """Cleanup may have taken files that were staged before its cutoff, and will soon take
        those older than half the grace period (hazard 7)."""
        age = (self._session.runtime.now() - self._staged_at) / 1e6
        if self._staged_at > head.gc_cutoff and age < self._session.settings.grace / 2:
            return False
        self._files.clear()
        return True

    def _report(self, stage: str) -> None:
        if self._options.progress is not None:
            self._options.progress(Progress(stage, self._rows, self._bytes, self._total))


def refusal(rejects: list[Reject], more: int, names: Any) -> InvalidData:
    """The error that ends a load, with every row that it can name."""
    violations = [to_violation(reject, names) for reject in rejects[:TOLD]]
    rest = len(rejects) - 1 + more
    message = violations[0].message + (f" (and {rest} more)" if rest else "")
    return InvalidData(
        message,
        violations=violations,
        more=more + len(rejects) - len(violations),
        source=rejects[0].source,
        line=rejects[0].line,
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
