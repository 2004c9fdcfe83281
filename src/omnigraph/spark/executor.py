"""Owns Spark as an engine: what is registered in the group `omnigraph.engines`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from omnigraph.engine.executors import configured_master
from omnigraph.errors import EngineMissing
from omnigraph.spark.java import find_java
from omnigraph.spark.place import is_remote
from omnigraph.spark.session import active_session, is_local
from omnigraph.spark.session import session as open_session

if TYPE_CHECKING:
    from omnigraph.engine.algorithms.result import Computed
    from omnigraph.engine.algorithms.scope import Scope
    from omnigraph.engine.export import ExportResult
    from omnigraph.engine.graph import Graph
    from omnigraph.engine.load.result import LoadResult
    from omnigraph.engine.query.result import Result
    from omnigraph.engine.session import Session
    from omnigraph.engine.snapshot import Snapshot
    from omnigraph.engine.upkeep.hands import Hands
    from omnigraph.model.catalog import GraphType
    from omnigraph.plan.query import Plan
    from omnigraph.spark.graph import SparkGraph


_BRIEF = {
    # Compiling a hundred thousand rows' work takes longer than doing it.
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

    def of(self, graph: Graph) -> SparkGraph:
        from omnigraph.spark.graph import SparkGraph

        return SparkGraph(graph)

    def is_cluster(self) -> bool:
        running = active_session()
        if running is None:
            return not is_local(configured_master() or "local")
        return is_remote(running)

    def algorithm(
        self,
        graph: Graph,
        snapshot: Snapshot,
        scope: Scope,
        name: str,
        options: Mapping[str, Any],
    ) -> Computed:
        from omnigraph.spark.algorithms.run import compute_on

        return compute_on(open_session(), graph, snapshot, scope, name, options)

    def query(
        self,
        session: Session,
        snapshot: Snapshot,
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

    def hands(self, session: Session) -> Hands:
        from omnigraph.spark.place import require_reachable
        from omnigraph.spark.upkeep import SparkHands

        spark = open_session()
        require_reachable(spark, session.root)
        return SparkHands(spark, session.root)

    def export(
        self, session: Session
    ) -> Callable[[Snapshot, Sequence[GraphType], str, Any], ExportResult]:
        from omnigraph.spark.export import export_on

        return partial(export_on, open_session(), session.root)

    def load(
        self, session: Session, source: Any, *, reason: str, options: Mapping[str, Any]
    ) -> LoadResult:
        from omnigraph.engine.load.bulk import LoadOptions
        from omnigraph.spark.load.run import load

        return load(open_session(), session, source, LoadOptions(**options), reason)


def make() -> SparkExecutor:
    import pyspark  # noqa: F401 - tells the engine if it is not installed

    return SparkExecutor()
