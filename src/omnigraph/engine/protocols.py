"""Owns the protocols: what a graph offers, wherever it is.

`Graph` implements them in this process. A client of a server offers the same methods with the same
signatures, which a test compares.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeVar, Unpack

from omnigraph.model.call_types import AlgorithmFilter, Edges, Filter

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.engine.algorithms.result import AlgorithmResult
    from omnigraph.engine.blob import BlobLike
    from omnigraph.engine.export import ExportFormat, ExportResult
    from omnigraph.engine.history.blame import Origin
    from omnigraph.engine.history.diff import DiffLike
    from omnigraph.engine.history.feed import FeedBlock
    from omnigraph.engine.history.log import LogLike, LogWords
    from omnigraph.engine.history.timeline import Moment
    from omnigraph.engine.index_state import IndexState
    from omnigraph.engine.load.progress import OnLoadProgress
    from omnigraph.engine.load.result import LoadResult
    from omnigraph.engine.merge.run import Merge
    from omnigraph.engine.mutation.result import MutationResult
    from omnigraph.engine.query.expand import Kernel
    from omnigraph.engine.query.result import Result
    from omnigraph.engine.query.search.everywhere import SearchBy
    from omnigraph.engine.upkeep.cleanup_report import Cleaned
    from omnigraph.engine.upkeep.jobs import GraphJob
    from omnigraph.engine.upkeep.optimize_report import OnProgress, Optimized
    from omnigraph.engine.upkeep.recovery import IntentReport
    from omnigraph.engine.upkeep.upgrade import FormatReport
    from omnigraph.engine.upkeep.verify_report import Verification
    from omnigraph.engine.vectors.result import Embedded, OnEmbedProgress
    from omnigraph.engine.write.migration import Applied
    from omnigraph.engine.write.queries import QueriesStored
    from omnigraph.lang.gq.checking import CheckedText
    from omnigraph.lang.gq.stored import StoredQuery
    from omnigraph.model.options import CommitWords
    from omnigraph.model.permission import AskedAction
    from omnigraph.model.version import Commit
    from omnigraph.plan.migrate import MigrationPlan
    from omnigraph.show.schema import SchemaGraph
    from omnigraph.store.job_files import JobKind

T = TypeVar("T")


class PreparedLike(Protocol):
    """A query that has been checked, to be asked with parameters."""

    def __call__(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        memory_limit: int | None = None,
        kernel: Kernel = "auto",
    ) -> Result: ...


class SnapshotLike(Protocol):
    """Every read."""

    @property
    def commit(self) -> Commit: ...

    @property
    def schema(self) -> str: ...

    def types(self) -> list[str]: ...

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
    ) -> Result: ...

    def prepare(self, text: str, name: str | None = None) -> PreparedLike: ...

    def queries(self) -> dict[str, StoredQuery]: ...

    def run_query(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        memory_limit: int | None = None,
        kernel: Kernel = "auto",
        engine: Literal["local", "spark"] = "local",
    ) -> Result: ...

    def explain(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        analyze: bool = False,
        kernel: Kernel = "auto",
        engine: Literal["local", "spark"] = "local",
    ) -> str: ...

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.RecordBatchReader: ...

    def count(self, type: str) -> int: ...

    def search(
        self,
        text: str,
        *,
        types: Sequence[str] | None = None,
        limit: int = 10,
        by: SearchBy = "words",
    ) -> Result: ...

    def indexes(self) -> list[IndexState]: ...

    def entity(self, type: str, id: str) -> dict[str, Any] | None: ...

    def blob(self, type: str, id: str, property: str) -> BlobLike | None: ...

    def export(
        self,
        *,
        types: Sequence[str] | None = None,
        format: ExportFormat = "jsonl",
        to: Any = "-",
        engine: Literal["local", "spark"] = "local",
        overwrite: bool = True,
    ) -> ExportResult: ...

    def algorithm(
        self,
        name: str,
        *,
        edges: Edges = None,
        direction: Literal["out", "in", "both"] | None = None,
        where: AlgorithmFilter = None,
        engine: Literal["auto", "local", "spark"] = "auto",
        **options: Any,
    ) -> AlgorithmResult: ...

    def diff(
        self,
        ref: str = "main",
        *,
        types: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> DiffLike: ...

    def log(self, **shown: Unpack[LogWords]) -> LogLike: ...

    def history(self, type: str, id: str, *, limit: int | None = None) -> Iterator[Moment]: ...

    def blame(self, type: str, id: str) -> list[Origin]: ...

    def describe(self, *, types: Sequence[str] | None = None, characters: int = 8_000) -> str: ...

    def schema_graph(self) -> SchemaGraph: ...

    def check(self, text: str) -> CheckedText: ...

    def plan_schema(self, schema: str | os.PathLike[str]) -> MigrationPlan: ...

    def manifest(self) -> pa.Table: ...


class JobsLike(Protocol):
    """Long work that was asked for, in whatever process it runs."""

    def submit(
        self,
        kind: JobKind,
        arguments: Mapping[str, Any] | None = None,
        *,
        actor: str | None = None,
        idempotency_key: str | None = None,
    ) -> GraphJob: ...

    def list(self) -> list[GraphJob]: ...

    def get(self, id: str) -> GraphJob: ...

    def cancel(self, id: str, *, actor: str | None = None) -> GraphJob: ...

    def events(self, id: str, *, poll: float = 0.5) -> Iterator[GraphJob]: ...


class RecoveryLike(Protocol):
    """What is left of long operations that died."""

    def list(self) -> list[IntentReport]: ...

    def resume(self, id: str) -> Commit: ...

    def discard(self, id: str) -> Commit | None: ...


class SavepointLike(Protocol):
    """A point of a transaction to go back to."""

    def rollback(self) -> None: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...


class TransactionLike(Protocol):
    """Statements that become one commit, or nothing."""

    commit: Commit | None
    commit_id: str | None
    repeated: bool

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...

    def publish(self) -> None: ...

    def savepoint(self) -> SavepointLike: ...

    def append(self, type: str, rows: Any) -> int: ...

    def upsert(self, type: str, rows: Any) -> int: ...

    def overwrite(self, type: str, rows: Any) -> int: ...

    def update(self, type: str, *, set: Mapping[str, Any], where: Filter | None) -> int: ...

    def delete(self, type: str, *, where: Filter | None) -> int: ...

    def query(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        memory_limit: int | None = None,
        kernel: Kernel = "auto",
    ) -> Result: ...

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.Table: ...

    def count(self, type: str) -> int: ...


class BranchLike(SnapshotLike, Protocol):
    """A snapshot that follows the head of a branch, and every write."""

    name: str

    def snapshot(self) -> SnapshotLike: ...

    def changes(
        self,
        after: str = "beginning",
        *,
        limit: int | None = None,
        types: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
        follow: bool = False,
        poll: float = 1.0,
    ) -> Generator[FeedBlock, None, None]: ...

    def transaction(self, **commit: Unpack[CommitWords]) -> TransactionLike: ...

    def run(self, unit: Callable[[Any], T], **commit: Unpack[CommitWords]) -> T: ...

    def mutate(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        embed: bool = False,
        **commit: Unpack[CommitWords],
    ) -> MutationResult: ...

    def store_queries(
        self,
        queries: Mapping[str, str],
        *,
        remove: Sequence[str] = (),
        **commit: Unpack[CommitWords],
    ) -> QueriesStored: ...

    def run_mutation(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        embed: bool = False,
        **commit: Unpack[CommitWords],
    ) -> MutationResult: ...

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
    ) -> LoadResult: ...

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
    ) -> Embedded: ...

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
    ) -> AlgorithmResult: ...

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
    ) -> Callable[[Any, int], None]: ...

    def apply_schema(
        self,
        schema: str | os.PathLike[str],
        *,
        allow_data_loss: bool = False,
        **commit: Unpack[CommitWords],
    ) -> Applied: ...

    def merge(
        self,
        source: str,
        *,
        strategy: str | Mapping[str, str] | None = None,
        resolve: Mapping[tuple[str, str], Mapping[str, Any] | None] | None = None,
        dry_run: bool = False,
        **commit: Unpack[CommitWords],
    ) -> Merge: ...

    def restore(self, ref: str, **commit: Unpack[CommitWords]) -> Commit: ...

    def revert(self, ref: str, **commit: Unpack[CommitWords]) -> Commit: ...

    def optimize(
        self,
        *,
        types: Sequence[str] | None = None,
        dry_run: bool = False,
        progress: OnProgress | None = None,
        engine: Literal["local", "spark"] = "local",
        **commit: Unpack[CommitWords],
    ) -> Optimized: ...


class GraphLike(BranchLike, Protocol):
    """The branch `main`, and what concerns the whole graph. What needs the files themselves is
    not here: `copy`, `spark` and `maintenance`."""

    @property
    def root(self) -> str: ...

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None: ...

    def close(self) -> None: ...

    def at(self, ref: str) -> SnapshotLike: ...

    def branch(self, name: str) -> BranchLike: ...

    def may(self, action: AskedAction, branch: str = "main") -> bool: ...

    def branches(self) -> list[str]: ...

    def create_branch(
        self, name: str, ref: str = "main", **commit: Unpack[CommitWords]
    ) -> Commit: ...

    def delete_branch(self, branch: Any, **commit: Unpack[CommitWords]) -> None: ...

    def protected_branches(self) -> list[str]: ...

    def protect(self, branch: Any, **commit: Unpack[CommitWords]) -> None: ...

    def unprotect(self, branch: Any, **commit: Unpack[CommitWords]) -> None: ...

    def tags(self) -> dict[str, Commit]: ...

    def create_tag(self, name: str, ref: str = "main", **commit: Unpack[CommitWords]) -> Commit: ...

    def delete_tag(self, name: str, **commit: Unpack[CommitWords]) -> None: ...

    def log(self, *, all: bool = False, **shown: Unpack[LogWords]) -> LogLike: ...

    def cleanup(
        self,
        *,
        keep: int = 10,
        older_than: str | float | timedelta = "7d",
        grace: str | float | timedelta | None = None,
        dry_run: bool = False,
    ) -> Cleaned: ...

    def verify(self, *, deep: bool = False) -> Verification: ...

    def format(self) -> FormatReport: ...

    @property
    def jobs(self) -> JobsLike: ...

    @property
    def recovery(self) -> RecoveryLike: ...
