"""The world: seeds of every kind, those that ever failed first; a test that nothing is missing."""

from __future__ import annotations

import inspect
import random
from functools import cached_property, wraps
from pathlib import Path
from typing import Any

import pytest

from omnigraph.engine.branch import Branch
from omnigraph.engine.graph import Graph
from omnigraph.engine.snapshot import Snapshot
from omnigraph.engine.write.transaction import Transaction
from tests.sim.world import mutants, table
from tests.sim.world.actors import Troubles
from tests.sim.world.drawing import run_world
from tests.sim.world.kept import kept_programs, read_program
from tests.sim.world.named import read_text, write_text
from tests.sim.world.shrink import shrink, shrunk
from tests.sim.world.steps import Operation, Step
from tests.sim.world.world import World

STEPS = 30
FEW = 60
MANY = 3000
SHARD = 50


def check_seed(seed: int, steps: int = STEPS) -> None:
    run = run_world(seed, steps)
    if run.fault is not None:
        pytest.fail(shrunk(run).report(), pytrace=False)


@pytest.mark.parametrize("name", kept_programs())
def test_a_program_that_failed_once_holds(name: str) -> None:
    seed, steps = read_program(name)
    run = run_world(seed, steps)
    assert run.fault is None, run.report()


@pytest.mark.parametrize("seed", range(FEW))
def test_a_world_holds(seed: int) -> None:
    check_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(FEW, FEW + MANY, SHARD))
def test_many_worlds_hold(first: int) -> None:
    for seed in range(first, first + SHARD):
        check_seed(seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(mutants.MUTANTS.keys() - mutants.UNSEEN))
def test_a_rule_that_is_left_out_is_missed(name: str) -> None:
    assert mutants.catch(name, 0, mutants.SEEDS) is not None


def public(kind: type) -> set[str]:
    names = [name for name, _ in inspect.getmembers(kind) if not name.startswith("_")]
    return {f"{kind.__name__}.{name}" for name in names}


def test_no_public_operation_is_missing_from_the_world() -> None:
    covered = set(table.COVERED_BY)
    for one in table.OPERATIONS.values():
        for name in one.covers:
            both = {f"{kind}.{name}" for kind in ("Graph", "Branch", "Snapshot")}
            covered |= {name} if "." in name else both
    wanted = set().union(*(public(kind) for kind in (Graph, Branch, Snapshot, Transaction)))
    assert sorted(wanted - covered) == []


def uncalled(one: Operation, called: set[str]) -> list[str]:
    """What an operation says that it calls, of what is public, and has not. All handles have the
    same reads, so that one of them is enough."""
    named = [name for name in one.covers if name.split(".")[0] != "omnigraph"]
    kinds = ("Graph", "Branch", "Snapshot")
    return [
        name
        for name in named
        if not {name, *(f"{kind}.{name}" for kind in kinds if "." not in name)} & called
    ]


def watch(patch: pytest.MonkeyPatch, called: set[str]) -> None:
    """Writes down every public member that is used."""

    def noting(name: str, held: Any) -> Any:
        if isinstance(held, property | cached_property):
            get = held.fget if isinstance(held, property) else held.func
            return property(noting(name, get))

        @wraps(held)
        def noted(*given: Any, **named: Any) -> Any:
            called.add(name)
            return held(*given, **named)

        return noted

    for kind in (Graph, Branch, Snapshot, Transaction):
        for name in (one.split(".")[1] for one in public(kind)):
            held = inspect.getattr_static(kind, name)
            if callable(held) or isinstance(held, property | cached_property):
                patch.setattr(kind, name, noting(f"{kind.__name__}.{name}", held))


def test_every_operation_calls_what_it_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A claim that nothing is behind would hide what is missing from the world."""
    (tmp_path / "disk").mkdir()
    world = World(tmp_path / "disk" / "graph", seed=1)
    called: set[str] = set()
    watch(monkeypatch, called)
    chance, number = random.Random(1), 0
    for one in table.OPERATIONS.values():
        place = {"branch": "main", "via": "graph"}
        if one.name == "publish":
            world.take(Step(900, "begin", "long", place | {"slot": "p"}))
        if one.name in ("run_query", "run_mutation"):
            stored = {"q": read_text("Person", "age", "red"), "w": write_text("w", "Person", "age")}
            world.take(Step(901, "store_queries", "long", place | {"set": stored, "remove": ()}))
        called.clear()
        for _ in range(300):
            if not uncalled(one, called):
                break
            args = one.draw(world, chance)
            if args is not None:
                number += 1
                world.take(Step(number, one.name, "long", args))
        assert uncalled(one, called) == [], one.name
    world.close()


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


def test_rounds_meet_every_kind_of_trouble(monkeypatch: pytest.MonkeyPatch) -> None:
    """Failing requests, lost answers, puts that land late, processes that die at a request."""
    met: set[str] = set()
    draw = Troubles.draw

    def noted(self: Troubles, chance: random.Random, method: str) -> str | None:
        kind = draw(self, chance, method)
        met.update({kind} if kind else ())
        return kind

    monkeypatch.setattr(Troubles, "draw", noted)
    kinds = {"fail_before", "fail_after", "taken", "land_late", "crash_before", "crash_after"}
    for seed in range(3, 60, 4):
        run = run_world(seed, STEPS, thorough=False)
        assert run.fault is None, run.report()
        if met == kinds:
            break
    assert met == kinds
