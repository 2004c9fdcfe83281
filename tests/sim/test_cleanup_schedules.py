"""Random schedules of writers, cleaners, branch makers and readers at old refs: whatever comes in
between at whatever point of the protocol, what is retained reads exactly as it was written.

One seed is one schedule: everything runs in one thread, and another actor comes in where the
protocol says that a crash, and so a pause of any length, must be harmless."""

from __future__ import annotations

import contextlib
import random
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, runtime
from omnigraph.engine.upkeep.optimize import optimize
from omnigraph.errors import Corrupt, OmnigraphError, Reclaimed, RefNotFound, StoreFailure
from omnigraph.plan.optimize import Limits
from omnigraph.settings import Settings
from tests.bench.aging import HOUR, PassingTime

SCHEMA = "node Person { name: String @key age: I32? }\nnode Note { text: String? }\n"
SETTINGS = Settings(durability="relaxed", folding="off", queue=False, retry_for=5.0)


class World:
    def __init__(self, place: Path, seed: int, clock: PassingTime) -> None:
        self.place = place
        self.random = random.Random(seed)
        self.clock = clock
        self.names = 0
        self.depth = 0
        self.steps: list[str] = []
        self.told: dict[str, list[str]] = {}
        with omnigraph.init(place, schema=SCHEMA, settings=SETTINGS, runtime=self.clock):
            pass
        # Handles that live long see what others did late, or after a long sleep.
        self.handles = [self.open() for _ in range(3)]
        self.record(self.open())

    def open(self) -> Graph:
        return omnigraph.open(self.place, settings=SETTINGS, runtime=self.clock)

    def handle(self) -> Graph:
        return self.open() if self.random.random() < 0.3 else self.random.choice(self.handles)

    def record(self, g: Graph) -> None:
        """What each commit holds, as it was right after it became visible."""
        for branch in g.branches():
            with contextlib.suppress(Reclaimed):
                snapshot = g.at(branch)
                held = sorted(snapshot.scan("Person").read_all()["name"].to_pylist())
                assert self.told.setdefault(snapshot.commit.id, held) == held, self.steps

    def check_refs(self, g: Graph) -> None:
        """Every ref that can be read is what it was; one that went says that it went."""
        for commit, held in self.random.sample(sorted(self.told.items()), min(4, len(self.told))):
            with contextlib.suppress(RefNotFound):  # Reclaimed is one, and nothing else may be
                rows = g.at(commit).scan("Person").read_all()
                assert sorted(rows["name"].to_pylist()) == held, (commit, self.steps)

    # What actors do

    def act(self) -> None:
        actions = [
            (6, self.write),
            (2, self.change),
            (2, self.make_branch),
            (1, self.delete_branch),
            (2, self.merge),
            (1, self.tag),
            (1, self.restore),
            (2, self.optimize),
            (3, self.clean),
            (3, self.wait),
            (3, self.read),
        ]
        (action,) = self.random.choices([a for _, a in actions], [w for w, _ in actions])
        self.steps.append(f"{'  ' * self.depth}{action.__name__}")
        told = None
        try:
            action(self.handle())
        except OmnigraphError as error:
            told = error
            self.steps.append(f"{'  ' * self.depth}{error.code}")
        assert not isinstance(told, StoreFailure), (repr(told), self.steps)
        if isinstance(told, Corrupt):
            # It slept over what it was reading; the graph itself must have lost nothing.
            self.check_sound(repr(told))

    def check_sound(self, why: str = "") -> None:
        hook, runtime.on_reach = runtime.on_reach, None
        try:
            with self.open() as fresh:
                report = fresh.verify(deep=True)
                assert report.ok, (why, report.errors[:3], self.steps[-40:])
        finally:
            runtime.on_reach = hook

    def branch(self, g: Graph) -> str:
        return self.random.choice(g.branches())

    def write(self, g: Graph) -> None:
        self.names += 1
        with g.branch(self.branch(g)).transaction() as tx:
            tx.append("Person", {"name": f"p{self.names}"})

    def change(self, g: Graph) -> None:
        branch = self.branch(g)
        ids = sorted(g.at(branch).scan("Person").read_all()["id"].to_pylist())
        if ids:
            what = self.random.choice(ids)
            verb = "delete Person" if self.random.random() < 0.4 else "update Person set { age: 1 }"
            g.branch(branch).mutate(f'{verb} where name = "{what}"')

    def make_branch(self, g: Graph) -> None:
        back = self.random.randrange(3)
        g.create_branch(f"b{self.random.randrange(3)}", f"{self.branch(g)}~{back}")

    def delete_branch(self, g: Graph) -> None:
        g.delete_branch(f"b{self.random.randrange(3)}")

    def merge(self, g: Graph) -> None:
        g.branch(self.branch(g)).merge(self.branch(g), strategy="theirs")

    def tag(self, g: Graph) -> None:
        if self.random.random() < 0.5:
            g.create_tag(
                f"t{self.random.randrange(2)}", f"{self.branch(g)}~{self.random.randrange(4)}"
            )
        else:
            g.delete_tag(f"t{self.random.randrange(2)}")

    def restore(self, g: Graph) -> None:
        g.restore(f"main~{self.random.randrange(1, 4)}")

    def optimize(self, g: Graph) -> None:
        """With blocks so small that chains are folded as well."""
        optimize(g._session, self.branch(g), None, limits=Limits(versions=3))

    def clean(self, g: Graph) -> None:
        g.cleanup(keep=self.random.randrange(1, 4), older_than=0)

    def wait(self, g: Graph) -> None:
        """From a moment to hours, for the writers and for the store alike."""
        seconds = self.random.choice([60.0, 0.3 * HOUR, 0.6 * HOUR, 1.1 * HOUR, 5 * HOUR])
        self.clock.wait(self.place, seconds)

    def read(self, g: Graph) -> None:
        self.record(g)
        self.check_refs(g)

    # Others come in between

    def interrupt(self, point: str) -> None:
        if self.depth >= 2 or self.random.random() > 0.25:
            return
        self.depth += 1
        self.steps.append(f"{'  ' * self.depth}at {point}")
        try:
            for _ in range(self.random.randrange(1, 4)):
                self.act()
        finally:
            self.depth -= 1

    def run(self, steps: int) -> None:
        runtime.on_reach = self.interrupt
        try:
            for _ in range(steps):
                self.act()
        finally:
            runtime.on_reach = None
        with self.open() as fresh:
            self.record(fresh)
            self.check_sound()
            for _ in range(2):
                self.wait_out()
                fresh.cleanup(keep=1, older_than=0)
            report = fresh.verify(deep=True)
            assert report.ok, (report.errors, self.steps)
            assert [f.object for f in report.findings] == [], self.steps
            self.record(fresh)

    def wait_out(self) -> None:
        self.clock.wait(self.place, 3 * HOUR)


@pytest.mark.parametrize("seed", range(2))
def test_what_is_retained_survives_a_few_schedules(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    World(tmp_path / "graph", seed, PassingTime(monkeypatch)).run(25)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100, 160))
def test_what_is_retained_survives_many_schedules(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    World(tmp_path / "graph", seed, PassingTime(monkeypatch)).run(80)
