"""Owns the handle on one branch: the methods of the graph with the branch filled in.

It belongs to the branch that it was made for. When that is deleted, or deleted and created again
under the same name, the handle says so instead of writing to another branch.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import pyarrow as pa

from omnigraph.engine.history.cursor import BEGINNING
from omnigraph.telemetry import Ledger

if TYPE_CHECKING:
    from omnigraph.engine.algorithms.result import AlgorithmResult
    from omnigraph.engine.algorithms.scope import Edges, Where
    from omnigraph.engine.blob import Blob
    from omnigraph.engine.export import ExportFormat, ExportResult
    from omnigraph.engine.graph import Graph
    from omnigraph.engine.history.diff import Diff
    from omnigraph.engine.history.feed import Block
    from omnigraph.engine.history.log import Log
    from omnigraph.engine.history.timeline import Moment
    from omnigraph.engine.load.result import LoadResult, OnLoadProgress
    from omnigraph.engine.merge.run import Merge
    from omnigraph.engine.mutation.result import MutationResult
    from omnigraph.engine.query.expand import Kernel
    from omnigraph.engine.query.result import Result
    from omnigraph.engine.session import Session
    from omnigraph.engine.snapshot import Snapshot
    from omnigraph.engine.upkeep.optimize_report import OnProgress, Optimized
    from omnigraph.engine.write.migration import Applied
    from omnigraph.engine.write.transaction import Transaction
    from omnigraph.model.version import Commit
    from omnigraph.plan.migrate import MigrationPlan

T = TypeVar("T")


@dataclass(frozen=True)
class Branch:
    """What the graph can do, on one branch; each method is the graph's method of that name."""

    name: str
    incarnation: int
    _graph: Graph = field(repr=False)
    _session: Session = field(repr=False)

    # Reading

    def snapshot(self) -> Snapshot:
        return self._graph.snapshot(self.name)  # which looks at the head, once

    def query(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        memory_limit: int | None = None,
        kernel: Kernel = "auto",
        engine: Literal["local", "spark"] = "local",
    ) -> Result:
        return self._held().query(
            text,
            name,
            params,
            self.name,
            timeout=timeout,
            memory_limit=memory_limit,
            kernel=kernel,
            engine=engine,
        )

    def log(
        self,
        *,
        limit: int | None = None,
        actor: str | None = None,
        kind: str | None = None,
        since: str | datetime | None = None,
        until: str | datetime | None = None,
        first_parent: bool = False,
    ) -> Log:
        return self._held().log(
            self.name,
            limit=limit,
            actor=actor,
            kind=kind,
            since=since,
            until=until,
            first_parent=first_parent,
        )

    def manifest(self) -> pa.Table:
        return self._held().manifest(self.name)

    def diff(
        self,
        since: str = "main",
        *,
        types: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> Diff:
        """What leads from another ref to this branch."""
        return self._held().diff(since, self.name, types=types, kinds=kinds, ops=ops)

    def entity(self, type: str, id: str) -> dict[str, Any] | None:
        return self._held().entity(type, id, self.name)

    def blob(self, type: str, id: str, property: str) -> Blob | None:
        return self._held().blob(type, id, property, self.name)

    def export(
        self,
        *,
        types: Sequence[str] | None = None,
        format: ExportFormat = "jsonl",
        to: Any = "-",
        engine: Literal["local", "spark"] = "local",
        overwrite: bool = True,
    ) -> ExportResult:
        return self._held().export(
            ref=self.name, types=types, format=format, to=to, engine=engine, overwrite=overwrite
        )

    def history(self, type: str, id: str, *, limit: int | None = None) -> Iterator[Moment]:
        return self._held().history(type, id, branch=self.name, limit=limit)

    def changes(
        self,
        since: str = BEGINNING,
        *,
        limit: int | None = None,
        types: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        follow: bool = False,
        poll: float = 1.0,
    ) -> Generator[Block, None, None]:
        return self._held().changes(
            since,
            branch=self.name,
            limit=limit,
            types=types,
            kinds=kinds,
            ops=ops,
            follow=follow,
            poll=poll,
        )

    def plan_schema(self, schema: str | os.PathLike[str]) -> MigrationPlan:
        return self._held().plan_schema(schema, branch=self.name)

    # Writing

    def transaction(
        self,
        *,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
        retry_for: float | None = None,
    ) -> Transaction:
        return self._held().transaction(
            branch=self.name,
            actor=actor,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
            retry_for=retry_for,
        )

    def mutate(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        actor: str | None = None,
        message: str | None = None,
        if_commit: str | None = None,
        idempotency_key: str | None = None,
    ) -> MutationResult:
        return self._held().mutate(
            text,
            name,
            params,
            self.name,
            actor=actor,
            message=message,
            if_commit=if_commit,
            idempotency_key=idempotency_key,
        )

    def algorithm(
        self,
        name: str,
        *,
        edges: Edges = None,
        direction: Literal["out", "in", "both"] | None = None,
        where: Where = None,
        write_to: str | None = None,
        engine: Literal["auto", "local", "spark"] = "auto",
        actor: str | None = None,
        message: str | None = None,
        **options: Any,
    ) -> AlgorithmResult:
        return self._held().algorithm(
            name,
            edges=edges,
            direction=direction,
            where=where,
            branch=self.name,
            write_to=write_to,
            engine=engine,
            actor=actor,
            message=message,
            **options,
        )

    def run(
        self,
        unit: Callable[[Transaction], T],
        *,
        retry_for: float = 30.0,
        actor: str | None = None,
        message: str | None = None,
        idempotency_key: str | None = None,
    ) -> T:
        return self._held().run(
            unit,
            branch=self.name,
            retry_for=retry_for,
            actor=actor,
            message=message,
            idempotency_key=idempotency_key,
        )

    def load(
        self,
        source: Any,
        *,
        type: str | None = None,
        mode: Literal["append", "merge", "overwrite"] = "append",
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
        return self._held().load(
            source,
            type=type,
            mode=mode,
            branch=self.name,
            mapping=mapping,
            on_error=on_error,
            engine=engine,
            job=job,
            progress=progress,
            actor=actor,
            message=message,
            if_commit=if_commit,
            retry_for=retry_for,
        )

    def stream_writer(
        self,
        type: str | None = None,
        *,
        mapping: Mapping[str, Mapping[str, Any]] | None = None,
        mode: Literal["append", "merge"] = "merge",
        on_error: Literal["abort", "quarantine"] = "abort",
        engine: Literal["local", "spark"] = "local",
        stream_id: str | None = None,
        actor: str | None = None,
    ) -> Callable[[Any, int], None]:
        return self._held().stream_writer(
            type,
            mapping=mapping,
            mode=mode,
            branch=self.name,
            on_error=on_error,
            engine=engine,
            stream_id=stream_id,
            actor=actor,
        )

    def apply_schema(
        self,
        schema: str | os.PathLike[str],
        *,
        actor: str | None = None,
        message: str | None = None,
        allow_data_loss: bool = False,
    ) -> Applied:
        return self._held().apply_schema(
            schema,
            branch=self.name,
            actor=actor,
            message=message,
            allow_data_loss=allow_data_loss,
        )

    def merge(
        self,
        source: str,
        *,
        strategy: str | Mapping[str, str] | None = None,
        resolve: Mapping[tuple[str, str], Mapping[str, Any] | None] | None = None,
        message: str | None = None,
        actor: str | None = None,
        dry_run: bool = False,
    ) -> Merge:
        """Brings the changes of another branch into this one."""
        return self._held().merge(
            source,
            self.name,
            strategy=strategy,
            resolve=resolve,
            message=message,
            actor=actor,
            dry_run=dry_run,
        )

    def restore(self, ref: str, *, actor: str | None = None, message: str | None = None) -> Commit:
        return self._held().restore(ref, branch=self.name, actor=actor, message=message)

    def revert(
        self, commit: str, *, actor: str | None = None, message: str | None = None
    ) -> Commit:
        return self._held().revert(commit, branch=self.name, actor=actor, message=message)

    def create_branch(self, name: str) -> Commit:
        """A new branch that starts at the head of this one."""
        return self._held().create_branch(name, self.name)

    def tag(self, name: str) -> Commit:
        return self._held().tag(name, self.name)

    def protect(self, *, actor: str | None = None) -> None:
        self._held().protect(self.name, actor=actor)

    def unprotect(self, *, actor: str | None = None) -> None:
        self._held().unprotect(self.name, actor=actor)

    def optimize(
        self,
        *,
        types: Sequence[str] | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        engine: Literal["local", "spark"] = "local",
    ) -> Optimized:
        return self._held().optimize(
            branch=self.name, types=types, dry_run=dry_run, progress=progress, engine=engine
        )

    def delete(self, *, actor: str | None = None) -> None:
        self._held().delete_branch(self.name, actor=actor)

    def _held(self) -> Graph:
        """The graph, if the branch is still the one that this handle was made for; whatever it
        does then, it does for that one alone."""
        self._session.live_head(self.name, Ledger())
        return self._graph
