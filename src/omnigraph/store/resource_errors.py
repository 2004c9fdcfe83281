"""Owns errors caused by a lack of memory or threads, which are not damage to a graph."""

from __future__ import annotations

import errno
import re

from omnigraph.errors import OutOfMemory

_SCARCE = re.compile(
    r"can't start new thread|failed to spawn|Resource temporarily unavailable|os error 1[12]\b"
    r"|Cannot allocate memory|MemoryError|(?:malloc|realloc|memory allocation) of|bad_alloc"
    r"|Allocation failure|Unable to allocate|failed to map segment|failed to allocate"
)


def find_scarcity(error: BaseException) -> OutOfMemory | None:
    """The error to raise if a resource was scarce. Libraries report that in many ways."""
    text = str(error)
    said = _SCARCE.search(text)
    known = isinstance(error, MemoryError) or (
        isinstance(error, OSError) and error.errno in (errno.ENOMEM, errno.EAGAIN)
    )
    if not known and said is None:
        return None
    if "thread" in text or "spawn" in text:
        return OutOfMemory("No more threads can be started.")
    return OutOfMemory("There is not enough memory.")
