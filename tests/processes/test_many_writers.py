"""Many processes write to one branch: nothing is lost, nothing is doubled, nobody starves."""

from __future__ import annotations

import statistics
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from tests.bench.processes import Outcome, Worker, results_of
from tests.bench.s3 import S3Server
from tests.processes.history import asked_for, check_linear, kinds, rows
from tests.processes.workload import DISJOINT, EDGES, SHARED, UPSERT, schema_for

WRITE = "tests.processes.workload:write"
COMPACT = "tests.processes.workload:compact_until"
SLOWEST = 5.0
"""How many times the median a process may take."""


STARTING = 4
ALL = (SHARED, DISJOINT, UPSERT, EDGES)


@dataclass(frozen=True)
class Load:
    writers: int
    commits: int
    kinds: tuple[str, ...]

    @property
    def total(self) -> int:
        return self.writers * self.commits * len(self.kinds)


SMALL = pytest.param(Load(writers=5, commits=6, kinds=ALL), id="small")


def full(kind: str) -> Any:
    load = Load(writers=16, commits=50, kinds=(kind,))
    return pytest.param(load, id=f"full-{kind}", marks=pytest.mark.slow)


@pytest.fixture(params=["local", pytest.param("s3", marks=pytest.mark.s3)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "local":
        return str(tmp_path / "graph")
    server: S3Server = request.getfixturevalue("s3_environment")
    return server.url(f"t/{uuid.uuid4().hex}")


@pytest.mark.parametrize("load", [SMALL, *[full(kind) for kind in ALL]])
def test_every_commit_of_many_processes_lands_once_and_nobody_starves(
    place: str, load: Load
) -> None:
    create(place, load)
    told = results_of(run_at_once(WRITE, orders(place, load)))
    with omnigraph.open(place, mode="r") as g:
        commits = check_linear(g)
        assert asked_for(commits) == {"init": 1, "write": load.total + 1}
        check_rows(g, load)
    check_fair(told)


@pytest.mark.parametrize("load", [SMALL, full(SHARED), full(UPSERT)])
def test_writers_do_not_notice_a_process_that_compacts_in_a_loop(
    place: str, load: Load, tmp_path: Path
) -> None:
    create(place, load)
    stop = tmp_path / "stop"
    with Worker(COMPACT, {"root": place, "stop": str(stop)}) as compactor:
        compactor.wait_ready()
        compactor.go()
        told = results_of(run_at_once(WRITE, orders(place, load)))
        stop.touch()
        (compacted,) = results_of([compactor.outcome(60)])
    with omnigraph.open(place) as g:
        commits = check_linear(g)
        assert asked_for(commits) == {"init": 1, "write": load.total + 1}
        # Writers fold by themselves, too.
        assert kinds(commits)["optimize"] >= compacted["published"]
        if UPSERT not in load.kinds:
            # Where writers change rows all the time, compaction gives way to them.
            assert compacted["beside"] > 0
        check_rows(g, load)
        fragments = {pin.key: pin.fragments for pin in g.snapshot().graph_version.tables}
        assert max(fragments.values()) == 1
    print(f"{compacted['beside']} compactions beside the writers")
    check_fair(told)


def run_at_once(target: str, arguments: Sequence[dict[str, Any]]) -> list[Outcome]:
    """As `run_together`, but a few start at a time: sixteen imports at once take a busy machine
    longer than a start may last."""
    with ExitStack() as stack:
        workers: list[Worker] = []
        for each in arguments:
            workers.append(stack.enter_context(Worker(target, each)))
            if len(workers) >= STARTING:
                workers[-STARTING].wait_ready()
        for worker in workers:
            worker.wait_ready()
        for worker in workers:
            worker.go()
        return [worker.outcome(600) for worker in workers]


def create(place: str, load: Load) -> None:
    with omnigraph.init(place, schema=schema_for(load.writers)) as g, g.transaction() as tx:
        tx.upsert("Person", [{"name": "hub", "writer": -1, "number": 0, "visits": 0}])


def orders(place: str, load: Load) -> list[dict[str, Any]]:
    return [
        {"root": place, "kinds": load.kinds, "writer": writer, "commits": load.commits}
        for writer in range(load.writers)
    ]


def check_rows(g: Graph, load: Load) -> None:
    """Every row is there exactly once."""
    expected = [(w, n) for w in range(load.writers) for n in range(load.commits)]
    people = ["hub"]
    if SHARED in load.kinds:
        assert rows(g, "Event", "writer", "number") == expected
    if DISJOINT in load.kinds:
        for writer in range(load.writers):
            mine = [pair for pair in expected if pair[0] == writer]
            assert rows(g, f"Own{writer}", "writer", "number") == mine
    if UPSERT in load.kinds:
        people += ["everybody", *[f"u-{w}-{n}" for w, n in expected]]
    if EDGES in load.kinds:
        sources = [f"e-{w}-{n}" for w, n in expected]
        people += sources
        assert rows(g, "Knows", "writer", "number") == expected
        assert rows(g, "Knows", "src", "dst") == sorted((name, "hub") for name in sources)
    assert rows(g, "Person", "name") == sorted((name,) for name in people)


def check_fair(told: Sequence[dict[str, Any]]) -> None:
    seconds = [each["seconds"] for each in told]
    commits = sum(each["commits"] for each in told)
    print(
        f"{commits} commits, {commits / max(seconds):.0f}/s, "
        f"slowest process {max(seconds) / statistics.median(seconds):.2f} x median, "
        f"slowest commit {max(each['slowest'] for each in told):.2f} s"
    )
    assert max(seconds) <= SLOWEST * statistics.median(seconds)
