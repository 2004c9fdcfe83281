"""Owns the registry of engines that run bulk work elsewhere, found by their entry points."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

from omnigraph.errors import EngineMissing, InvalidArgument

if TYPE_CHECKING:
    from omnigraph.embedding.port import Model
    from omnigraph.engine.algorithms.result import Computed
    from omnigraph.engine.algorithms.scope import AlgorithmScope
    from omnigraph.engine.export import ExportResult
    from omnigraph.engine.graph_view import GraphView
    from omnigraph.engine.load.result import LoadResult
    from omnigraph.engine.protocols import GraphLike
    from omnigraph.engine.query.result import Result
    from omnigraph.engine.session import Session
    from omnigraph.engine.upkeep.workers import Workers
    from omnigraph.engine.vectors.asking import Asks
    from omnigraph.engine.vectors.journal import VectorJournal
    from omnigraph.model.catalog import GraphType
    from omnigraph.model.options import CommitOptions
    from omnigraph.plan.query import Plan

GROUP = "omnigraph.engines"


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

    def tables(self, spark: Any = None, *, ref: str = "main", prefix: str = "") -> list[str]:
        """Makes a temporary view of every type, all of one snapshot, and gives their names."""


class Executor(Protocol):
    """What an engine has to offer. Its module registers a function that makes one, under the
    group `omnigraph.engines`; it may raise ImportError if what it rests on is not installed."""

    def active(self) -> bool:
        """Whether a session of the engine is running in this process."""

    def lacks(self) -> str | None:
        """What this machine lacks for the engine to start, None if nothing."""

    def start(
        self, master: str | None, settings: Mapping[str, str], *, brief: bool = False
    ) -> None:
        """Starts a session, on a place and with settings, or takes the one that is running.
        `brief`: for so little work that it should rather start fast than run fast."""

    def stop(self) -> None:
        """Ends the session that is running."""

    def of(self, graph: GraphLike) -> SparkHandle:
        """What the engine adds to an open graph: `g.spark`."""

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
        """A function that makes a commit of each micro-batch of a stream, once."""

    def is_cluster(self) -> bool:
        """Whether it runs, or is configured to run, on more than this machine."""

    def algorithm(
        self,
        session: Session,
        snapshot: GraphView,
        scope: AlgorithmScope,
        name: str,
        options: Mapping[str, Any],
    ) -> Computed:
        """The same values as in this process, of an algorithm with all its options."""

    def query(
        self,
        session: Session,
        snapshot: GraphView,
        plan: Plan,
        parameters: Mapping[str, Any],
        *,
        timeout: float | None,
        memory_limit: int | None,
    ) -> Result:
        """The same rows as in this process, when they are asked for; the parameters are bound."""

    def asker(
        self,
        session: Session,
        model: Model,
        dimension: int,
        journal: VectorJournal,
        batch: int | None,
    ) -> Asks:
        """Who asks a model for the vectors of texts."""

    def workers(self, session: Session) -> Workers:
        """The workers that do the heavy part of maintenance."""

    def export(
        self, session: Session
    ) -> Callable[[GraphView, Sequence[GraphType], str, Any], ExportResult]:
        """Writes types of a snapshot in a format to a directory."""

    def load(
        self, session: Session, source: Any, *, reason: str, options: Mapping[str, Any]
    ) -> LoadResult:
        """The same load as in this process, with the options of `Graph.load` by name."""


_RESTS_ON = {"spark": "pyspark"}


def registered(name: str) -> bool:
    """Whether there is such an engine, and what it rests on is installed; nothing is imported."""
    if find_spec(_RESTS_ON.get(name, "omnigraph")) is None:
        return False
    return any(point.name == name for point in entry_points(group=GROUP))


def is_here(engine: str) -> bool:
    """Whether work is to be done in this process, for what has no "auto"."""
    if engine not in ("local", "spark"):
        raise InvalidArgument(f"`engine` is one of 'local', 'spark', not {engine!r}.")
    return engine == "local"


def is_running(name: str) -> bool:
    """Whether a session of the engine is running; nothing is imported to find out."""
    return (
        _RESTS_ON.get(name, "omnigraph") in sys.modules
        and registered(name)
        and find_executor(name).active()
    )


def find_executor(name: str) -> Executor:
    for point in entry_points(group=GROUP):
        if point.name != name:
            continue
        try:
            make: Callable[[], Executor] = point.load()
            return make()
        except ImportError as error:
            raise EngineMissing(
                f"The engine {name!r} cannot start: {error}.",
                help=f"Install what it needs: pip install 'omnigraph[{name}]', or use "
                "engine='local'.",
            ) from error
    raise EngineMissing(
        f"There is no engine {name!r} in this installation.",
        help=f"Install it: pip install 'omnigraph[{name}]', or use engine='local'.",
    )


def configured_master() -> str:
    """The Spark master that the environment names, "" if none."""
    return os.environ.get("MASTER", "") or os.environ.get("SPARK_MASTER", "")
