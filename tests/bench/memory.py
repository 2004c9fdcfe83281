"""The object-store port over a dictionary: the smallest right store, for tests of its users."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from omnigraph.store.objects import Absent, StoredFile


class DictStore:
    """Atomic and immediately consistent; shared by the threads of one process only."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self._lock = threading.Lock()

    def get(self, key: str) -> bytes:
        try:
            return self.objects[key]
        except KeyError:
            raise Absent(key) from None

    def put_if_absent(self, key: str, data: bytes, *, after: Sequence[Path] = ()) -> bool:
        with self._lock:
            if key in self.objects:  # the same bytes twice are still two puts
                return False
            self.objects[key] = data
            return True

    def put(self, key: str, data: bytes) -> None:
        self.objects[key] = data

    def get_parts(self, key: str) -> Iterator[bytes]:
        yield self.get(key)

    def put_parts(self, key: str, parts: Iterator[bytes]) -> None:
        self.objects[key] = b"".join(parts)

    def exists(self, key: str) -> bool:
        return key in self.objects

    def list(self, prefix: str, *, limit: int | None = None) -> list[str]:
        return sorted(key for key in self.objects if key.startswith(prefix))[:limit]

    def files(self, prefix: str) -> Sequence[StoredFile]:
        return [StoredFile(key, len(self.objects[key]), 0) for key in self.list(prefix)]

    def groups(self, prefix: str) -> Sequence[str]:
        below = (key.removeprefix(prefix) for key in self.list(prefix))
        return sorted({key.split("/", 1)[0] for key in below if "/" in key})

    def glance(self, keys: Sequence[str]) -> Sequence[bool] | None:
        return [key in self.objects for key in keys]

    def delete(self, key: str) -> None:
        self.objects.pop(key, None)
