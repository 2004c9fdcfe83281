"""Indexed answers equal unindexed ones, whatever was done to the graph: random writes, branches,
merges, restores and maintenance, by hand and by itself, with indexes of every kind.

Limits are small here, so that a few rows already make segments, merge them and fold tails."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph.engine.upkeep import folding as folding_module
from omnigraph.engine.upkeep import optimize as optimize_module
from omnigraph.engine.upkeep.folding import Folding
from omnigraph.errors import MergeFailed
from omnigraph.plan.optimize import BY_HAND, BY_ITSELF
from omnigraph.settings import Settings
from omnigraph.store.indexes import list_segments
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger

SCHEMA = """
node Doc {
  name: String @key
  number: I64? @index
  color: enum(red, green, blue) @index
  fine: Bool? @index
  day: Date? @index
  tags: [String]? @index
  bio: String? @index
  face: Vector(2)? @index
}
edge Cites: Doc -> Doc
"""
COLORS = ["red", "green", "blue"]
WORDS = ["alpha", "beta", "gamma", "delta"]
KINDS = {"btree", "bitmap", "list", "inverted", "flat"}
SMALL = {"index_rows": 1, "backlog": 1, "vector_rows": 4, "floor": 2048}
HAND = replace(BY_HAND, **SMALL)
ITSELF = replace(BY_ITSELF, **(SMALL | {"tail": 4, "backlog": 3}))


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    run = optimize_module.optimize

    def by_hand(*args: Any, **options: Any) -> Any:
        return run(*args, **({"limits": HAND} | options))

    monkeypatch.setattr(optimize_module, "optimize", by_hand)
    monkeypatch.setattr(folding_module, "Folding", lambda session: Folding(session, ITSELF))


@dataclass
class Fuzz:
    root: Path
    seed: int
    rows: dict[str, dict[str, dict[str, Any]]] = field(default_factory=dict)
    named: int = 0
    merged: int = 0
    seen: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.random = random.Random(self.seed)
        settings = Settings(durability="relaxed")
        self.g = omnigraph.init(self.root / "g", schema=SCHEMA, settings=settings)
        self.rows["main"] = {}

    @property
    def branch(self) -> str:
        return self.random.choice(sorted(self.rows))

    # What is done

    def put(self) -> None:
        branch = self.branch
        held = self.rows[branch]
        names = self.random.sample(sorted(held), min(len(held), self.random.randint(0, 3)))
        for _ in range(self.random.randint(0, 3)):
            self.named += 1
            names.append(f"d{self.named}")
        if names:
            rows = [self._row(name) for name in names]
            with self.g.branch(branch).transaction() as tx:
                tx.upsert("Doc", rows)
            held.update({row["name"]: row for row in rows})

    def update(self) -> None:
        branch, number = self.branch, self.random.randrange(4)
        color = self.random.choice(COLORS)
        with self.g.branch(branch).transaction() as tx:
            tx.update("Doc", set={"color": color}, where=pc.field("number") == number)
        for row in self.rows[branch].values():
            if row["number"] == number:
                row["color"] = color

    def delete(self) -> None:
        branch = self.branch
        held = self.rows[branch]
        chosen = self.random.sample(sorted(held), min(len(held), self.random.randint(1, 3)))
        if not chosen:
            return
        with self.g.branch(branch).transaction() as tx:
            tx.delete("Doc", where=pc.field("name").isin(chosen))
        for name in chosen:
            del held[name]

    def optimize(self) -> None:
        self.g.branch(self.branch).optimize()

    def fork(self) -> None:
        if len(self.rows) < 3:
            source = self.branch
            self.named += 1
            self.g.create_branch(f"b{self.named}", source)
            self.rows[f"b{self.named}"] = {n: dict(r) for n, r in self.rows[source].items()}

    def merge(self) -> None:
        """Adopts fragments and whole tables; what came of it is read without any index."""
        source, target = self.branch, self.branch
        if source == target:
            return
        try:
            self.g.branch(target).merge(source, strategy="theirs")
        except MergeFailed:
            return
        self.merged += 1
        self.rows[target] = self._read(target)
        if source != "main" and self.random.random() < 0.5:
            self.g.delete_branch(source)
            del self.rows[source]

    def restore(self) -> None:
        branch = self.branch
        back = self.random.randint(1, 6)
        try:
            self.g.branch(branch).restore(f"{branch}~{back}")
        except omnigraph.errors.RefNotFound:
            return
        self.rows[branch] = self._read(branch)

    def step(self) -> None:
        steps = {
            self.put: 6,
            self.update: 2,
            self.delete: 2,
            self.optimize: 3,
            self.fork: 0.5,
            self.merge: 1,
            self.restore: 0.3,
        }
        (chosen,) = self.random.choices(list(steps), list(steps.values()))
        chosen()

    # What is asked

    def check(self) -> None:
        branch = self.branch
        table, held = self._table(branch), self.rows[branch]
        names = [segment.name.removesuffix("_standard") for segment in list_segments(table)]
        self.seen |= {name.rsplit("_", 1)[-1] for name in names}
        scan = table.handle.scanner
        for question, expected in self._questions(held):
            found = scan(columns=["id"], filter=question).to_table()["id"].to_pylist()
            assert sorted(found) == sorted(expected), (question, branch)
        for word in WORDS:
            query = {"columns": ["bio"], "query": word}
            found = scan(columns=["id", "_score"], full_text_query=query).to_table()
            expected = [n for n, row in held.items() if word in (row["bio"] or "")]
            assert sorted(found["id"].to_pylist()) == sorted(expected), (word, branch)
        self._check_nearest(table, held)
        self._check_lookup(branch, held)

    def _questions(self, held: dict[str, dict[str, Any]]) -> list[tuple[str, list[str]]]:
        def where(column: str, value: object) -> list[str]:
            return [n for n, row in held.items() if row[column] == value]

        some = self.random.sample(sorted(held), min(2, len(held)))
        questions = [(f"id = '{name}'", [name]) for name in some]
        questions += [(f"name = '{name}'", [name]) for name in some]
        questions += [(f"number = {n}", where("number", n)) for n in range(4)]
        questions += [
            ("number < 2", [n for n, r in held.items() if r["number"] in (0, 1)]),
            ("number is null", where("number", None)),
            ("fine = true", where("fine", True)),
            ("day = date '2024-01-02'", where("day", "2024-01-02")),
        ]
        for color in COLORS:
            tagged = [n for n, row in held.items() if color in (row["tags"] or ())]
            questions += [(f"color = '{color}'", where("color", color))]
            questions += [(f"array_has_any(tags, ['{color}'])", tagged)]
        return questions

    def _check_nearest(self, table: Table, held: dict[str, dict[str, Any]]) -> None:
        vectors = [row["face"] for row in held.values() if any(row["face"] or ())]
        wanted = min(3, len(vectors))
        if not wanted:
            return
        query = np.array(_direction(self.random.random() * 6.28), dtype=np.float32)
        options = {"column": "face", "q": query, "k": wanted, "nprobes": 64, "metric": "cosine"}

        def ask(**more: Any) -> list[float]:
            scanner = table.handle.scanner(columns=["id", "_distance"], nearest=options, **more)
            found: list[float] = scanner.to_table()["_distance"].to_pylist()
            return found

        found = ask()
        if len(found) < wanted:  # dead entries took places (hazard 2)
            found = ask(filter="id is not null", prefilter=True)
        exact = sorted(1 - float(np.dot(query, vector)) for vector in vectors)[:wanted]
        assert np.allclose(found, exact, atol=2e-4), (found, exact)

    def _check_lookup(self, branch: str, held: dict[str, dict[str, Any]]) -> None:
        """Through the engine, warm and cold: by an index, or by what is held in memory."""
        wanted = [*self.random.sample(sorted(held), min(2, len(held))), "nobody"]
        with omnigraph.open(self.g.root, mode="r") as cold:
            for g in (self.g, cold):
                for names in (wanted, wanted[:1], ["nobody"]):
                    snapshot = g.at(branch)
                    view = snapshot.view(snapshot.type("Doc"))
                    found = view.find(("id",), names, Ledger())
                    rows = view.take(found.addresses, view.schema.names, Ledger())
                    there = [name for name in names if name in held]
                    assert sorted(rows["id"].to_pylist()) == sorted(there)

    def _table(self, branch: str) -> Table:
        pin = self.g.at(branch).graph_version.pins["node:Doc"]
        return self.g._session.tables.open(pin.location, pin.lance_version, Ledger())

    def _read(self, branch: str) -> dict[str, dict[str, Any]]:
        handle = self._table(branch).handle
        rows = handle.scanner(use_scalar_index=False).to_table()
        day = rows.schema.get_field_index("day")
        text = pc.strftime(rows["day"].cast(pa.timestamp("s")), format="%Y-%m-%d")
        return {row["id"]: row for row in rows.set_column(day, "day", text).to_pylist()}

    def _row(self, name: str) -> dict[str, Any]:
        chance = self.random.random
        return {
            "name": name,
            "number": None if chance() < 0.1 else self.random.randrange(4),
            "color": self.random.choice(COLORS),
            "fine": None if chance() < 0.1 else chance() < 0.5,
            "day": None if chance() < 0.1 else f"2024-01-0{self.random.randint(1, 3)}",
            "tags": None if chance() < 0.1 else self.random.sample(COLORS, 2),
            "bio": None if chance() < 0.1 else " ".join(self.random.sample(WORDS, 2)),
            "face": self.random.choice([None, [0.0, 0.0], *[_direction(chance() * 6.28)] * 8]),
        }


def _direction(angle: float) -> list[float]:
    return [float(np.float32(np.cos(angle))), float(np.float32(np.sin(angle)))]


def run(root: Path, seed: int, steps: int) -> Fuzz:
    fuzz = Fuzz(root, seed)
    with fuzz.g:
        for _ in range(steps):
            fuzz.step()
            fuzz.check()
        assert fuzz.seen >= KINDS, "an index of each kind was there"
    return fuzz


@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("seed", range(2))
def test_indexed_answers_equal_unindexed_ones(seed: int, tmp_path: Path) -> None:
    run(tmp_path, seed, 60)


@pytest.mark.slow
@pytest.mark.usefixtures("small_limits")
@pytest.mark.parametrize("seed", range(100, 112))
def test_indexed_answers_equal_unindexed_ones_for_long(seed: int, tmp_path: Path) -> None:
    fuzz = run(tmp_path, seed, 250)
    assert fuzz.merged > 3
