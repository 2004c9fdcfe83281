"""Owns how something is timed: interleaved rounds and medians, because the machine is noisy."""

from __future__ import annotations

import os
import random
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Line:
    """One measured fact. `target` is what the issue asks for, "" if it is only reported."""

    what: str
    value: str
    target: str = ""
    holds: bool | None = None


def medians(contenders: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """The median seconds of a call, by contender."""
    times = all_seconds(contenders, rounds=rounds)
    return {name: statistics.median(values) for name, values in times.items()}


def all_seconds(
    contenders: Mapping[str, Callable[[], object]], *, rounds: int
) -> dict[str, list[float]]:
    """The seconds of every call, by contender. Each round calls each contender once, so that
    whatever else the machine does falls on all of them alike; in another order each time, because
    a call that follows a long one with many threads finds cold caches."""
    times: dict[str, list[float]] = {name: [] for name in contenders}
    order = random.Random(rounds)
    names = list(contenders)
    for _ in range(rounds):
        order.shuffle(names)
        for name in names:
            call = contenders[name]
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    return times


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"


@dataclass(frozen=True)
class Spent:
    """What a call took. Seconds of the processors, of all processes under this one, are what a busy
    machine bends least."""

    clock: float
    processors: float

    def __str__(self) -> str:
        return f"{self.clock:.1f} s, processors {self.processors:.1f} s"


def spent_on(call: Callable[[], object]) -> Spent:
    start = Moment.now()
    call()
    return start.until(Moment.now())


def median_spent(values: Sequence[Spent]) -> Spent:
    return Spent(
        statistics.median(value.clock for value in values),
        statistics.median(value.processors for value in values),
    )


@dataclass(frozen=True)
class Moment:
    """What the clock and each process under this one had come to."""

    clock: float
    processes: Mapping[int, int]

    @staticmethod
    def now() -> Moment:
        return Moment(time.perf_counter(), _ticks())

    def until(self, later: Moment) -> Spent:
        """A process that ended in between is left out: Spark's workers end when they have been idle
        for long, and what ended workers took is told by nobody."""
        ticks = sum(
            count - self.processes.get(number, 0) for number, count in later.processes.items()
        )
        return Spent(later.clock - self.clock, ticks / os.sysconf("SC_CLK_TCK"))


def _ticks() -> dict[int, int]:
    """Of the processors, by this process and by each that comes from it."""
    children: dict[int, list[int]] = {}
    ticks: dict[int, int] = {}
    for place in Path("/proc").glob("[0-9]*"):
        try:
            fields = (place / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:  # it ended meanwhile
            continue
        children.setdefault(int(fields[1]), []).append(int(place.name))
        ticks[int(place.name)] = sum(map(int, fields[11:13]))
    found, left = {}, [os.getpid()]
    while left:
        process = left.pop()
        found[process] = ticks.get(process, 0)
        left += children.get(process, [])
    return found
