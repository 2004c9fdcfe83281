"""Many threads write to one branch through two handles, each what it likes. What landed must be
what the same operations make one after the other, in the order of the log, and each of them must
have been allowed where it landed."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Literal

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.write import group, together
from omnigraph.errors import Conflict, InvalidData
from omnigraph.runtime import SYSTEM
from omnigraph.settings import Settings
from omnigraph.store.queue import LocalQueue

SCHEMA = """
node P { name: String @key  mark: String? @unique  n: I64? }
edge Near: P -> P @card(0..5)
"""
NAMES = [f"n{number}" for number in range(40)]
MARKS = [f"m{number}" for number in range(12)]


@dataclass(frozen=True)
class Operation:
    verb: Literal["append", "upsert", "delete", "edge", "more"]
    name: str
    value: str = ""


@dataclass
class State:
    """The oracle: one operation after the other."""

    rows: dict[str, tuple[str | None, int | None]] = field(default_factory=dict)
    edges: Counter[tuple[str, str]] = field(default_factory=Counter)

    def apply(self, done: Operation) -> None:
        name, value = done.name, done.value
        old = self.rows.get(name, (None, None))
        match done.verb:
            case "append":
                assert name not in self.rows, f"{done} landed on a name that was there"
                self._mark(name, value or None, 0)
            case "upsert":
                self._mark(name, value or None, old[1])
            case "more":
                self._mark(name, old[0], (old[1] or 0) + 1)
            case "delete":
                assert self.rows.pop(name, None) is not None, f"{done} removed nobody"
                for ends in [ends for ends in self.edges if name in ends]:
                    del self.edges[ends]
            case "edge":
                assert name in self.rows, f"{done} has no source"
                assert value in self.rows, f"{done} has no target"
                self.edges[name, value] += 1
                of_source = sum(n for (start, _), n in self.edges.items() if start == name)
                assert of_source <= 5, f"{done} is one too many"

    def _mark(self, name: str, mark: str | None, n: int | None) -> None:
        held = [other for other, row in self.rows.items() if row[0] == mark and other != name]
        assert mark is None or not held, f"{mark} is at {held} and at {name}"
        self.rows[name] = (mark, n)


def draw(chance: Random, new: str, *, adding: bool) -> Operation:
    """Mostly something that fits beside what others do, and often enough not."""
    weights = (8, 0, 0, 8, 0) if adding else (8, 3, 1, 8, 1)
    verb = chance.choices(("append", "upsert", "delete", "edge", "more"), weights)[0]
    mark = chance.choice(MARKS) if chance.random() < 0.3 else ""
    value = chance.choice(NAMES) if verb == "edge" else mark
    name = new if verb == "append" and chance.random() < 0.8 else chance.choice(NAMES)
    return Operation(verb, name, value)  # type: ignore[arg-type]


def carry_out(g: Graph, one: Operation) -> str | None:
    if one.verb == "more":
        text = f'update P set {{ n: coalesce(n, 0) + 1 }} where name = "{one.name}"'
        return g.mutate(text).commit_id
    with g.transaction(message=repr(one)) as tx:
        match one.verb:
            case "append":
                tx.append("P", {"name": one.name, "mark": one.value or None, "n": 0})
            case "upsert":
                tx.upsert("P", {"name": one.name, "mark": one.value or None})
            case "delete":
                tx.delete("P", where=f'name = "{one.name}"')
            case "edge":
                tx.append("Near", {"from": one.name, "to": one.value})
    return tx.commit_id


def state_of(at: Any) -> State:
    rows = at.scan("P").read_all().to_pylist()
    edges = at.scan("Near", columns=["src", "dst"]).read_all().to_pylist()
    return State(
        {row["name"]: (row["mark"], row["n"]) for row in rows},
        Counter((edge["src"], edge["dst"]) for edge in edges),
    )


@pytest.mark.parametrize("adding", [True, False], ids=["adding", "mixed"])
@pytest.mark.parametrize(
    ("threads", "rounds", "seeds"),
    [(6, 10, 1), pytest.param(16, 50, 5, marks=pytest.mark.slow)],
    ids=["small", "full"],
)
def test_what_landed_is_what_one_after_the_other_makes(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    threads: int,
    rounds: int,
    seeds: int,
    adding: bool,
) -> None:
    sizes: list[int] = []
    make_ready = together.make_ready

    def counted(end: Any, proposals: Any) -> Any:
        sizes.append(len(proposals))
        return make_ready(end, proposals)

    monkeypatch.setattr(group, "make_ready", counted)
    for seed in range(seeds):
        check_world(tmp_path / f"{seed}", seed, threads, rounds, adding=adding)
    assert sizes or not adding, "no commits were made ready together"
    print(f"groups: {sorted(Counter(sizes).items())}")


def check_world(place: Path, seed: int, threads: int, rounds: int, *, adding: bool) -> None:
    landed: dict[str, Operation] = {}
    wrong: list[BaseException] = []
    settings = Settings(durability="relaxed")
    with (
        omnigraph.init(place, schema=SCHEMA, settings=settings) as g,
        omnigraph.open(place, settings=settings) as other,
    ):
        for first in [Operation("append", name) for name in NAMES[::2]]:
            landed[str(carry_out(g, first))] = first

        def write(me: int) -> None:
            chance, at = Random(f"{seed} {me}"), other if me % 3 == 0 and not adding else g
            for number in range(rounds):
                one = draw(chance, f"{me}-{number}", adding=adding)
                try:
                    commit = carry_out(at, one)
                except (InvalidData, Conflict):
                    continue
                except BaseException as error:
                    wrong.append(error)
                    raise
                if commit is not None:
                    landed[commit] = one

        writers = [threading.Thread(target=write, args=(me,)) for me in range(threads)]
        for writer in writers:
            writer.start()
        while any(writer.is_alive() for writer in writers):
            # Now and then nobody has a turn for a while, so that writers meet.
            with LocalQueue(place / "__wait").turn("main", 1):
                SYSTEM.sleep(0.03)
            SYSTEM.sleep(0.03)
        for writer in writers:
            writer.join()
        assert not wrong
        commits = [one for one in reversed(list(g.log())) if one.kind in ("write", "mutate")]
        assert {one.id for one in commits} == landed.keys()
        oracle = State()
        for place_in_log, commit in enumerate(commits):
            oracle.apply(landed[commit.id])
            if place_in_log % 7 == 0:
                assert state_of(g.at(commit.id)) == oracle, landed[commit.id]
        assert state_of(g) == oracle
        assert g.verify(deep=True).ok
    with omnigraph.open(place) as again:
        assert state_of(again) == oracle
