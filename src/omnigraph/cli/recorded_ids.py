"""Owns a runtime that remembers the ids it gave out, by which an interrupted write is found."""

from __future__ import annotations

from collections import deque

from omnigraph.runtime import Runtime


class RecordingRuntime:
    """Another runtime, whose newest ids are kept."""

    def __init__(self, inner: Runtime, ids: deque[str]) -> None:
        self._inner = inner
        self._ids = ids

    def now(self) -> int:
        return self._inner.now()

    def monotonic(self) -> float:
        return self._inner.monotonic()

    def sleep(self, seconds: float) -> None:
        self._inner.sleep(seconds)

    def random(self) -> float:
        return self._inner.random()

    def ulid(self) -> str:
        made = self._inner.ulid()
        self._ids.append(made)
        return made
