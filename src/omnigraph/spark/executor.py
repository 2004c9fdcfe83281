"""Owns Spark as an engine: the object that is registered in the group `omnigraph.engines`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from omnigraph.engine.executors import configured_master
from omnigraph.errors import EngineMissing
from omnigraph.spark.cluster import is_remote
from omnigraph.spark.java import find_java
from omnigraph.spark.session import active_session, is_local
from omnigraph.spark.session import session as open_session

if TYPE_CHECKING:
    from omnigraph.embedding.port import Model
    from omnigraph.engine.algorithms.result import Computed
    from omnigraph.engine.algorithms.scope import AlgorithmScope
    from omnigraph.engine.executor_protocol import Executor
    from omnigraph.engine.export import ExportResult
    from omnigraph.engine.graph_view import GraphView
    from omnigraph.engine.load.result import LoadResult
    from omnigraph.engine.query.result import Result
    from omnigraph.engine.session import Session
    from omnigraph.engine.upkeep.workers import Workers
    from omnigraph.engine.vectors.asking import Asks
    from omnigraph.engine.vectors.journal import VectorJournal
    from omnigraph.model.catalog import GraphType
    from omnigraph.model.options import CommitOptions
    from omnigraph.plan.query import Plan
    from omnigraph.spark.graph import SparkGraph


_BRIEF = {
    # For a hundred thousand rows, compiling takes longer than interpreting.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Xshare:auto",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


class SparkExecutor:
    def active(self) -> bool:
        return active_session() is not None

    def lacks(self) -> str | None:
        if self.active() or not is_local(configured_master() or "local"):
            return None
        try:
            find_java()
        except EngineMissing as error:
            return error.message
        return None

    def start(
        self, master: str | None, settings: Mapping[str, str], *, brief: bool = False
    ) -> None:
        here = is_local(master or configured_master() or "local")
        if brief and here and not self.active():
            settings = {**_BRIEF, **settings}
        open_session(master, **settings)

    def stop(self) -> None:
        running = active_session()
        if running is not None:
            running.stop()

    def spark_graph(self, root: str, at: Callable[[str], GraphView]) -> SparkGraph:
        from omnigraph.spark.graph import SparkGraph

        return SparkGraph(root, at)

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
        from omnigraph.engine.load.options import LoadOptions
        from omnigraph.spark.stream.batches import stream_writer

        options = LoadOptions(
            type=type, mode=mode, branch=branch, on_error=on_error, engine=engine, commit=commit
        )
        return stream_writer(session, options, stream_id, mapping)

    def is_cluster(self) -> bool:
        running = active_session()
        if running is None:
            return not is_local(configured_master() or "local")
        return is_remote(running)

    def algorithm(
        self,
        session: Session,
        snapshot: GraphView,
        scope: AlgorithmScope,
        name: str,
        options: Mapping[str, Any],
    ) -> Computed:
        from omnigraph.spark.algorithms.run import compute_on

        return compute_on(open_session(), session, snapshot, scope, name, options)

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
        from omnigraph.spark.query.ask import ask_spark

        return ask_spark(
            session, snapshot, plan, parameters, timeout=timeout, memory_limit=memory_limit
        )

    def asker(
        self,
        session: Session,
        model: Model,
        dimension: int,
        journal: VectorJournal,
        batch: int | None,
    ) -> Asks:
        from omnigraph.spark.embedding import SparkAsker

        return SparkAsker(open_session(), model, session.settings, dimension, journal, batch)

    def workers(self, session: Session) -> Workers:
        from omnigraph.spark.cluster import require_reachable
        from omnigraph.spark.upkeep import SparkWorkers

        spark = open_session()
        require_reachable(spark, session.root)
        return SparkWorkers(spark, session.root)

    def export(
        self, session: Session
    ) -> Callable[[GraphView, Sequence[GraphType], str, Any], ExportResult]:
        from omnigraph.spark.export import export_on

        return partial(export_on, open_session(), session.root)

    def load(
        self, session: Session, source: Any, *, reason: str, options: Mapping[str, Any]
    ) -> LoadResult:
        from omnigraph.engine.load.options import LoadOptions
        from omnigraph.spark.load.run import load

        return load(open_session(), session, source, LoadOptions(**options), reason)


def make() -> Executor:
    import pyspark  # noqa: F401 - tells the engine if it is not installed

    return SparkExecutor()
