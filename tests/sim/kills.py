"""Kills a process at a chosen point: a named point of the protocol, or the n-th call on storage.

The processes are forks of a server that has imported everything and touched nothing, so that a
kill costs a tenth of a second and not the second that imports take.
"""

from __future__ import annotations

import contextlib
import functools
import multiprocessing
import os
import signal
import threading
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

from omnigraph import runtime
from tests.sim.operations import OPERATIONS

# Lance warns at every fork; this one happens before Lance has started anything.
warnings.filterwarnings("ignore", message="lance is not fork-safe")

_SERVER = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["tests.sim.kills", "omnigraph", "lance", "pyarrow.dataset"])

Point = tuple[str, int]
"""A name and which time it is reached; calls on storage have the name STORAGE."""

STORAGE = "storage call"
WITHIN = 120.0


class Recorder:
    """Counts the points that are reached and, given one, kills the process there."""

    def __init__(self, target: Point | None) -> None:
        self._target = target
        self._lock = threading.Lock()
        self.seen: Counter[str] = Counter()

    def reach(self, point: str) -> None:
        with self._lock:
            self.seen[point] += 1
            if (point, self.seen[point]) == self._target:
                os.kill(os.getpid(), signal.SIGKILL)
                signal.pause()  # never gets past the kill


def record_points(operation: str, root: str) -> list[Point]:
    """Every point that an operation passes, found by running it in a process of its own."""
    told, answer = _SERVER.Pipe(duplex=False)
    process = _SERVER.Process(target=_record, args=(operation, root, answer))
    process.start()
    answer.close()
    with told, _ended(process):
        assert told.poll(WITHIN), f"{operation} hangs"
        seen: dict[str, int] = told.recv()
    assert process.exitcode == 0
    return [(name, n) for name, count in seen.items() for n in range(1, count + 1)]


def kill_at(operation: str, root: str, point: Point) -> bool:
    """Runs an operation in a process that dies at the point; False if it never came there."""
    process = _SERVER.Process(target=_run, args=(operation, root, point))
    process.start()
    with _ended(process):
        process.join(WITHIN)
    assert process.exitcode in (0, -signal.SIGKILL), f"{operation} failed: {process.exitcode}"
    return process.exitcode != 0


def start(target: Callable[..., None], *arguments: Any) -> Any:
    """A process that runs a function of a test module."""
    process = _SERVER.Process(target=target, args=arguments)
    process.start()
    return process


def pipe() -> tuple[Connection, Connection]:
    return _SERVER.Pipe(duplex=False)


@contextlib.contextmanager
def _ended(process: Any) -> Iterator[None]:
    try:
        yield
        process.join(WITHIN)
    finally:
        process.kill()
        process.join()


def _record(operation: str, root: str, answer: Connection) -> None:
    recorder = Recorder(None)
    _watch(recorder)
    OPERATIONS[operation](root)
    answer.send(dict(recorder.seen))


def _run(operation: str, root: str, point: Point) -> None:
    _watch(Recorder(point))
    OPERATIONS[operation](root)


def _watch(recorder: Recorder) -> None:
    """Named points, and every call that changes anything on storage: before it is made and after
    it was made, Lance's own calls included."""
    import lance
    import lance.fragment
    from lance.optimize import CompactionTask

    runtime.on_reach = recorder.reach
    watched: list[tuple[Any, str]] = [
        *[(os, name) for name in ("link", "fsync", "mkdir", "unlink", "rename", "replace")],
        (os, "open"),
        (os, "write"),
        (lance, "write_dataset"),
        (lance.LanceDataset, "commit"),
        (lance.fragment, "write_fragments"),
        (lance.fragment.LanceFragment, "delete_rows"),
        (lance.fragment.LanceFragment, "merge_columns"),
        (CompactionTask, "execute"),
    ]
    for owner, name in watched:
        inside = owner.__dict__[name]
        static = isinstance(inside, staticmethod)
        inner = inside.__func__ if static else inside
        wrapped = _wrapped(inner, recorder)
        setattr(owner, name, staticmethod(wrapped) if static else wrapped)


def _wrapped(inner: Callable[..., Any], recorder: Recorder) -> Callable[..., Any]:
    @functools.wraps(inner)
    def call(*arguments: Any, **options: Any) -> Any:
        recorder.reach(STORAGE)
        result = inner(*arguments, **options)
        recorder.reach(STORAGE)
        return result

    return call
