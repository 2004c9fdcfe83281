"""Owns files that a user names: `-` for stdin, and the errors for files that cannot be used."""

from __future__ import annotations

import errno

from omnigraph.errors import (
    DiskFull,
    InvalidArgument,
    NotFound,
    OmnigraphError,
    PermissionDenied,
)

STDIN = "<stdin>"
"""Stands in for `-`, because cyclopts takes a lone dash for an option."""

_LONG = 200
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
FULL = (errno.ENOSPC, errno.EDQUOT)


def shortened(text: str) -> str:
    return text if len(text) <= _LONG else f"{text[:_LONG]}…"


def unreadable(path: str, error: OSError) -> OmnigraphError:
    if isinstance(error, FileNotFoundError):
        return NotFound(f"There is no file {path}.")
    if error.errno in _REFUSED:
        return PermissionDenied(f"The file {path} may not be read.")
    return InvalidArgument(f"{path} cannot be read: {error.strerror or error}.")


def unwritable(path: str, error: OSError) -> OmnigraphError:
    if error.errno in _REFUSED:
        why = "" if error.errno != errno.EROFS else ": the file system is read-only"
        return PermissionDenied(f"The file {path} may not be written{why}.")
    if error.errno in FULL:
        return DiskFull(
            f"No space is left for {path}.", help="Free some space, or choose another place."
        )
    if isinstance(error, IsADirectoryError):
        return InvalidArgument(f"{path} is a directory, not a file.")
    return InvalidArgument(f"{path} cannot be written: {error.strerror or error}.")
