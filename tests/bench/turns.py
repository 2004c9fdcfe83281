"""Two threads that take turns at named points of the protocol, in an order that the test says."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from omnigraph import runtime

_PATIENCE = 60.0


class Player:
    """A thread that stops whenever it comes to a point where it was told to stop."""

    def __init__(self, name: str, work: Callable[[], object]) -> None:
        self.name = name
        self.error: BaseException | None = None
        self.reached: list[str] = []
        self._work = work
        self._stop_at: str | None = None
        self._go = threading.Event()
        self._still = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def run_to(self, point: str | None) -> bool:
        """On to a point, or to the end; whether it came to that point."""
        if self.reached[-1:] == ["end"]:
            return False
        self._stop_at = point
        self._still.clear()
        self._go.set()
        assert self._still.wait(_PATIENCE), f"{self.name} does not come to {point}"
        return bool(self.reached) and self.reached[-1] == point

    def at(self, point: str) -> None:
        self.reached.append(point)
        if point == self._stop_at:
            self._go.clear()
            self._still.set()
            assert self._go.wait(_PATIENCE)

    def _run(self) -> None:
        assert self._go.wait(_PATIENCE)
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  (the test looks at it)
            self.error = error
        self.reached.append("end")
        self._still.set()

    def is_here(self) -> bool:
        return threading.current_thread() is self._thread


@contextmanager
def playing(*players: Player) -> Iterator[None]:
    def hook(point: str) -> None:
        for player in players:
            if player.is_here():
                player.at(point)

    before, runtime.on_reach = runtime.on_reach, hook
    try:
        yield
    finally:
        runtime.on_reach = before
