"""Owns asking: it turns a query, its parameters and a snapshot into a result."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pyarrow as pa

from omnigraph.arguments import checked
from omnigraph.engine.cache import Cache
from omnigraph.engine.columns import Columns
from omnigraph.engine.executors import find_executor
from omnigraph.engine.query.adjacency.cache import Adjacencies
from omnigraph.engine.query.entities import Entities
from omnigraph.engine.query.expand import Expander, Kernel
from omnigraph.engine.query.guard import Guard, memory_told
from omnigraph.engine.query.networks import build_network
from omnigraph.engine.query.prepare import Preparations, Prepared
from omnigraph.engine.query.result import Result
from omnigraph.engine.query.run import Observer, Run
from omnigraph.engine.query.search.everywhere import (
    SCHEMA,
    SearchBy,
    fields_of,
    find_everywhere,
)
from omnigraph.engine.query.search.ranking import narrowed
from omnigraph.engine.query.shape import schema_of
from omnigraph.engine.query.unions import joined_result
from omnigraph.engine.query.workspace import Workspace, Workspaces
from omnigraph.engine.view import TableView
from omnigraph.errors import InvalidArgument, InvalidParameters
from omnigraph.lang.gq import ParameterError, bind_parameters
from omnigraph.lang.gq.checked import Nearest
from omnigraph.model.catalog import GraphType
from omnigraph.plan.query import Plan
from omnigraph.plan.query.explain import counted, render_plan
from omnigraph.plan.query.expressions import all_searches, asks_time
from omnigraph.show.subgraph import Subgraph
from omnigraph.telemetry import Ledger

if TYPE_CHECKING:
    from omnigraph.engine.graph_view import GraphView
    from omnigraph.engine.session import Session

Engine = Literal["local", "spark"]
KERNELS = ("auto", "indexed", "adjacency")
ENGINES = ("local", "spark")


class QueryExecutor(Protocol):
    """An engine that answers queries in the place of this process."""

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
        """The same rows as in this process, found when they are asked for. The parameters are
        bound already."""


def bound(prepared: Prepared, given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise InvalidArgument(
            f"Parameters are values by name, as a dict, not as {type(given).__name__}."
        )
    try:
        return bind_parameters(prepared.query, given)
    except ParameterError as error:
        listed = "; ".join(f"${name} {reason}" for name, reason in error.problems)
        raise InvalidParameters(
            f"The parameters do not fit: {listed}.", problems=error.problems
        ) from None


def ask(
    session: Session,
    snapshot: GraphView,
    prepared: Prepared,
    parameters: Mapping[str, Any] | None,
    *,
    timeout: float | None,
    memory_limit: int | None,
    kernel: Kernel,
    view: Callable[[GraphType], TableView] | None = None,
    engine: Engine = "local",
) -> Result:
    """Nothing runs until rows are asked for. `view` replaces the access to types, for a transaction
    with pending rows."""
    _check_bounds(timeout, memory_limit, kernel, engine)
    values = bound(prepared, parameters)

    def one(part: Prepared, timeout: float | None) -> Result:
        return _asked(session, snapshot, part, values, timeout, memory_limit, kernel, view, engine)

    if prepared.parts:
        clock = session.runtime.monotonic
        guard = Guard(clock, timeout=timeout, memory_limit=memory_limit)
        return joined_result(prepared, values, one, guard, clock, timeout)
    return one(prepared, timeout)


def _asked(
    session: Session,
    snapshot: GraphView,
    prepared: Prepared,
    values: Mapping[str, Any],
    timeout: float | None,
    memory_limit: int | None,
    kernel: Kernel,
    view: Callable[[GraphType], TableView] | None,
    engine: Engine,
) -> Result:
    pins = snapshot.graph_version.pins
    # A plan shows how many rows it counts on: those that are seen.
    plan = prepared.plan({name: snapshot.count(name) for name in prepared.types if name in pins})
    if engine != "local":
        executor: QueryExecutor = find_executor(engine)
        return executor.query(
            session, snapshot, plan, values, timeout=timeout, memory_limit=memory_limit
        )
    asked = Asked(session, snapshot, plan, values, timeout, memory_limit, kernel, view)
    return Result(
        schema_of(plan),
        asked.batches,
        commit=snapshot.commit,
        io=snapshot.io,
        cancel=asked.cancel,
        explain=asked.explain,
        graph=asked.network,
        ordered=bool(plan.query.order),
        timely=asks_time(plan),
    )


class PreparedQuery:
    """A query whose text has been read and checked. Calling it asks the query, of the handle that
    made it: a snapshot answers from its version, a branch from its head at each call. When the
    schema has changed since, the text is checked again."""

    def __init__(
        self, session: Session, pinned: Callable[[], GraphView], text: str, name: str | None
    ) -> None:
        self._session = session
        self._pinned = pinned
        self._text = text
        self._name = name
        self._read(pinned())

    def _read(self, view: GraphView) -> None:
        shared = Preparations.shared_by(self._session)
        self._prepared = shared.read(self._text, self._name, view.catalog), view.catalog

    @checked
    def __call__(
        self,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        memory_limit: int | None = None,
        kernel: Kernel = "auto",
    ) -> Result:
        view = self._pinned()
        prepared, catalog = self._prepared
        if view.catalog is not catalog and view.catalog.digest != catalog.digest:
            self._read(view)
            prepared, _ = self._prepared
        return ask(
            self._session,
            view,
            prepared,
            params,
            timeout=timeout,
            memory_limit=memory_limit,
            kernel=kernel,
        )

    def __repr__(self) -> str:
        return f"PreparedQuery({self._name or self._text!r})"


def search_everywhere(
    session: Session,
    snapshot: GraphView,
    words: str,
    kinds: Sequence[GraphType],
    limit: int,
    by: SearchBy,
) -> Result:
    """A search over these types, as a result."""
    prepared = Preparations.shared_by(session)

    def one(text: str, parameters: dict[str, Any]) -> Result:
        query = prepared.read(text, None, snapshot.catalog)
        return ask(
            session, snapshot, query, parameters, timeout=None, memory_limit=None, kernel="auto"
        )

    def rows(text: str, parameters: dict[str, Any]) -> Iterator[dict[str, Any]]:
        return iter(one(text, parameters))

    fields = fields_of(kinds, by)
    texts = [field.query for field in fields]

    def explain(analyze: bool) -> str:
        given = {"words": words, "limit": limit}
        return "\n".join(one(text, given).explain(analyze=analyze) for text in texts)

    def network(_vectors: bool) -> Subgraph:
        raise InvalidArgument("A search over a graph finds entities, and no edges between them.")

    return Result(
        SCHEMA,
        lambda: iter((find_everywhere(rows, fields, words, limit),)),
        commit=snapshot.commit,
        io=snapshot.io,
        cancel=lambda: None,
        explain=explain,
        graph=network,
    )


def _check_bounds(
    timeout: float | None, memory_limit: int | None, kernel: str, engine: str
) -> None:
    if timeout is not None and not timeout > 0:
        raise InvalidArgument(f"The timeout {timeout} is not above zero.")
    if memory_limit is not None and memory_limit <= 0:
        raise InvalidArgument(f"The memory_limit {memory_limit} is not above zero.")
    if kernel not in KERNELS:
        raise InvalidArgument(f"There is no kernel {kernel!r}; choose from {', '.join(KERNELS)}.")
    if engine not in ENGINES:
        raise InvalidArgument(
            f"There is no engine {engine!r} for queries; choose from {', '.join(ENGINES)}."
        )
    if engine != "local" and kernel != "auto":
        raise InvalidArgument(f"A kernel is a way of the local engine, and {engine!r} has none.")


class Asked:
    """A query that was asked, and can be run."""

    def __init__(
        self,
        session: Session,
        snapshot: GraphView,
        plan: Plan,
        values: Mapping[str, Any],
        timeout: float | None,
        memory_limit: int | None,
        kernel: Kernel,
        view: Callable[[GraphType], TableView] | None,
    ) -> None:
        self._session = session
        self._snapshot = snapshot
        self._plan = plan
        self._values = values
        self._timeout = timeout
        self._memory_limit = memory_limit
        self._kernel = kernel
        self._view = view
        self._guard = self._new_guard()

    def _new_guard(self) -> Guard:
        return Guard(
            self._session.runtime.monotonic,
            timeout=self._timeout,
            memory_limit=self._memory_limit,
        )

    def cancel(self) -> None:
        self._guard.cancel()

    def batches(self) -> Iterator[pa.RecordBatch]:
        with memory_told():
            yield from self._found()

    def _found(self) -> Iterator[pa.RecordBatch]:
        if self._view is not None:  # pending rows belong to this transaction alone
            yield from self._run(self._plan, self._workspace(self._snapshot.io)).batches()
            return
        version = self._snapshot.graph_version
        key = (
            version.branch,
            version.incarnation,
            version.version,
            version.commit.id,
            self._kernel,
            None if self._snapshot.sight is None else self._snapshot.sight.mark,
        )
        pool = Workspaces.shared_by(self._session)
        workspace = pool.take(key)
        if workspace is None:
            workspace = self._workspace(self._snapshot.io)
        else:
            workspace.entities.go_on(self._snapshot.view, self._snapshot.io)
            workspace.expander.go_on(self._guard)
        try:
            yield from self._run(self._plan, workspace).batches()
        finally:
            pool.give(key, workspace)

    def _workspace(self, ledger: Ledger) -> Workspace:
        session = self._session
        evictions = Cache.shared_by(session).evictions
        entities = Entities(self._view or self._snapshot.view, Columns.shared_by(session), ledger)
        adjacencies = Adjacencies.shared_by(session)
        expander = Expander(
            entities, adjacencies, self._snapshot.catalog, self._guard, self._kernel
        )
        return Workspace(entities, expander, evictions)

    def _run(self, plan: Plan, workspace: Workspace, observer: Observer | None = None) -> Run:
        from omnigraph.engine.embedding.models import embed_query

        session = self._session
        self._guard.begin()
        return Run(
            plan,
            workspace=workspace,
            parameters=self._values,
            guard=self._guard,
            now=session.runtime.now(),
            rows_in_memory=session.settings.query_rows,
            embed=partial(embed_query, session),
            observer=observer,
        )

    def explain(self, analyze: bool) -> str:
        if not analyze:
            searched = self._searched()
            return render_plan(self._plan, summary=f"search {searched}" if searched else None)
        ledger = Ledger()
        monotonic = self._session.runtime.monotonic
        observer = Observer(monotonic, ledger)
        run = self._run(self._plan, self._workspace(ledger), observer)
        began = monotonic()
        rows = sum(batch.num_rows for batch in run.batches())
        seconds = monotonic() - began
        return render_plan(
            self._plan,
            observations=observer.found,
            summary=(
                f"{counted(rows, 'row')} in {seconds * 1000:.2f} ms, "
                f"{counted(ledger.reads, 'request')}, {counted(ledger.read_bytes, 'byte')} read"
                + "".join(f", {name} by {how}" for name, how in sorted(run.searches.used.items()))
                + (
                    f", expanded by {' and '.join(sorted(run.expander.used))}"
                    * bool(run.expander.used)
                )
            ),
        )

    def _searched(self) -> str:
        """What is searched, and by what means."""
        plan = self._plan
        asked = {part.target: part for part in all_searches(plan)}
        if not asked:
            return ""
        run = self._run(plan, self._workspace(self._snapshot.io))
        among = narrowed(plan)
        for target, part in asked.items():
            for place, kind in enumerate(run.kinds(target.variable)):
                rows, prop = run.entities.rows(kind), target.properties[place]
                look = run.searches.vectors if isinstance(part, Nearest) else run.searches.texts
                look(rows, prop).narrowed = target in among
        return ", ".join(f"{name} by {how}" for name, how in sorted(run.searches.used.items()))

    def network(self, vectors: bool) -> Subgraph:
        return build_network(
            self._plan,
            lambda plan: self._run(plan, self._workspace(self._snapshot.io)),
            vectors=vectors,
        )
