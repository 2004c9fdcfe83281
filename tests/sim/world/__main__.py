"""python -m tests.sim.world SEED [--to SEED] [--steps N] [--shrink] [--without a,b]"""

from __future__ import annotations

import argparse
import re
import sys
import time

from tests.sim.world.drawing import Run, run_world
from tests.sim.world.shrink import shrink


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.world")
    parser.add_argument("seed", type=int)
    parser.add_argument("--to", type=int, help="all seeds up to this one")
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--without", default="", help="operations to leave out, or `ff`")
    asked = parser.parse_args()
    without = [one for one in asked.without.split(",") if one]
    failed = 0
    began = time.perf_counter()
    for seed in range(asked.seed, (asked.to or asked.seed) + 1):
        run = run_world(seed, asked.steps, without=without)
        if run.fault is None:
            if asked.verbose:
                print(run.report())
            continue
        failed += 1
        if asked.shrink:
            run = shrunk(run, without)
        first = str(run.fault).splitlines()[0]
        print(run.report() if asked.shrink or asked.to is None else f"{seed}: {first[:220]}", flush=True)
    print(f"{failed} failed, {time.perf_counter() - began:.1f} s", file=sys.stderr)
    return 1 if failed else 0


def shrunk(run: Run, without: list[str]) -> Run:
    """The same kind of fault, with the fewest steps."""
    kind = kind_of(run)
    best = [run]

    def fails(steps: object) -> bool:
        tried = run_world(run.seed, steps, without=without)  # type: ignore[arg-type]
        if tried.fault is not None and kind_of(tried) == kind:
            best[0] = tried
            return True
        return False

    shrink(run.steps, fails)
    return best[0]


def kind_of(run: Run) -> str:
    """The first line of the fault without what is different in each run."""
    return re.sub(r"s\d+|[0-9A-Z]{26}|\d+|'[^']*'|\{.*|\[.*", "#", str(run.fault).splitlines()[0])[:60]


if __name__ == "__main__":
    sys.exit(main())
