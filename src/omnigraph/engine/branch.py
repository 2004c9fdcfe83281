"""Owns the handle on one branch: a snapshot that follows its head, and every write.

It belongs to the branch that it was made for. When that is deleted, or deleted and created again
under the same name, the handle says so instead of writing to another branch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeVar, Unpack

from omnigraph.arguments import checked_methods
from omnigraph.engine.access import Access
from omnigraph.engine.asking import ask_branch, ask_new_branch, ask_resolved
from omnigraph.engine.graph_view import view_of
from omnigraph.engine.history.cursor import BEGINNING
from omnigraph.engine.load.progress import OnLoadProgress
from omnigraph.engine.reads import Reads, check_limit
from omnigraph.engine.session import Session
from omnigraph.engine.snapshot import Snapshot, snapshot_of
from omnigraph.engine.upkeep.optimize_report import OnProgress
from omnigraph.engine.vectors.result import COMMIT_EVERY, OnEmbedProgress
from omnigraph.errors import InvalidArgument
from omnigraph.model.call_types import AlgorithmFilter, Edges
from omnigraph.model.options import CommitOptions, CommitWords, read_options
from omnigraph.model.permission import BranchAction
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.telemetry import Ledger
from omnigraph.tracing import traced_methods

if TYPE_CHECKING:
    from omnigraph.engine.algorithms.result import AlgorithmResult
    from omnigraph.engine.executor_protocol import Executor
    from omnigraph.engine.history.feed import FeedBlock
    from omnigraph.engine.load.result import LoadResult
    from omnigraph.engine.merge.run import Merge
    from omnigraph.engine.mutation.result import MutationResult
    from omnigraph.engine.upkeep.optimize_report import Optimized
    from omnigraph.engine.vectors.result import Embedded
    from omnigraph.engine.write.migration import Applied
    from omnigraph.engine.write.queries import QueriesStored
    from omnigraph.engine.write.transaction import Transaction

T = TypeVar("T")


@traced_methods(
    "mutate",
    "run_mutation",
    "store_queries",
    "load",
    "embed",
    "apply_schema",
    "merge",
    "restore",
    "revert",
    "optimize",
)
@checked_methods
class Branch(Reads):
    """A branch, by its `name`: every read, of its head at the time of the call, and every write.

    Every write takes the same options, by keyword. `actor` and `message` are in its commit. With
    `if_commit` the write is done only if the branch still shows that commit; if not,
    `PreconditionFailed` carries the expected and the actual commit. A call that repeats an
    `idempotency_key` does nothing and returns what the first call did. When others write at the
    same time, the write is tried again for `retry_for` seconds; the default is in the settings.
    `options` gives all of them as one `CommitOptions`.

    >>> text, seen = "delete Knows where true", g.commit.id
    >>> done = g.mutate(text, actor="ada", message="start anew", if_commit=seen)
    >>> (done.commit.actor, done.commit.message)
    ('ada', 'start anew')
    """

    def __init__(self, name: str, session: Session, access: Access) -> None:
        self.name = name
        self._session = session
        self._access = access

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _version(self, ledger: Ledger, action: BranchAction = "read") -> GraphVersion:
        self._require_open()
        head = self._session.live_head(self.name, ledger)
        permissions = self._session.permissions
        permissions.require_branch(action, permissions.branch(head))
        return head

    def _require_open(self, *, writing: bool = False) -> None:
        self._access.require(self._session, writing=writing)

    def _writing(
        self, given: CommitWords, action: BranchAction, *, whole: bool = False, **context: str
    ) -> CommitOptions:
        """The options of a write, which is allowed. A `whole` write concerns every row."""
        self._require_open(writing=True)
        options = read_options(given)
        ask_branch(self._session, self.name, action, whole=whole, **context)
        return self._session.permissions.sign(options)

    # Following

    def snapshot(self) -> Snapshot:
        """The branch as it is now, pinned for ever.

        >>> now = g.snapshot()
        >>> done = g.mutate("delete Knows where true")
        >>> (now.count("Knows"), g.count("Knows"))
        (2, 0)
        """
        ledger = Ledger()
        version = self._version(ledger)
        asked = self._session.permissions.branch(version)
        return snapshot_of(view_of(self._session, version, ledger), asked)

    def changes(
        self,
        after: str = BEGINNING,
        *,
        limit: int | None = None,
        types: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        follow: bool = False,
        poll: float = 1.0,
    ) -> Generator[FeedBlock, None, None]:
        """What happened on the branch, one block for each commit, oldest first: after a cursor,
        after a ref, or from the beginning, which lies before the point of the fork. With
        `follow` it waits for more, looking every `poll` seconds, until it or the graph is
        closed.

        >>> block = list(g.changes())[-1]
        >>> (block.commit.message, len(list(block.changes)))
        ('three people', 5)
        >>> list(g.changes(block.cursor))
        []
        """

        from omnigraph.engine.history.feed import Feed

        self._require_open()
        ask_branch(self._session, self.name, "read")
        check_limit(limit)
        feed = Feed(self._session, self.name, types=types, kinds=kinds, ops=ops, ledger=Ledger())
        return feed.blocks(
            feed.place_of(after),
            limit=limit,
            follow=follow,
            poll=poll,
            stopped=self._access.is_closed,
        )

    # Rows

    def transaction(self, **commit: Unpack[CommitWords]) -> Transaction:
        """A block of statements that becomes one commit, or nothing.

        >>> with g.transaction(actor="bob", message="one more") as tx:
        ...     tx.append("Person", {"name": "Dan", "age": 7})
        1
        >>> tx.commit.message
        'one more'
        """

        from omnigraph.engine.write.transaction import Transaction

        return Transaction(self._session, self.name, self._writing(commit, "mutate"))

    def run(self, unit: Callable[[Transaction], T], **commit: Unpack[CommitWords]) -> T:
        """Calls `unit(tx)` and publishes. If what it read has changed, `unit` is called again on a
        fresh base, for at most `retry_for` seconds. Returns what `unit` returns.

        >>> g.run(lambda tx: tx.update("Person", set={"age": 1}, where="age > 40"))
        1
        """

        from omnigraph.engine.write.rerun import run_unit

        return run_unit(self._session, self.name, unit, self._writing(commit, "mutate"))

    def mutate(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        embed: bool = False,
        **commit: Unpack[CommitWords],
    ) -> MutationResult:
        """Runs the insert, update and delete statements of a `.gq` text, by `name` if the text has
        several queries, in order and as one commit; each sees what those before it did. If nothing
        matches, there is no commit. If another commit comes first, the statements run again on it;
        with `if_commit` that is an error instead. With `embed` the rows that it
        writes get the vectors that they lack, in the same commit.

        >>> done = g.mutate('insert Person { name: "Dan" } delete Person where name = "Bob"')
        >>> (done.nodes, done.edges, done.counts["Person"].deleted)
        (2, 2, 1)
        """

        from omnigraph.engine.mutation.run import mutate
        from omnigraph.engine.vectors.on_request import embed_pending

        options = self._writing(commit, "mutate")
        finish = partial(embed_pending, self._session) if embed else None
        return mutate(self._session, self.name, text, name, params, options, finish)

    def store_queries(
        self,
        queries: Mapping[str, str],
        *,
        remove: Sequence[str] = (),
        **commit: Unpack[CommitWords],
    ) -> QueriesStored:
        """Stores queries and mutations under their names, and removes others, as one commit. Each
        is checked against the schema of the branch, and as long as it is stored no schema is
        accepted under which it would not run. Stored queries are part of the graph: they branch,
        merge by name, and older versions have those of their time.

        >>> text = "query birthday($name: String) { update Person set { age: age + 1 } "
        >>> text += "where name = $name }"
        >>> done = g.store_queries({"birthday": text}, actor="ada")
        >>> (done.set, done.commit.message)
        (('birthday',), 'store birthday')
        >>> g.store_queries({}, remove=["birthday"]).removed
        ('birthday',)
        """

        from omnigraph.engine.write.queries import store_queries

        options = self._writing(commit, "queries_edit")
        return store_queries(self._session, self.name, queries, remove, options)

    def run_mutation(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        embed: bool = False,
        **commit: Unpack[CommitWords],
    ) -> MutationResult:
        """Runs a stored mutation by its name; all else is as with `mutate`.

        >>> text = "query add($name: String) { insert Person { name: $name } }"
        >>> stored = g.store_queries({"add": text})
        >>> g.run_mutation("add", {"name": "Dan"}, actor="bob").nodes
        1
        """

        from omnigraph.engine.mutation.run import mutate
        from omnigraph.engine.stored_queries import require_stored
        from omnigraph.engine.vectors.on_request import embed_pending

        options = self._writing(commit, "mutate")
        text = require_stored(self._pinned(), name)
        finish = partial(embed_pending, self._session) if embed else None
        return mutate(self._session, self.name, text, None, params, options, finish, name)

    def load(
        self,
        source: Any,
        *,
        type: str | None = None,
        mode: Literal["append", "merge", "overwrite"] = "append",
        new_branch: str | None = None,
        ref: str | None = None,
        mapping: Any = None,
        on_error: Literal["abort", "quarantine"] = "abort",
        engine: Literal["auto", "local", "spark"] = "auto",
        job: str | None = None,
        progress: OnLoadProgress | None = None,
        embed: bool = False,
        **commit: Unpack[CommitWords],
    ) -> LoadResult:
        """Brings entities in from files, streams, data frames or dicts, as one commit or not at
        all. `mode` "append" refuses ids that exist, "merge" changes them, "overwrite" replaces
        every type that the source touches. With `new_branch` they go to a new branch of that name,
        which begins at `ref`, or here. With `on_error` "quarantine" wrong rows are rejected with
        their line and the reason, and the rest is loaded. A `job` is a name of your own for this
        load: called again with it, what has landed is not loaded again, and on Spark a load that
        died goes on from what it had staged. With `embed` the types that it
        touched are embedded right after it, by commits of their own, as by `embed`; if that fails,
        `NotEmbedded` says so, and what was loaded stays.

        >>> rows = [{"name": "Ada", "age": 37}, {"name": "Dan"}]
        >>> g.load(rows, type="Person", mode="merge").counts
        {'Person': TypeCounts(inserted=1, updated=1, deleted=0)}
        >>> g.load([{"name": "Eve"}], type="Person", new_branch="import").branch
        'import'
        """

        from omnigraph.engine.load.run import LoadOptions, load
        from omnigraph.engine.vectors.on_request import embed_loaded, require_models

        if ref is not None and new_branch is None:
            raise InvalidArgument(
                "A load begins at another ref only on a new branch.", help="Give `new_branch` too."
            )
        if new_branch is None:
            signed = self._writing(commit, "load", mode=mode)
        else:
            signed = self._writing(commit, "read")
            ask_new_branch(self._session, new_branch, mode)
        options = LoadOptions(
            type=type,
            mode=mode,
            branch=self.name if new_branch is None else new_branch,
            create_branch_from=None if new_branch is None else ref or self.name,
            mapping=mapping,
            on_error=on_error,
            engine=engine,
            job=job,
            progress=progress,
            commit=signed,
        )
        if not embed:
            return load(self._session, source, options)
        require_models(self._session, self._pinned().catalog, type)
        done = load(self._session, source, options)
        embedded = embed_loaded(
            self._session, done.branch, done.counts, done.commit, options.commit
        )
        return replace(done, embedded=embedded)

    def embed(
        self,
        type: str | None = None,
        property: str | None = None,
        *,
        limit: int | None = None,
        batch: int | None = None,
        commit_every: int | None = COMMIT_EVERY,
        engine: Literal["local", "spark"] = "local",
        dry_run: bool = False,
        progress: OnEmbedProgress | None = None,
        **commit: Unpack[CommitWords],
    ) -> Embedded:
        """Embeds the texts whose vector is missing, or was made null because the text changed, by
        the model that `@embed` names: of all types, of one, or of one property. There is a commit
        after every `commit_every` texts, or one in all if that is None. A run that died goes on
        when it is called again. With `dry_run` it only tells how many texts wait, and of about how
        many tokens. With `limit` it ends after so many texts; a `batch` is what a provider is
        asked for at once. With "spark" as `engine` executors ask.

        >>> g.embed(dry_run=True).texts
        0
        """

        from omnigraph.engine.vectors.run import EmbedCall, embed_waiting

        self._require_open(writing=not dry_run)
        call = EmbedCall(type, property, limit, batch, commit_every, dry_run, progress, engine)
        options = read_options(commit)
        ask_branch(self._session, self.name, "mutate")
        options = self._session.permissions.sign(options)
        return embed_waiting(self._session, self.name, call, options)

    def algorithm(
        self,
        name: str,
        *,
        edges: Edges = None,
        direction: Literal["out", "in", "both"] | None = None,
        where: AlgorithmFilter = None,
        engine: Literal["auto", "local", "spark"] = "auto",
        write_to: str | None = None,
        **options: Any,
    ) -> AlgorithmResult:
        """As `algorithm` of a snapshot. With `write_to` the values become that property of the
        nodes, as one commit, which takes the options of every write.

        >>> g.algorithm("pagerank", write_to="rank", actor="ada").commit.message
        'pagerank into rank'
        """

        from omnigraph.engine.algorithms.run import AlgorithmCall, write_algorithm

        if write_to is None:
            return super().algorithm(
                name, edges=edges, direction=direction, where=where, engine=engine, **options
            )
        words = CommitWords.__annotations__
        given = CommitWords(**{key: options.pop(key) for key in words if key in options})  # type: ignore[typeddict-item]
        call = AlgorithmCall(name, edges, direction, where, engine, options)
        ask_branch(self._session, self.name, "query", whole=True)
        signed = self._writing(given, "mutate")
        return write_algorithm(self._session, self._pinned, call, write_to, signed)

    def stream_writer(
        self,
        type: str | None = None,
        *,
        mapping: Mapping[str, Mapping[str, Any]] | None = None,
        mode: Literal["append", "merge"] = "merge",
        on_error: Literal["abort", "quarantine"] = "abort",
        engine: Literal["local", "spark"] = "local",
        stream_id: str | None = None,
        **commit: Unpack[CommitWords],
    ) -> Callable[[Any, int], None]:
        """A function for `foreachBatch` of a stream of Spark: one commit for each micro-batch,
        exactly once. All rows are of one `type`, or `mapping` has for each type where its
        properties come from: the name of a column, or an expression. A stream is known by the id
        in its checkpoint, or by `stream_id`, which has to be its own. A stream makes many commits
        and knows each batch again by its number, so `if_commit` and `idempotency_key` are refused.

            stream.writeStream.foreachBatch(g.stream_writer("Person")).start()
        """

        from omnigraph.engine.executors import find_executor

        options = self._writing(commit, "load", mode=mode)
        if options.if_commit is not None or options.idempotency_key is not None:
            raise InvalidArgument(
                "A stream takes neither if_commit nor idempotency_key: it makes many commits.",
                help="Leave it out. A batch that comes again is not written again.",
            )
        executor: Executor = find_executor("spark")
        return executor.stream_writer(
            self._session,
            self.name,
            type,
            mapping=mapping,
            mode=mode,
            on_error=on_error,
            engine=engine,
            stream_id=stream_id,
            commit=options,
        )

    # Schema, merges, the way back

    def apply_schema(
        self,
        schema: str | os.PathLike[str],
        *,
        allow_data_loss: bool = False,
        **commit: Unpack[CommitWords],
    ) -> Applied:
        """Makes a schema the accepted one, as one commit. What it drops can be read in older
        versions of the branch; with `allow_data_loss` the next cleanup takes these, however many
        commits it keeps. Tags and other branches keep what they have.

        >>> g.apply_schema(g.schema + "node Pet { name: String }").applied
        True
        >>> g.types()
        ['Person', 'Pet', 'Knows']
        """

        from omnigraph.engine.write.migration import apply_schema, schema_text

        options = self._writing(commit, "schema_apply", whole=True)
        text = schema_text(schema)
        return apply_schema(
            self._session, self.name, text, options, allow_data_loss=allow_data_loss
        )

    def merge(
        self,
        source: str,
        *,
        strategy: str | Mapping[str, str] | None = None,
        resolve: Mapping[tuple[str, str], Mapping[str, Any] | None] | None = None,
        dry_run: bool = False,
        **commit: Unpack[CommitWords],
    ) -> Merge:
        """Brings the changes of another branch into this one, as one commit with two parents, or
        fails with `MergeFailed` and every conflict. `strategy` says which side wins where both
        changed the same: "ours" (this branch), "theirs", or by `Type` and `Type.property`;
        `resolve` gives the answer for single entities, as rows by (type, id).

        >>> made = g.create_branch("review")
        >>> done = g.branch("review").mutate('insert Person { name: "Dan" }')
        >>> g.merge("review", dry_run=True).commit is None
        True
        >>> g.merge("review").outcome
        'fast_forward'
        """

        from omnigraph.engine.merge.run import merge_branches

        self._require_open(writing=not dry_run)
        options = read_options(commit)
        if dry_run:  # which reads, and tells, what is on both sides
            ask_branch(self._session, self.name, "read", whole=True)
        else:
            ask_branch(self._session, self.name, "merge", whole=True, source=source)
        ask_branch(self._session, source, "read", whole=True)
        ask_resolved(self._session, self.name, resolve)
        return merge_branches(
            self._session,
            source,
            self.name,
            self._session.permissions.sign(options),
            strategy=strategy,
            resolve=resolve,
            dry_run=dry_run,
        )

    def restore(self, ref: str, **commit: Unpack[CommitWords]) -> Commit:
        """Makes the branch what it was at a ref, data and schema, as a new commit.

        >>> done = g.mutate("delete Person where true")
        >>> g.restore("main~1", actor="ada").kind
        'restore'
        >>> g.count("Person")
        3
        """

        from omnigraph.engine.history.restore import restore

        options = self._writing(commit, "restore", whole=True)
        return restore(self._session, ref, self.name, options, Ledger())

    def revert(self, ref: str, **commit: Unpack[CommitWords]) -> Commit:
        """Undoes what one commit did to entities, as a new commit. If later commits changed the
        same again, it fails with `RevertFailed`, which lists all of it.

        >>> done = g.mutate("delete Knows where true")
        >>> more = g.mutate('insert Person { name: "Dan" }')
        >>> g.revert(done.commit.id).kind
        'revert'
        >>> (g.count("Knows"), g.count("Person"))
        (2, 4)
        """

        from omnigraph.engine.history.revert import revert

        options = self._writing(commit, "mutate", whole=True)
        return revert(self._session, ref, self.name, options, Ledger())

    def optimize(
        self,
        *,
        types: Sequence[str] | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        engine: Literal["local", "spark"] = "local",
        **commit: Unpack[CommitWords],
    ) -> Optimized:
        """Rewrites small and heavily deleted fragments into large ones and builds the indexes that
        the schema asks for: one commit that no reader can see, or none when there is nothing to do.
        Old versions move into the history, a thousand at a time, and stay readable. The report says
        for each type what was done, what has to wait, and why. With "spark" as `engine` executors
        rewrite and build.

        >>> g.optimize(dry_run=True).commit is None
        True
        """

        from omnigraph.engine.executors import find_executor, is_here
        from omnigraph.engine.upkeep.optimize import optimize

        self._require_open(writing=not dry_run)
        options = read_options(commit)
        self._session.permissions.require_graph("maintain")
        workers = None
        if not is_here(engine):
            executor: Executor = find_executor(engine)
            workers = executor.workers(self._session)
        return optimize(
            self._session.for_itself(),
            self.name,
            types,
            dry_run=dry_run,
            progress=progress,
            options=self._session.permissions.sign(options),
            workers=workers,
        )
