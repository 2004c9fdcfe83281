"""Owns the memory that one open graph fills with rows and arrays: one budget for all its caches.

Whatever is kept is booked with its size. When the sum would pass the limit, the entry that was not
used for longest goes, whichever cache it belongs to. An entry that is larger than the limit is not
kept at all, so no more than the limit is ever booked. The working memory of a call is not booked
here, nor is what Lance caches itself.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from omnigraph.engine.session import Session

T = TypeVar("T")
Key = tuple[Any, ...]
"""The first part names the cache."""

ENTRY = 256
"""Bytes that are booked for the overhead of an entry: its key and its objects."""


_PAUSE = 0.05
_asking = threading.local()


@contextmanager
def stopped_by(check: Callable[[], None]) -> Iterator[None]:
    """While it lasts, whatever this thread waits for looks by `check` whether it should stop."""
    before = getattr(_asking, "check", None)
    _asking.check = check
    try:
        yield
    finally:
        _asking.check = before


def checkpoint() -> None:
    """A place where long work stops, if the query that it is for was cancelled."""
    check = getattr(_asking, "check", None)
    if check is not None:
        check()


class _Turn:
    """One value that is being made."""

    def __init__(self) -> None:
        self.ended = threading.Event()
        self.made: Any = None


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
        self._turns: dict[Key, _Turn] = {}
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

    def once(self, key: Key, find: Callable[[], T | None], make: Callable[[], T]) -> T:
        """What is found, or made: by one thread, however many ask for it at the same time. The
        others wait, and get what it made even if it is not kept. If it fails, the next one makes
        it."""
        while True:
            found = find()
            if found is not None:
                return found
            with self._lock:
                turn = self._turns.get(key)
                if mine := turn is None:
                    turn = self._turns[key] = _Turn()
            if not mine:
                while not turn.ended.wait(_PAUSE):
                    checkpoint()
                if turn.made is not None:
                    made: T = turn.made
                    return made
                continue
            try:
                turn.made = made = make()
                return made
            finally:
                with self._lock:
                    del self._turns[key]
                turn.ended.set()

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
