"""One handle, many threads, while maintenance runs: nobody fails, nothing is lost."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import OmnigraphError
from omnigraph.settings import Settings

SCHEMA = """
node P { name: String @key  n: I64 @index  text: String @index  twin: I64 }
edge Knows: P -> P
"""
Model = dict[str, int]
Folding = Literal["inline", "background", "off"]


class World:
    """Writers own their names, so that what must be there at the end is known. Each commit gives
    a pair of entities one value, which every reader must find in both."""

    def __init__(self, g: Graph, rows: int) -> None:
        self.g = g
        self.wrong: list[str] = []
        self.done = threading.Event()
        self._rows = rows
        with g.transaction() as tx:
            tx.append("P", [row(f"base{n}", n) for n in range(rows)])

    def write(self, me: str, rounds: int) -> Model:
        model: Model = {}
        for number in range(rounds):
            mine = [f"{me}-{number % 3}-{side}" for side in "ab"]
            with self.g.transaction() as tx:
                tx.upsert("P", [row(name, number) for name in mine])
                tx.append("Knows", [{"src": mine[0], "dst": mine[1]}])
            model |= dict.fromkeys(mine, number)
        return model

    def branch(self, me: str, rounds: int) -> Model:
        model: Model = {}
        for number in range(rounds):
            name = f"{me}{number}"
            self.g.create_branch(name)
            with self.g.branch(name).transaction() as tx:
                tx.append("P", [row(f"{name}-{side}", number) for side in "ab"])
            assert self.g.at(name).count("P") >= self._rows
            self.g.merge(name)
            self.g.delete_branch(name)
            model |= {f"{name}-{side}": number for side in "ab"}
        return model

    def read(self) -> None:
        rows = self.g.snapshot().scan("P", columns=["name", "n"]).read_all().to_pylist()
        held = {each["name"]: each["n"] for each in rows}
        for name, value in held.items():
            if name.endswith("-a"):
                assert held[f"{name[:-1]}b"] == value

    def query(self) -> None:
        asked = "match { $p: P } return { count($p) as n }"
        (found,) = self.g.query(asked).to_pylist()
        assert found["n"] >= self._rows

    def search(self) -> None:
        found = self.g.search("base17", types=["P"]).to_pylist()
        assert "base17" in [row["id"] for row in found]

    def look_up(self) -> None:
        found = self.g.entity("P", "base17")
        assert found is not None
        assert found["n"] == 17

    def maintain(self) -> None:
        self.g.optimize()

    def verify(self) -> None:
        assert self.g.verify().errors == []

    def run(self, work: Callable[[], Model], results: dict[str, Model], me: str) -> None:
        try:
            results[me] = work()
        except BaseException:  # noqa: BLE001
            self.wrong.append(traceback.format_exc())

    def go_on(self, work: Callable[[], None]) -> None:
        """Again and again, at least once, until the writers are done. Only an error that says so
        may be tried again."""
        while True:
            try:
                work()
            except BaseException as error:  # noqa: BLE001
                if not (isinstance(error, OmnigraphError) and error.retryable):
                    self.wrong.append(traceback.format_exc())
                    return
            if self.done.is_set():
                return


def row(name: str, n: int) -> dict[str, Any]:
    return {"name": name, "n": n, "twin": n, "text": f"word{n % 97} other{n % 31} {name}"}


def run_together(path: Path, *, rows: int, rounds: int, folding: Folding) -> None:
    settings = Settings(durability="relaxed", folding=folding, retry_for=600)
    with omnigraph.init(path / "g", schema=SCHEMA, settings=settings) as g:
        world = World(g, rows)
        results: dict[str, Model] = {}
        writing = [
            threading.Thread(target=world.run, args=(work, results, me))
            for me, work in {
                "w": lambda: world.write("w", rounds),
                "v": lambda: world.write("v", rounds),
                "x": lambda: world.branch("x", rounds // 3),
            }.items()
        ]
        others = [world.read, world.query, world.search, world.look_up]
        others += [world.maintain, world.verify]
        going_on = [threading.Thread(target=world.go_on, args=(work,)) for work in others]
        for thread in (*writing, *going_on):
            thread.start()
        for thread in writing:
            thread.join()
        world.done.set()
        for thread in going_on:
            thread.join()
        assert world.wrong == []
        assert len(results) == 3
        expected = {f"base{n}": n for n in range(rows)}
        for model in results.values():
            expected |= model
        check(g, expected, edges=2 * rounds)
    with omnigraph.open(path / "g") as fresh:
        check(fresh, expected, edges=2 * rounds)
        assert fresh.verify(deep=True).errors == []


def check(g: Graph, expected: Model, *, edges: int) -> None:
    rows = g.snapshot().scan("P", columns=["name", "n", "twin"]).read_all().to_pylist()
    assert {each["name"]: each["n"] for each in rows} == expected
    assert {each["name"]: each["twin"] for each in rows} == expected
    assert g.snapshot().count("Knows") == edges


@pytest.mark.parametrize("folding", ["inline", "background"])
def test_threads_of_one_handle_do_not_fail_each_other_while_maintenance_runs(
    tmp_path: Path, folding: Folding
) -> None:
    run_together(tmp_path, rows=2_000, rounds=9, folding=folding)


@pytest.mark.slow
@pytest.mark.parametrize("folding", ["inline", "background", "off"])
def test_many_threads_of_one_handle_do_not_fail_each_other_while_maintenance_runs(
    tmp_path: Path, folding: Folding
) -> None:
    run_together(tmp_path, rows=150_000, rounds=60, folding=folding)
