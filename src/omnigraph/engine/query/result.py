"""Owns the result of a query: rows that are computed when they are asked for, in every form that
common tools accept."""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from omnigraph.arguments import checked_methods
from omnigraph.errors import InvalidArgument, NotOneRow
from omnigraph.model.version import Commit
from omnigraph.telemetry import Ledger

if TYPE_CHECKING:
    import networkx as nx
    import pandas as pd
    import polars as pl

_SHOWN = 20


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
        graph: Callable[[], nx.MultiDiGraph],
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
        yield from self._batches()

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

    def to_networkx(self) -> nx.MultiDiGraph:
        """The nodes and edges that the match bound, as a graph: nodes are (type, id) pairs.

        >>> found = g.query("match { $p: Person $p knows $f } return { $p.name, $f.name }")
        >>> sorted(found.to_networkx().nodes)
        [('Person', 'Ada'), ('Person', 'Bob'), ('Person', 'Cyd')]
        """
        return self._graph()

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
        table = self.to_arrow()
        head = "".join(f"<th>{html.escape(name)}</th>" for name in table.schema.names)
        body = "".join(
            "<tr>" + "".join(f"<td>{_cell(value)}</td>" for value in row.values()) + "</tr>"
            for row in table.slice(0, _SHOWN).to_pylist()
        )
        more = table.num_rows - _SHOWN
        note = f"<p>{more:,} more rows</p>" if more > 0 else ""
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}"


def _cell(value: object) -> str:
    return '<i style="opacity:.5">null</i>' if value is None else html.escape(str(value))
