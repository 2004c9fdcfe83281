"""Owns every read of a graph on a server: the methods of `SnapshotLike`, each one request."""

from __future__ import annotations

import base64
import os
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, Literal, Unpack

import msgspec
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow.substrait import serialize_expressions

from omnigraph.arguments import checked_methods
from omnigraph.client.connection import SILENCE
from omnigraph.client.exports import export_rows
from omnigraph.client.past import RemoteDiff, RemoteLog, begun
from omnigraph.client.prepared_query import RemotePreparedQuery
from omnigraph.client.remote_blob import RemoteBlob, open_blob
from omnigraph.client.row_streams import ask_rows, pinned_at, require_here
from omnigraph.client.served_graph import SchemaAt, ServedGraph
from omnigraph.client.told import change_of, commit_of, origin_of, plan_of
from omnigraph.client.understanding import understanding
from omnigraph.engine import manifest
from omnigraph.engine.algorithms.result import AlgorithmResult
from omnigraph.engine.export import ExportFormat, ExportResult
from omnigraph.engine.graph_view import find_type
from omnigraph.engine.history.blame import Origin
from omnigraph.engine.history.log import LogWords
from omnigraph.engine.history.timeline import Moment
from omnigraph.engine.index_state import IndexState
from omnigraph.engine.query.expand import Kernel
from omnigraph.engine.query.result import Result
from omnigraph.engine.query.search.everywhere import SearchBy
from omnigraph.engine.reads import check_limit
from omnigraph.engine.write.migration import schema_text
from omnigraph.errors import (
    EntityNotFound,
    InvalidArgument,
    NotRemote,
    QueryNotFound,
    TypeNotFound,
)
from omnigraph.lang.gq.checking import CheckedText
from omnigraph.lang.gq.stored import StoredQuery
from omnigraph.model.arrow import row_schema
from omnigraph.model.call_types import AlgorithmFilter, Edges, Filter
from omnigraph.model.version import Commit
from omnigraph.plan.migrate import MigrationPlan
from omnigraph.show.parts import SubgraphEdge, SubgraphNode
from omnigraph.show.schema import SchemaGraph, schema_subgraph
from omnigraph.show.subgraph import Subgraph
from omnigraph.telemetry import Ledger
from omnigraph.tracing import traced_methods
from omnigraph.wire.typed import untyped

_TYPE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,254}")
_LIMIT = 30.0
"""Seconds that a server gives a query for which no timeout was asked."""
_AT_ONCE = 1000


@traced_methods("algorithm", "export")
@checked_methods
class RemoteReads(ABC):
    """Every read. A snapshot answers from its commit; a branch, and a graph for its branch `main`,
    from its head at the time of the call."""

    _served: ServedGraph

    @property
    def _graph_name(self) -> str:
        return self._served.connection.address.uri

    @abstractmethod
    def _ref(self) -> str:
        """The ref that is read."""

    @abstractmethod
    def _schema_now(self) -> SchemaAt:
        """The schema that is read, and the ref that pins it."""

    # Rows

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
        """Asks a `.gq` query. It returns when the schema of the answer has come, so mistakes are
        raised here; rows stream while they are read, and `cancel()` ends them. The server chooses
        the kernel."""
        require_here(engine)
        body: dict[str, Any] = {"query": text, "name": name, "params": params}
        body |= {"ref": self._ref(), "timeout": timeout, "memory_limit": memory_limit}
        return self._asked("/query", body, timeout)

    def prepare(self, text: str, name: str | None = None) -> RemotePreparedQuery:
        """Reads and checks a query once, to be asked many times: call what it returns with the
        parameters."""
        return RemotePreparedQuery(self.query, text, name, self._schema_now().catalog)

    def run_query(
        self,
        name: str,
        params: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        memory_limit: int | None = None,
        kernel: Kernel = "auto",
        engine: Literal["local", "spark"] = "local",
    ) -> Result:
        """Asks a stored query by its name; all else is as with `query`."""
        require_here(engine)
        body: dict[str, Any] = {"params": params, "ref": self._ref()}
        body |= {"timeout": timeout, "memory_limit": memory_limit}
        return self._asked(f"/queries/{require_name(name)}/run", body, timeout)

    def _asked(self, path: str, body: dict[str, Any], timeout: float | None) -> Result:
        served = self._served
        silence = SILENCE + (_LIMIT if timeout is None else timeout)
        rows = ask_rows(served, path, body, silence=silence)
        pinned = pinned_at(body, rows.commit)
        told = {"query", "name", "params", "ref"}

        @understanding()
        def explain(analyze: bool) -> str:
            asked = {name: value for name, value in pinned.items() if name in told}
            if "query" not in asked:
                asked["query"] = self.queries()[path.split("/")[2]].text
            return str(served.ask("/explain", asked | {"analyze": analyze})["plan"])

        @understanding()
        def network(vectors: bool) -> Subgraph:
            asked = pinned | {"shape": "graph", "vectors": vectors or None}
            return subgraph_of(served.answer("POST", path, body=asked).json)

        return Result(
            rows.schema,
            rows.batches,
            commit=lambda: self._commit_of(rows.commit),
            io=Ledger(),
            cancel=rows.cancel,
            explain=explain,
            graph=network,
            ordered=rows.headers.get("omnigraph-ordered") == "true",
            timely=rows.headers.get("cache-control") == "no-store",
        )

    @understanding()
    def _commit_of(self, id: str) -> Commit:
        return commit_of(self._served.get(f"/commits/{id}"))

    @understanding()
    def queries(self) -> dict[str, StoredQuery]:
        """The stored queries by name: what each takes and gives, reads and writes."""
        items = self._served.items("/queries", {"ref": self._ref()}, page=_AT_ONCE)
        return {one["name"]: msgspec.convert(one, StoredQuery) for one in items}

    @understanding()
    def explain(
        self,
        text: str,
        name: str | None = None,
        params: Mapping[str, Any] | None = None,
        *,
        analyze: bool = False,
        kernel: Kernel = "auto",
        engine: Literal["local", "spark"] = "local",
    ) -> str:
        """How a query is answered, step by step. With `analyze` it runs there."""
        require_here(engine)
        body = {"query": text, "name": name, "params": params, "ref": self._ref()}
        told = self._served.ask("/explain", body | {"analyze": analyze})
        return str(told["plan"])

    def search(
        self,
        text: str,
        *,
        types: Sequence[str] | None = None,
        limit: int = 10,
        by: SearchBy = "words",
    ) -> Result:
        """Looks for words, meanings or both in all texts."""
        body = {"text": text, "types": types, "limit": limit, "by": by, "ref": self._ref()}
        return self._asked("/search", body, None)

    @understanding()
    def indexes(self) -> list[IndexState]:
        """The indexes that the schema asks for, and how many rows each covers."""
        told = self._served.get("/indexes", {"ref": self._ref()})
        return [msgspec.convert(one, IndexState) for one in told["items"]]

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.RecordBatchReader:
        """The rows of a type as an Arrow stream. A condition that is an Arrow expression travels
        as Substrait; what Substrait cannot carry is refused."""
        body: dict[str, Any] = {"type": type, "columns": columns, "ref": self._ref()}
        if isinstance(filter, pc.Expression):
            body["substrait"] = substrait_of(self._schema_now(), type, filter)
        else:
            body["filter"] = filter
        rows = ask_rows(self._served, "/scan", body)
        return pa.RecordBatchReader.from_batches(rows.schema, rows.batches())

    @understanding()
    def count(self, type: str) -> int:
        """The number of entities of a type."""
        told = self._served.get("", {"ref": self._ref(), "type": [type]})
        return int(told["types"][0]["count"])

    @understanding()
    def entity(self, type: str, id: str) -> dict[str, Any] | None:
        """One entity by its id; None if it is not there."""
        query = {"id": check_text(id), "ref": self._ref()}
        try:
            told = self._served.get(f"/entities/{require_type(type)}", query)
        except EntityNotFound:
            return None
        return msgspec.convert(untyped(told), dict[str, Any])

    def blob(self, type: str, id: str, property: str) -> RemoteBlob | None:
        """A handle on one blob of an entity, or None if it has none. Only the bytes that are asked
        for are sent."""
        if _TYPE.fullmatch(property) is None:
            raise InvalidArgument(f"{type} has no property {property!r}.")
        pin = self._schema_now().pin
        return open_blob(self._served, pin, require_type(type), check_text(id), property)

    def export(
        self,
        *,
        types: Sequence[str] | None = None,
        format: ExportFormat = "jsonl",
        to: Any = "-",
        engine: Literal["local", "spark"] = "local",
        overwrite: bool = True,
    ) -> ExportResult:
        """Writes everything, or some types, to files of this machine, or to a stream."""
        require_here(engine)
        schema = self._schema_now()
        return export_rows(self._served, schema, types, format, to, overwrite=overwrite)

    @understanding()
    def algorithm(
        self,
        name: str,
        *,
        edges: Edges = None,
        direction: Literal["out", "in", "both"] | None = None,
        where: AlgorithmFilter = None,
        engine: Literal["auto", "local", "spark"] = "auto",
        **options: Any,
    ) -> AlgorithmResult:
        """A value for each node, computed on the server. Conditions are texts of the query
        language."""
        require_here(engine)
        body = {"name": name, "edges": edges, "direction": direction, "where": texts_of(where)}
        rows = ask_rows(
            self._served,
            "/algorithm",
            body | {"options": options, "ref": self._ref()},
            silence=_LONG_SILENCE,
        )
        table = pa.Table.from_batches(list(rows.batches()), rows.schema)
        rounds = int(rows.headers["omnigraph-rounds"])
        return AlgorithmResult(name, "local", rounds, _held=[table])

    # Past

    def diff(
        self,
        ref: str = "main",
        *,
        types: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> RemoteDiff:
        """What changed from a ref to here. Iterating reads the changes; `summary()` counts them."""
        return RemoteDiff(self._served, ref, self._ref(), types, kinds, ops)

    def log(self, **shown: Unpack[LogWords]) -> RemoteLog:
        """Commits from here back to the beginning, page by page."""
        return RemoteLog(self._served, self._ref(), shown=read_log_words(shown))

    def history(self, type: str, id: str, *, limit: int | None = None) -> Iterator[Moment]:
        """The commits that changed one entity, newest first."""
        check_limit(limit)
        query = {"id": check_text(id), "branch": self._ref()}
        items = begun(self._served.items(f"/entities/{require_type(type)}/history", query))
        return islice((_moment_of(one) for one in items), limit)

    @understanding()
    def blame(self, type: str, id: str) -> list[Origin]:
        """Which commit last set each property of an entity: who, when and why."""
        query = {"id": check_text(id), "ref": self._ref()}
        try:
            told = self._served.get(f"/entities/{require_type(type)}/blame", query)
        except EntityNotFound:
            return []
        return [origin_of(one) for one in told["items"]]

    # Schema

    @property
    def commit(self) -> Commit:
        """The commit that is read here."""
        return self._schema_now().commit

    @property
    def schema(self) -> str:
        """The text of the accepted schema."""
        return self._schema_now().text

    def types(self) -> list[str]:
        """Names of all node and edge types, in the order of the schema."""
        return [*self._schema_now().types]

    @understanding()
    def describe(self, *, types: Sequence[str] | None = None, characters: int = 8_000) -> str:
        """The schema in few characters, for the context of a model."""
        query = {"type": types, "characters": characters, "ref": self._ref()}
        return str(self._served.get("/schema/summary", query)["text"])

    @understanding()
    def schema_graph(self) -> SchemaGraph:
        """The schema as a graph, which a notebook shows as a picture."""
        schema = self._schema_now()
        told = self._served.get("", {"ref": schema.pin})
        counts = {one["name"]: int(one["count"]) for one in told["types"]}
        return schema_subgraph(schema.catalog, counts)

    @understanding()
    def check(self, text: str) -> CheckedText:
        """Every mistake in a text of queries, and what was probably meant. Nothing runs."""
        told = self._served.ask("/check", {"text": text, "ref": self._ref()})
        return msgspec.convert(told, CheckedText)

    @understanding()
    def plan_schema(self, schema: str | os.PathLike[str]) -> MigrationPlan:
        """What applying a schema would do, step by step. Nothing is changed."""
        body = {"schema": schema_text(schema), "ref": self._ref()}
        return plan_of(self._served.ask("/schema/plan", body))

    @understanding()
    def manifest(self) -> pa.Table:
        """The graph version as rows."""
        told = self._served.get("/manifest", {"ref": self._ref()})
        return pa.Table.from_pylist(told["items"], schema=manifest.SCHEMA)


_LONG_SILENCE = 3600.0


@understanding()
def _moment_of(told: Mapping[str, Any]) -> Moment:
    return Moment(commit_of(told), change_of(told["change"]))


def require_type(name: str) -> str:
    """A name that can be part of a path."""
    if _TYPE.fullmatch(name) is None:
        raise TypeNotFound(f"There is no type {name!r}.")
    return name


def require_name(name: str) -> str:
    """A name that can be part of a path."""
    if _TYPE.fullmatch(name) is None:
        raise QueryNotFound(f"There is no stored query {name!r}.")
    return name


def check_text(id: str) -> str:
    if not isinstance(id, str):
        raise InvalidArgument(f"An id is a text, not {id.__class__.__name__}.")
    return id


def read_log_words(shown: LogWords) -> LogWords:
    for name in shown:
        if name not in LogWords.__annotations__:
            raise InvalidArgument(f"There is no option {name!r} of a log.")
    return shown


def texts_of(where: AlgorithmFilter) -> Any:
    """Conditions of an algorithm, as they travel."""
    if where is None or isinstance(where, str):
        return where
    if isinstance(where, Mapping) and all(isinstance(one, str) for one in where.values()):
        return dict(where)
    raise NotRemote(
        "The conditions of an algorithm on a server are texts of the query language.",
        help='Write "since > 2015" instead of an Arrow expression.',
    )


def substrait_of(schema: SchemaAt, type: str, condition: pc.Expression) -> str:
    """An Arrow expression over the columns of a type, as it travels."""
    kind = find_type(schema.catalog, type)
    held = [f for f in row_schema(kind) if not pa.types.is_fixed_size_list(f.type)]
    try:
        data = serialize_expressions([condition], ["condition"], pa.schema(held))
    except (pa.ArrowException, NotImplementedError) as error:
        raise InvalidArgument(
            f"The condition of {type} cannot be sent: {str(error).splitlines()[0][:200]}.",
            help="Write it as a text of the query language.",
        ) from None
    return base64.b64encode(bytes(data)).decode()


def subgraph_of(told: Mapping[str, Any]) -> Subgraph:
    """The nodes and edges of an answer."""
    nodes = (SubgraphNode(one["type"], one["id"], untyped(one["data"])) for one in told["nodes"])
    edges = (
        SubgraphEdge(
            one["type"],
            one["id"],
            (one["from"]["type"], one["from"]["id"]),
            (one["to"]["type"], one["to"]["id"]),
            untyped(one["data"]),
        )
        for one in told["edges"]
    )
    return Subgraph(nodes, edges)
