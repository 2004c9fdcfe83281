"""Owns the memory that one open graph fills with rows and arrays: one budget for all its caches.

Whatever is kept is booked with its size. When the sum would pass the limit, the entry that was not
used for longest goes, whichever cache it belongs to. An entry that is larger than the limit is not
kept at all, so no more than the limit is ever booked. The working memory of a call is not booked
here, nor is what Lance caches itself.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

from omnigraph.engine.session import Session

Key = tuple[Any, ...]
"""The first part names the cache."""

ENTRY = 256
"""Bytes that are booked for the overhead of an entry: its key and its objects."""


class Cache:
    @classmethod
    def shared_by(cls, session: Session) -> Cache:
        """The one cache of all handles of this session."""
        return session.shared(_cache)

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.booked = 0
        self.evictions = 0
        """How often something had to go or could not be kept."""
        self._lock = threading.Lock()
        self._held: OrderedDict[Key, tuple[Any, int]] = OrderedDict()
        self._listeners: list[Callable[[], None]] = []

    def listen(self, evicted: Callable[[], None]) -> None:
        """Calls back whenever an entry is dropped, so that its users release it too."""
        self._listeners.append(evicted)

    def bookings(self) -> dict[Key, int]:
        """The size of every entry, the most recently used one last."""
        with self._lock:
            return {key: size for key, (_, size) in self._held.items()}

    def get(self, key: Key) -> Any:
        with self._lock:
            found = self._held.get(key)
            if found is None:
                return None
            self._held.move_to_end(key)
            return found[0]

    def keep(self, key: Key, value: Any, size: int) -> bool:
        """Returns whether it was kept: a value larger than the limit is not."""
        size += ENTRY
        with self._lock:
            _, before = self._held.pop(key, (None, 0))
            self.booked -= before
            kept = size <= self.limit
            gone = not kept
            if kept:
                self._held[key] = (value, size)
                self.booked += size
            while self.booked > self.limit:
                _, (_, dropped) = self._held.popitem(last=False)
                self.booked -= dropped
                gone = True
            self.evictions += gone
        if gone:
            for evicted in self._listeners:
                evicted()
        return kept

    def rebook(self, key: Key, value: Any, size: int) -> None:
        """Books a new size after a value has grown, which counts as a use. Does nothing if the
        value is not held."""
        with self._lock:
            found = self._held.get(key)
            if found is None or found[0] is not value or found[1] == size + ENTRY:
                return
        self.keep(key, value, size)


def _cache(session: Session) -> Cache:
    return Cache(session.settings.cache_bytes)
