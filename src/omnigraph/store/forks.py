"""Owns what a forked process may do, and what it inherits from its parent.

Lance and obstore do not survive a fork: their threads are gone, and a child that continues with
them hangs or crashes, even with a handle of its own. So the child of a process that has used one of
them is refused at once. Any other child may open graphs, but never uses a handle of its parent.
"""

from __future__ import annotations

import atexit
import os
from collections.abc import Callable
from typing import Any

from omnigraph.errors import ForkedProcess
from omnigraph.store.library_settings import check_library_settings


class _Process:
    """This process: how many forks separate it from the first one, whether it has used Lance or
    obstore, and whether its parent had when it was forked."""

    def __init__(self) -> None:
        self.generation = 0
        self.used = False
        self.spoilt = False

    def forked(self) -> None:
        self.generation += 1
        self.spoilt = self.used


_PROCESS = _Process()
os.register_at_fork(after_in_child=_PROCESS.forked)


def require_usable() -> None:
    """Raises in a child of a process that has used Lance or obstore."""
    if _PROCESS.spoilt:
        raise ForkedProcess("This process was forked from one that had used a graph already.")


def use_engines() -> None:
    """Called before the first use of Lance or obstore: from here on, a forked child is refused."""
    require_usable()
    if not _PROCESS.used:
        check_library_settings(os.environ)
    _PROCESS.used = True


def process_mark() -> int:
    """Identifies the process that made a handle. Raises where none may be made."""
    require_usable()
    return _PROCESS.generation


def is_own(mark: int) -> bool:
    return mark == _PROCESS.generation


def require_own(mark: int, root: str) -> None:
    """Raises for a handle that was inherited through a fork. Its locks may be held by threads that
    do not exist here, so nothing of it is touched."""
    if is_own(mark):
        return
    require_usable()
    raise ForkedProcess(
        f"The graph {root} was opened by the process that this one was forked from.",
        help="Open it again in this process.",
    )


def at_own_exit(call: Callable[..., object], *args: Any, **options: Any) -> None:
    """Registers a function for the end of this process, not for that of a child."""
    mark = _PROCESS.generation

    def run() -> None:
        if is_own(mark):
            call(*args, **options)

    atexit.register(run)
