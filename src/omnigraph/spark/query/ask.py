"""Owns asking on Spark: it turns a query, its limits and a session into the same result as in this
process.

Nothing runs until rows are asked for. They come batch by batch, and whatever ends the query ends
its jobs.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.engine.query.guard import Guard
from omnigraph.engine.query.result import Result
from omnigraph.engine.query.shape import schema_of
from omnigraph.errors import InvalidArgument
from omnigraph.plan.query import Plan, plan_listing
from omnigraph.plan.query.explain import render_plan
from omnigraph.plan.query.expressions import all_searches
from omnigraph.plan.values.rows import Bindings
from omnigraph.show.subgraph import Subgraph
from omnigraph.spark.cluster import require_reachable
from omnigraph.spark.query.context import Compiling
from omnigraph.spark.query.delivery import decode
from omnigraph.spark.query.failures import decoded_error
from omnigraph.spark.query.finish import compile_query
from omnigraph.spark.query.network import build_network
from omnigraph.spark.query.projection import wants_of
from omnigraph.spark.query.session import Jobs, plan_text, query_session
from omnigraph.spark.query.values import LoadSource
from omnigraph.spark.session import session as open_session
from omnigraph.spark.tasks import explained

if TYPE_CHECKING:
    from omnigraph.engine.graph_view import GraphView
    from omnigraph.engine.session import Session


def ask_spark(
    session: Session,
    snapshot: GraphView,
    plan: Plan,
    parameters: Mapping[str, Any],
    *,
    timeout: float | None,
    memory_limit: int | None,
) -> Result:
    require_no_search(plan)
    asked = SparkAsked(session, snapshot, plan, parameters, timeout, memory_limit)
    return Result(
        schema_of(plan),
        asked.batches,
        commit=snapshot.commit,
        io=snapshot.io,
        cancel=asked.cancel,
        explain=asked.explain,
        graph=asked.network,
    )


def require_no_search(plan: Plan) -> None:
    if next(all_searches(plan), None) is not None:
        raise InvalidArgument(
            "This query searches by text or vector, which Spark does not.",
            help="Ask it with engine='local'.",
        )


class SparkAsked:
    """A query that was asked of Spark, and can be run."""

    def __init__(
        self,
        session: Session,
        snapshot: GraphView,
        plan: Plan,
        parameters: Mapping[str, Any],
        timeout: float | None,
        memory_limit: int | None,
    ) -> None:
        self._session = session
        self._snapshot = snapshot
        self._plan = plan
        self._parameters = dict(parameters)
        self._memory_limit = memory_limit
        self._guard = Guard(session.runtime.monotonic, timeout=timeout, memory_limit=memory_limit)

    def cancel(self) -> None:
        self._guard.cancel()

    def _compiling(self, plan: Plan | None = None, *, dry: bool = False) -> Compiling:
        plan = plan or self._plan
        spark = open_session()
        require_reachable(spark, self._session.root)
        bindings = Bindings(self._parameters, self._session.runtime.now())
        return Compiling(
            query_session(spark),
            self._session.root.uri,
            self._snapshot,
            plan,
            wants_of(plan),
            LoadSource(bindings, self._memory_limit),
            dry=dry,
        )

    def batches(self) -> Iterator[pa.RecordBatch]:
        schema = schema_of(self._plan)
        with self._running() as compiling:
            made = compile_query(compiling)
            self._guard.check()
            for row in made.toLocalIterator(prefetchPartitions=True):
                self._guard.check()
                batch = decode(row[0], schema)
                self._guard.fits(batch.nbytes)
                yield batch

    @contextlib.contextmanager
    def _running(self, plan: Plan | None = None) -> Iterator[Compiling]:
        """A run within its limits. Its failures are raised as errors of ours."""
        self._guard.begin()
        self._guard.check()
        compiling = self._compiling(plan)
        tag = f"omnigraph-{self._session.runtime.ulid()}"
        try:
            with explained(), Jobs(compiling.spark, tag, lambda: self._guard.is_over):
                try:
                    yield compiling
                except Exception as error:
                    self._guard.check()
                    if (ours := decoded_error(error)) is not None:
                        raise ours from None
                    raise
        finally:
            compiling.close()

    def explain(self, analyze: bool) -> str:
        if not analyze:
            compiling = self._compiling(dry=True)
            try:
                shown = plan_text(compile_query(compiling))
            finally:
                compiling.close()
            return self._rendered(shown, compiling.notes)
        monotonic = self._session.runtime.monotonic
        began = monotonic()
        with self._running() as compiling:
            made = compile_query(compiling)
            rows = sum(
                decode(row[0], schema_of(self._plan)).num_rows
                for row in made.toLocalIterator(prefetchPartitions=True)
            )
            shown = plan_text(made)
        seconds = monotonic() - began
        return self._rendered(shown, [*compiling.notes, f"{rows:,} rows in {seconds:.2f} s"])

    def _rendered(self, shown: str, notes: list[str]) -> str:
        lines = [f"  {line}" for line in shown.strip().splitlines()]
        return "\n".join([render_plan(self._plan), "spark", *lines, *notes])

    def network(self, vectors: bool) -> Subgraph:
        listing = plan_listing(self._plan)
        listing = replace(listing, inner=self._plan.inner | listing.inner)
        with self._running(listing) as compiling:
            return build_network(compiling, vectors=vectors)
