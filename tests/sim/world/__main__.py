"""python -m tests.sim.world SEED [--to SEED] [--steps N] [--shrink] [--keep NAME]

Without a fault it prints nothing but the time."""

from __future__ import annotations

import argparse
import sys
import time

from tests.sim.world.drawing import run_world
from tests.sim.world.kept import keep
from tests.sim.world.shrink import shrunk


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sim.world")
    parser.add_argument("seed", type=int)
    parser.add_argument("--to", type=int, help="all seeds up to this one")
    parser.add_argument("--steps", type=int, default=25)
    parser.add_argument("--shrink", action="store_true")
    parser.add_argument("--keep", default="", help="write the shrunk program down by this name")
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
        if asked.shrink or asked.keep:
            run = shrunk(run)
        first = str(run.fault).splitlines()[0]
        if asked.keep:
            print(keep(asked.keep, seed, first, run.steps))
        print(
            run.report() if asked.shrink or asked.to is None else f"{seed}: {first[:220]}",
            flush=True,
        )
    print(f"{failed} failed, {time.perf_counter() - began:.1f} s", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
