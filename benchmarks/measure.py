"""Owns how something is timed: interleaved rounds and medians, because the machine is noisy."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Line:
    """One measured fact. `target` is what the issue asks for, "" if it is only reported."""

    what: str
    value: str
    target: str = ""
    holds: bool | None = None


def medians(contenders: Mapping[str, Callable[[], object]], *, rounds: int) -> dict[str, float]:
    """Seconds a call, by contender. Each round calls each contender once, so that whatever else
    the machine does falls on all of them alike; in another order each time, because who comes
    after a long call with many threads finds cold caches."""
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
    return {name: statistics.median(values) for name, values in times.items()}


def milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:.2f} ms"
