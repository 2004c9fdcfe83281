"""Owns admission: how much one actor may ask for, and how much memory and how many streams all of
them together have."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass

from omnigraph.errors import MemoryLimit, Overloaded, RateLimited
from omnigraph.server.limits import ServerLimits

_ACTORS = 10_000
"""Actors that are remembered. One who was away so long has a full bucket again."""


@dataclass
class _Actor:
    tokens: float
    at: float
    in_flight: int = 0


class Admission:
    """All of it happens on the event loop."""

    def __init__(self, limits: ServerLimits) -> None:
        self.limits = limits
        self.reserved = 0
        self.streams = 0
        self._actors: OrderedDict[str, _Actor] = OrderedDict()
        self._freed = asyncio.Event()

    @contextlib.contextmanager
    def actor(self, name: str) -> Iterator[None]:
        """One request of an actor, for as long as it is answered."""
        limits = self.limits
        held = self._refilled(name)
        if held.tokens < 1:
            wait = (1 - held.tokens) / limits.actor_rate
            raise RateLimited(
                f"{name} sends more than {limits.actor_rate:g} requests a second.",
                retry_after=max(1, round(wait)),
            )
        if held.in_flight >= limits.actor_in_flight:
            raise RateLimited(
                f"{name} has {held.in_flight} requests that are not answered yet.", retry_after=1
            )
        held.tokens -= 1
        held.in_flight += 1
        try:
            yield
        finally:
            held.in_flight -= 1

    def _refilled(self, name: str) -> _Actor:
        limits, now = self.limits, time.monotonic()
        held = self._actors.get(name)
        if held is None:
            held = self._actors[name] = _Actor(limits.actor_burst, now)
        self._actors.move_to_end(name)
        held.tokens = min(limits.actor_burst, held.tokens + (now - held.at) * limits.actor_rate)
        held.at = now
        for old in list(self._actors)[: max(0, len(self._actors) - _ACTORS)]:
            if not self._actors[old].in_flight:
                del self._actors[old]
        return held

    @contextlib.asynccontextmanager
    async def memory(self, size: int) -> AsyncIterator[None]:
        """Memory for one query. It waits a little for others to end."""
        limits = self.limits
        if size > limits.memory:
            raise MemoryLimit(
                f"A query may use {limits.memory:,} bytes here, not {size:,}.",
                limit="memory_limit",
                allowed=limits.memory,
                actual=size,
            )
        until = time.monotonic() + limits.patience
        while self.reserved + size > limits.memory:
            self._freed.clear()
            try:
                async with asyncio.timeout(max(0.0, until - time.monotonic())):
                    await self._freed.wait()
            except TimeoutError:
                raise Overloaded(
                    "Other queries have reserved all memory that there is for queries.",
                    limit="memory",
                ) from None
        self.reserved += size
        try:
            yield
        finally:
            self.reserved -= size
            self._freed.set()

    @contextlib.contextmanager
    def stream(self) -> Iterator[None]:
        """A place for one answer that is read as it is made."""
        if self.streams >= self.limits.streams:
            raise Overloaded(f"{self.streams} streams are open already.", limit="streams")
        self.streams += 1
        try:
            yield
        finally:
            self.streams -= 1
