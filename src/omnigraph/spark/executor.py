"""Owns Spark as an engine: what is registered in the group `omnigraph.engines`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from omnigraph.engine.executors import configured_master
from omnigraph.errors import EngineMissing
from omnigraph.spark.java import find_java
from omnigraph.spark.session import active_session, is_local
from omnigraph.spark.session import session as open_session

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph
    from omnigraph.engine.load.result import LoadResult
    from omnigraph.engine.query.result import Result
    from omnigraph.engine.session import Session
    from omnigraph.engine.snapshot import Snapshot
    from omnigraph.plan.query import Plan
    from omnigraph.spark.graph import SparkGraph


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

    def of(self, graph: Graph) -> SparkGraph:
        from omnigraph.spark.graph import SparkGraph

        return SparkGraph(graph)

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

    def load(
        self, session: Session, source: Any, *, reason: str, options: Mapping[str, Any]
    ) -> LoadResult:
        from omnigraph.engine.load.bulk import LoadOptions
        from omnigraph.spark.load import load

        return load(open_session(), session, source, LoadOptions(**options), reason)


def make() -> SparkExecutor:
    import pyspark  # noqa: F401 - tells the engine if it is not installed

    return SparkExecutor()
