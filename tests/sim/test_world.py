"""The world: seeds of every kind, those that ever failed first; a test that nothing is missing."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from omnigraph.engine.branch import Branch
from omnigraph.engine.graph import Graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.write.transaction import Transaction
from tests.sim.world import table
from tests.sim.world.drawing import run_world
from tests.sim.world.shrink import shrink, shrunk
from tests.sim.world.steps import Step

STEPS = 30
FEW = 60
MANY = 3000
SHARD = 50


def kept_seeds() -> list[tuple[int, int]]:
    """Seeds that failed once, with the number of their steps."""
    lines = (Path(__file__).parent / "seeds.txt").read_text().splitlines()
    numbers = [line.split("#")[0].split() for line in lines]
    return [(int(one[0]), int(one[1])) for one in numbers if one]


def check_seed(seed: int, steps: int = STEPS) -> None:
    run = run_world(seed, steps)
    if run.fault is not None:
        pytest.fail(shrunk(run).report(), pytrace=False)


@pytest.mark.parametrize(("seed", "steps"), kept_seeds())
def test_a_world_that_failed_once_holds(seed: int, steps: int) -> None:
    check_seed(seed, steps)


@pytest.mark.parametrize("seed", range(FEW))
def test_a_world_holds(seed: int) -> None:
    check_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FEW, FEW + MANY, SHARD))
def test_many_worlds_hold(first: int) -> None:
    for seed in range(first, first + SHARD):
        check_seed(seed)


def public(kind: type) -> set[str]:
    names = [name for name, _ in inspect.getmembers(kind) if not name.startswith("_")]
    return {f"{kind.__name__}.{name}" for name in names}


def test_no_public_operation_is_missing_from_the_world() -> None:
    covered = set(table.COVERED_BY)
    for one in table.OPERATIONS.values():
        for name in one.covers:
            covered |= {name} if "." in name else {f"Graph.{name}", f"Branch.{name}"}
    wanted = set().union(*(public(kind) for kind in (Graph, Branch, Snapshot, Transaction)))
    assert sorted(wanted - covered) == []


def test_a_world_replays_exactly() -> None:
    first, second = run_world(7, 20), run_world(7, 20)
    assert first.steps == second.steps
    assert first.told == second.told
    assert first.commits == second.commits


def test_shrinking_leaves_what_is_needed() -> None:
    steps = [Step(number, "wait", "new") for number in range(40)]

    def fails(some: object) -> bool:
        numbers = [step.number for step in some]  # type: ignore[attr-defined]
        return {3, 17, 31} <= set(numbers)

    assert [step.number for step in shrink(steps, fails)] == [3, 17, 31]
