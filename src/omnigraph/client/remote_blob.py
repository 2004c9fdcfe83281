"""Owns the handle on one blob of an entity on a server, pinned to its commit. Only the bytes that
are asked for are sent."""

from __future__ import annotations

from omnigraph.arguments import checked_methods
from omnigraph.client.served_graph import ServedGraph
from omnigraph.client.understanding import understanding
from omnigraph.errors import BadAnswer, EntityNotFound, InvalidArgument, RangeNotSatisfiable
from omnigraph.telemetry import Ledger

_BYTES = "application/octet-stream"


@checked_methods
class RemoteBlob:
    """`size` is in bytes."""

    def __init__(
        self, served: ServedGraph, ref: str, type: str, id: str, property: str, size: int
    ) -> None:
        self.type = type
        self.id = id
        self.property = property
        self.io = Ledger()
        self._served = served
        self._ref = ref
        self._size = size

    @property
    def size(self) -> int:
        return self._size

    def read(self, offset: int = 0, length: int | None = None) -> bytes:
        """The bytes from `offset` on, at most `length` of them, and nothing else is sent."""
        if offset < 0 or (length is not None and length < 0):
            raise InvalidArgument("A blob is read from an offset and in a length of 0 or more.")
        end = self._size if length is None else min(self._size, offset + length)
        if offset >= end:
            return b""
        answer = self._served.answer(
            "GET",
            _path(self.type, self.property),
            query={"id": self.id, "ref": self._ref},
            accept=_BYTES,
            headers={"Range": f"bytes={offset}-{end - 1}"},
        )
        if answer.headers.get("content-range") != f"bytes {offset}-{end - 1}/{self._size}":
            raise BadAnswer("The server gave other bytes of the blob than it was asked for.")
        if len(answer.body) != end - offset:
            raise BadAnswer("The server gave fewer or more bytes of the blob than it says.")
        return answer.body

    def __repr__(self) -> str:
        return f"RemoteBlob({self.type!r}, {self.id!r}, {self.property!r}, size={self.size})"


@understanding()
def open_blob(
    served: ServedGraph, pin: str, type: str, id: str, property: str
) -> RemoteBlob | None:
    """None where the entity has no value there."""
    query = {"id": id, "ref": pin}
    first = {"Range": "bytes=0-0"}
    try:
        answer = served.answer(
            "GET", _path(type, property), query=query, accept=_BYTES, headers=first
        )
        size = int(answer.headers["content-range"].rpartition("/")[2])
    except RangeNotSatisfiable as error:
        size = int(error.details["size"])
    except EntityNotFound as error:
        if error.details.get("missing") == "value":
            return None
        raise
    if size < 0:
        raise ValueError("a blob has no bytes before its first one")
    return RemoteBlob(served, pin, type, id, property, size)


def _path(type: str, property: str) -> str:
    return f"/entities/{type}/blobs/{property}"
