"""A power cut, simulated: what of a directory is on the disk after only what was synced is kept.

A file has the contents that it had when it was last synced, a directory the entries that it had
when it was last synced; nothing else is promised by a file system. Lance never syncs, so whatever
is kept of its files was synced by us.
"""

from __future__ import annotations

import contextlib
import os
import stat
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pytest

Inode = tuple[int, int]


class Entry(NamedTuple):
    inode: Inode
    directory: bool


@dataclass(frozen=True)
class Moment:
    """What the disk holds at one moment."""

    contents: dict[Inode, bytes]
    entries: dict[Inode, dict[str, Entry]]

    def restore(self, top: Inode, into: Path) -> None:
        """Everything that can be reached from a directory by synced entries. A file that was
        never synced itself has 0 bytes then, a directory no entries."""
        into.mkdir()
        for name, entry in self.entries.get(top, {}).items():
            if entry.directory:
                self.restore(entry.inode, into / name)
            else:
                (into / name).write_bytes(self.contents.get(entry.inode, b""))


@dataclass
class Disk:
    """Watches every sync below a directory that exists, and is synced, from the start."""

    top: Path
    every: bool = True
    """Whether each moment is kept, or only what is synced now."""
    moments: list[Moment] = field(default_factory=list)
    linked: list[Moment] = field(default_factory=list)
    """The disk at each link of a commit point, with the entry of that link on it."""
    _contents: dict[Inode, bytes] = field(default_factory=dict)
    _entries: dict[Inode, dict[str, Entry]] = field(default_factory=dict)
    _held: list[int] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        for directory, _, names in os.walk(self.top):
            for path in (Path(directory), *[Path(directory) / name for name in names]):
                descriptor = os.open(path, os.O_RDONLY)
                self._take(descriptor)
                os.close(descriptor)
        self.moments.append(self._now())

    @property
    def inode(self) -> Inode:
        return _inode(self.top.stat())

    def synced(self, descriptor: int) -> None:
        with self._lock:
            self._take(descriptor)
            if self.every:
                self.moments.append(self._now())

    def now(self) -> Moment:
        """What a power cut would leave."""
        with self._lock:
            return self._now()

    def link(self, path: Path) -> None:
        """A link that came into being and happened to reach the disk by itself."""
        if not self.every or "__manifest" not in path.parts:
            return
        with self._lock:
            parent = _inode(path.parent.stat())
            now = self._now()
            new = Entry(_inode(path.stat()), directory=False)
            entries = {**now.entries.get(parent, {}), path.name: new}
            self.linked.append(Moment(now.contents, {**now.entries, parent: entries}))

    def release(self) -> None:
        for descriptor in self._held:
            os.close(descriptor)

    def _take(self, descriptor: int) -> None:
        told = os.fstat(descriptor)
        inode = _inode(told)
        # Held open, so that no other file can get the number of one that was removed.
        self._held.append(os.dup(descriptor))
        if stat.S_ISDIR(told.st_mode):
            self._entries[inode] = dict(_entries(descriptor))
        else:
            self._contents[inode] = os.pread(descriptor, told.st_size, 0)

    def _now(self) -> Moment:
        return Moment(dict(self._contents), dict(self._entries))


def _entries(descriptor: int) -> Iterator[tuple[str, Entry]]:
    """What a directory lists. Another thread may take its temporary file away meanwhile."""
    with os.scandir(descriptor) as found:
        for each in found:
            with contextlib.suppress(FileNotFoundError):
                told = each.stat(follow_symlinks=False)
                yield each.name, Entry(_inode(told), stat.S_ISDIR(told.st_mode))


def _inode(told: os.stat_result) -> Inode:
    return told.st_dev, told.st_ino


@contextlib.contextmanager
def watched(top: Path, monkeypatch: pytest.MonkeyPatch, *, every: bool = True) -> Iterator[Disk]:
    """Everything on the disk now counts as synced; from here on only what is synced does."""
    disk = Disk(top, every)
    real_sync, real_link = os.fsync, os.link

    def fsync(descriptor: int) -> None:
        real_sync(descriptor)
        disk.synced(descriptor)

    def link(source: Path, target: Path) -> None:
        real_link(source, target)
        disk.link(Path(target))

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", fsync)
        patched.setattr(os, "link", link)
        try:
            yield disk
        finally:
            disk.release()


def lost_contents(moment: Moment, top: Path, into: Path) -> None:
    """The other extreme: every entry that there is, but a file that was not synced is empty."""
    into.mkdir()
    for directory, names, files in os.walk(top):
        below = into / Path(directory).relative_to(top)
        for name in names:
            (below / name).mkdir()
        for name in files:
            inode = _inode((Path(directory) / name).stat())
            (below / name).write_bytes(moment.contents.get(inode, b""))
