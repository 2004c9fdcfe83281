"""The actors of the soak, each in a process of its own: they write, read old refs, make and merge
branches, optimize and clean until the time is over, or until they are killed.

What a commit holds is known from the log alone: every write says in its message what it puts in
and takes out. Names are never used twice, so a merge holds what either side has and neither took
out.
"""

from __future__ import annotations

import json
import random
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.compute as pc

import omnigraph
from omnigraph import Graph
from omnigraph.engine.upkeep.optimize import optimize
from omnigraph.errors import (
    Corrupt,
    OmnigraphError,
    Reclaimed,
    RefNotFound,
    StoreFailure,
)
from omnigraph.model.version import UNSEEN, Commit
from omnigraph.plan.optimize import Limits
from omnigraph.settings import Settings

SCHEMA = "node Person { name: String @key age: I32? @index }\nnode Note { text: String? }\n"
BRANCHES = ("b0", "b1", "b2")
SMALL = Limits(versions=16)


def settings(grace: float) -> Settings:
    return Settings(durability="relaxed", grace=grace, retry_for=60.0)


@dataclass(frozen=True)
class State:
    """The names that a commit holds, and all that were ever taken out before it."""

    held: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()


class Model:
    """What commits hold, as the log tells it."""

    def __init__(self) -> None:
        self.states: dict[str, State] = {}

    def learn(self, g: Graph, ref: str) -> None:
        """Follows the log back to what is known, and comes forward again."""
        waiting: list[Commit] = []
        wanted: set[str] | None = None
        for commit in g.at(ref).log():
            if wanted is None:
                wanted = {commit.id}
            wanted.discard(commit.id)
            if commit.id not in self.states:
                waiting.append(commit)
                wanted |= {parent for parent in commit.parents if parent not in self.states}
            if not wanted:
                break
        for commit in reversed(waiting):
            self.states[commit.id] = self._after(commit)

    def _after(self, commit: Commit) -> State:
        if not commit.parents:
            return State()
        before = [self.states[parent] for parent in commit.parents]
        if commit.kind in UNSEEN or commit.kind not in ("write", "mutate", "load", "merge"):
            return before[0]
        gone = frozenset().union(*(one.gone for one in before))
        held = frozenset().union(*(one.held for one in before))
        if commit.message is not None and commit.message.startswith("{"):
            told = json.loads(commit.message)
            gone |= frozenset(told["out"])
            held |= frozenset(told["in"])
        return State(held - gone, gone)


def run(
    root: str, role: str, seed: int, seconds: float, grace: float, journal: str
) -> dict[str, Any]:
    """Until the time is over; what it did, by name, and how it was refused."""
    actor = Actor(root, random.Random(seed), grace, Path(journal))
    step: Callable[[], None] = getattr(actor, role)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            step()
        except OmnigraphError as error:
            actor.refused(error)
    return {"did": actor.did, "refused": actor.refusals, "damage": actor.damage}


class Actor:
    def __init__(self, root: str, chance: random.Random, grace: float, journal: Path) -> None:
        self.root = root
        self.random = chance
        self.grace = grace
        self.journal = journal
        self.model = Model()
        self.did = 0
        self.refusals: dict[str, int] = {}
        self.damage: list[str] = []
        self._g: Graph | None = None

    @property
    def g(self) -> Graph:
        """Mostly a handle that has been open for long, which others have passed by."""
        if self._g is None or self.random.random() < 0.1:
            self._g = omnigraph.open(self.root, settings=settings(self.grace))
        return self._g

    def refused(self, error: OmnigraphError) -> None:
        """Nothing of this may be damage: what was read while cleanup took it is gone now."""
        self.refusals[error.code] = self.refusals.get(error.code, 0) + 1
        if isinstance(error, Corrupt | StoreFailure):
            trace = "".join(traceback.format_tb(error.__traceback__)[-3:])
            self.damage.append(f"{error.message} {trace}")
            self._g = None
            report = self.g.verify()
            if not report.ok:
                # What others did between two of its looks is no damage either.
                time.sleep(self.grace / 8)
                report = self.g.verify()
            assert report.ok, (repr(error), [str(one) for one in report.errors[:5]])

    def branch(self) -> str:
        return self.random.choice(["main", "main", *self.g.branches()])

    # Roles

    def writer(self) -> None:
        """Puts a few in, takes one out, changes one; what was acknowledged is in the journal."""
        g, branch = self.g, self.branch()
        names = [f"{self.random.getrandbits(64):016x}" for _ in range(self.random.randrange(1, 4))]
        held = g.at(branch).scan("Person", columns=["name"]).read_all()["name"].to_pylist()
        many = len(held) > 60 or self.random.random() < 0.2
        out = self.random.sample(held, 1) if held and many else []
        told = json.dumps({"in": names, "out": out})
        with g.branch(branch).transaction(message=told) as tx:
            tx.append("Person", [{"name": name, "age": 1} for name in names])
            for name in out:
                tx.delete("Person", where=pc.field("name") == name)
        self.did += 1
        if branch == "main":
            with self.journal.open("a") as journal:
                journal.write(f"{tx.commit_id}\n")

    def changer(self) -> None:
        """Changes many rows of a type that the model does not look at."""
        text = f"text {self.random.randrange(20)}"
        self.g.branch(self.branch()).mutate(
            f'insert Note {{ text: "{text}" }} update Note set {{ text: "new" }} '
            f'where text = "text {self.random.randrange(20)}"',
        )
        self.did += 1

    def reader(self) -> None:
        """An old commit of a branch holds what the model says, or is gone and says so."""
        g = self.g
        name = self.random.choice([*g.branches(), *g.tags()])
        try:
            back = self.random.choice([0, 0, 1, 2, 5, 9])
            ref = name if back == 0 else f"{name}~{back}"
            snapshot = g.at(ref)
            self.model.learn(g, ref)
        except RefNotFound:
            return
        if self.random.random() < 0.3:
            time.sleep(self.random.random() * self.grace / 4)  # as one who reads slowly
        try:
            rows = snapshot.scan("Person", columns=["name"]).read_all()["name"].to_pylist()
        except OmnigraphError:
            try:
                g.at(snapshot.commit.id)
            except Reclaimed:
                return
            raise
        expected = self.model.states[snapshot.commit.id].held
        assert sorted(rows) == sorted(expected), (
            ref,
            snapshot.commit,
            sorted(set(rows) - expected)[:5],
            sorted(expected - set(rows))[:5],
        )
        self.did += 1

    def brancher(self) -> None:
        g, name = self.g, self.random.choice(BRANCHES)
        match self.random.randrange(5):
            case 0 | 1:
                g.create_branch(name, f"{self.branch()}~{self.random.randrange(4)}")
            case 2:
                g.delete_branch(name)
            case 3:
                g.branch(self.random.choice(["main", *BRANCHES])).merge(name, strategy="theirs")
            case 4:
                if self.random.random() < 0.5:
                    g.create_tag(f"t{self.random.randrange(2)}", f"main~{self.random.randrange(4)}")
                else:
                    g.delete_tag(f"t{self.random.randrange(2)}")
        self.did += 1

    def optimizer(self) -> None:
        """With blocks so small that chains are folded while the soak runs."""
        g = self.g
        if self.random.random() < 0.5:
            g.branch(self.branch()).optimize()
        else:
            optimize(g._session, self.branch(), None, limits=SMALL)
        self.did += 1
        time.sleep(self.random.random() * self.grace / 4)

    def cleaner(self) -> None:
        self.g.cleanup(keep=self.random.randrange(1, 6), older_than=0)
        self.did += 1
        time.sleep(self.random.random() * self.grace / 2)
