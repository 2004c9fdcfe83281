"""Owns the translation of what Lance throws, panics included, into our errors."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from omnigraph.errors import Corrupt, DiskFull, OmnigraphError, PermissionDenied, StoreFailure
from omnigraph.store.forks import require_usable

_MISSING = re.compile(r"not found|NotFound|No such file", re.IGNORECASE)
_FULL = re.compile(r"No space left|StorageFull|os error 28\b", re.IGNORECASE)
_READ_ONLY = re.compile(r"Read-only file system|ReadOnlyFilesystem|os error 30\b")
_DENIED = re.compile(
    r"Permission denied|PermissionDenied|403 Forbidden|AccessDenied|" + _READ_ONLY.pattern
)
_DAMAGED = re.compile(
    r"corrupt|magic|unexpected end|EOF|out of range|invalid|too short|too small|sufficient data"
    r"|footer",
    re.IGNORECASE,
)


@contextlib.contextmanager
def explained(location: str, *, missing: str | None = None) -> Iterator[None]:
    """Lance panics are not Exceptions, and its errors are told apart only by their text."""
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
    """Whether something went wrong, and nobody asked to stop."""
    return isinstance(error, Exception) or _is_panic(error)


def _is_panic(error: BaseException) -> bool:
    return type(error).__name__ == "PanicException"


def explain(error: BaseException, location: str, missing: str | None) -> OmnigraphError:
    text = str(error)
    if _FULL.search(text):
        return DiskFull(f"No space is left on the device of the table {location}.")
    if _DENIED.search(text):
        why = " (Read-only file system)" if _READ_ONLY.search(text) else ""
        return PermissionDenied(f"No permission for the table {location}{why}.")
    if _MISSING.search(text):
        return Corrupt(f"{missing or f'A file of the table {location}'} is missing.")
    brief = text.split("\n", 1)[0][:300]
    if _is_panic(error) or _DAMAGED.search(text):
        return Corrupt(f"The table {location} cannot be read: {brief}")
    return StoreFailure(f"The table {location} failed: {brief}")
