"""A faulty object store: the real port with chosen or seeded failures before and after effects.

It may not invent behaviour that a real store cannot show: a read fails or answers right, and only
a conditional put can be ambiguous, land late, or be refused as taken with nothing stored.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeVar

from omnigraph.errors import Unavailable
from omnigraph.store.objects import Ambiguous, ObjectStore, StoredFile
from tests.bench.keys import KeyClass, key_class

T = TypeVar("T")

Method = Literal["get", "put_if_absent", "put", "exists", "list", "delete"]
Kind = Literal[
    "fail_before",
    "fail_after",
    "hang_before",
    "hang_after",
    "taken",
    "land_late",
    "crash_before",
    "crash_after",
]
READS: frozenset[str] = frozenset({"get", "exists", "list"})
CONDITIONAL_ONLY: frozenset[str] = frozenset({"taken", "land_late"})


class Crashed(BaseException):
    """The process died here: nothing of it may run on, so no `except Exception` may catch it."""


@dataclass(frozen=True)
class Fault:
    """A failure of the nth request that matches, and of the next ``times - 1`` (None: all)."""

    kind: Kind
    method: Method | None = None
    key_class: KeyClass | None = None
    nth: int = 1
    times: int | None = 1
    after_requests: int = 2
    """For ``land_late``: how many later requests are answered before the effect comes."""


@dataclass
class _Armed:
    fault: Fault
    matched: int = 0

    def takes(self, method: str, kind: KeyClass) -> bool:
        fault = self.fault
        if fault.method not in (None, method) or fault.key_class not in (None, kind):
            return False
        self.matched += 1
        last = None if fault.times is None else fault.nth + fault.times
        return self.matched >= fault.nth and (last is None or self.matched < last)


@dataclass(frozen=True)
class Call:
    """One request as the store under the faults saw it."""

    method: Method
    key: str
    fault: Kind | None


@dataclass
class _Late:
    remaining: int
    effect: Callable[[], object]


@dataclass
class FaultyStore:
    """An `ObjectStore` around another, with listed faults and, given a seed, random ones."""

    inner: ObjectStore
    faults: Sequence[Fault] = ()
    seed: int | None = None
    rate: float = 0.1
    kinds: Sequence[Kind] = ("fail_before", "fail_after", "taken", "land_late")
    hang_seconds: float = 0.05
    sleep: Callable[[float], None] = time.sleep
    calls: list[Call] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._armed = [_Armed(fault) for fault in self.faults]
        self._random = random.Random(self.seed)
        self._late: list[_Late] = []
        self._crashed = False

    def get(self, key: str) -> bytes:
        return self._request("get", key, lambda: self.inner.get(key))

    def put_if_absent(self, key: str, data: bytes, *, after: Sequence[Path] = ()) -> bool:
        return self._request(
            "put_if_absent", key, lambda: self.inner.put_if_absent(key, data, after=after)
        )

    def put(self, key: str, data: bytes) -> None:
        self._request("put", key, lambda: self.inner.put(key, data))

    def get_parts(self, key: str) -> Iterator[bytes]:
        return self._request("get", key, lambda: self.inner.get_parts(key))

    def put_parts(self, key: str, parts: Iterator[bytes]) -> None:
        self._request("put", key, lambda: self.inner.put_parts(key, parts))

    def exists(self, key: str) -> bool:
        return self._request("exists", key, lambda: self.inner.exists(key))

    def list(self, prefix: str, *, limit: int | None = None) -> list[str]:
        return self._request("list", prefix, lambda: self.inner.list(prefix, limit=limit))

    def files(self, prefix: str) -> Sequence[StoredFile]:
        return self._request("list", prefix, lambda: self.inner.files(prefix))

    def groups(self, prefix: str) -> Sequence[str]:
        return self._request("list", prefix, lambda: self.inner.groups(prefix))

    def glance(self, keys: Sequence[str]) -> Sequence[bool] | None:
        return self.inner.glance(keys)

    def delete(self, key: str) -> None:
        self._request("delete", key, lambda: self.inner.delete(key))

    def settle(self) -> None:
        """Let everything that was still on its way land now."""
        for late in self._late:
            late.effect()
        self._late.clear()

    def _request(self, method: Method, key: str, effect: Callable[[], T]) -> T:
        if self._crashed:
            raise Crashed("this process is dead")
        kind, late_by = self._choose(method, key)
        self.calls.append(Call(method, key, kind))
        try:
            return self._suffer(kind, late_by, method, key, effect)
        finally:
            self._land_due()

    def _suffer(
        self, kind: Kind | None, late_by: int, method: Method, key: str, effect: Callable[[], T]
    ) -> T:
        if kind is None:
            return effect()
        if kind == "taken":
            return False  # type: ignore[return-value]  # only chosen for put_if_absent
        if kind == "land_late":
            self._late.append(_Late(late_by + 1, effect))
        if kind in ("fail_after", "hang_after", "crash_after"):
            effect()
        if kind in ("hang_before", "hang_after"):
            self.sleep(self.hang_seconds)
        if kind in ("crash_before", "crash_after"):
            self._crashed = True
            raise Crashed(f"{kind} of {method} {key}")
        raise self._error(method, kind, key)

    def _choose(self, method: Method, key: str) -> tuple[Kind | None, int]:
        """The fault of this request; rules count every match, whichever of them wins."""
        of = key_class(key)
        taking = [armed.fault for armed in self._armed if armed.takes(method, of)]
        if taking:
            self._check(taking[0].kind, method)
            return taking[0].kind, taking[0].after_requests
        if self.seed is None or self._random.random() >= self.rate:
            return None, 0
        kind = self._random.choice(self.kinds)
        late_by = self._random.randrange(1, 5)
        if kind in CONDITIONAL_ONLY and method != "put_if_absent":
            return "fail_before", 0
        return kind, late_by

    @staticmethod
    def _check(kind: Kind, method: Method) -> None:
        if kind in CONDITIONAL_ONLY and method != "put_if_absent":
            raise ValueError(f"{kind} is a fault of put_if_absent, not of {method}")

    @staticmethod
    def _error(method: Method, kind: Kind, key: str) -> Exception:
        """As the real stores: a lost conditional put is ambiguous, all else is unavailable."""
        if method == "put_if_absent":
            return Ambiguous(f"the answer was lost ({kind} of {method} {key})")
        return Unavailable(f"injected: {kind} of {method} {key}")

    def _land_due(self) -> None:
        for late in self._late:
            late.remaining -= 1
        due = [late for late in self._late if late.remaining <= 0]
        self._late = [late for late in self._late if late.remaining > 0]
        for late in due:
            late.effect()
