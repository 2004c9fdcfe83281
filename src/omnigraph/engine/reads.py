"""Owns every read. They are the same on a snapshot, a branch and a graph: each takes one pinned
view of the graph and reads that."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, Unpack, get_args

from omnigraph.arguments import checked_methods
from omnigraph.engine.graph_view import GraphView, shown_version, view_of
from omnigraph.engine.history.log import LogWords
from omnigraph.engine.session import Session
from omnigraph.errors import Denied, InvalidArgument
from omnigraph.model.call_types import AlgorithmFilter, Edges, Filter
from omnigraph.model.permission import BranchAction
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.telemetry import Ledger
from omnigraph.tracing import traced_methods

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.engine.algorithms.result import AlgorithmResult
    from omnigraph.engine.blob import Blob
    from omnigraph.engine.executor_protocol import Executor
    from omnigraph.engine.export import ExportFormat, ExportResult
    from omnigraph.engine.history.blame import Origin
    from omnigraph.engine.history.diff import Diff
    from omnigraph.engine.history.log import Log
    from omnigraph.engine.history.timeline import Moment
    from omnigraph.engine.index_state import IndexState
    from omnigraph.engine.query.ask import PreparedQuery
    from omnigraph.engine.query.expand import Kernel
    from omnigraph.engine.query.result import Result
    from omnigraph.engine.query.search.everywhere import SearchBy
    from omnigraph.lang.gq.checking import CheckedText
    from omnigraph.lang.gq.stored import StoredQuery
    from omnigraph.plan.migrate import MigrationPlan
    from omnigraph.show.schema import SchemaGraph


@traced_methods("algorithm", "export")
@checked_methods
class Reads(ABC):
    """Every read. A snapshot always answers from its version. A branch, and a graph for its branch
    `main`, looks up the head once for each call."""

    _session: Session

    @property
    def _graph_name(self) -> str:
        return self._session.root.uri

    @abstractmethod
    def _version(self, ledger: Ledger, action: BranchAction = "read") -> GraphVersion:
        """Only the version that a call reads. A handle that acts for somebody first asks whether
        that caller may."""

    def _pinned(self, action: BranchAction = "read") -> GraphView:
        """The same version with its types and tables, as far as the caller may see them."""
        ledger = Ledger()
        return view_of(self._session, self._version(ledger, action), ledger)

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
        """Asks a `.gq` query, by `name` if the text has several. The query is checked at once
        against the schema; rows are found when they are asked for. `timeout` is in seconds,
        `memory_limit` in bytes; `kernel` forces how edges are followed; with "spark" as `engine`
        Spark finds the same rows.

        >>> g.query("match { $p: Person } return { $p.name } order { $p.name }").to_pylist()
        [{'p.name': 'Ada'}, {'p.name': 'Bob'}, {'p.name': 'Cyd'}]
        >>> text = "query older($n: I32) { match { $p: Person $p.age > $n } return { $p.name } }"
        >>> g.at("main").query(text, params={"n": 40}).one()
        {'p.name': 'Bob'}
        """

        from omnigraph.engine.query.prepare import Preparations

        pinned = self._pinned("query")
        _require_here(pinned, engine)
        prepared = Preparations.shared_by(self._session).read(text, name, pinned.catalog)
        from omnigraph.engine.query.ask import ask  # a text that is refused does not wait for it

        return ask(
            self._session,
            pinned,
            prepared,
            params,
            timeout=timeout,
            memory_limit=memory_limit,
            kernel=kernel,
            engine=engine,
        )

    def prepare(self, text: str, name: str | None = None) -> PreparedQuery:
        """Reads and checks a `.gq` query once, to be asked many times: call what it returns with
        the parameters. Each call answers from the version that the handle shows at that time.

        >>> text = "query q($name: String) { match { $p: Person {name: $name} } return { $p.age } }"
        >>> ask = g.prepare(text)
        >>> [ask({"name": name}).one()["p.age"] for name in ("Ada", "Bob")]
        [36, 41]
        """
        from omnigraph.engine.query.ask import PreparedQuery

        return PreparedQuery(self._session, lambda: self._pinned("query"), text, name)

    def queries(self) -> dict[str, StoredQuery]:
        """The stored queries by name: what each takes and gives, reads and writes. They are part
        of the graph, and are here as they were at this version.

        >>> done = g.store_queries({"names": "match { $p: Person } return { $p.name }"})
        >>> [(c.name, c.kind) for c in g.queries()["names"].columns]
        [('p.name', 'String')]
        >>> g.at("main~1").queries()
        {}
        """

        from omnigraph.engine.stored_queries import queries_of_view
        from omnigraph.lang.gq.stored import describe_stored

        pinned = self._pinned()
        stored = queries_of_view(pinned)
        return {
            name: describe_stored(name, stored[name], pinned.catalog) for name in sorted(stored)
        }

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
        """Asks a stored query by its name; all else is as with `query`.

        >>> text = "query older($n: I32) { match { $p: Person $p.age > $n } return { $p.name } }"
        >>> done = g.store_queries({"older": text})
        >>> g.run_query("older", {"n": 40}).one()
        {'p.name': 'Bob'}
        """

        from omnigraph.engine.query.ask import ask
        from omnigraph.engine.query.prepare import prepare_stored

        pinned = self._pinned()
        _require_here(pinned, engine)
        return ask(
            self._session,
            pinned,
            prepare_stored(pinned, name),
            params,
            timeout=timeout,
            memory_limit=memory_limit,
            kernel=kernel,
            engine=engine,
        )

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
        """Shows how a query is answered, step by step. With `analyze` the query runs, and each step
        shows what it did.

        >>> print(g.explain("match { $p: Person } return { $p.name }"))
        asked
          $p: Person
        steps
          scan Person as $p  (about 3 rows)
        then
          return p.name
        """
        asked = self.query(text, name, params, kernel=kernel, engine=engine)
        return asked.explain(analyze=analyze)

    def search(
        self,
        text: str,
        *,
        types: Sequence[str] | None = None,
        limit: int = 10,
        by: SearchBy = "words",
    ) -> Result:
        """Looks for words in all texts that have an `@index`, or in all texts if none has: the
        best entities of the graph, each with the passage that answers. With "meaning" as `by` it
        compares what the texts mean, through vectors with `@embed`; with "both" it does both.
        `types` names the only types that are searched.

        >>> g.search("ada").to_pylist()[0]["id"]
        'Ada'
        """

        from omnigraph.engine.query.ask import search_everywhere
        from omnigraph.engine.query.search.everywhere import MOST, SearchBy

        pinned = self._pinned("query")
        if not isinstance(limit, int) or not 0 < limit <= MOST:
            raise InvalidArgument(f"The limit {limit!r} is not a number from 1 to {MOST:,}.")
        if by not in get_args(SearchBy):
            known = ", ".join(get_args(SearchBy))
            raise InvalidArgument(f"There is no search by {by!r}; choose from {known}.")
        names = pinned.types() if types is None else types
        return search_everywhere(
            self._session, pinned, text, [pinned.type(name) for name in names], limit, by
        )

    def indexes(self) -> list[IndexState]:
        """The indexes that the schema asks for, and how many rows each covers. Rows that are not
        covered are found as well, more slowly; `optimize` adds them.

        >>> [(one.type, one.property, one.kind) for one in g.indexes()][0]
        ('Person', 'id', 'BTREE')
        """

        from omnigraph.engine.index_state import index_states

        return index_states(self._pinned())

    def scan(
        self,
        type: str,
        *,
        columns: Sequence[str] | None = None,
        filter: Filter | None = None,
    ) -> pa.RecordBatchReader:
        """The rows of a type as an Arrow stream. Nothing is read before the stream is. `filter` is
        a condition of the query language as text, or an Arrow expression.

        >>> g.scan("Person", columns=["name"], filter="age > 40").read_all().to_pylist()
        [{'name': 'Bob'}]
        >>> import pyarrow.compute as pc
        >>> g.scan("Person", filter=pc.field("age") > 40).read_all().num_rows
        1
        """
        return self._pinned().scan(type, columns=columns, filter=filter)

    def count(self, type: str) -> int:
        """The number of entities of a type. No row is read.

        >>> g.count("Person")
        3
        """
        return self._pinned().count(type)

    def entity(self, type: str, id: str) -> dict[str, Any] | None:
        """One entity by its id, which is its key if the type has one; None if it is not there.

        >>> g.entity("Person", "Ada")["age"]
        36
        >>> g.entity("Person", "Zoe") is None
        True
        """

        from omnigraph.engine.history import timeline

        return timeline.read_entity(self._pinned(), type, id)

    def blob(self, type: str, id: str, property: str) -> Blob | None:
        """A handle on one blob of an entity, or None if it has none. It reads only the bytes that
        are asked for.

        >>> with g.transaction() as tx:
        ...     tx.upsert("Person", {"name": "Ada", "photo": b"0123456789"})
        1
        >>> g.blob("Person", "Ada", "photo").read(2, 3)
        b'234'
        """

        from omnigraph.engine.blob import read_blob

        return read_blob(self._pinned(), type, id, property)

    def export(
        self,
        *,
        types: Sequence[str] | None = None,
        format: ExportFormat = "jsonl",
        to: Any = "-",
        engine: Literal["local", "spark"] = "local",
        overwrite: bool = True,
    ) -> ExportResult:
        """Writes everything, or some types, so that `load` gives an equal graph: to a path, a
        directory, a binary stream, or "-" for the standard output. With "spark" as `engine`
        executors write it, to a directory, each type in one file or more. With
        `overwrite=False` a file that is there already is refused.

        >>> g.export(to="people.jsonl").counts
        {'Person': 3, 'Knows': 2}
        """

        from omnigraph.engine.executors import find_executor, is_here
        from omnigraph.engine.export import export

        pinned = self._pinned("export")
        _require_here(pinned, engine)
        elsewhere = None
        if not is_here(engine):
            executor: Executor = find_executor(engine)
            elsewhere = executor.export(self._session)
        return export(
            pinned,
            types=types,
            format=format,
            to=to,
            root=self._session.root.directory,
            overwrite=overwrite,
            elsewhere=elsewhere,
        )

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
        """A value for each node: "pagerank", "connected_components", "label_propagation",
        "triangle_count", "shortest_paths" (with `sources`), "core_numbers", "degrees". `edges` are
        edge types by name, or each with its direction, or all of them; `where` has conditions by
        the type of nodes or edges, as texts or Arrow expressions, and entities that do not meet
        them take no part. "spark" as `engine` gives the same values; "auto" goes there if Spark is
        a cluster.

        >>> g.algorithm("degrees", edges="Knows").to_dict()
        {'Ada': 1, 'Bob': 2, 'Cyd': 1}
        >>> g.algorithm("degrees", where={"Knows": "since > 2015"}).to_dict()
        {'Ada': 0, 'Bob': 1, 'Cyd': 1}
        """

        from omnigraph.engine.algorithms.run import AlgorithmCall, run_algorithm

        pinned = self._pinned("query")
        if pinned.sight is not None and not pinned.sight.whole and engine == "auto":
            engine = "local"
        _require_here(pinned, engine)
        call = AlgorithmCall(name, edges, direction, where, engine, options)
        return run_algorithm(self._session, pinned, call)

    # Past

    def diff(
        self,
        ref: str = "main",
        *,
        types: Sequence[str] | None = None,
        kinds: Sequence[str] | None = None,
        ops: Sequence[str] | None = None,
    ) -> Diff:
        """Shows what changed from a ref to here: entities that were inserted, updated and deleted.
        Iterating reads the changes, type by type; `summary()` counts them.

        >>> done = g.mutate('update Person set { age: 37 } where name = "Ada"')
        >>> [(change.op.value, change.id, change.changed) for change in g.diff("main~1")]
        [('update', 'Ada', ('age',))]
        >>> g.at("main~1").diff("main").summary()
        {'Person': {'update': 1}}
        """

        from omnigraph.engine.history.refs import History

        new = self._pinned()
        ledger = Ledger()
        old = view_of(self._session, History(self._session, ledger).resolve(ref), ledger)
        from omnigraph.engine.history.diff import make_diff  # a ref that is refused needs it not

        return make_diff(old, new, types=types, kinds=kinds, ops=ops)

    def log(self, **shown: Unpack[LogWords]) -> Log:
        """Lists commits from here back to the beginning: children before parents, later ones first.
        It follows both parents of merges, or only the first with `first_parent`. `limit` bounds
        their number; `actor` and `kind` select commits; `since` and `until` are times, both
        included. The log reads as far as it is iterated; its `lanes()` draw what is left.

        >>> [commit.message for commit in g.log(actor="ada", limit=5)]
        ['three people']
        >>> list(g.log(since="2999-01-01"))
        []
        """

        from omnigraph.engine.history.log import make_log

        ledger = Ledger()
        version = self._version(ledger)
        return make_log(self._session, [version], ledger=ledger, **shown)

    def history(self, type: str, id: str, *, limit: int | None = None) -> Iterator[Moment]:
        """The commits that changed one entity, newest first, with what they did to it. A renamed
        type is still the same type.

        >>> done = g.mutate('update Person set { age: 37 } where name = "Ada"')
        >>> [(one.change.op.value, one.change.after["age"]) for one in g.history("Person", "Ada")]
        [('update', 37), ('insert', 36)]
        """

        from omnigraph.engine.history import timeline

        check_limit(limit)
        pinned = self._pinned()
        return islice(timeline.read_moments(self._session, pinned, type, id, pinned.io), limit)

    def blame(self, type: str, id: str) -> list[Origin]:
        """Which commit last set each property of an entity: who, when and why. It goes back only as
        far as it has to; what a merge took over is followed to the branch that it came from.

        >>> done = g.mutate('update Person set { age: 37 } where name = "Ada"', message="birthday")
        >>> {one.property: one.commit.message for one in g.blame("Person", "Ada")}["age"]
        'birthday'
        """

        from omnigraph.engine.history.blame import read_origins

        pinned = self._pinned()
        return read_origins(self._session, pinned, type, id, pinned.io)

    # Schema

    @property
    def commit(self) -> Commit:
        """The commit that is read here.

        >>> (g.commit.actor, g.commit.kind)
        ('ada', 'write')
        """
        if self._session.permissions.restricted:
            return self._pinned().commit
        return self._version(Ledger()).commit

    @property
    def schema(self) -> str:
        """The text of the accepted schema.

        >>> print(g.schema.splitlines()[0])
        node Person {
        """
        return self._pinned().schema

    def types(self) -> list[str]:
        """Names of all node and edge types, in the order of the schema.

        >>> g.types()
        ['Person', 'Knows']
        """
        return self._pinned().types()

    def describe(self, *, types: Sequence[str] | None = None, characters: int = 8_000) -> str:
        """The schema in few characters, for the context of a model: types with their properties,
        descriptions, counts and some values. What does not fit is left out, examples first.

        >>> print(g.describe(types=["Knows"]))
        edge Knows: Person -> Person (2) as $a knows $b
          since: I32?  e.g. 2010, 2020
        """

        from omnigraph.engine.describing import describe

        return describe(self._pinned(), types, characters)

    def schema_graph(self) -> SchemaGraph:
        """The schema as a graph: its types with their properties and counts, and what leads where.
        A notebook shows it as a picture.

        >>> [(edge.type, edge.source[1], edge.target[1]) for edge in g.schema_graph().edges]
        [('Knows', 'Person', 'Person')]
        >>> g.schema_graph().nodes[0].data["@count"]
        3
        """

        from omnigraph.show.schema import schema_subgraph

        pinned = self._pinned()
        counts = {kind.name: pinned.count(kind.name) for kind in pinned.catalog.types}
        return schema_subgraph(pinned.catalog, counts)

    def check(self, text: str) -> CheckedText:
        """Every mistake in a text of queries, with its place, and where it can be known the text
        that was probably meant. Nothing runs.

        >>> wrong = g.check("match { $p: Persn } retrun { $p.name }")
        >>> (wrong.ok, wrong.diagnostics[0].message)
        (False, 'unexpected `retrun`')
        >>> wrong.corrected
        'match { $p: Person } return { $p.name }'
        """

        from omnigraph.lang.gq.checking import check_text

        return check_text(text, self._pinned().catalog)

    def plan_schema(self, schema: str | os.PathLike[str]) -> MigrationPlan:
        """What applying a schema would do, step by step. Nothing is changed.

        >>> [step.code for step in g.plan_schema(g.schema + "node Pet { name: String }").steps]
        ['OG-SC-101']
        """

        from omnigraph.engine.write.migration import read_schema, schema_text, with_broken_queries
        from omnigraph.plan.migrate import plan_migration

        pinned = self._pinned()
        if pinned.sight is not None and not pinned.sight.whole:
            raise InvalidArgument(
                "A caller that does not see the whole schema cannot plan a change of it."
            )
        populated = {key for key, pin in pinned.graph_version.pins.items() if pin.rows}
        desired = read_schema(schema_text(schema))
        plan = plan_migration(pinned.catalog, desired, populated=populated)
        return with_broken_queries(plan, pinned)

    def manifest(self) -> pa.Table:
        """The graph version as rows: tables, their versions, the head and its commit.

        >>> rows = g.manifest().to_pylist()
        >>> {row["table_key"]: row["row_count"] for row in rows if row["table_version"]}
        {'node:Person': 3, 'edge:Knows': 2}
        """

        from omnigraph.engine import manifest

        if self._session.permissions.restricted:
            return manifest.manifest_rows(shown_version(self._pinned()))
        return manifest.manifest_rows(self._version(Ledger()))


def _require_here(pinned: GraphView, engine: str) -> None:
    """Executors read the files themselves, where nothing hides a row."""
    if engine == "spark" and pinned.sight is not None and not pinned.sight.whole:
        raise Denied(
            "Who does not see every row cannot use Spark.",
            help="Leave out the engine: what you may see is read in this process.",
            action="query",
            resource="engine 'spark'",
            policies=[],
        )


def check_limit(limit: int | None) -> None:
    if limit is not None and limit < 0:
        raise InvalidArgument(f"The limit {limit} is below zero.")
