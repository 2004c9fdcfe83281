"""Owns the threads that call the engine: pools of a fixed size, in which every actor has its turn.

Everything but the work itself happens on the event loop. A slot is free when its thread has ended,
whatever became of the one who waited for it.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextvars import Context, copy_context
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from omnigraph.errors import Overloaded
from omnigraph.server.limits import ServerLimits

T = TypeVar("T")


@dataclass(eq=False)
class _Task(Generic[T]):
    actor: str
    work: Callable[[], T]
    future: asyncio.Future[T]
    since: float
    timer: asyncio.TimerHandle | None = None
    context: Context = field(default_factory=copy_context)
    """Of whoever asked: what is done in the thread is part of it."""


@dataclass(eq=False)
class Pool:
    """`watch` is told the name and how many seconds each piece of work waited."""

    name: str
    threads: int
    waiting: int
    patience: float
    watch: Callable[[str, float], None] = lambda _name, _seconds: None
    busy: int = field(default=0, init=False)
    queued: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self._executor = ThreadPoolExecutor(self.threads, f"omnigraph-{self.name}")
        self._queues: OrderedDict[str, deque[_Task[Any]]] = OrderedDict()

    async def run(self, actor: str, work: Callable[[], T], *, admitted: bool = False) -> T:
        """What the work returns. It is refused if too many wait, or if it has waited too long,
        unless it is a part of something that was admitted before."""
        loop = asyncio.get_running_loop()
        task = _Task(actor, work, loop.create_future(), time.monotonic())
        if self.busy < self.threads:
            self._start(task)
        else:
            if not admitted:
                self._bound(task, loop)
            self._queues.setdefault(actor, deque()).append(task)
            self.queued += 1
        try:
            result: T = await task.future
            return result
        finally:
            if task.timer is not None:
                task.timer.cancel()

    def _bound(self, task: _Task[Any], loop: asyncio.AbstractEventLoop) -> None:
        if self.queued >= self.waiting:
            raise self._overloaded(f"{self.queued} requests are waiting already")
        task.timer = loop.call_later(self.patience, self._expire, task)

    def _overloaded(self, why: str) -> Overloaded:
        return Overloaded(
            f"All {self.threads} threads for this are busy, and {why}.", limit=f"{self.name}_pool"
        )

    def _expire(self, task: _Task[Any]) -> None:
        queue = self._queues.get(task.actor)
        if queue is None or task not in queue or task.future.done():
            return
        queue.remove(task)
        self.queued -= 1
        task.future.set_exception(self._overloaded(f"no one was free for {self.patience:g} s"))

    def _start(self, task: _Task[Any]) -> None:
        self.busy += 1
        if task.timer is not None:
            task.timer.cancel()
        self.watch(self.name, time.monotonic() - task.since)
        loop = asyncio.get_running_loop()
        self._executor.submit(self._do, task, loop)

    def _do(self, task: _Task[Any], loop: asyncio.AbstractEventLoop) -> None:
        result, failed = None, None
        try:
            result = task.context.run(task.work)
        except BaseException as error:  # noqa: BLE001  whoever waits for it gets it
            failed = error
        try:
            loop.call_soon_threadsafe(self._done, task, result, failed)
        except RuntimeError:
            return  # the loop is closed: the process ends

    def _done(self, task: _Task[Any], result: Any, failed: BaseException | None) -> None:
        self.busy -= 1
        if not task.future.done():
            if failed is None:
                task.future.set_result(result)
            else:
                task.future.set_exception(failed)
        elif failed is not None and not isinstance(failed, Exception):
            raise failed
        self._next()

    def _next(self) -> None:
        """The turn of the next actor."""
        while self._queues and self.busy < self.threads:
            actor, queue = self._queues.popitem(last=False)
            task = queue.popleft() if queue else None
            if queue:
                self._queues[actor] = queue
            if task is None:
                continue
            self.queued -= 1
            if not task.future.done():
                self._start(task)

    def close(self) -> None:
        self._executor.shutdown(wait=False, cancel_futures=True)


@dataclass(frozen=True)
class Pools:
    read: Pool
    write: Pool
    job: Pool

    @staticmethod
    def of(limits: ServerLimits, watch: Callable[[str, float], None]) -> Pools:
        def pool(name: str, threads: int) -> Pool:
            return Pool(name, threads, limits.waiting, limits.patience, watch)

        return Pools(
            pool("read", limits.read_threads),
            pool("write", limits.write_threads),
            pool("job", limits.job_threads),
        )

    def all(self) -> tuple[Pool, ...]:
        return self.read, self.write, self.job

    def close(self) -> None:
        for pool in self.all():
            pool.close()
