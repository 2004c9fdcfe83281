"""Owns what Spark adds to a graph: `g.spark`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InvalidArgument
from omnigraph.model.catalog import EdgeType
from omnigraph.spark.frames import Frames, make_frames
from omnigraph.spark.session import session as open_session

if TYPE_CHECKING:
    from omnigraph.engine.graph_view import GraphView


class SparkGraph:
    def __init__(self, root: str, at: Callable[[str], GraphView]) -> None:
        self._root = root
        self._at = at

    def table(
        self,
        type: str,
        *,
        spark: Any = None,
        ref: str = "main",
        columns: str | None = None,
        where: str | None = None,
    ) -> Any:
        """A type as a DataFrame, as it is at a ref now."""
        snapshot = self._at(ref)
        return self._read(spark, type, f"{snapshot.branch}@{snapshot.commit.id}", columns, where)

    def tables(
        self,
        spark: Any = None,
        *,
        ref: str = "main",
        prefix: str = "",
        foreign_keys: bool = False,
    ) -> list[str]:
        """Makes a temporary view of every type, all of one snapshot, and gives their names. If a
        node type and an edge type share a name, the views begin with `node_` and `edge_`. With
        `foreign_keys` the ends of an edge are called after what they point to: `from_person` and
        `to_paper` in place of `src` and `dst`."""
        snapshot = self._at(ref)
        pinned = f"{snapshot.branch}@{snapshot.commit.id}"
        nodes = {kind.name.lower() for kind in snapshot.catalog.nodes}
        edges = {kind.name.lower() for kind in snapshot.catalog.edges}
        names: list[str] = []
        for key, kind in snapshot.catalog.by_key.items():
            name = kind.name
            if kind.name.lower() in nodes & edges:
                name = key.replace(":", "_")
            name = prefix + name
            if name.lower() in (known.lower() for known in names):
                raise InvalidArgument(f"Two types would be the view {name!r}: Spark ignores case.")
            rows = self._read(spark, key, pinned, None, None)
            if foreign_keys and isinstance(kind, EdgeType):
                rows = _with_foreign_keys(kind, rows)
            rows.createOrReplaceTempView(name)
            names.append(name)
        return names

    def frames(
        self, spark: Any = None, *, ref: str = "main", types: Sequence[str] | None = None
    ) -> Frames:
        """The graph as GraphFrames and its like take one: `vertices` with `id`, `edges` with `src`
        and `dst`, both with `_type` and the properties of all types, or of some. If there are
        several types of nodes, ids are `Type:id`. `Pipeline.frames` reads such frames."""
        snapshot = self._at(ref)
        pinned = f"{snapshot.branch}@{snapshot.commit.id}"
        return make_frames(snapshot, types, lambda key: self._read(spark, key, pinned, None, None))

    def _read(self, spark: Any, type: str, ref: str, columns: str | None, where: str | None) -> Any:
        reader = (spark or open_session()).read.format("omnigraph")
        for name, value in (("type", type), ("ref", ref), ("columns", columns), ("where", where)):
            if value is not None:
                reader = reader.option(name, value)
        return reader.load(self._root)


def _with_foreign_keys(kind: EdgeType, rows: Any) -> Any:
    names = {"src": f"from_{kind.source.lower()}", "dst": f"to_{kind.target.lower()}"}
    for name in names.values():
        if name in (held.lower() for held in rows.columns):
            raise InvalidArgument(f"{kind.name} has a property {name}, as an end would be called.")
    return rows.withColumnsRenamed(names)
