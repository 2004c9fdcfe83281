"""Owns the object-store port: what the protocol needs of a store, and nothing more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from omnigraph.errors import StoreFailure
from omnigraph.telemetry import Ledger

MOST_RETRIES = 1000
"""A request is retried until a time limit: the setting `request_timeout`."""
OF_THE_SYSTEM = (".DS_Store", "Thumbs.db", "desktop.ini", "lost+found", "")
"""Files that file managers and file systems create by themselves."""


class Absent(Exception):
    """There is no object at this key. This is a typed answer of the store, never a guess from an
    error."""


class Ambiguous(Exception):
    """The request failed and may or may not have had its effect."""


class Unsettled(StoreFailure):
    """An object was put and can be seen, but may be lost in a power cut: asking again to sync it
    proves nothing. Work that depends on it must stop, because nobody knows whether it stays."""

    applied = None


class Gone(Exception):
    """A file that had to exist before a put does not exist any more. Nothing was put."""


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
        """True means created. False means that the store says that the key is taken; a read shows
        by whom. Raises `Ambiguous` if the answer was lost, and `Unsettled` if the object is there
        and not durable. The local files `after` are made durable before the object can be seen; if
        one of them is missing, that is `Gone`."""

    def put(self, key: str, data: bytes) -> None:
        """Replaces the object durably. For objects that need no condition, such as intents."""

    def get_parts(self, key: str) -> Iterator[bytes]:
        """Like `get`, in parts, so little is held whatever the size."""

    def put_parts(self, key: str, parts: Iterator[bytes]) -> None:
        """Writes an object in parts. It becomes visible and durable once it is complete. For files
        whose names are used once; an existing object is replaced."""

    def exists(self, key: str) -> bool: ...

    def list(self, prefix: str, *, limit: int | None = None) -> list[str]:
        """Keys below a prefix that ends with `/`, sorted; only the first `limit`."""

    def files(self, prefix: str) -> Sequence[StoredFile]:
        """Everything below a prefix that is empty or ends with `/`, including what a crash left of
        unfinished objects."""

    def groups(self, prefix: str) -> Sequence[str]:
        """The next path segments of keys below a prefix, sorted, each once. The cost depends on
        their number, however many keys each contains."""

    def glance(self, keys: Sequence[str]) -> Sequence[bool] | None:
        """Which of these keys exist, if that takes no request (on a disk), otherwise None."""

    def delete(self, key: str) -> None:
        """Deleting an absent object is not an error."""


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
