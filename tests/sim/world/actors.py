"""Owns the schedule of a round: several actors, each a thread that runs only when it is its turn.

Every request to the store and every named point of the protocol ends a turn. Who comes next is
drawn from the seed, and so is what goes wrong: the same seed is the same schedule.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random
from typing import Any, TypeVar

from omnigraph import runtime
from omnigraph.errors import Unavailable
from omnigraph.store.objects import Ambiguous
from tests.bench.faults import Crashed
from tests.sim.world.steps import Fault

T = TypeVar("T")
PATIENCE = 120.0
MANY = 50
"""Puts of versions that a step may come to: who is beaten was beaten by somebody."""
READS = frozenset({"get", "exists", "list", "glance"})


@dataclass
class Troubles:
    """How often requests fail, and what becomes of them. There are few conditional puts among
    them, and everything hangs on their answers: these fail more often."""

    rate: float = 0.0
    puts: float = 0.0
    crashes: float = 0.0

    def draw(self, chance: Random, method: str) -> str | None:
        roll = chance.random()
        if roll < self.crashes:
            return chance.choice(("crash_before", "crash_after"))
        rate = self.puts if method == "put_if_absent" else self.rate
        if roll >= self.crashes + rate or method == "glance":
            return None
        if method == "put_if_absent":
            return chance.choice(("fail_before", "fail_after", "taken", "land_late"))
        return "fail_before" if method in READS else chance.choice(("fail_before", "fail_after"))


@dataclass
class Actor:
    """Does its work in turns. `crashed`: it is dead until it begins another step."""

    name: str
    work: Callable[[Actor], None]
    turn: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    crashed: bool = False
    ended: bool = False
    error: BaseException | None = None
    thread: threading.Thread | None = None


class Schedule:
    """One round. `late` are puts whose answer was lost and which are still on their way. In some
    rounds one has bad luck: whenever it is about to put a version, the others take so many steps
    first."""

    def __init__(self, chance: Random, troubles: Troubles, unlucky: str = "") -> None:
        self.chance = chance
        self.troubles = troubles
        self.stay = chance.choice((0.1, 0.5, 0.85))
        self.steps = 0
        self.puts = 0
        self._unlucky = unlucky
        self._behind = chance.choice((0, 0, 1, 2, 2))
        self._held_until = 0
        self.turns = 0
        self._back = threading.Semaphore(0)
        self._actors: dict[int, Actor] = {}
        self._late: list[tuple[int, Callable[[], Any]]] = []

    def run(self, actors: Sequence[Actor]) -> None:
        with self._listening():
            for actor in actors:
                actor.thread = threading.Thread(target=self._live, args=(actor,), daemon=True)
                actor.thread.start()
            waiting, now = list(actors), actors[0]
            while waiting:
                if self.puts > MANY * (self.steps + len(actors)):
                    raise Fault(f"{now.name} tries to put a version again and again, in vain")
                free = [one for one in waiting if not self._is_held(one)] or waiting
                hurried = self._hurried(free)
                if now not in hurried or self.chance.random() >= self.stay:
                    now = self.chance.choice(hurried)
                now.turn.release()
                if not self._back.acquire(timeout=PATIENCE):
                    raise Fault(f"{now.name} does not come back: it waits for somebody else")
                if now.ended:
                    waiting.remove(now)
            self._land(every=True)
        for actor in actors:
            if actor.error is not None:
                raise actor.error

    def _hurried(self, free: list[Actor]) -> list[Actor]:
        """Who has bad luck is quick otherwise, so that it is beaten again and again."""
        if not self._behind or self.chance.random() < 0.1:
            return free
        return [one for one in free if one.name == self._unlucky] or free

    def _is_held(self, actor: Actor) -> bool:
        return actor.name == self._unlucky and self.steps < self._held_until

    def _live(self, actor: Actor) -> None:
        self._actors[threading.get_ident()] = actor
        actor.turn.acquire()
        try:
            actor.work(actor)
        except BaseException as error:  # noqa: BLE001  (told by the schedule)
            actor.error = error
        actor.ended = True
        del self._actors[threading.get_ident()]
        self._back.release()

    @contextmanager
    def _listening(self) -> Iterator[None]:
        before, runtime.on_reach = runtime.on_reach, self.reach
        try:
            yield
        finally:
            runtime.on_reach = before

    # Where turns end

    def here(self) -> Actor | None:
        """Who is asking; None for threads that help an actor, who waits for them."""
        return self._actors.get(threading.get_ident())

    def pause(self) -> None:
        actor = self.here()
        if actor is not None:
            self.turns += 1
            self._back.release()
            actor.turn.acquire()

    def reach(self, point: str) -> None:
        actor = self.here()
        if actor is None:
            return
        if point == "before put":
            self.puts += 1
            if actor.name == self._unlucky:
                self._held_until = self.steps + self._behind
        self.pause()
        if not actor.crashed and self.chance.random() < self.troubles.crashes:
            actor.crashed = True
        if actor.crashed:
            raise Crashed(f"at {point}")

    def request(self, method: str, key: str, effect: Callable[[], T]) -> T:
        actor = self.here()
        if actor is None:
            return effect()
        self.pause()
        if actor.crashed:
            raise Crashed("it is dead")
        kind = self.troubles.draw(self.chance, method)
        try:
            return self._suffer(actor, kind, method, key, effect)
        finally:
            self._land()

    def _suffer(
        self, actor: Actor, kind: str | None, method: str, key: str, effect: Callable[[], T]
    ) -> T:
        if kind is None:
            return effect()
        if kind == "taken":
            return False  # type: ignore[return-value]  # only drawn for put_if_absent
        if kind == "land_late":
            self._late.append((self.chance.randrange(1, 12), effect))
        if kind in ("fail_after", "crash_after"):
            effect()
        if kind in ("crash_before", "crash_after"):
            actor.crashed = True
            raise Crashed(f"{kind} of {method} {key}")
        if method == "put_if_absent":
            raise Ambiguous(f"the answer was lost ({kind} of {key})")
        raise Unavailable(f"injected: {kind} of {method} {key}")

    def _land(self, *, every: bool = False) -> None:
        waiting = [(left - 1, effect) for left, effect in self._late]
        self._late = [one for one in waiting if one[0] > 0 and not every]
        for left, effect in waiting:
            if left <= 0 or every:
                effect()
