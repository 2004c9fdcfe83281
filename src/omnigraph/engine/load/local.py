"""Owns the engine of a load in this process: it reads sources into Arrow tables, checks them with
DuckDB, and writes and indexes them here."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from omnigraph.engine.duckdb_sql import Joins
from omnigraph.engine.load.checks import check_load
from omnigraph.engine.load.completing import Part
from omnigraph.engine.load.indexing import prepare_indexes
from omnigraph.engine.load.local_relations import LocalRelations
from omnigraph.engine.load.local_rows import LocalRows
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.phases import Pinned, ReadRows, Resolved, require_kinds
from omnigraph.engine.load.progress import LoadProgress
from omnigraph.engine.load.reading import SourceReader
from omnigraph.engine.load.sources import InputSource
from omnigraph.engine.load.spool import GatheredRows, Room, Spool
from omnigraph.engine.load.staging import StagedFiles, stage_load
from omnigraph.engine.load.state import TOLD, LoadState, refuse_load
from omnigraph.engine.session import Session
from omnigraph.engine.upkeep.heartbeat import Heartbeat
from omnigraph.model.catalog import GraphType
from omnigraph.model.version import GraphVersion
from omnigraph.plan.load.new_ids import number_ids
from omnigraph.plan.load.places import Reject
from omnigraph.plan.load.shaping import TypedRows
from omnigraph.plan.publish import PublishPlan
from omnigraph.runtime import reach
from omnigraph.telemetry import Ledger

_CHUNK = 16 << 20


@dataclass
class _Gathering:
    """The rows of one type read so far, grouped by the properties that they give."""

    kind: GraphType
    rows: dict[frozenset[str], GatheredRows] = field(default_factory=dict)
    generated: bool = True

    def add(self, rows: TypedRows, given: frozenset[str], room: Room) -> None:
        self.generated = self.generated and rows.generated
        if given not in self.rows:
            self.rows[given] = GatheredRows(room, rows.table.schema)
        self.rows[given].add(rows.table)

    def end(self) -> LocalRows:
        parts = [Part(given, rows.table()) for given, rows in self.rows.items()]
        return LocalRows.read(self.kind, parts, generated=self.generated)


@dataclass
class _Tally:
    """How much was read, for the progress report."""

    rows: int = 0
    bytes: int = 0
    ids: int = 0


class LocalEngine:
    """The `LoadEngine` of this process."""

    name = "local"

    def __init__(
        self,
        session: Session,
        sources: list[InputSource],
        options: LoadOptions,
        spool: Spool,
        ledger: Ledger,
    ) -> None:
        sizes = [source.size for source in sources]
        self.spool = spool
        self._session = session
        self._sources = sources
        self._options = options
        self._ledger = ledger
        self._names = [source.label for source in sources]
        self._total = None if None in sizes else sum(size or 0 for size in sizes)
        self._every = options.on_error == "quarantine"
        self._memory = session.settings.load_memory
        self._room = Room(self._memory // 4, spool)
        self._joins = Joins(self._memory // 2, Path(spool.root.uri))
        self._files = StagedFiles()
        self._tally = _Tally()
        named = options.branch if options.create_branch_from is None else None
        self._heartbeat = Heartbeat(session, "load", branch=named, actor=options.commit.actor)

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        try:
            with self._heartbeat:
                yield
        finally:
            self._joins.close()

    def remaining_options(self, options: LoadOptions) -> LoadOptions:
        return options

    def pin(self, pinned: Pinned) -> Pinned:
        self._heartbeat.base = pinned.base.graph_version
        return pinned

    def report(self, stage: str) -> None:
        if self._options.progress is not None:
            tally = self._tally
            self._options.progress(LoadProgress(stage, tally.rows, tally.bytes, self._total))

    def creating(self, branch: str) -> None:
        """A load in one process cannot be resumed, so nobody has to be told."""

    def note(self, plan: PublishPlan) -> None:
        self._heartbeat.staged(plan)

    def outlived(self, head: GraphVersion) -> bool:
        if self._heartbeat.covers(head):
            return False
        return self._session.outlived(self._files.since, head)

    def renew(self) -> None:
        self._files.clear()
        self._heartbeat.renew()

    # Reading

    def read(self, pinned: Pinned) -> ReadRows[LocalRows]:
        catalog, tally = pinned.base.catalog, self._tally

        def new_ids(count: int) -> pa.Array:
            first, tally.ids = tally.ids, tally.ids + count
            return number_ids(pinned.lineage.operation, first, count)

        def saw(count: int) -> None:
            tally.bytes += count

        reader = SourceReader(
            catalog=catalog,
            names=self._names,
            complete=pinned.mode != "merge",
            every=self._every,
            new_ids=new_ids,
            chunk_bytes=min(_CHUNK, max(self._memory // 32, 1 << 16)),
            seen=saw,
            line_bytes=max(self._memory // 16, 1 << 20),
        )
        types: dict[str, _Gathering] = {}
        rejects: list[Reject] = []
        more = 0
        for number, source in enumerate(self._sources):
            if (kind := source.kind(catalog)) is not None:
                types.setdefault(kind.table_key, _Gathering(kind))
            for shaped in reader.read(number, source):
                rejects += shaped.rejects
                more += shaped.more
                for rows in shaped.groups:
                    given = rows.given if pinned.mode == "merge" else frozenset()
                    gathering = types.setdefault(rows.kind.table_key, _Gathering(rows.kind))
                    gathering.add(rows, given, self._room)
                    tally.rows += rows.table.num_rows
                if len(rejects) >= TOLD:
                    self._refuse(rejects, more)
                self.report("reading")
        self._refuse(rejects, more)
        return ReadRows({key: held.end() for key, held in types.items()}, tuple(rejects))

    def _refuse(self, rejects: list[Reject], more: int) -> None:
        refuse_load([] if self._every else rejects, [], more, self._names)

    # Checking and writing

    def resolve(self, pinned: Pinned, read: ReadRows[LocalRows], *, replanned: bool) -> Resolved:
        self.report("checking")
        require_kinds(pinned.base, [rows.kind for rows in read.types.values()])
        state = LoadState(
            snapshot=pinned.base,
            types=dict(read.types),
            mode=pinned.mode,
            names=self._names,
            every=self._every,
            ledger=self._ledger,
        )
        check_load(LocalRelations(state, self._joins, self._room))
        reach("load checked")
        self.report("writing")
        self._files.begin(self._session.runtime.now())
        actions = stage_load(state, self._files, self._memory, self._ledger)
        if not replanned:
            self.report("indexing")
            actions = prepare_indexes(pinned.session, pinned.base, actions, self._ledger)
        reach("staged")
        return state.resolved(actions)
