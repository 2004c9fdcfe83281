"""The soak: writers, readers at old refs, branch makers, optimizers and cleaners in processes of
their own, and a killer that ends some and lets others sleep for longer than the grace period.
Every ref that can be read holds what the log says; what was acknowledged stays; at the end nothing
is damaged and nothing is left over."""

from __future__ import annotations

import os
import random
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import RefNotFound
from tests.bench.processes import Worker
from tests.sim.soak_actors import SCHEMA, Model, settings

ROLES = (
    "writer",
    "writer",
    "writer",
    "changer",
    "reader",
    "reader",
    "brancher",
    "optimizer",
    "cleaner",
    "cleaner",
)
FEW = ("writer", "reader", "brancher", "cleaner")


class Soak:
    def __init__(
        self, root: Path, seed: int, roles: Sequence[str], *, seconds: float, grace: float
    ) -> None:
        self.root = root
        self.roles = roles
        self.random = random.Random(seed)
        self.seconds = seconds
        self.grace = grace
        self.journal = root.parent / "acknowledged"
        self.journal.touch()
        self.kills = self.sleeps = 0
        self.outcomes: list[Any] = []
        omnigraph.init(root, schema=SCHEMA, settings=settings(grace)).close()

    def start(self, role: str, left: float) -> tuple[str, Worker]:
        arguments = {
            "root": str(self.root),
            "role": role,
            "seed": self.random.randrange(2**32),
            "seconds": left,
            "grace": self.grace,
            "journal": str(self.journal),
        }
        worker = Worker("tests.sim.soak_actors:run", arguments)
        worker.go()
        return role, worker

    def run(self) -> None:
        workers = [self.start(role, self.seconds) for role in self.roles]
        try:
            for _, worker in workers:
                worker.wait_ready(within=300)
            end = time.monotonic() + self.seconds
            while (left := end - time.monotonic()) > 2 * self.grace:
                time.sleep(min(left, self.random.random() * self.grace))
                place = self.random.randrange(len(workers))
                if self.random.random() < 0.6:
                    workers[place] = self.replace(workers[place], end)
                else:
                    self.let_sleep(workers[place][1])
            for role, worker in workers:
                outcome = worker.outcome(within=self.seconds + 120)
                assert outcome.error is None, (role, outcome.message, outcome.traceback)
                self.outcomes.append((role, outcome.result))
        finally:
            for _, worker in workers:
                worker.close()

    def replace(self, held: tuple[str, Worker], end: float) -> tuple[str, Worker]:
        """kill -9; but one that ended by itself has found something."""
        role, worker = held
        worker.kill()
        outcome = worker.outcome()
        assert outcome.error is None, (role, outcome.message, outcome.traceback)
        worker.close()
        self.kills += 1
        return self.start(role, max(1.0, end - time.monotonic()))

    def let_sleep(self, worker: Worker) -> None:
        """As a machine that was closed, or a process that got no time; the others go on."""
        os.kill(worker.pid, signal.SIGSTOP)
        time.sleep(self.grace * self.random.choice([0.3, 0.8, 1.5]))
        os.kill(worker.pid, signal.SIGCONT)
        self.sleeps += 1

    def check(self) -> None:
        g = omnigraph.open(self.root, settings=settings(self.grace))
        model = Model()
        for name in [*g.branches(), *g.tags()]:
            model.learn(g, name)
        held = {commit.id for commit in g.log()}
        lost = set(self.journal.read_text().split()) - held
        assert not lost, sorted(lost)[:5]
        read = 0
        for commit, state in model.states.items():
            try:
                rows = g.at(commit).scan("Person", columns=["name"]).read_all()
            except RefNotFound:  # reclaimed, or of a branch that is gone
                continue
            assert sorted(rows["name"].to_pylist()) == sorted(state.held), commit
            read += 1
        assert read >= 1
        report = g.verify(deep=True)
        assert report.ok, [str(one) for one in report.errors[:5]]
        for _ in range(2):
            time.sleep(1.6 * self.grace)
            g.cleanup(keep=1, older_than=0)
        report = g.verify(deep=True)
        assert report.ok, [str(one) for one in report.errors[:5]]
        assert [one.object for one in report.findings] == []
        assert not g.recovery.list()
        left = [path for path in self.root.rglob(".tmp-*") if path.is_file()]
        assert left == []


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_graph_survives_a_soak(tmp_path: Path, seed: int) -> None:
    seconds = float(os.environ.get("OMNIGRAPH_SOAK", "120"))
    soak = Soak(tmp_path / "graph", seed, ROLES, seconds=seconds, grace=8.0)
    soak.run()
    soak.check()
    print(f"{soak.kills} kills, {soak.sleeps} sleeps, {soak.outcomes}")
    did = {role: result["did"] for role, result in soak.outcomes if result}
    assert did["writer"], soak.outcomes
    assert soak.kills + soak.sleeps > 3


@pytest.mark.slow
def test_a_graph_survives_a_short_soak(tmp_path: Path) -> None:
    soak = Soak(tmp_path / "graph", 7, FEW, seconds=7.0, grace=2.0)
    soak.run()
    soak.check()
