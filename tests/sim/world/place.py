"""Owns where a world takes place: one clock, one directory, and the doors by which it is opened.

Time passes only when the world says so, for everybody alike, and a little with each look at it.
What lies in the directory is as old as the world's clock says, not the machine's.
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from omnigraph.engine.access import Mode
from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import open_root
from omnigraph.runtime import SystemRuntime, encode_ulid
from omnigraph.settings import Settings
from omnigraph.store.objects import ObjectStore, StoredFile
from omnigraph.store.roots import Root

T = TypeVar("T")
START = 1_800_000_000_000_000
TICK = 150
HOUR = 3600.0


class Clock:
    """Microseconds of the world, and when each file was first seen."""

    def __init__(self) -> None:
        self.time = START
        self._written: dict[tuple[str, int, int], int] = {}
        self._lock = threading.Lock()

    def now(self) -> int:
        with self._lock:
            self.time += TICK
            return self.time

    def written(self, path: Path) -> int:
        """When a file came to be: not later than the first look at it."""
        held = path.stat()
        at = (str(path), held.st_mtime_ns, held.st_ino)
        with self._lock:
            return self._written.setdefault(at, self.time)

    def ages(self, directory: Path) -> dict[Path, int]:
        """When each file below a directory came to be."""
        return {
            Path(place) / name: self.written(Path(place) / name)
            for place, _, names in os.walk(directory)
            for name in names
        }

    def keep_ages(self, ages: Mapping[Path, int]) -> None:
        """What is at these places now is what was there then."""
        for path, time in ages.items():
            if path.exists():
                held = path.stat()
                self._written[str(path), held.st_mtime_ns, held.st_ino] = time

    def pass_on(self, directory: Path, seconds: float) -> None:
        """What is there now was written before this time passed."""
        self.ages(directory)
        with self._lock:
            self.time += int(seconds * 1e6)


class WorldTime(SystemRuntime):
    """The clock as one process sees it: early, late, or right."""

    def __init__(self, clock: Clock, chance: random.Random, skew: float = 0.0) -> None:
        super().__init__()
        self.clock = clock
        self.chance = chance
        self.skew = int(skew * 1e6)
        self.on_sleep: Callable[[], None] = lambda: None
        self._newest = (0, 0)

    def now(self) -> int:
        return self.clock.now() + self.skew

    def monotonic(self) -> float:
        return self.clock.now() / 1e6

    def sleep(self, seconds: float) -> None:
        self.clock.time += int(seconds * 1e6)
        self.on_sleep()

    def random(self) -> float:
        return self.chance.random()

    def ulid(self) -> str:
        milliseconds = self.now() // 1000
        number = self.chance.getrandbits(78)
        if milliseconds <= self._newest[0]:
            milliseconds, number = self._newest[0], self._newest[1] + 1
        self._newest = (milliseconds, number)
        return encode_ulid(milliseconds, number)


Request = Callable[[str, str, Callable[[], Any]], Any]
"""Carries out a request, or does not: method, key, effect."""


def carry_out(method: str, key: str, effect: Callable[[], T]) -> T:
    return effect()


class WorldStore:
    """The store on a disk, with the world's clock, and somebody at the door."""

    def __init__(self, inner: ObjectStore, directory: Path, clock: Clock, door: Request) -> None:
        self.inner = inner
        self.directory = directory
        self.clock = clock
        self.door = door

    def get(self, key: str) -> bytes:
        return self._ask("get", key, lambda: self.inner.get(key))

    def put_if_absent(self, key: str, data: bytes, *, after: Sequence[Path] = ()) -> bool:
        return self._ask(
            "put_if_absent", key, lambda: self.inner.put_if_absent(key, data, after=after)
        )

    def put(self, key: str, data: bytes) -> None:
        self._ask("put", key, lambda: self.inner.put(key, data))

    def get_parts(self, key: str) -> Iterator[bytes]:
        return self._ask("get", key, lambda: self.inner.get_parts(key))

    def put_parts(self, key: str, parts: Iterator[bytes]) -> None:
        self._ask("put", key, lambda: self.inner.put_parts(key, parts))

    def exists(self, key: str) -> bool:
        return self._ask("exists", key, lambda: self.inner.exists(key))

    def list(self, prefix: str, *, limit: int | None = None) -> list[str]:
        return self._ask("list", prefix, lambda: self.inner.list(prefix, limit=limit))

    def files(self, prefix: str) -> Sequence[StoredFile]:
        def effect() -> Sequence[StoredFile]:
            return [self._aged(one) for one in self.inner.files(prefix)]

        return self._ask("list", prefix, effect)

    def groups(self, prefix: str) -> Sequence[str]:
        return self._ask("list", prefix, lambda: self.inner.groups(prefix))

    def glance(self, keys: Sequence[str]) -> Sequence[bool] | None:
        return self._ask("glance", keys[0] if keys else "", lambda: self.inner.glance(keys))

    def delete(self, key: str) -> None:
        self._ask("delete", key, lambda: self.inner.delete(key))

    def __getattr__(self, name: str) -> Any:
        """What the port has gained since: asked of the store itself, without a door."""
        return getattr(self.inner, name)

    def _aged(self, file: StoredFile) -> StoredFile:
        try:
            return StoredFile(file.key, file.size, self.clock.written(self.directory / file.key))
        except FileNotFoundError:  # it went since it was listed
            return StoredFile(file.key, file.size, self.clock.time)

    def _ask(self, method: str, key: str, effect: Callable[[], T]) -> T:
        answer: T = self.door(method, key, effect)
        return answer


@dataclass(frozen=True)
class WorldRoot(Root):
    clock: Clock = field(kw_only=True)
    door: Request = carry_out

    def objects(self, settings: Settings) -> ObjectStore:
        assert self.directory is not None
        return WorldStore(super().objects(settings), self.directory, self.clock, self.door)


QUICK = Settings(durability="relaxed", queue=False, folding="off", retry_for=5.0)


@dataclass
class Place:
    directory: Path
    clock: Clock
    chance: random.Random

    def open(
        self,
        *,
        mode: Mode = "rw",
        settings: Settings = QUICK,
        skew: float = 0.0,
        door: Request = carry_out,
        on_sleep: Callable[[], None] = lambda: None,
    ) -> Graph:
        root = WorldRoot(str(self.directory), self.directory, clock=self.clock, door=door)
        time = self.time(skew)
        time.on_sleep = on_sleep
        return open_root(root, mode=mode, settings=settings, runtime=time)

    def time(self, skew: float = 0.0) -> WorldTime:
        return WorldTime(self.clock, random.Random(self.chance.getrandbits(64)), skew)
