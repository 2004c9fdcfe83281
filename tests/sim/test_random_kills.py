"""Writers and a compactor are killed at random, again and again, on one graph: what was
acknowledged stays, what was not is there wholly or not at all, and the others go on."""

from __future__ import annotations

import random
import time
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.telemetry import Ledger
from tests.bench.s3 import S3Server
from tests.sim.killed_writers import (
    SCHEMA,
    keep_compacting,
    keep_writing,
    model_after,
    read_rows,
)
from tests.sim.kills import WITHIN, pipe, start

WRITERS = 2


class Siege:
    """One graph and, for each writer, how many of its operations are known to be in it."""

    def __init__(self, root: str, seed: int, environment: dict[str, str] | None = None) -> None:
        self.root = root
        self._environment = environment or {}
        self.random = random.Random(seed)
        self.done = [0] * WRITERS
        self.kills = 0
        self.undecided = 0
        omnigraph.init(self.root, schema=SCHEMA).close()
        self._checked = 1

    def round(self) -> None:
        """Starts everybody, kills everybody after some commits, looks at what is left."""
        pipes = [pipe() for _ in range(WRITERS + 1)]
        place = (self.root, self._environment)
        processes = [
            start(keep_writing, *place, writer, self.done[writer], pipes[writer][1])
            for writer in range(WRITERS)
        ]
        processes.append(start(keep_compacting, *place, pipes[WRITERS][1]))
        try:
            for _, sender in pipes:
                sender.close()
            acknowledged = self._watch([receiver for receiver, _ in pipes], processes)
        finally:
            for process in processes:
                process.kill()
                process.join()
        self.kills += len(processes)
        self._check(acknowledged)

    def _watch(self, told: list[Connection], processes: list[Any]) -> list[int]:
        """Kills in random order, each a random moment after a random number of commits."""
        acknowledged = list(self.done)
        enough = sum(acknowledged) + self.random.randrange(1, 16)
        while sum(acknowledged) < enough:
            ready = wait(told, timeout=WITHIN)
            assert ready, "nobody writes"
            for each in ready:
                assert isinstance(each, Connection)
                self._hear(told.index(each), each, acknowledged)
        for process in self.random.sample(processes, len(processes)):
            time.sleep(self.random.uniform(0.0, 0.02))  # the moment is what is tried here
            process.kill()
        for index, each in enumerate(told):
            while self._hear(index, each, acknowledged, at_the_end=True):
                pass
            each.close()
        return acknowledged

    def _hear(
        self, index: int, told: Connection, acknowledged: list[int], *, at_the_end: bool = False
    ) -> bool:
        try:
            number = told.recv()
        except EOFError:
            assert at_the_end, "a writer ended by itself"
            return False
        if index < WRITERS:
            assert number == acknowledged[index]
            acknowledged[index] = number + 1
        return True

    def _check(self, acknowledged: list[int]) -> None:
        with omnigraph.open(self.root, mode="r") as g:
            self._check_chain(g)
            for writer in range(WRITERS):
                there = read_rows(g, writer)
                known = acknowledged[writer]
                fits = [n for n in (known, known + 1) if model_after(writer, n) == there]
                assert fits, f"writer {writer} had {known} acknowledged, and there is {there}"
                told = [c.message for c in g.log(limit=200) if c.actor == f"writer-{writer}"]
                # An operation without effect makes no commit; the last number says which.
                self.done[writer] = fits[-1] if told[:1] == [str(known)] else fits[0]
                self.undecided += self.done[writer] > known

    def _check_chain(self, g: Graph) -> None:
        """Linear from where the last look ended."""
        head = g.snapshot().version
        older = g._session.read_version("main", self._checked, Ledger())
        for number in range(self._checked + 1, head + 1):
            version = g._session.read_version("main", number, Ledger())
            assert version.commit.parents == (older.commit.id,)
            assert version.commit.created_at > older.commit.created_at
            assert version.commit.id > older.commit.id
            older = version
        self._checked = head


@pytest.mark.parametrize(
    ("rounds", "seed"),
    [
        pytest.param(5, 0, id="15"),
        *[pytest.param(50, seed, id=f"150-{seed}", marks=pytest.mark.slow) for seed in (1, 2, 3)],
    ],
)
def test_kills_at_random_lose_nothing_acknowledged_and_leave_nothing_half_done(
    rounds: int, seed: int, memory: Path
) -> None:
    endure(Siege(str(memory / f"siege{seed}"), seed), rounds)


@pytest.mark.s3
@pytest.mark.slow
def test_kills_at_random_lose_nothing_on_an_object_store_either(
    s3_environment: S3Server, s3_prefix: str
) -> None:
    endure(Siege(s3_environment.url(s3_prefix), 4, s3_environment.env()), rounds=20)


def endure(siege: Siege, rounds: int) -> None:
    for _ in range(rounds):
        siege.round()
    print(f"{siege.kills} kills, {sum(siege.done)} commits, {siege.undecided} landed unheard")
    assert siege.kills == rounds * (WRITERS + 1)
    assert all(done > 0 for done in siege.done)
