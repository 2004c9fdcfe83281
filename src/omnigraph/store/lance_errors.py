"""Owns the translation of Lance's errors, including panics, into our errors."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from omnigraph.errors import (
    Corrupt,
    DiskFull,
    GraphNotFound,
    OmnigraphError,
    PermissionDenied,
    StoreFailure,
    Unavailable,
)
from omnigraph.store.forks import require_usable
from omnigraph.store.resource_errors import find_scarcity

_MISSING = re.compile(r"not found|NotFound|No such file", re.IGNORECASE)
_FULL = re.compile(r"No space left|StorageFull|os error 28\b", re.IGNORECASE)
_READ_ONLY = re.compile(r"Read-only file system|ReadOnlyFilesystem|os error 30\b")
_DENIED = re.compile(
    r"Permission denied|PermissionDenied|403 Forbidden|AccessDenied|" + _READ_ONLY.pattern
)
_NO_THREADS = re.compile(r"spawn thread|start new thread|Resource temporarily unavailable")
_UNREACHED = re.compile(
    r"error sending request|connection (refused|reset|closed)|tcp connect|timed out|dns error"
    r"|HTTP error|SlowDown|ServiceUnavailable|InternalError|status code: 5\d\d|\b50[0-4] [A-Z]",
    re.IGNORECASE,
)
_PLACES = re.compile(r",? ?\(?/[\w./+-]+\.rs:\d+:\d+\)?")
_DAMAGED = re.compile(
    r"corrupt|magic|unexpected end|EOF|out of range|invalid|too short|too small|sufficient data"
    r"|footer",
    re.IGNORECASE,
)


@contextlib.contextmanager
def explained(location: str, *, missing: str | None = None) -> Iterator[None]:
    """Lance panics are not Exceptions, and its errors can be distinguished only by their text."""
    require_usable()
    try:
        yield
    except (OmnigraphError, GeneratorExit, KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:
        if is_failure(error):
            raise explain(error, location, missing) from error
        raise


def is_failure(error: BaseException) -> bool:
    """Whether something went wrong, rather than somebody asking to stop."""
    return isinstance(error, Exception) or _is_panic(error)


def _is_panic(error: BaseException) -> bool:
    return type(error).__name__ == "PanicException"


def explain(error: BaseException, location: str, missing: str | None) -> OmnigraphError:
    text = str(error)
    if (scarce := find_scarcity(error)) is not None:
        return scarce
    if _FULL.search(text):
        return DiskFull(f"No space is left on the device of the table {location}.")
    if _DENIED.search(text):
        why = " (Read-only file system)" if _READ_ONLY.search(text) else ""
        return PermissionDenied(f"No permission for the table {location}{why}.")
    if _NO_THREADS.search(text):
        return no_threads()
    if "NoSuchBucket" in text:
        return GraphNotFound(f"There is no bucket for the table {location}.")
    if _UNREACHED.search(text):
        return Unavailable(f"The store did not answer for the table {location}: {brief(text)}")
    if _MISSING.search(text):
        return Corrupt(f"{missing or f'A file of the table {location}'} is missing.")
    if _is_panic(error) or _DAMAGED.search(text):
        return Corrupt(f"The table {location} cannot be read: {brief(text)}")
    return StoreFailure(f"The table {location} failed: {brief(text)}")


def no_threads() -> Unavailable:
    return Unavailable(
        "The system gives this process no more threads.",
        help="Raise the limit (ulimit -u, or pids of the container), or end other processes.",
    )


def brief(text: str) -> str:
    """The first line of Lance's message, without locations in its source."""
    return _PLACES.sub("", text.split("\n", 1)[0])[:300]
