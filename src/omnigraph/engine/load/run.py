"""Owns a load in this process: read, check, stage, and all of it again from the check on when
another writer was faster; and the choice of the engine that does it."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.engine.executors import configured_master, find_executor, registered
from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.joins import Joins
from omnigraph.engine.load.bulk import BulkLoad, LoadOptions, refuse_load, repeated_load
from omnigraph.engine.load.checks import check_ids, check_new, check_rules
from omnigraph.engine.load.completing import Part, complete_merge, system_rows
from omnigraph.engine.load.ground import LocalGround
from omnigraph.engine.load.indexing import prepare_indexes
from omnigraph.engine.load.reading import Reader
from omnigraph.engine.load.result import LoadResult
from omnigraph.engine.load.sources import Source, estimate_rows, find_sources, source_names
from omnigraph.engine.load.spool import Room, Spool
from omnigraph.engine.load.staging import StagedFiles, stage_load
from omnigraph.engine.load.state import TOLD, LoadState, TypeRows
from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.heartbeat import Heartbeat
from omnigraph.errors import Conflict, InvalidArgument
from omnigraph.model.catalog import GraphType
from omnigraph.model.version import GraphVersion
from omnigraph.plan.load.choice import Choice, LoadFacts, resolve_engine
from omnigraph.plan.load.numbering import number_ids
from omnigraph.plan.load.places import Reject
from omnigraph.plan.load.shaping import TypedRows
from omnigraph.runtime import reach
from omnigraph.telemetry import Ledger

__all__ = ["LoadOptions", "load"]

_MODES = ("append", "merge", "overwrite")
_ON_ERROR = ("abort", "quarantine")
_ENGINES = ("auto", "local", "spark")
_CHUNK = 16 << 20


def load(session: Session, source: Any, options: LoadOptions) -> LoadResult:
    _one_of("mode", options.mode, _MODES)
    _one_of("on_error", options.on_error, _ON_ERROR)
    _one_of("engine", options.engine, _ENGINES)
    if options.job is not None and not options.job.strip():
        raise InvalidArgument("A job needs a name.", help="Leave it out, or say which job it is.")
    options = replace(options, names=source_names(source))
    spark = registered("spark")
    owned = _is_of_spark(source)
    sources: list[Source] = []
    if options.engine != "spark" and not owned:
        if (done := repeated_load(session, options, Ledger())) is not None:
            return done
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
    if choice.engine == "spark" and options.engine == "auto" and not owned:
        lacking = find_executor("spark").lacks()
        if lacking is not None:  # nobody asked for Spark, so nobody has to install anything
            choice = Choice("local", f"{choice.reason}, but {lacking}")
    if choice.engine == "spark":
        given: Mapping[str, Any] = {
            name: getattr(options, name) for name in LoadOptions.__dataclass_fields__
        }
        return find_executor("spark").load(session, source, reason=choice.reason, options=given)
    with tempfile.TemporaryDirectory(
        prefix="omnigraph-load-", ignore_cleanup_errors=True
    ) as directory:
        return _LocalLoad(session, sources, options, Path(directory)).run(choice.reason)


def _is_of_spark(source: Any) -> bool:
    """A DataFrame, or several by type."""
    held = list(source.values()) if isinstance(source, Mapping) else [source]
    return any(type(value).__module__.startswith("pyspark.") for value in held)


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


class _LocalLoad(BulkLoad):
    """A load in this process."""

    engine = "local"

    def __init__(
        self, session: Session, sources: list[Source], options: LoadOptions, directory: Path
    ) -> None:
        sizes = [source.size for source in sources]
        total = None if None in sizes else sum(size or 0 for size in sizes)
        super().__init__(session, options, [source.label for source in sources], total)
        self._sources = sources
        self._memory = session.settings.load_memory
        self._room = Room(self._memory // 4, directory)
        self._joins = Joins(self._memory // 2, directory)
        self._gathered: dict[str, _Gathered] = {}
        self._parts: dict[str, list[Part]] = {}
        self._rejects: list[Reject] = []
        self._more = 0
        self._ids = 0
        self._files = StagedFiles()
        named = options.branch if options.create_branch_from is None else None
        self._heartbeat = Heartbeat(session, "load", branch=named, actor=options.commit.actor)

    def run(self, reason: str) -> LoadResult:
        try:
            with self._heartbeat:
                return super().run(reason)
        finally:
            self._joins.close()

    def _outlived(self, head: GraphVersion) -> bool:
        if self._heartbeat.covers(head):
            return False
        return self._session.outlived(self._files.since, head)

    def replan(self, head: GraphVersion) -> None:
        super().replan(head)
        self._heartbeat.staged(self.plan)

    def _publish(self) -> Any:
        self._heartbeat.staged(self.plan)
        return super()._publish()

    def _forget_files(self) -> None:
        self._files.clear()
        self._heartbeat.renew()

    # Reading

    def _read(self) -> None:
        self._heartbeat.base = self.base
        reader = Reader(
            catalog=self._base.catalog,
            names=self._names,
            complete=self._mode != "merge",
            every=self._every,
            new_ids=self._new_ids,
            chunk_bytes=min(_CHUNK, max(self._memory // 32, 1 << 16)),
            seen=self._saw,
            line_bytes=max(self._memory // 16, 1 << 20),
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

    def _resolve(self, snapshot: GraphView) -> None:
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
        ground = LocalGround(state)
        check_ids(ground)
        self._halt()
        if self._mode == "append":
            check_new(ground)
        elif self._mode == "merge":
            for key, parts in self._parts.items():
                complete_merge(state, state.rows[key].kind, parts, self._room)
        self._halt()
        check_rules(ground)
        self._halt()
        reach("load checked")
        self._report("writing")
        self._files.begin(self._session.runtime.now())
        self._actions = stage_load(state, self._files, self._memory, self._ledger)
        if not self._replanned:
            self._report("indexing")
            self._actions = prepare_indexes(self._session, snapshot, self._actions, self._ledger)
        reach("staged")
        self._checks = state.checks
        self.plan = self._make_plan(snapshot)

    def _type_rows(self, key: str, snapshot: GraphView) -> TypeRows:
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
        unblamed = state.unblamed if state is not None else []
        more = self._more + (state.more if state is not None else 0)
        refuse_load([] if self._every else rejects, unblamed, more, self._names)
