"""Owns the result of a query: rows that are computed when they are asked for, in every form that
common tools accept."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from omnigraph.arguments import checked_methods
from omnigraph.errors import InvalidArgument, NotOneRow, OmnigraphError
from omnigraph.model.version import Commit
from omnigraph.telemetry import Ledger
from omnigraph.tracing import traced_items

if TYPE_CHECKING:
    import igraph
    import networkx as nx
    import pandas as pd
    import polars as pl

    from omnigraph.show.arrays import GraphArrays
    from omnigraph.show.markup import Markup
    from omnigraph.show.subgraph import Subgraph

_PICTURED = 1_000
"""The largest number of rows with which a notebook also shows a picture."""


@checked_methods
class Result:
    """Iterating gives a dict for each row. Rows come as they are found. Once all rows were read
    they are kept, so a result can be read again. `schema` describes the columns, `commit` is the
    commit that was read, and `io` counts the requests. Rows of a result that is `ordered` come in
    the same order each time; those of one that is `timely` depend on when it was asked.

    >>> for row in g.query("match { $p: Person } return { $p.name } order { $p.name } limit 1"):
    ...     print(row)
    {'p.name': 'Ada'}
    """

    def __init__(
        self,
        schema: pa.Schema,
        batches: Callable[[], Iterator[pa.RecordBatch]],
        *,
        commit: Commit | Callable[[], Commit],
        io: Ledger,
        cancel: Callable[[], None],
        explain: Callable[[bool], str],
        graph: Callable[[bool], Subgraph],
        ordered: bool = False,
        timely: bool = False,
    ) -> None:
        self.schema = schema
        self._commit = commit
        self.io = io
        self.ordered = ordered
        self.timely = timely
        self._batches = batches
        self._cancel = cancel
        self._explain = explain
        self._graph = graph
        self._table: pa.Table | None = None
        self._begun = False

    @property
    def commit(self) -> Commit:
        """The commit that was read. A result of a server asks for it when it is first looked at.

        >>> g.query("match { $p: Person } return { $p.name }").commit == g.commit
        True
        """
        if not isinstance(self._commit, Commit):
            self._commit = self._commit()
        return self._commit

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Arrow batches as they are found; they are not kept.

        >>> found = g.query("match { $p: Person } return { $p.name }")
        >>> sum(batch.num_rows for batch in found.batches())
        3
        """
        if self._table is not None:
            yield from self._table.to_batches()
            return
        if self._begun:
            raise InvalidArgument(
                "The rows of this result have been read, and were not kept.",
                help="Ask for to_arrow() first to look at them more than once.",
            )
        self._begun = True
        yield from traced_items("query", self._batches)

    def cancel(self) -> None:
        """Stops the query. Code that waits for its rows gets `Cancelled`.

        >>> found = g.query("match { $p: Person } return { $p.name }")
        >>> found.cancel()
        """
        self._cancel()

    def to_arrow(self) -> pa.Table:
        """All rows as one Arrow table.

        >>> g.query("match { $p: Person } return { count($p) as people }").to_arrow().num_rows
        1
        """
        if self._table is None:
            self._table = pa.Table.from_batches(list(self.batches()), self.schema)
        return self._table

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if self._table is None and not self._begun:
            for batch in self.batches():
                yield from batch.to_pylist()
            return
        yield from self.to_arrow().to_pylist()

    def __bool__(self) -> bool:
        """Always True: a result exists, whatever its rows are. Nothing runs to find out."""
        return True

    def __len__(self) -> int:
        return int(self.to_arrow().num_rows)

    def one(self) -> dict[str, Any]:
        """The only row. Any other number of rows raises `NotOneRow`.

        >>> g.query("match { $p: Person } return { count($p) as people }").one()
        {'people': 3}
        """
        rows = self.to_pylist()
        if len(rows) != 1:
            raise NotOneRow(f"One row was asked for, and the query gives {len(rows)}.")
        row: dict[str, Any] = rows[0]
        return row

    def to_pylist(self) -> list[dict[str, Any]]:
        """All rows as dicts.

        >>> g.query("match { $p: Person $p.age > 40 } return { $p.name }").to_pylist()
        [{'p.name': 'Bob'}]
        """
        rows: list[dict[str, Any]] = self.to_arrow().to_pylist()
        return rows

    def to_pandas(self) -> pd.DataFrame:
        """All rows as a pandas DataFrame.

        >>> list(g.query("match { $p: Person } return { $p.name }").to_pandas().columns)
        ['p.name']
        """
        return self.to_arrow().to_pandas()

    def to_polars(self) -> pl.DataFrame:
        """All rows as a polars DataFrame. polars must be installed.

        >>> g.query("match { $p: Person } return { $p.name }").to_polars().height
        3
        """
        try:
            import polars as pl
        except ImportError:
            raise InvalidArgument(
                "polars is not installed.", help="Install it: pip install polars"
            ) from None
        frame = pl.from_arrow(self.to_arrow())
        assert isinstance(frame, pl.DataFrame)
        return frame

    def graph(self, *, vectors: bool = False) -> Subgraph:
        """The nodes and edges that the match bound. A notebook shows them as a picture. An edge is
        bound by its name: `$p $k:knows $f`. With `vectors` nodes hold their vectors, too.

        >>> found = g.query("match { $p: Person $p $k:knows $f } return { $p.name, $f.name }")
        >>> found.graph()
        <Subgraph 3 nodes, 2 edges>
        """
        return self._graph(vectors)

    def to_networkx(self) -> nx.MultiDiGraph:
        """The nodes and edges that the match bound, as networkx has them: nodes are (type, id)
        pairs.

        >>> found = g.query("match { $p: Person $p knows $f } return { $p.name, $f.name }")
        >>> sorted(found.to_networkx().nodes)
        [('Person', 'Ada'), ('Person', 'Bob'), ('Person', 'Cyd')]
        """
        return self.graph().to_networkx()

    def to_igraph(self) -> igraph.Graph:
        """The nodes and edges that the match bound, as igraph has them, with `@type` and `@id`.
        igraph must be installed.

        >>> found = g.query("match { $p: Person $p $k:knows $f } return { $p.name }")
        >>> sorted(found.to_igraph().es["since"])
        [2010, 2020]
        """
        return self.graph().to_igraph()

    def to_arrays(
        self,
        features: Mapping[str, Sequence[str]] | None = None,
        *,
        dtype: Literal["float32", "float64"] = "float32",
    ) -> GraphArrays:
        """The nodes and edges that the match bound, as arrays for learning on graphs: an edge index
        for each kind of edge, and numbers for each node and edge. `features` names properties by
        type; otherwise they are all that hold numbers or vectors. Null is NaN.

        >>> found = g.query("match { $p: Person $p $k:knows $f } return { $p.name }")
        >>> arrays = found.to_arrays({"Person": ["age"]})
        >>> arrays.nodes["Person"].ids
        ('Ada', 'Bob', 'Cyd')
        >>> arrays.edges["Person", "Knows", "Person"].index.tolist()
        [[0, 1], [1, 2]]
        """
        return self.graph(vectors=True).to_arrays(features, dtype=dtype)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        if self._table is not None or self._begun:
            return self.to_arrow().__arrow_c_stream__(requested_schema)
        reader = pa.RecordBatchReader.from_batches(self.schema, self.batches())
        return reader.__arrow_c_stream__(requested_schema)

    def explain(self, *, analyze: bool = False) -> str:
        """How the query is answered. With `analyze` it runs, and each step says what it did.

        >>> "Person" in g.query("match { $p: Person } return { $p.name }").explain()
        True
        """
        return self._explain(analyze)

    def __repr__(self) -> str:
        columns = ", ".join(f"{field.name}: {field.type}" for field in self.schema)
        rows = "" if self._table is None else f"{self._table.num_rows:,} rows, "
        return f"<Result {rows}{columns}>"

    def _repr_html_(self) -> str:
        """A table, and where whole entities are asked for also the picture of them."""
        from omnigraph.show.rows import rows_view

        rows = self.to_arrow()
        return rows_view(rows, *self._pictured(rows))

    def _pictured(self, rows: pa.Table) -> Iterator[Markup]:
        from omnigraph.show.markup import Markup

        entities = [field for field in self.schema if _is_entity(field.type)]
        if len(entities) < 2 or not 0 < rows.num_rows <= _PICTURED:
            return
        try:
            found = self.graph()
        except OmnigraphError:  # the rows are there, whatever became of the picture
            return
        if found.edges:
            yield Markup(found._repr_html_())


def _is_entity(kind: pa.DataType) -> bool:
    return bool(pa.types.is_struct(kind) and kind.num_fields and kind.field(0).name == "@id")
