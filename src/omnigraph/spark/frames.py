"""Owns graphs as two DataFrames, `vertices` with `id` and `edges` with `src` and `dst`, which is
how GraphFrames and its like take a graph; and results as one.

`_type` says of which type a row is. Ids are unique among all types: of several types they are
`Type:id`. Where a type does not have a property, it is null.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa

from omnigraph.engine.graph_view import GraphView
from omnigraph.errors import InvalidArgument
from omnigraph.model.catalog import Catalog, EdgeType, GraphType, NodeType, system_columns
from omnigraph.model.types import PropertyType, type_text
from omnigraph.spark.columns import spark_schema, to_spark
from omnigraph.spark.session import session as open_session

TYPE = "_type"
Read = Callable[[str], Any]
"""The rows of a type, by its key in the catalog."""


@dataclass(frozen=True)
class Frames:
    vertices: Any
    edges: Any


def as_frame(result: Any, spark: Any = None, *, view: str | None = None) -> Any:
    """The rows of a result (of a query, a search, an algorithm) as a DataFrame, which SQL knows as
    `view`. They come through this process, so this is for answers that fit in it."""
    held = result.to_arrow()
    schema = spark_schema(held.schema)
    rows = [to_spark(batch, schema) for batch in held.to_batches()]
    frame = (spark or open_session()).createDataFrame(pa.Table.from_batches(rows, schema))
    if view is not None:
        frame.createOrReplaceTempView(view)
    return frame


def make_frames(snapshot: GraphView, types: Sequence[str] | None, read: Read) -> Frames:
    """Some types of a snapshot, or all of them. Of edges both ends must be among the types."""
    nodes, edges = _chosen(snapshot.catalog, types)
    several = len(nodes) > 1

    def ends(kind: EdgeType) -> dict[str, str | None]:
        return {"src": kind.source if several else None, "dst": kind.target if several else None}

    return Frames(
        _together([(n, {"id": n.name if several else None}) for n in nodes], read),
        _together([(e, {"id": None, **ends(e)}) for e in edges], read),
    )


def split_frames(
    catalog: Catalog, vertices: Any, edges: Any, nodes: str | None, relation: str | None
) -> Iterator[tuple[GraphType, dict[str, Any], Any]]:
    """For each type the DataFrame that has its rows, and what its columns are made of. Without
    `_type` the rows are of the types that are named."""
    from pyspark.sql import functions as f

    for frame, name, known in (
        (vertices, nodes, catalog.node_names),
        (edges, relation, catalog.edge_names),
    ):
        if TYPE not in frame.columns and name is None:
            raise InvalidArgument(f"Rows without a column {TYPE!r} need the name of their type.")
        names = [name] if name is not None else _held(frame)
        for one in names:
            if one not in known:
                raise InvalidArgument(f"The schema has no type {one!r} for these rows.")
            kind: GraphType = known[one]
            rows = frame if name is not None else frame.where(f.col(TYPE) == one)
            yield kind, _columns(kind, frame, several=name is None and len(names) > 0), rows


def _held(frame: Any) -> list[str]:
    return sorted(row[0] for row in frame.select(TYPE).distinct().collect() if row[0] is not None)


def _columns(kind: GraphType, frame: Any, *, several: bool) -> dict[str, Any]:
    """Where the properties come from, `id` unless a key makes it, and both ends."""
    from pyspark.sql import functions as f

    def plain(column: str, of: str) -> Any:
        """An id without the name of its type, if it has one."""
        start = f.lit(f"{of}:")
        bare = f.expr(f"substring(`{column}`, {len(of) + 2})")
        named = f.startswith(f.col(column), start)
        return f.when(named, bare).otherwise(f.col(column)) if several else f.col(column)

    found = {p.name: f.col(f"`{p.name}`") for p in kind.properties if p.name in frame.columns}
    match kind:
        case EdgeType():
            found["from"], found["to"] = plain("src", kind.source), plain("dst", kind.target)
        case NodeType() if not kind.key:
            found["id"] = plain("id", kind.name)
        case NodeType() if len(kind.key) == 1 and kind.key[0] not in found:
            found[kind.key[0]] = plain("id", kind.name)  # the key of another program's graph
    return found


def _chosen(catalog: Catalog, types: Sequence[str] | None) -> tuple[list[NodeType], list[EdgeType]]:
    if types is not None:
        known = {*catalog.node_names, *catalog.edge_names}
        for name in types:
            if name not in known:
                listed = ", ".join(sorted(known))
                raise InvalidArgument(f"There is no type {name!r}.", help=f"There are {listed}.")
    nodes = [n for name, n in sorted(catalog.node_names.items()) if types is None or name in types]
    edges = [e for name, e in sorted(catalog.edge_names.items()) if types is None or name in types]
    there = {node.name for node in nodes}
    for edge in edges:
        for end in (edge.source, edge.target):
            if end not in there:
                raise InvalidArgument(f"Edges of {edge.name} end at {end}, which is left out.")
    return nodes, edges


def _together(kinds: Sequence[tuple[GraphType, dict[str, str | None]]], read: Read) -> Any:
    """The rows of types under each other; `named` are the columns with ids, and the type that an
    id is of, where that has to be said."""
    from pyspark.sql import functions as f

    if not kinds:
        raise InvalidArgument("There is no type for one of the two frames.")
    types: dict[str, tuple[str, PropertyType]] = {}
    for kind, _ in kinds:
        for held in kind.properties:
            other = types.setdefault(held.name, (kind.name, held.type))
            if other[1] != held.type:
                raise InvalidArgument(
                    f"`{held.name}` is {type_text(other[1])} in {other[0]} and "
                    f"{type_text(held.type)} in {kind.name}, so it is no one column.",
                    help="Choose types: frames(types=[…]).",
                )
    parts = []
    for kind, named in kinds:
        rows = read(kind.table_key)
        ids = [
            (f.col(name) if of is None else f.concat(f.lit(f"{of}:"), f.col(name))).alias(name)
            for name, of in named.items()
        ]
        own = [f.col(f"`{p.name}`") for p in kind.properties if p.name not in system_columns(kind)]
        parts.append(rows.select(*ids, f.lit(kind.name).alias(TYPE), *own))
    return reduce(lambda one, other: one.unionByName(other, allowMissingColumns=True), parts)
