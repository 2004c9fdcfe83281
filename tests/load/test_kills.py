"""A load that is killed leaves the graph as it was, or has landed wholly; the next one works."""

from __future__ import annotations

import os
import random
import signal
import time
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import runtime
from omnigraph.engine.load import indexing
from tests.load.world import contents, knows, new_graph, person, write_lines
from tests.sim.kills import WITHIN, start

POINTS = ("load read", "load checked", "staged", "tables committed", "before put", "after put")
COUNT = 400


def _load(root: str, source: str, point: str | None) -> None:
    def reach(passed: str) -> None:
        if passed == point:
            os.kill(os.getpid(), signal.SIGKILL)

    runtime.on_reach = reach
    indexing.INDEXED_ROWS = 100
    with omnigraph.open(root) as g:
        g.load(source)


def _source(directory: Path) -> Path:
    people = [person(f"p{i}", email=f"e{i}") for i in range(COUNT)]
    edges = [knows(f"p{i}", f"p{(i * 7) % COUNT}") for i in range(COUNT)]
    return write_lines(directory / "all.jsonl", [*edges, *people])


def _run(root: str, source: Path, point: str | None, after: float | None = None) -> int:
    process: Any = start(_load, root, str(source), point)
    if after is not None:
        time.sleep(after)
        process.kill()
    process.join(WITHIN)
    code = process.exitcode
    assert code is not None, "the load hangs"
    return int(code)


def _check(g: omnigraph.Graph, before: Any, landed: bool) -> None:
    now = contents(g)
    if landed:
        assert (len(now["Person"]), len(now["Knows"])) == (COUNT + 1, COUNT)
    else:
        assert now == before


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_at_any_point_of_a_load_is_harmless(tmp_path: Path, point: str) -> None:
    g = new_graph(tmp_path)
    g.load([person("there")])
    before, source = contents(g), _source(tmp_path)
    assert _run(g.root, source, point) == -signal.SIGKILL
    _check(g, before, landed=point == "after put")
    if point != "after put":
        g.load(source)
    _check(g, before, landed=True)


@pytest.mark.slow
def test_kills_at_random_times_are_harmless(tmp_path: Path) -> None:
    chance = random.Random(5)
    for number in range(40):
        directory = tmp_path / str(number)
        directory.mkdir()
        g = new_graph(directory)
        g.load([person("there")])
        before, source = contents(g), _source(directory)
        _run(g.root, source, None, after=chance.uniform(0, 2.5))
        landed = g.snapshot().version > 2
        _check(g, before, landed=landed)
        if not landed:
            g.load(source)
        _check(g, before, landed=True)
        g.close()
