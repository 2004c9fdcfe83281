"""Owns the writers' queue: who goes next. Only a courtesy; the conditional put decides.

Without it a loser's rebase is longer than a winner's cycle and the loser starves (hazard 11).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from pathlib import Path

from omnigraph.errors import OmnigraphError
from omnigraph.runtime import Runtime
from omnigraph.store.objects import ObjectStore
from omnigraph.store.versions import encode_branch

_STREAK = 0.5
_TICKET_LIFE = 5.0


class LocalQueue:
    """Writers of one machine, first come first served, by an advisory lock per branch."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextlib.contextmanager
    def turn(self, branch: str, patience: float) -> Iterator[bool]:
        """Yields whether there was a wait. A lock that cannot be had in time, or at all, is no
        reason not to write."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            path = self._directory / f"{encode_branch(branch)}.lock"
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError:
            yield True
            return
        waiter = _Waiter(descriptor)
        try:
            yield waiter.wait(patience)
        finally:
            waiter.release()


class _Waiter:
    """A blocking lock keeps the order of arrival but has no timeout, so a thread waits for it;
    the uncontended case needs none."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._granted = threading.Event()
        self._lock = threading.Lock()
        self._abandoned = False

    def wait(self, patience: float) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            threading.Thread(target=self._block, daemon=True).start()
            self._granted.wait(patience)
            return True
        self._granted.set()
        return False

    def _block(self) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._lock:
            self._granted.set()
            if self._abandoned:
                os.close(self._descriptor)

    def release(self) -> None:
        with self._lock:
            if self._granted.is_set():
                os.close(self._descriptor)  # which also unlocks
            else:
                self._abandoned = True


class Tickets:
    """Writers of different machines on an object store: a loser leaves a ticket, and a writer on
    a streak looks for tickets now and then and lets their owners go first."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._streak: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def take(self, objects: ObjectStore, branch: str) -> str:
        key = f"{_prefix(branch)}{self._runtime.now() // 1000:014d}-{self._runtime.ulid()}"
        with contextlib.suppress(OmnigraphError):
            objects.put(key, b"")
        return key

    def hand_back(self, objects: ObjectStore, ticket: str) -> None:
        with contextlib.suppress(OmnigraphError):
            objects.delete(ticket)

    def landed(self, branch: str) -> None:
        """A commit that follows another within the streak time goes on with the streak."""
        now = self._runtime.monotonic()
        if now - self._last.get(branch, -_STREAK) > _STREAK:
            self._streak[branch] = now
        self._last[branch] = now

    def give_way(self, objects: ObjectStore, branch: str, deadline: float) -> bool:
        """Whether somebody was let through. Costs nothing for a writer that is not greedy."""
        now = self._runtime.monotonic()
        greedy = now - self._last.get(branch, -_STREAK) <= _STREAK
        if not greedy or now - self._streak.get(branch, now) < _STREAK:
            return False
        self._streak[branch] = now
        waited = False
        while self._runtime.monotonic() < deadline and self._waiting(objects, branch):
            waited = True
            self._runtime.sleep(0.01 + 0.02 * self._runtime.random())
        return waited

    def _waiting(self, objects: ObjectStore, branch: str) -> bool:
        """Tickets expire by the time in their name; an expired one is swept by who sees it."""
        now = self._runtime.now() // 1000
        try:
            tickets = objects.list(_prefix(branch), limit=64)
        except OmnigraphError:
            return False
        alive = False
        for ticket in tickets:
            stamped = ticket.rsplit("/", 1)[1].split("-", 1)[0]
            if stamped.isdigit() and abs(now - int(stamped)) < _TICKET_LIFE * 1000:
                alive = True
            else:
                self.hand_back(objects, ticket)
        return alive


def _prefix(branch: str) -> str:
    return f"__wait/{encode_branch(branch)}/"
