"""Time for tests of cleanup: a clock that can be moved, and files that grow old at once."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from omnigraph import runtime
from omnigraph.runtime import SystemRuntime
from omnigraph.store.disk import DiskStore
from omnigraph.store.objects import StoredFile

HOUR = 3600.0


class MovingRuntime(SystemRuntime):
    """The machine's clock, ahead by as much as the test says. Ids keep the real time: only that
    they grow matters."""

    def __init__(self) -> None:
        super().__init__()
        self.ahead = 0.0

    def now(self) -> int:
        return super().now() + int(self.ahead * 1e6)

    def monotonic(self) -> float:
        return super().monotonic() + self.ahead


class PassingTime(MovingRuntime):
    """One time for writers and for the store on a disk: what is written keeps the time at which it
    was written, and everybody's clock goes on."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        super().__init__()
        self._written: dict[tuple[str, int], int] = {}
        listed = DiskStore.files

        def files(store: DiskStore, prefix: str) -> Sequence[StoredFile]:
            return [
                StoredFile(one.key, one.size, self._when(store, one))
                for one in listed(store, prefix)
            ]

        patch.setattr(DiskStore, "files", files)

    def _when(self, store: DiskStore, file: StoredFile) -> int:
        at = (f"{store._root}/{file.key}", file.modified)
        return self._written.setdefault(at, file.modified + int(self.ahead * 1e6))

    def wait(self, root: Path, seconds: float) -> None:
        """What was written up to now was written before this time passed."""
        DiskStore(root, durability="relaxed").files("")
        self.ahead += seconds


def age(root: Path, seconds: float) -> None:
    """Every file of a graph becomes older, as if so much time had passed on the store."""
    for directory, _, names in os.walk(root):
        for name in names:
            path = Path(directory) / name
            held = path.stat()
            os.utime(path, (held.st_atime, held.st_mtime - seconds))


@contextmanager
def at_point(point: str, action: Callable[[], object], *, nth: int = 1) -> Iterator[list[str]]:
    """Does something when the protocol comes to a point for the nth time, and only then."""
    seen: list[str] = []
    left = [nth]

    def hook(reached: str) -> None:
        if reached != point or left[0] == 0:
            return
        left[0] -= 1
        if left[0] == 0:
            seen.append(reached)
            runtime.on_reach = None
            try:
                action()
            finally:
                runtime.on_reach = hook

    before = runtime.on_reach
    runtime.on_reach = hook
    try:
        yield seen
    finally:
        runtime.on_reach = before
