"""Owns what Spark adds to a graph: `g.spark`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from omnigraph.errors import InvalidArgument
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

    def tables(self, spark: Any = None, *, ref: str = "main", prefix: str = "") -> list[str]:
        """Makes a temporary view of every type, all of one snapshot, and gives their names. If a
        node type and an edge type share a name, the views begin with `node_` and `edge_`."""
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
            self._read(spark, key, pinned, None, None).createOrReplaceTempView(name)
            names.append(name)
        return names

    def _read(self, spark: Any, type: str, ref: str, columns: str | None, where: str | None) -> Any:
        reader = (spark or open_session()).read.format("omnigraph")
        for name, value in (("type", type), ("ref", ref), ("columns", columns), ("where", where)):
            if value is not None:
                reader = reader.option(name, value)
        return reader.load(self._root)
