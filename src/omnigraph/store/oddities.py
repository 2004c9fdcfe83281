"""Owns finding things in the folders of a graph on a disk that are neither files nor folders:
links, pipes, devices.

No object of a graph is one (decision 36), and reading one can lead outside or never end.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable
from pathlib import Path

from omnigraph.errors import Corrupt


def find_odd(folder: Path, *, depth: int = 0) -> frozenset[str]:
    """The names of odd entries in a folder, down to a depth. A listing shows the kinds, so no file
    is opened."""
    odd: set[str] = set()
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    if depth:
                        below = find_odd(folder / entry.name, depth=depth - 1)
                        odd.update(f"{entry.name}/{name}" for name in below)
                elif not entry.is_file(follow_symlinks=False):
                    odd.add(entry.name)
    except (FileNotFoundError, NotADirectoryError):
        return frozenset()
    return frozenset(odd)


def require_plain(root: Path, keys: Iterable[str]) -> None:
    """Raises if one of these is odd. A missing file is reported when it is read."""
    for key in keys:
        try:
            mode = (root / key).lstat().st_mode
        except (FileNotFoundError, NotADirectoryError):
            continue
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            raise odd_object(key, mode)


def odd_object(key: str, mode: int) -> Corrupt:
    kind = "a link" if stat.S_ISLNK(mode) else "a pipe or a device"
    return Corrupt(f"{key} is {kind}, which no object of a graph is.")
