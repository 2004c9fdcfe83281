"""Owns the pinned handle on a graph on a server."""

from __future__ import annotations

from omnigraph.client.remote_reads import RemoteReads
from omnigraph.client.served_graph import SchemaAt, ServedGraph
from omnigraph.model.catalog import Catalog


class RemoteSnapshot(RemoteReads):
    """A version of a graph on a server: it will always give the same answers."""

    def __init__(self, served: ServedGraph, schema: SchemaAt) -> None:
        self._served = served
        self._schema = schema

    def __repr__(self) -> str:
        return f"RemoteSnapshot({self._schema.pin!r})"

    @property
    def catalog(self) -> Catalog:
        """The types, as this process understands the schema."""
        return self._schema.catalog

    @property
    def digest(self) -> str:
        """The hash of the schema."""
        return self._schema.digest

    def _ref(self) -> str:
        return self._schema.pin

    def _schema_now(self) -> SchemaAt:
        return self._schema
