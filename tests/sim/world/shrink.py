"""Owns shrinking: of a program that fails, the fewest steps that still fail alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

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
