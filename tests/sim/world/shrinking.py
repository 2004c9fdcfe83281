"""Owns shrinking a run: the same kind of fault, with the fewest steps."""

from __future__ import annotations

import re
from collections.abc import Sequence

from tests.sim.world.drawing import Run, run_world
from tests.sim.world.shrink import shrink
from tests.sim.world.steps import Step


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
