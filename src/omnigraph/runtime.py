"""Owns time, randomness and ids, so that tests can replay them. Nothing else asks the system for
them."""

from __future__ import annotations

import os
import random
import threading
import time
from collections.abc import Callable
from typing import Protocol

_RANDOM_BITS = 80
_ULID_LENGTH = 26
_NEAR = 2**48


class Runtime(Protocol):
    def now(self) -> int:
        """Wall time in microseconds since 1970."""

    def monotonic(self) -> float:
        """Seconds that also pass while the machine sleeps."""

    def sleep(self, seconds: float) -> None: ...

    def random(self) -> float:
        """Uniform in [0, 1)."""

    def ulid(self) -> str: ...


def encode_ulid(milliseconds: int, randomness: int) -> str:
    from ulid import ULID

    return str(ULID.from_int((milliseconds << _RANDOM_BITS) | randomness))


def ulid_number(ulid: str) -> int:
    """All bits of the ULID, with the time first."""

    from ulid import ULID

    return int(ULID.from_str(ulid))


def ulid_milliseconds(ulid: str) -> int:
    return ulid_number(ulid) >> _RANDOM_BITS


def ulid_after(ulid: str, chance: float) -> str:
    """A ULID above this one and close to it. `chance` is uniform in [0, 1), so that two made after
    the same one differ."""

    from ulid import ULID

    return str(ULID.from_int(ulid_number(ulid) + 1 + int(chance * _NEAR)))


def is_ulid(text: str) -> bool:
    if not isinstance(text, str) or len(text) != _ULID_LENGTH:
        return False
    from ulid import ULID

    try:
        return str(ULID.from_str(text)) == text
    except (TypeError, ValueError):
        return False


class SystemRuntime:
    """The machine's clock and random source."""

    def __init__(self) -> None:
        self._random = random.SystemRandom()
        self._lock = threading.Lock()
        self._process = 0
        self._last = (0, 0)

    def begin_anew(self) -> None:
        """In a forked child the lock may have been held by a thread that does not exist here."""
        self._lock = threading.Lock()

    def now(self) -> int:
        return time.time_ns() // 1000

    def monotonic(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)

    def random(self) -> float:
        return self._random.random()

    def ulid(self) -> str:
        """Growing within the process, also within one millisecond. The random part is drawn once
        a process and counted up, so that ids of one writer have most of their bytes in common:
        a history of them packs to a third."""
        with self._lock:
            last_ms, last_random = self._last
            if self._process != os.getpid():  # also of who was forked from another
                self._process = os.getpid()
                # The top bit is kept clear, so that counting up cannot overflow.
                last_random = int.from_bytes(os.urandom(10)) >> 1
            milliseconds = max(time.time_ns() // 1_000_000, last_ms)
            self._last = (milliseconds, last_random + 1)
        return encode_ulid(milliseconds, last_random + 1)


SYSTEM = SystemRuntime()
os.register_at_fork(after_in_child=SYSTEM.begin_anew)


on_reach: Callable[[str], None] | None = None
"""Set by tests that kill the process, or make it fail, at a named point of the protocol."""


def reach(point: str) -> None:
    """Marks a point of the protocol at which a crash must be harmless."""
    if on_reach is not None:
        on_reach(point)
