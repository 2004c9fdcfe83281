"""Owns drawing: one seed gives one program, step by step, and runs it."""

from __future__ import annotations

import random
import shutil
import tempfile
import traceback
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

from tests.sim.world import table
from tests.sim.world.actors import Troubles
from tests.sim.world.checks import check_all, check_some
from tests.sim.world.rounds import draw_round, take_round
from tests.sim.world.steps import Fault, Step
from tests.sim.world.stories import draw_story
from tests.sim.world.upkeep import check_sound
from tests.sim.world.world import CALM, World

HANDLES = ("long", "fold", "late", "new", "read")
SHARES = ((5, 3, 2, 3, 1), (16, 1, 1, 2, 1), (1, 16, 1, 2, 1), (2, 2, 12, 2, 1))
"""How often each handle is used: in some worlds one of them does nearly everything."""


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


@dataclass
class Habits:
    """Each world does some things often and others never: what needs many of one kind is found in
    a world that does little else."""

    weights: dict[str, float]
    shares: tuple[int, ...]


def draw_habits(chance: random.Random, without: Iterable[str]) -> Habits:
    weights = {
        one.name: 0.0 if one.name in without else one.weight * chance.choice((0, 0.3, 1, 1, 2, 4))
        for one in table.OPERATIONS.values()
    }
    weights["write"] = table.OPERATIONS["write"].weight
    return Habits(weights, chance.choice(SHARES))


def draw_step(world: World, chance: random.Random, habits: Habits, number: int) -> Step:
    while True:
        (name,) = chance.choices(list(habits.weights), list(habits.weights.values()))
        what = table.OPERATIONS[name]
        by = chance.choices(HANDLES, habits.shares)[0]
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
    thorough: bool | None = None,
) -> Run:
    """Draws so many steps and takes them, or takes those that are given. `thorough`: everything is
    looked at after each step, by every handle. Where it is not, most handles are far behind when
    they are asked next, which finds other faults."""
    if thorough is None:
        thorough = seed % 10 == 9
    place = Path(tempfile.mkdtemp(prefix="omnigraph-world-", dir=_memory()))
    (place / "disk").mkdir()
    run = Run(seed, without=tuple(without))
    try:
        world = World(
            place / "disk" / "graph", seed, without, troubles_of(seed), durable=seed % 8 == 2
        )
        try:
            for some in draw_steps(world, steps) if isinstance(steps, int) else grouped(steps):
                run.steps += some
                if some[0].round:
                    take_round(world, some)
                else:
                    world.take(some[0])
                if thorough:
                    check_all(world)
                    check_sound(world.handles["read"])
                else:
                    check_some(world, random.Random(f"{seed} {some[0].number}"))
            check_all(world)
            with world.place.open() as g:
                check_sound(g)
        except Fault as fault:
            run.fault = fault
        except Exception as error:  # noqa: BLE001  (a fault of the world itself, told with its seed)
            run.fault = Fault(f"{error!r}\n{traceback.format_exc()}")
        finally:
            run.told = [str(one) for one in world.records]
            run.commits = list(world.past.commits)
            world.close()
    finally:
        shutil.rmtree(place, ignore_errors=True)
    return run


def troubles_of(seed: int) -> Troubles:
    """Every other world has rounds, and half of those have requests that fail and crashes."""
    return Troubles(rate=0.01, puts=0.2, crashes=0.006) if seed % 4 == 3 else CALM


def draw_steps(world: World, many: int) -> Iterator[list[Step]]:
    chance = random.Random(world.seed)
    habits = draw_habits(chance, world.without)
    rounds = 0.3 if world.seed % 2 and "rounds" not in world.without else 0.0
    number = 0
    while number < many:
        if chance.random() < 0.03 and (story := draw_story(world, chance, number)):
            number += len(story)
            yield from ([one] for one in story)
            continue
        if chance.random() < rounds:
            some = draw_round(world, chance, number)
        else:
            some = [draw_step(world, chance, habits, number)]
        number += len(some)
        yield some


def grouped(steps: Sequence[Step]) -> Iterator[list[Step]]:
    for _, some in groupby(steps, key=lambda one: one.round or -one.number - 1):
        yield list(some)


def _memory() -> str | None:
    return "/dev/shm" if Path("/dev/shm").is_dir() else None
