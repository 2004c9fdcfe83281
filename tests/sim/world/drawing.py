"""Owns drawing: one seed gives one program, step by step, and runs it."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.sim.world import table
from tests.sim.world.checks import check_all, check_some
from tests.sim.world.steps import Fault, Step
from tests.sim.world.upkeep import check_sound
from tests.sim.world.world import World

HANDLES = {"long": 5, "fold": 3, "late": 2, "new": 3, "read": 1}


@dataclass
class Run:
    """What came of a program: the steps that were taken, and the fault, if there was one."""

    seed: int
    steps: list[Step] = field(default_factory=list)
    fault: Fault | None = None
    told: list[str] = field(default_factory=list)
    commits: list[str] = field(default_factory=list)
    without: tuple[str, ...] = ()

    def report(self) -> str:
        lines = [f"seed {self.seed}, {len(self.steps)} steps", *self.told, ""]
        return "\n".join([*lines, f"{self.fault}"])


def draw_weights(chance: random.Random, without: Iterable[str]) -> dict[str, float]:
    """Each world does some things often and others never: what needs many of one kind is found in
    a world that does little else."""
    return {
        one.name: 0.0 if one.name in without else one.weight * chance.choice((0, 0.3, 1, 1, 2, 4))
        for one in table.OPERATIONS.values()
    } | {"write": table.OPERATIONS["write"].weight}


def draw_step(
    world: World, chance: random.Random, weights: Mapping[str, float], number: int
) -> Step:
    while True:
        (name,) = chance.choices(list(weights), list(weights.values()))
        what = table.OPERATIONS[name]
        by = chance.choices(list(HANDLES), list(HANDLES.values()))[0]
        if by == "read" and not what.reads and chance.random() < 0.95:
            continue
        args = what.draw(world, chance)
        if args is not None:
            return Step(number, what.name, by, args)


def run_world(
    seed: int,
    steps: int | Sequence[Step],
    *,
    without: Iterable[str] = (),
    thorough: bool = False,
) -> Run:
    """Draws so many steps and takes them, or takes those that are given."""
    place = Path(tempfile.mkdtemp(prefix="omnigraph-world-", dir=_memory()))
    run = Run(seed, without=tuple(without))
    chance = random.Random(seed)
    weights = draw_weights(chance, without)
    try:
        world = World(place / "graph", seed, without)
        try:
            for number in range(steps) if isinstance(steps, int) else steps:
                step = draw_step(world, chance, weights, number) if isinstance(number, int) else number
                run.steps.append(step)
                world.take(step)
                if thorough:
                    check_all(world)
                else:
                    check_some(world, random.Random(f"{seed} {step.number}"))
            check_all(world)
            with world.place.open() as g:
                check_sound(g)
        except Fault as fault:
            run.fault = fault
        finally:
            run.told = [str(one) for one in world.records]
            run.commits = list(world.past.commits)
            world.close()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return run


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
