"""Owns shrinking: of a program that fails, the fewest steps that still fail alike."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from tests.sim.world.drawing import Run, run_world
from tests.sim.world.steps import Step

Fails = Callable[[Sequence[Step]], bool]


def shrink(steps: Sequence[Step], fails: Fails) -> list[Step]:
    """Leaves out runs of steps, shorter and shorter ones, as long as it still fails."""
    left = list(steps)
    size = max(1, len(left) // 2)
    while size:
        at, smaller = 0, False
        while at < len(left):
            tried = left[:at] + left[at + size :]
            if fails(tried):
                left, smaller = tried, True
            else:
                at += size
        if size == 1 and not smaller:
            return left
        size = size // 2 or (1 if smaller else 0)
    return left


def shrunk(run: Run) -> Run:
    kind = kind_of(run)
    best = [run]

    def fails(steps: Sequence[Step]) -> bool:
        tried = run_world(run.seed, steps, without=run.without)
        if tried.fault is None or kind_of(tried) != kind:
            return False
        best[0] = tried
        return True

    shrink(run.steps, fails)
    return best[0]


def kind_of(run: Run) -> str:
    """The first line of the fault without what is different in each run."""
    first = str(run.fault).splitlines()[0]
    return re.sub(r"s-?\d+|[0-9A-Z]{26}|\d+|'[^']*'|\{.*|\[.*", "#", first)[:60]
