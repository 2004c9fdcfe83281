"""Owns the queue of writers, which decides who goes next. It is only a courtesy; the conditional
put decides.

Without it a loser's rebase takes longer than a winner's cycle, and the loser starves (hazard 11).
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from omnigraph.errors import OmnigraphError
from omnigraph.runtime import Runtime
from omnigraph.store.objects import ObjectStore
from omnigraph.store.versions import encode_branch

_STREAK = 0.5
_TICKET_LIFE = 5.0
_MOST_LEFT = 1 << 20
"""Bytes that a writer may leave for the next one."""
_OPEN = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW
"""Links are not followed: they may lead out of the graph."""


class _OpenLocks:
    """The descriptors of open lock files. A forked child inherits them, and with them the locks. It
    closes them at once, because otherwise its parent's turn would last as long as the child."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: set[int] = set()
        os.register_at_fork(
            before=self._lock.acquire,
            after_in_parent=self._lock.release,
            after_in_child=self._leave_to_parent,
        )

    def open(self, directory: Path, name: str) -> int:
        with self._lock:
            folder = os.open(directory, _FOLDER)
            try:
                descriptor = os.open(name, _OPEN, 0o666, dir_fd=folder)
            finally:
                os.close(folder)
            self._held.add(descriptor)
            return descriptor

    def close(self, descriptor: int) -> None:
        """Unlocks it too."""
        with self._lock:
            if descriptor in self._held:  # else it was the parent's, and the number is free
                self._held.remove(descriptor)
                # An error here does not concern the writer whose turn it was.
                with contextlib.suppress(OSError):
                    # A child that was forked just now may not have come to close its own yet.
                    fcntl.flock(descriptor, fcntl.LOCK_UN)
                with contextlib.suppress(OSError):
                    os.close(descriptor)

    def _leave_to_parent(self) -> None:
        for descriptor in self._held:
            os.close(descriptor)
        self._held.clear()
        self._lock.release()


_LOCKS = _OpenLocks()


class Turn:
    """A writer's turn. `waited` says whether there was a wait. The lock file holds what the last
    writer left for those behind it, which is worth something only to them."""

    def __init__(self, waited: bool, descriptor: int | None = None) -> None:
        self.waited = waited
        self._descriptor = descriptor

    def left(self) -> bytes:
        """What the writer before left, nothing if that cannot be read."""
        if self._descriptor is None:
            return b""
        try:
            return os.pread(self._descriptor, _MOST_LEFT, 0)
        except OSError:
            return b""

    def leave(self, data: bytes) -> None:
        """Leaves something for the next writer. It is a courtesy and may fail."""
        if self._descriptor is None or len(data) > _MOST_LEFT:
            return
        with contextlib.suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, data, 0)


class LocalQueue:
    """Writers on one machine, first come first served, by an advisory lock per branch."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    @contextlib.contextmanager
    def turn(self, branch: str, patience: float) -> Iterator[Turn]:
        """If the lock cannot be had in time, or at all, the writer writes anyway."""
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
            descriptor = _LOCKS.open(self._directory, f"{encode_branch(branch)}.lock")
        except OSError:
            yield Turn(True)
            return
        waiter = _Waiter(descriptor)
        try:
            waited = waiter.wait(patience)
            yield Turn(waited, descriptor if waiter.granted else None)
        finally:
            waiter.release()


class _Waiter:
    """A blocking lock keeps the order of arrival but has no timeout, so a thread waits for it. The
    uncontended case needs none."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._granted = threading.Event()
        self._lock = threading.Lock()
        self._abandoned = False

    @property
    def granted(self) -> bool:
        return self._granted.is_set()

    def wait(self, patience: float) -> bool:
        try:
            fcntl.flock(self._descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            threading.Thread(target=self._block, daemon=True).start()
            self._granted.wait(patience)
            return True
        except OSError:  # a file system without locks
            self._granted.set()
            return True
        self._granted.set()
        return False

    def _block(self) -> None:
        with contextlib.suppress(OSError):
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
        with self._lock:
            self._granted.set()
            if self._abandoned:
                _LOCKS.close(self._descriptor)

    def release(self) -> None:
        with self._lock:
            if self._granted.is_set():
                _LOCKS.close(self._descriptor)
            else:
                self._abandoned = True


@dataclass(frozen=True)
class Ticket:
    """A place in the line: since when its owner waits, and its last sign of life."""

    since: int
    heard: int
    owner: str

    @property
    def name(self) -> str:
        return f"{self.since:014d}-{self.heard:014d}-{self.owner}"

    @property
    def place(self) -> tuple[int, str]:
        return self.since, self.owner


class Tickets:
    """Writers on different machines, on an object store. Losers stand in line. A writer on a streak
    checks now and then whether there is a line, and lets it go first."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._streak: dict[str, float] = {}
        self._last: dict[str, float] = {}

    def stand_in_line(
        self, objects: ObjectStore, branch: str, ticket: Ticket | None, deadline: float
    ) -> tuple[Ticket, bool]:
        """Waits until nobody is ahead, with a new ticket or the one that a loser already has.
        Returns the ticket, and whether there was a wait."""
        ticket = self._show(objects, branch, ticket)
        waited = False
        while self._runtime.monotonic() < deadline:
            line = self._line(objects, branch)
            ahead = sum(other.place < ticket.place for other in line)
            if not ahead:
                break
            waited = True
            self._runtime.sleep((0.005 + 0.01 * self._runtime.random()) * ahead)
            if self._milliseconds() - ticket.heard > _TICKET_LIFE * 500:
                ticket = self._show(objects, branch, ticket)
        return ticket, waited

    def leave_line(self, objects: ObjectStore, branch: str, ticket: Ticket) -> None:
        with contextlib.suppress(OmnigraphError):
            objects.delete(_prefix(branch) + ticket.name)

    def landed(self, branch: str, *, contended: bool) -> None:
        """A commit within the streak time of the last one continues the streak. After a lost race
        the next one checks at once."""
        now = self._runtime.monotonic()
        if contended:
            self._streak[branch] = now - _STREAK
        elif now - self._last.get(branch, -_STREAK) > _STREAK:
            self._streak[branch] = now
        self._last[branch] = now

    def give_way(self, objects: ObjectStore, branch: str, deadline: float) -> bool:
        """Whether somebody was let through. Costs nothing for a writer without a streak."""
        now = self._runtime.monotonic()
        greedy = now - self._last.get(branch, -_STREAK) <= _STREAK
        if not greedy or now - self._streak.get(branch, now) < _STREAK:
            return False
        waited = False
        while self._runtime.monotonic() < deadline and self._line(objects, branch):
            waited = True
            self._runtime.sleep(0.01 + 0.02 * self._runtime.random())
        if not waited:
            self._streak[branch] = now
        return waited

    def _show(self, objects: ObjectStore, branch: str, ticket: Ticket | None) -> Ticket:
        """A ticket that others can see, at the same place as the one before."""
        now = self._milliseconds()
        new = Ticket(now, now, self._runtime.ulid())
        if ticket is not None:
            new = Ticket(ticket.since, now, ticket.owner)
        with contextlib.suppress(OmnigraphError):
            objects.put(_prefix(branch) + new.name, b"")
            if ticket is not None and ticket != new:
                self.leave_line(objects, branch, ticket)
        return new

    def _line(self, objects: ObjectStore, branch: str) -> list[Ticket]:
        """A ticket expires without a sign of life; the next writer that sees an expired one
        removes it."""
        now = self._milliseconds()
        try:
            names = [key.rsplit("/", 1)[1] for key in objects.list(_prefix(branch), limit=64)]
        except OmnigraphError:
            return []
        line = []
        for name in names:
            since, _, rest = name.partition("-")
            heard, _, owner = rest.partition("-")
            if not (name.isascii() and since.isdigit() and heard.isdigit()):
                continue  # not ours
            if abs(now - int(heard)) < _TICKET_LIFE * 1000:
                line.append(Ticket(int(since), int(heard), owner))
            else:
                with contextlib.suppress(OmnigraphError):
                    objects.delete(_prefix(branch) + name)
        return line

    def _milliseconds(self) -> int:
        return self._runtime.now() // 1000


def _prefix(branch: str) -> str:
    return f"__wait/{encode_branch(branch)}/"
