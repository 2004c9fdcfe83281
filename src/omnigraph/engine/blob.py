"""Owns the handle on one blob of one entity, pinned to the version in which it was opened."""

from __future__ import annotations

from typing import Protocol

from omnigraph.arguments import checked_methods
from omnigraph.engine.graph_view import GraphView
from omnigraph.errors import EntityNotFound, InvalidArgument
from omnigraph.model.types import Base, ScalarType
from omnigraph.store.blobs import StoredBlob, open_blob
from omnigraph.telemetry import Ledger


class BlobLike(Protocol):
    """A blob that is read in parts, wherever it is."""

    io: Ledger

    @property
    def size(self) -> int: ...

    def read(self, offset: int = 0, length: int | None = None) -> bytes: ...


@checked_methods
class Blob:
    """`size` is in bytes, and `io` counts the requests so far."""

    def __init__(self, type: str, id: str, property: str, stored: StoredBlob, io: Ledger) -> None:
        self.type = type
        self.id = id
        self.property = property
        self.io = io
        self._stored = stored

    @property
    def size(self) -> int:
        return self._stored.size

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """The bytes from `offset` on, at most `length` of them, and nothing else is read."""
        if offset < 0 or (length is not None and length < 0):
            raise InvalidArgument("A blob is read from an offset and in a length of 0 or more.")
        left = max(self.size - offset, 0)
        return self._stored.read_range(
            offset, left if length is None else min(length, left), self.io
        )

    def __repr__(self) -> str:
        return f"Blob({self.type!r}, {self.id!r}, {self.property!r}, size={self.size})"


def read_blob(snapshot: GraphView, type: str, id: str, property: str) -> Blob | None:
    """None where the entity has no value there."""
    kind = snapshot.type(type)
    held = {p.name: p.type for p in kind.properties}
    if property not in held:
        raise InvalidArgument(f"{kind.name} has no property {property!r}.")
    if held[property] != ScalarType(Base.BLOB):
        raise InvalidArgument(f"{kind.name}.{property} is no blob; read it with entity or scan.")
    if not isinstance(id, str):
        raise InvalidArgument(f"An id is a text, not {id.__class__.__name__}.")
    view = snapshot.view(kind)
    addresses = view.find(("id",), [id], snapshot.io).addresses
    if not len(addresses):
        raise EntityNotFound(f"There is no {kind.name} with the id {id!r}.")
    column = {p.name: p.column for p in kind.properties}[property]
    stored = open_blob(view.table, column, int(addresses[0]), snapshot.io)
    return None if stored is None else Blob(kind.name, id, property, stored, snapshot.io)
