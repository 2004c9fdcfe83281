"""Owns the protocol of an engine: everything that Spark can do in the place of this process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from omnigraph.engine.algorithms.run import AlgorithmExecutor
from omnigraph.engine.executors import Startable
from omnigraph.engine.load.run import LoadExecutor
from omnigraph.engine.query.ask import QueryExecutor
from omnigraph.engine.vectors.run import EmbedExecutor

if TYPE_CHECKING:
    from omnigraph.engine.export import ExportResult
    from omnigraph.engine.graph_view import GraphView
    from omnigraph.engine.session import Session
    from omnigraph.engine.upkeep.workers import Workers
    from omnigraph.model.catalog import GraphType
    from omnigraph.model.options import CommitOptions


class SparkHandle(Protocol):
    """What Spark adds to an open graph: `g.spark`. Sessions and DataFrames are those of Spark,
    which may not be installed."""

    def table(
        self,
        type: str,
        *,
        spark: Any = None,
        ref: str = "main",
        columns: str | None = None,
        where: str | None = None,
    ) -> Any:
        """A type as a DataFrame, as it is at a ref now."""

    def tables(
        self,
        spark: Any = None,
        *,
        ref: str = "main",
        prefix: str = "",
        foreign_keys: bool = False,
    ) -> list[str]:
        """Makes a temporary view of every type, all from one snapshot, and returns their names.
        With `foreign_keys` the ends of an edge are called after what they point to."""

    def frames(
        self, spark: Any = None, *, ref: str = "main", types: Sequence[str] | None = None
    ) -> Any:
        """The graph as `vertices` and `edges`, two DataFrames."""


class Executor(Startable, LoadExecutor, QueryExecutor, AlgorithmExecutor, EmbedExecutor, Protocol):
    """An engine with every operation. Each operation has its own part of this protocol."""

    def spark_graph(self, root: str, at: Callable[[str], GraphView]) -> SparkHandle:
        """What the engine adds to the graph at `root`: `g.spark`. `at` pins the version that a ref
        names, as `g.at` does."""

    def stream_writer(
        self,
        session: Session,
        branch: str,
        type: str | None,
        *,
        mapping: Mapping[str, Mapping[str, Any]] | None,
        mode: str,
        on_error: str,
        engine: str,
        stream_id: str | None,
        commit: CommitOptions,
    ) -> Callable[[Any, int], None]:
        """A function that makes one commit of each micro-batch of a stream, exactly once."""

    def workers(self, session: Session) -> Workers:
        """The workers that do the heavy part of maintenance."""

    def export(
        self, session: Session
    ) -> Callable[[GraphView, Sequence[GraphType], str, Any], ExportResult]:
        """Writes types of a snapshot to a directory in a format."""
