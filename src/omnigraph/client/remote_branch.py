"""Owns the handle on a branch of a graph on a server: every read of its head, and every write."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Literal, TypeVar, Unpack

import msgspec

from omnigraph.arguments import checked_methods
from omnigraph.client.feed import read_feed
from omnigraph.client.loads import load_remote
from omnigraph.client.remote_reads import RemoteReads, require_name, texts_of
from omnigraph.client.remote_snapshot import RemoteSnapshot
from omnigraph.client.row_streams import require_here
from omnigraph.client.served_graph import SchemaAt, ServedGraph
from omnigraph.client.told import merge_of, plan_of
from omnigraph.client.transactions import RemoteTransaction, run_unit
from omnigraph.client.understanding import understanding
from omnigraph.client.upkeep import optimized_of, run_job
from omnigraph.client.writing import Sent, commit_in, landed, send_json, signed
from omnigraph.engine.algorithms.result import AlgorithmResult
from omnigraph.engine.history.cursor import BEGINNING
from omnigraph.engine.history.feed import FeedBlock
from omnigraph.engine.load.options import LoadOptions
from omnigraph.engine.load.progress import OnLoadProgress
from omnigraph.engine.load.result import LoadResult
from omnigraph.engine.merge.run import Merge
from omnigraph.engine.mutation.result import MutationResult
from omnigraph.engine.reads import check_limit
from omnigraph.engine.upkeep.optimize_report import OnProgress, Optimized
from omnigraph.engine.vectors.result import Embedded, OnEmbedProgress
from omnigraph.engine.write.migration import Applied, schema_text
from omnigraph.engine.write.queries import QueriesStored
from omnigraph.errors import InvalidArgument, NotRemote
from omnigraph.model.call_types import AlgorithmFilter, Edges
from omnigraph.model.changes import TypeCounts
from omnigraph.model.options import CommitOptions, CommitWords, read_options
from omnigraph.model.version import Commit
from omnigraph.telemetry import Ledger
from omnigraph.tracing import traced_methods

T = TypeVar("T")
_MODES = ("append", "merge", "overwrite")


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
class RemoteBranch(RemoteReads):
    """A branch of a graph on a server, by its `name`. It has the methods of `Branch`. Writes are
    signed by the token, so they take no other `actor`."""

    def __init__(self, name: str, served: ServedGraph) -> None:
        self.name = name
        self._served = served

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def _ref(self) -> str:
        self._require_open()
        return self.name

    def _schema_now(self) -> SchemaAt:
        return self._served.schema_at(self._ref())

    def _require_open(self) -> None:
        self._served.require_open()

    def _signed(self, given: CommitWords) -> CommitOptions:
        self._served.require_open(writing=True)
        return signed(self._served, given)

    # Following

    def snapshot(self) -> RemoteSnapshot:
        """The branch as it is now, pinned for ever."""
        return RemoteSnapshot(self._served, self._schema_now())

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
        """What happened on the branch, one block for each commit. With `follow` the server sends
        what comes as it comes, so `poll` says nothing here; a lost connection goes on after the
        last block."""
        check_limit(limit)
        self._require_open()
        chosen = {"types": types, "kinds": kinds, "ops": ops}
        blocks = read_feed(
            self._served,
            self.name,
            after,
            chosen,
            follow=follow,
            closed=lambda: self._served.is_closed,
        )

        def shown() -> Generator[FeedBlock, None, None]:
            yield from islice(blocks, limit)

        return shown()

    # Rows

    def transaction(self, **commit: Unpack[CommitWords]) -> RemoteTransaction:
        """A block of statements that becomes one commit, or nothing. It is gathered here, and sent
        once."""
        return RemoteTransaction(self._served, self.name, self._signed(commit))

    def run(self, unit: Callable[[RemoteTransaction], T], **commit: Unpack[CommitWords]) -> T:
        """Calls `unit(tx)` and sends the transaction. If what it read has changed, `unit` is called
        again, for at most `retry_for` seconds."""
        return run_unit(self._served, self.name, unit, self._signed(commit))

    def mutate(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        embed: bool = False,
        **commit: Unpack[CommitWords],
    ) -> MutationResult:
        """Runs the insert, update and delete statements of a `.gq` text, as one commit."""
        _refuse_embedding(embed)
        body = {"query": text, "name": name, "params": params, "branch": self.name}
        return self._mutated("/mutate", body, self._signed(commit))

    def run_mutation(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        embed: bool = False,
        **commit: Unpack[CommitWords],
    ) -> MutationResult:
        """Runs a stored mutation by its name; all else is as with `mutate`."""
        _refuse_embedding(embed)
        path = f"/queries/{require_name(name)}/run"
        body = {"params": params, "branch": self.name}
        return self._mutated(path, body, self._signed(commit))

    def _mutated(
        self, path: str, body: Mapping[str, Any], options: CommitOptions
    ) -> MutationResult:
        sent = self._send("POST", path, body, options)
        told = sent.told
        if "counts" not in told and "columns" in told:  # a stored query that reads
            raise InvalidArgument("This stored query only reads.", help="Give it to run_query().")
        with landed(sent):
            return MutationResult(
                told["branch"],
                told["query"],
                told["nodes"],
                told["edges"],
                msgspec.convert(told["counts"], dict[str, TypeCounts]),
                commit_in(self._served, sent),
                msgspec.convert(told["commit"], str | None),
                sent.repeated,
            )

    def _send(
        self, method: str, path: str, body: Mapping[str, Any], options: CommitOptions
    ) -> Sent:
        return send_json(self._served, method, path, self.name, body, options)

    def store_queries(
        self,
        queries: Mapping[str, str],
        *,
        remove: Sequence[str] = (),
        **commit: Unpack[CommitWords],
    ) -> QueriesStored:
        """Stores queries and mutations under their names, and removes others, as one commit."""
        body = {"set": dict(queries), "remove": [*remove], "branch": self.name}
        sent = self._send("PATCH", "/queries", body, self._signed(commit))
        with landed(sent):
            told, texts = sent.told, tuple[str, ...]
            names = msgspec.convert(told["set"], texts), msgspec.convert(told["removed"], texts)
            made = commit_in(self._served, sent)
            return QueriesStored(told["branch"], *names, made, sent.repeated)

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
        """Brings entities in from files, streams, data frames or dicts. They are sent as they are
        read; a source that can be read only once goes to a temporary file first."""
        if ref is not None and new_branch is None:
            raise InvalidArgument(
                "A load begins at another ref only on a new branch.", help="Give `new_branch` too."
            )
        require_here(engine)
        _refuse_embedding(embed)
        if mode not in _MODES:
            raise InvalidArgument(f"`mode` is one of {', '.join(_MODES)}, not {mode!r}.")
        if job is not None and not job.strip():
            raise InvalidArgument(
                "A job needs a name.", help="Leave it out, or say which job it is."
            )
        options = LoadOptions(
            type=type,
            mode=mode,
            branch=self.name if new_branch is None else new_branch,
            create_branch_from=None if new_branch is None else ref or self.name,
            mapping=mapping,
            on_error=on_error,
            job=job,
            progress=progress,
            commit=self._signed(commit),
        )
        if job is not None:
            named = replace(options.commit, idempotency_key=f"job/{job}")
            options = replace(options, job=None, commit=named)
        return load_remote(self._served, source, options)

    def embed(
        self,
        type: str | None = None,
        property: str | None = None,
        *,
        limit: int | None = None,
        batch: int | None = None,
        commit_every: int | None = 10_000,
        engine: Literal["local", "spark"] = "local",
        dry_run: bool = False,
        progress: OnEmbedProgress | None = None,
        **commit: Unpack[CommitWords],
    ) -> Embedded:
        """Not on a server: embedding asks a model, with a key, from where the storage is."""
        _refuse_embedding(True)
        raise AssertionError("unreachable")

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
        """As `algorithm` of a snapshot. With `write_to` the server makes the values that property
        of the nodes, as one commit, and tells no values."""
        words = {key: options.pop(key) for key in CommitWords.__annotations__ if key in options}
        if write_to is None:
            if words:
                raise InvalidArgument("Only an algorithm that writes makes a commit.")
            return super().algorithm(
                name, edges=edges, direction=direction, where=where, engine=engine, **options
            )
        require_here(engine)
        given = self._signed(words)  # type: ignore[arg-type]
        body = {"name": name, "edges": edges, "direction": direction, "where": texts_of(where)}
        body |= {"options": options, "write_to": write_to, "branch": self.name}
        sent = self._send("POST", "/algorithm/write", body, given)
        with landed(sent):
            rounds = msgspec.convert(sent.told["rounds"], int)
            return AlgorithmResult(name, "local", rounds, commit_in(self._served, sent), _held=[])

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
        """Not on a server: a stream of Spark writes to the storage."""
        raise NotRemote(
            "A stream of Spark writes to the storage of a graph, and a server gives none.",
            help="Open the storage behind the server, or load each batch: g.load(rows, job=...).",
        )

    # Schema, merges, the way back

    def apply_schema(
        self,
        schema: str | os.PathLike[str],
        *,
        allow_data_loss: bool = False,
        **commit: Unpack[CommitWords],
    ) -> Applied:
        """Makes a schema the accepted one, as one commit."""
        body = {"schema": schema_text(schema), "branch": self.name}
        options = self._signed(commit)
        sent = self._send(
            "POST", "/schema/apply", body | {"allow_data_loss": allow_data_loss}, options
        )
        with landed(sent):
            made, plan = commit_in(self._served, sent), plan_of(sent.told["plan"])
            return Applied(sent.told["applied"], made, plan, Ledger(), sent.repeated)

    def merge(
        self,
        source: str,
        *,
        strategy: str | Mapping[str, str] | None = None,
        resolve: Mapping[tuple[str, str], Mapping[str, Any] | None] | None = None,
        dry_run: bool = False,
        **commit: Unpack[CommitWords],
    ) -> Merge:
        """Brings the changes of another branch into this one, or fails with `MergeFailed` and
        every conflict."""
        answers = None
        if resolve is not None:
            answers = [
                {"type": kind, "id": name, "row": None if row is None else dict(row)}
                for (kind, name), row in resolve.items()
            ]
        body = {"source": source, "into": self.name, "strategy": strategy, "resolve": answers}
        options = read_options(commit) if dry_run else self._signed(commit)
        sent = self._send("POST", "/merge", body | {"dry_run": dry_run}, options)
        told = sent.told
        with understanding() if dry_run else landed(sent):
            if told["lineage"] is None and told["commit"] is not None:
                told = told | {"lineage": self._served.get(f"/commits/{told['commit']}")}
            return merge_of(told | {"repeated": sent.repeated})

    def restore(self, ref: str, **commit: Unpack[CommitWords]) -> Commit:
        """Makes the branch what it was at a ref, as a new commit."""
        return self._back("/restore", ref, self._signed(commit))

    def revert(self, ref: str, **commit: Unpack[CommitWords]) -> Commit:
        """Undoes what one commit did to entities, as a new commit."""
        return self._back("/revert", ref, self._signed(commit))

    def _back(self, path: str, ref: str, options: CommitOptions) -> Commit:
        sent = self._send("POST", path, {"ref": ref, "branch": self.name}, options)
        with landed(sent):
            return self._commit_of(sent.told["commit"])

    def optimize(
        self,
        *,
        types: Sequence[str] | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        engine: Literal["local", "spark"] = "local",
        **commit: Unpack[CommitWords],
    ) -> Optimized:
        """Rewrites small fragments and builds indexes, as a job of the server that is waited
        for."""
        require_here(engine)
        signed(self._served, commit)
        given = {"branch": self.name, "types": types, "dry_run": dry_run or None}
        told = run_job(self._served, "optimize", given, progress)
        return optimized_of(self._served, told)


def _refuse_embedding(embed: bool) -> None:
    if embed:
        raise NotRemote(
            "A server embeds nothing: that asks a model, with a key.",
            help="Run `omnigraph embed` where the storage is.",
        )
