"""Owns the handle on a graph: hands everything on and decides nothing itself."""

from __future__ import annotations

import copy
import os
import threading
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import islice
from types import TracebackType
from typing import Any, Literal, TypeVar

import pyarrow as pa

from omnigraph.engine import branches, manifest, protection, tags
from omnigraph.engine.algorithms.result import AlgorithmResult
from omnigraph.engine.algorithms.run import AlgorithmCall, run_algorithm
from omnigraph.engine.algorithms.scope import Edges, Where
from omnigraph.engine.blob import Blob, read_blob
from omnigraph.engine.branch import Branch
from omnigraph.engine.executors import find_executor, is_here
from omnigraph.engine.export import ExportFormat, ExportResult, export
from omnigraph.engine.history import timeline
from omnigraph.engine.history.cursor import BEGINNING
from omnigraph.engine.history.diff import Diff, make_diff
from omnigraph.engine.history.feed import Block, Feed
from omnigraph.engine.history.log import Log, make_log
from omnigraph.engine.history.refs import History
from omnigraph.engine.history.restore import restore
from omnigraph.engine.history.revert import revert
from omnigraph.engine.history.timeline import Moment
from omnigraph.engine.load.result import LoadResult, OnLoadProgress
from omnigraph.engine.load.run import LoadOptions, load
from omnigraph.engine.merge.run import Merge, merge_branches
from omnigraph.engine.mutation.result import MutationResult
from omnigraph.engine.mutation.run import MutationOptions, mutate
from omnigraph.engine.query.ask import ask
from omnigraph.engine.query.expand import Kernel
from omnigraph.engine.query.result import Result
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.upkeep.cleanup import cleanup
from omnigraph.engine.upkeep.cleanup_report import Cleaned
from omnigraph.engine.upkeep.folding import Folding
from omnigraph.engine.upkeep.formats import FormatReport, check_format
from omnigraph.engine.upkeep.optimize import optimize
from omnigraph.engine.upkeep.optimize_report import OnProgress, Optimized
from omnigraph.engine.upkeep.recovery import Recovery
from omnigraph.engine.upkeep.verify import verify
from omnigraph.engine.upkeep.verify_report import Verification
from omnigraph.engine.write.migration import Applied, apply_schema, read_schema, schema_text
from omnigraph.engine.write.transaction import Transaction
from omnigraph.errors import (
    Conflict,
    InvalidArgument,
    ReadOnly,
)
from omnigraph.model.version import Commit
from omnigraph.plan.migrate import MigrationPlan, plan_migration
from omnigraph.plan.retain import Policy, read_duration
from omnigraph.telemetry import Ledger

T = TypeVar("T")
Mode = Literal["rw", "r"]


class Graph:
    """A graph that is open. Use it as a context manager, from any number of threads. `io` is
    what opening or creating it took."""

    def __init__(self, session: Session, mode: Mode, io: Ledger) -> None:
        self._session = session
        self._mode = mode
        self.io = io
        self._closed = threading.Event()
        if mode == "rw" and session.settings.folding != "off":
            session.folding = Folding(session)

    @property
    def root(self) -> str:
        return self._session.root.uri

    def __enter__(self) -> Graph:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        if not self._session.is_own:
            return  # it came here by a fork, and is its parent's to close
        self._closed.set()
        if self._session.folding is not None:
            self._session.folding.close()

    def __repr__(self) -> str:
        return f"Graph({self.root!r})"

    # Reading

    def snapshot(self, ref: str = "main") -> Snapshot:
        """The graph as it is at a ref, pinned for ever."""
        self._require_open()
        ledger = Ledger()
        version = History(self._session, ledger).resolve(ref)
        return self._session.snapshot(version, ledger)

    def query(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        ref: str = "main",
        *,
        timeout: float | None = None,
        memory_limit: int | None = None,
        kernel: Kernel = "auto",
        engine: Literal["local", "spark"] = "local",
    ) -> Result:
        """Asks a `.gq` query, by name if the text has several, of the graph at a ref. The query is
        checked at once against the schema of that ref; rows are found when they are asked for.
        `timeout` in seconds, `memory_limit` in bytes; `kernel` forces how edges are followed;
        `engine="spark"` gives the same rows by Spark."""
        snapshot = self.snapshot(ref)
        prepared = self._session.preparations.read(text, name, snapshot.catalog)
        return ask(
            self._session,
            snapshot,
            prepared,
            params,
            timeout=timeout,
            memory_limit=memory_limit,
            kernel=kernel,
            engine=engine,
        )

    def log(
        self,
        ref: str = "main",
        *,
        limit: int | None = None,
        actor: str | None = None,
        kind: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        first_parent: bool = False,
        all: bool = False,
    ) -> Log:
        """Commits from a ref back to the beginning, or with `all` from every branch: children
        before parents, later ones first, through both parents of merges or the first alone. It
        reads as far as it is iterated; its `lanes()` draw what is left."""
        self._require_open()
        return make_log(
            self._session,
            ref,
            limit=limit,
            actor=actor,
            kind=kind,
            since=since,
            until=until,
            first_parent=first_parent,
            all=all,
        )

    def manifest(self, ref: str = "main") -> pa.Table:
        """The graph version as rows: tables, their versions, the head and its commit."""
        self._require_open()
        return manifest.manifest_rows(self.snapshot(ref).graph_version)

    def diff(
        self,
        old: str,
        new: str,
        *,
        types: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> Diff:
        """What leads from one ref to another: entities inserted, updated and deleted."""
        return make_diff(self.snapshot(old), self.snapshot(new), types=types, kinds=kinds, ops=ops)

    def entity(self, type: str, id: str, ref: str = "main") -> dict[str, Any] | None:
        """One entity as it is, or was, at a ref; None if it is not there."""
        return timeline.read_entity(self.snapshot(ref), type, id)

    def blob(self, type: str, id: str, property: str, ref: str = "main") -> Blob | None:
        """A handle on one blob of an entity, which reads only what it is asked for; None if the
        entity has none."""
        return read_blob(self.snapshot(ref), type, id, property)

    def export(
        self,
        *,
        ref: str = "main",
        types: Sequence[str] | None = None,
        format: ExportFormat = "jsonl",
        to: Any = "-",
        engine: Literal["local", "spark"] = "local",
        overwrite: bool = True,
    ) -> ExportResult:
        """Writes what is in the graph at a ref, or some types of it, so that `load` gives an equal
        graph: to a path, a directory, a binary stream, or "-" for the standard output. With
        "spark" as `engine` executors write it, to a directory, each type in one file or more.
        With `overwrite=False` a file that is there already is refused."""
        elsewhere = None if is_here(engine) else find_executor(engine).export(self._session)
        return export(
            self.snapshot(ref),
            types=types,
            format=format,
            to=to,
            root=self._session.root.directory,
            overwrite=overwrite,
            elsewhere=elsewhere,
        )

    def history(
        self, type: str, id: str, *, branch: str = "main", limit: int | None = None
    ) -> Iterator[Moment]:
        """The commits that changed one entity, newest first, with what they did to it. A type
        that was renamed is the same type."""
        self._require_open()
        _check_limit(limit)
        moments = timeline.read_moments(self._session, branch, type, id, Ledger())
        return islice(moments, limit)

    def changes(
        self,
        since: str = BEGINNING,
        *,
        branch: str = "main",
        limit: int | None = None,
        types: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        follow: bool = False,
        poll: float = 1.0,
    ) -> Generator[Block, None, None]:
        """What happened on a branch, one block for each commit, oldest first: after a cursor,
        after a commit, or from the beginning, which lies before the point of the fork. With
        `follow` it waits for more, looking every `poll` seconds, until it or the graph is
        closed."""
        self._require_open()
        _check_limit(limit)
        feed = Feed(self._session, branch, types=types, kinds=kinds, ops=ops, ledger=Ledger())
        return feed.blocks(
            feed.place_of(since),
            limit=limit,
            follow=follow,
            poll=poll,
            stopped=self._closed.is_set,
        )

    def branch(self, name: str) -> Branch:
        """A handle with these methods bound to one branch, which has to exist."""
        self._require_open()
        head = self._session.live_head(name, Ledger())
        session = self._session.holding(head.branch, head.incarnation)
        return Branch(head.branch, head.incarnation, self._through(session), session)

    def branches(self) -> list[str]:
        self._require_open()
        return branches.list_branches(self._session, Ledger())

    def tags(self) -> dict[str, Commit]:
        """The commits of all tags, by name."""
        self._require_open()
        return tags.list_tags(self._session, Ledger())

    def protected_branches(self) -> list[str]:
        self._require_open()
        return protection.list_protected(self._session, Ledger())

    # Writing

    def transaction(
        self,
        *,
        branch: str = "main",
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        retry_for: float | None = None,
    ) -> Transaction:
        self._require_open(writing=True)
        return Transaction(
            self._session,
            branch=branch,
            actor=actor,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
            retry_for=self._session.settings.retry_for if retry_for is None else retry_for,
        )

    def mutate(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        branch: str = "main",
        *,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> MutationResult:
        """Runs the insert, update and delete statements of a `.gq` text, by name if the text has
        several queries, in order and as one commit; each sees what those before it did. If nothing
        matches there is no commit. When another commit comes first they run again on what it left,
        for as long as the setting `retry_for` says; with `if_commit` that is an error instead."""
        self._require_open(writing=True)
        options = MutationOptions(
            branch=branch,
            actor=actor,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
            retry_for=self._session.settings.retry_for,
        )
        return mutate(self._session, text, name, params, options)

    def load(
        self,
        source: Any,
        *,
        type: str | None = None,
        mode: Literal["append", "merge", "overwrite"] = "append",
        branch: str = "main",
        create_branch_from: str | None = None,
        mapping: Any = None,
        on_error: Literal["abort", "quarantine"] = "abort",
        engine: Literal["auto", "local", "spark"] = "auto",
        job: str | None = None,
        progress: OnLoadProgress | None = None,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        retry_for: float | None = None,
    ) -> LoadResult:
        """Brings entities in from files, streams, data frames or dicts, as one commit or not at
        all. `mode` "append" refuses ids that exist, "merge" changes them, "overwrite" replaces
        every type that the source touches. With `on_error` "quarantine" rows that are wrong are
        put aside with their line and the reason, and the rest is loaded. A `job` is a name of your
        own for this load: called again with it, what has landed is not loaded again, and on Spark
        a load that died goes on from what it had staged."""
        self._require_open(writing=True)
        options = LoadOptions(
            type=type,
            mode=mode,
            branch=branch,
            create_branch_from=create_branch_from,
            mapping=mapping,
            on_error=on_error,
            engine=engine,
            job=job,
            progress=progress,
            actor=actor,
            message=message,
            if_commit=if_commit,
            retry_for=self._session.settings.retry_for if retry_for is None else retry_for,
        )
        return load(self._session, source, options)

    def algorithm(
        self,
        name: str,
        *,
        edges: Edges = None,
        direction: Literal["out", "in", "both"] | None = None,
        where: Where = None,
        ref: str | None = None,
        branch: str = "main",
        write_to: str | None = None,
        engine: Literal["auto", "local", "spark"] = "auto",
        actor: str | None = None,
        message: str | None = None,
        **options: Any,
    ) -> AlgorithmResult:
        """A value for each node: "pagerank", "connected_components", "label_propagation",
        "triangle_count", "shortest_paths" (with `sources`), "degrees". `edges` are edge types by
        name, or each with its direction, or all of them; `where` has conditions by the type of
        nodes or edges, and what does not fulfil them takes no part. With `write_to` the values
        become that property of the nodes on the branch, as one commit. "spark" as `engine` gives
        the same values; "auto" goes there if Spark is a cluster."""
        self._require_open(writing=write_to is not None)
        call = AlgorithmCall(
            name=name,
            edges=edges,
            direction=direction,
            where=where,
            ref=ref,
            branch=branch,
            write_to=write_to,
            engine=engine,
            actor=actor,
            message=message,
            options=options,
        )
        return run_algorithm(self, call)

    def stream_writer(
        self,
        type: str | None = None,
        *,
        mapping: Mapping[str, Mapping[str, Any]] | None = None,
        mode: Literal["append", "merge"] = "merge",
        branch: str = "main",
        on_error: Literal["abort", "quarantine"] = "abort",
        engine: Literal["local", "spark"] = "local",
        stream_id: str | None = None,
        actor: str | None = None,
    ) -> Callable[[Any, int], None]:
        """A function for `foreachBatch` of a stream of Spark: one commit for each micro-batch,
        exactly once. All rows are of one `type`, or `mapping` has for each type where its
        properties come from: the name of a column, or an expression. A stream is known by the id
        in its checkpoint, or by `stream_id`, which has to be its own."""
        self._require_open(writing=True)
        writer: Callable[[Any, int], None] = self.spark.stream_writer(
            type,
            mapping=mapping,
            mode=mode,
            branch=branch,
            on_error=on_error,
            engine=engine,
            stream_id=stream_id,
            actor=actor,
        )
        return writer

    @property
    def spark(self) -> Any:
        """The graph for Spark: `g.spark.tables(spark)` makes a view of every type."""
        self._require_open()
        return find_executor("spark").of(self)

    def run(
        self,
        unit: Callable[[Transaction], T],
        *,
        branch: str = "main",
        retry_for: float = 30.0,
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> T:
        """Calls `unit(tx)` and publishes; when what it read has changed, calls it again on a
        fresh base, for at most `retry_for` seconds."""
        runtime = self._session.runtime
        deadline = runtime.monotonic() + retry_for
        attempt = 0
        while True:
            try:
                with self.transaction(
                    branch=branch,
                    actor=actor,
                    message=message,
                    idempotency_key=idempotency_key,
                    retry_for=max(0.0, deadline - runtime.monotonic()),
                ) as tx:
                    result = unit(tx)
            except Conflict as error:
                attempt += 1
                if not error.retryable or runtime.monotonic() > deadline:
                    raise
                runtime.sleep(min(0.5, 0.002 * 2 ** min(attempt, 8)) * runtime.random())
                continue
            return result

    def plan_schema(self, schema: str | os.PathLike[str], *, branch: str = "main") -> MigrationPlan:
        """What applying a schema would do."""
        self._require_open()
        text = schema_text(schema)
        snapshot = self.snapshot(branch)
        populated = {key for key, pin in snapshot.graph_version.pins.items() if pin.rows}
        return plan_migration(snapshot.catalog, read_schema(text), populated=populated)

    def apply_schema(
        self,
        schema: str | os.PathLike[str],
        *,
        branch: str = "main",
        actor: str | None = None,
        message: str | None = None,
        allow_data_loss: bool = False,
    ) -> Applied:
        """Makes a schema the accepted one, as one commit. What it drops can be read in older
        versions of the branch; with `allow_data_loss` the next cleanup takes these, however many
        commits it keeps. Tags and other branches keep what they have."""
        self._require_open(writing=True)
        return apply_schema(
            self._session,
            branch,
            schema_text(schema),
            actor=actor,
            message=message,
            retry_for=self._session.settings.retry_for,
            allow_data_loss=allow_data_loss,
        )

    def create_branch(self, name: str, from_: str = "main") -> Commit:
        self._require_open(writing=True)
        return branches.create_branch(self._session, name, from_, Ledger()).commit

    def merge(
        self,
        source: str,
        into: str = "main",
        *,
        strategy: str | Mapping[str, str] | None = None,
        resolve: Mapping[tuple[str, str], Mapping[str, Any] | None] | None = None,
        message: str | None = None,
        actor: str | None = None,
        dry_run: bool = False,
    ) -> Merge:
        """Brings the changes of one branch into another, as one commit with two parents, or
        fails with `MergeFailed` and every conflict. `strategy` says who wins where both changed
        the same: "ours" (the target), "theirs", or by `Type` and `Type.property`; `resolve`
        gives the answer for single entities, as rows by (type, id)."""
        self._require_open(writing=not dry_run)
        return merge_branches(
            self._session,
            source,
            into,
            strategy=strategy,
            resolve=resolve,
            message=message,
            actor=actor,
            dry_run=dry_run,
        )

    def delete_branch(self, name: str, *, actor: str | None = None) -> None:
        self._require_open(writing=True)
        branches.delete_branch(self._session, name, actor, Ledger())

    def restore(
        self,
        ref: str,
        *,
        branch: str = "main",
        actor: str | None = None,
        message: str | None = None,
    ) -> Commit:
        """Makes a branch what it was at a ref, data and schema, as a new commit."""
        self._require_open(writing=True)
        return restore(
            self._session,
            ref,
            branch,
            actor=actor,
            message=message,
            retry_for=self._session.settings.retry_for,
            ledger=Ledger(),
        )

    def revert(
        self,
        commit: str,
        *,
        branch: str = "main",
        actor: str | None = None,
        message: str | None = None,
    ) -> Commit:
        """Undoes what one commit did to entities, as a new commit. What later commits changed
        again is a `RevertFailed` that lists it all."""
        self._require_open(writing=True)
        return revert(
            self._session,
            commit,
            branch,
            actor=actor,
            message=message,
            retry_for=self._session.settings.retry_for,
            ledger=Ledger(),
        )

    def tag(self, name: str, ref: str = "main") -> Commit:
        """Gives a commit a name that stays: a ref like any other, and never written to."""
        self._require_open(writing=True)
        return tags.create_tag(self._session, name, ref, Ledger())

    def delete_tag(self, name: str, *, actor: str | None = None) -> None:
        self._require_open(writing=True)
        tags.delete_tag(self._session, name, actor, Ledger())

    def protect(self, branch: str, *, actor: str | None = None) -> None:
        """Closes a branch to direct writes and to deletion; merges into it go on."""
        self._require_open(writing=True)
        protection.set_protection(self._session, branch, True, actor, Ledger())

    def unprotect(self, branch: str, *, actor: str | None = None) -> None:
        self._require_open(writing=True)
        protection.set_protection(self._session, branch, False, actor, Ledger())

    def optimize(
        self,
        *,
        branch: str = "main",
        types: Sequence[str] | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        engine: Literal["local", "spark"] = "local",
    ) -> Optimized:
        """Rewrites small and heavily deleted fragments into large ones and builds the indexes
        that the schema asks for: one commit that no reader can see, or none when there is nothing
        to do. Old versions move into the history, a thousand at a time, and stay readable. Tells
        for each type what was done and what has to wait, and why. With "spark" as `engine`
        executors rewrite and build."""
        self._require_open(writing=not dry_run)
        hands = None if is_here(engine) else find_executor(engine).hands(self._session)
        return optimize(
            self._session, branch, types, dry_run=dry_run, progress=progress, hands=hands
        )

    def cleanup(
        self,
        *,
        keep: int = 10,
        older_than: str | float | timedelta = "7d",
        grace: str | float | timedelta | None = None,
        dry_run: bool = False,
    ) -> Cleaned:
        """Deletes versions that are neither among the last `keep` of their branch nor younger
        than `older_than`, and every file that nothing needs any more. Tags, living branches and
        work under way keep what they need; nothing younger than `grace` (the setting, or longer)
        is touched. Commits that go stay in the log; their data cannot be read again."""
        self._require_open(writing=not dry_run)
        policy = Policy(
            keep=keep,
            older_than=read_duration(older_than, "older_than"),
            grace=read_duration(self._session.settings.grace if grace is None else grace, "grace"),
        )
        return cleanup(
            self._session,
            policy,
            dry_run=dry_run,
            writable=self._mode == "rw",
            ledger=Ledger(),
        )

    def verify(self, *, deep: bool = False) -> Verification:
        """Looks at every version that can be read and at every file that it needs, and tells what
        is missing, cut short or not what it should be; with `deep` it also reads every row and
        byte. It repairs nothing."""
        self._require_open()
        return verify(self._session, deep=deep, record=self._mode == "rw", ledger=Ledger())

    def format(self) -> FormatReport:
        """The format of the graph and that of the program, and what an upgrade would do. Opening
        for writing upgrades; opening for reading never writes."""
        self._require_open()
        return check_format(self._session, Ledger())

    @property
    def recovery(self) -> Recovery:
        """Long operations under way, and those that died: list, resume, discard."""
        self._require_open()
        return Recovery(self._session, writable=self._mode == "rw")

    @property
    def maintenance(self) -> Folding | None:
        """What the graph does by itself after writes; None when that is off, or when it is open
        for reading only."""
        return self._session.folding

    def _through(self, session: Session) -> Graph:
        """This graph for who means one branch and no other of the same name."""
        held = copy.copy(self)
        held._session = session  # noqa: SLF001
        return held

    def _require_open(self, *, writing: bool = False) -> None:
        self._session.require_own()
        if self._closed.is_set():
            raise InvalidArgument(f"The graph {self.root} was closed.", help="Open it again.")
        if writing and self._mode == "r":
            raise ReadOnly(f"The graph {self.root} is open for reading only.")


def _check_limit(limit: int | None) -> None:
    if limit is not None and limit < 0:
        raise InvalidArgument(f"The limit {limit} is below zero.")
