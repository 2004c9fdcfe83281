"""Owns the object-store port: what the protocol needs of a store, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from omnigraph.errors import StoreFailure
from omnigraph.telemetry import Ledger

MOST_RETRIES = 1000
"""Time is what ends the tries of a request: the setting `request_timeout`."""
OF_THE_SYSTEM = (".DS_Store", "Thumbs.db", "desktop.ini", "lost+found", "")
"""What file managers and file systems leave where nobody put anything."""


class Absent(Exception):
    """There is no object at this key: a typed answer of the store, never a guess from an error."""


class Ambiguous(Exception):
    """The request failed and may or may not have had its effect."""


class Unsettled(StoreFailure):
    """An object was put and can be seen, and may not be there after a power cut: asking again to
    sync it proves nothing. Work that rests on it must stop: nobody can tell whether it stays."""

    applied = None


class Gone(Exception):
    """A file that had to be there before a put is not there any more; nothing was put."""


@dataclass(frozen=True)
class StoredFile:
    """An object as the store lists it; `modified` in microseconds, by the clock of the store."""

    key: str
    size: int
    modified: int


class ObjectStore(Protocol):
    """Keys are `/`-separated. Every method may raise `errors.Unavailable`, `PermissionDenied`
    or `DiskFull`; those mean that a write had no effect."""

    def get(self, key: str) -> bytes:
        """Raises `Absent`."""

    def put_if_absent(self, key: str, data: bytes, *, after: Sequence[Path] = ()) -> bool:
        """True: created. False: the store says that the key is taken (by whom, a read tells).
        Raises `Ambiguous` when the answer was lost, `Unsettled` when it is there and not durable.
        The local files `after` are made durable before the object can be seen; when one of them is
        missing, that is `Gone`."""

    def put(self, key: str, data: bytes) -> None:
        """Replaces, and lasts; for what nothing but its name decides, such as intents."""

    def get_parts(self, key: str) -> Iterator[bytes]:
        """As `get`, a part at a time: whatever its size, little of it is held."""

    def put_parts(self, key: str, parts: Iterator[bytes]) -> None:
        """Writes an object a part at a time, which can be seen, and lasts, when it is whole. For
        files whose names are given once; what was there before is replaced."""

    def exists(self, key: str) -> bool: ...

    def list(self, prefix: str, *, limit: int | None = None) -> list[str]:
        """Keys below a prefix that ends with `/`, sorted; only the first `limit`."""

    def files(self, prefix: str) -> Sequence[StoredFile]:
        """Everything below a prefix that is empty or ends with `/`, also what a crash left of
        an object that never came to be."""

    def groups(self, prefix: str) -> Sequence[str]:
        """The next segments of keys that go on below a prefix, sorted, each once: at the cost of
        their number, however many keys each of them holds."""

    def glance(self, keys: Sequence[str]) -> Sequence[bool] | None:
        """Which of these keys are there, where that is no request (on a disk); else None."""

    def delete(self, key: str) -> None:
        """Deleting what is absent is not an error."""


_PURPOSES = {
    "_graph.json": "graph",
    "__manifest": "version",
    "__wait": "wait",
    "_schema": "schema",
    "_queries": "queries",
    "__history": "history",
    "__recovery": "intent",
    "__job": "job",
}


def purpose_of(key: str) -> str:
    return _PURPOSES.get(key.split("/", 1)[0], "object")


class MeteredStore:
    """Books every request of one operation in its ledger."""

    def __init__(self, inner: ObjectStore, ledger: Ledger) -> None:
        self._inner = inner
        self.ledger = ledger

    def get(self, key: str) -> bytes:
        size = 0
        try:
            data = self._inner.get(key)
            size = len(data)
            return data
        finally:
            self.ledger.record("get", purpose_of(key), size=size)

    def put_if_absent(self, key: str, data: bytes, *, after: Sequence[Path] = ()) -> bool:
        self.ledger.record("put", purpose_of(key), size=len(data))
        return self._inner.put_if_absent(key, data, after=after)

    def put(self, key: str, data: bytes) -> None:
        self.ledger.record("put", purpose_of(key), size=len(data))
        self._inner.put(key, data)

    def get_parts(self, key: str) -> Iterator[bytes]:
        self.ledger.record("get", purpose_of(key))
        return self._inner.get_parts(key)

    def put_parts(self, key: str, parts: Iterator[bytes]) -> None:
        self.ledger.record("put", purpose_of(key))
        self._inner.put_parts(key, parts)

    def exists(self, key: str) -> bool:
        self.ledger.record("head", purpose_of(key))
        return self._inner.exists(key)

    def list(self, prefix: str, *, limit: int | None = None) -> list[str]:
        self.ledger.record("list", purpose_of(prefix))
        return self._inner.list(prefix, limit=limit)

    def files(self, prefix: str) -> Sequence[StoredFile]:
        self.ledger.record("list", purpose_of(prefix))
        return self._inner.files(prefix)

    def groups(self, prefix: str) -> Sequence[str]:
        self.ledger.record("list", purpose_of(prefix))
        return self._inner.groups(prefix)

    def glance(self, keys: Sequence[str]) -> Sequence[bool] | None:
        return self._inner.glance(keys)

    def delete(self, key: str) -> None:
        self.ledger.record("delete", purpose_of(key))
        self._inner.delete(key)
