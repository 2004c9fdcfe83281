"""Random histories of several branches through one handle that stays open, beside a model of plain
dicts. After every step the open handle, a fresh one and the model must say the same, about the
branch that changed and about something that was visible before."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any, Literal

import pyarrow.compute as pc

import omnigraph
from omnigraph import Graph
from omnigraph.engine.history.ancestry import find_merge_bases
from omnigraph.errors import InvalidData, MergeFailed, RevertFailed
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger
from tests.model.merge_oracle import State, merge_states

COUNTER = itertools.count()
EDGES = {"K": ("P", "P")}
FILLS = {"y": 7}
TYPES = {"n": ("I32?", "I64?"), "x": ("I64?", "String?"), "y": ("I64? @default(7)",)}
"""Properties that come and go, each with the types that it may have. The first may be widened."""
BRANCHES = ("main", "a", "b", "c")
KERNELS: tuple[Literal["adjacency", "indexed"], ...] = ("adjacency", "indexed")

Schema = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Version:
    """What is visible at a commit. `ids` tell which properties are the same as elsewhere."""

    schema: Schema
    state: State
    ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Answers:
    """What a handle says of one ref, in as many ways as there are."""

    rows: dict[tuple[str, str], dict[str, Any]]
    counts: tuple[int, int]
    entities: dict[str, dict[str, Any] | None]
    by_key: dict[str, list[Any]]
    by_mail: list[str]
    by_value: list[str]
    columns: dict[str, list[tuple[Any, ...]]]
    edges: dict[str, list[tuple[str, str]]] = field(default_factory=dict)


def text_of(schema: Schema) -> str:
    more = "  ".join(f"{name}: {kind}" for name, kind in schema)
    return (
        f"node P {{ name: String @key  mail: String? @unique  {more} }}\n"
        "edge K: P -> P { @key(src, dst)  w: I64? }\n"
    )


class World:
    def __init__(self, seed: int, *, cache_bytes: int = 1 << 30) -> None:
        self.chance = Random(seed)
        self.root = f"memory://long-lived-{next(COUNTER)}"
        self.settings = Settings(
            durability="relaxed", queue=False, folding="off", cache_bytes=cache_bytes
        )
        start: Schema = (("n", "I32?"),)
        self.g = omnigraph.init(self.root, schema=text_of(start), settings=self.settings)
        self.reader = self.open()
        self.numbers = itertools.count(1000)
        self.branches = ["main"]
        self.past: dict[str, Version] = {}
        self.told: list[str] = []
        self.know("main", start, {})
        with self.g.transaction() as tx:
            tx.append("P", [{"name": f"p{n}", "n": n} for n in range(8)])
        state: State = {
            ("P", f"p{n}"): {"id": f"p{n}", "name": f"p{n}", "mail": None, "n": n} for n in range(8)
        }
        self.know("main", start, state)

    def open(self) -> Graph:
        return omnigraph.open(self.root, settings=self.settings)

    # The model

    def head(self, branch: str) -> str:
        return self.g.at(branch).commit.id

    def now(self, branch: str) -> Version:
        return self.past[self.head(branch)]

    def know(self, branch: str, schema: Schema, state: State) -> None:
        ids = self.ids(branch)
        self.past[self.head(branch)] = Version(schema, state, ids)

    def ids(self, ref: str) -> tuple[str, ...]:
        return tuple(p.id for p in self.g.at(ref).type("P").properties)

    def earlier(self) -> str:
        """A commit that was the head of a branch once."""
        return self.chance.choice(list(self.past))

    # Asking

    def model(self, version: Version, wanted: list[str], mail: str | None) -> Answers:
        state = version.state
        nodes = {key[1]: row for key, row in state.items() if key[0] == "P"}
        links = [(row["src"], row["dst"]) for key, row in state.items() if key[0] == "K"]
        first = wanted[0]
        return Answers(
            rows={key: dict(row) for key, row in state.items()},
            counts=(len(nodes), len(links)),
            entities={name: dict(nodes[name]) if name in nodes else None for name in wanted},
            by_key={name: [nodes[name]["n"]] if name in nodes else [] for name in wanted}
            if any(name == "n" for name, _ in version.schema)
            else {},
            by_mail=sorted(name for name, row in nodes.items() if mail and row["mail"] == mail),
            by_value=sorted(n for n, row in nodes.items() if (row.get("n") or 0) > 1000),
            columns={
                name: sorted((n, row[name]) for n, row in nodes.items())
                for name, _ in version.schema
            },
            edges={
                "out": sorted(links),
                "from": sorted(pair for pair in links if pair[0] == first),
                "to": sorted(pair for pair in links if pair[1] == first),
            },
        )

    def ask(
        self, g: Graph, ref: str, schema: Schema, wanted: list[str], mail: str | None
    ) -> Answers:
        snapshot = g.at(ref)
        has_n = any(name == "n" for name, _ in schema)
        rows = {
            (kind, row["id"]): row
            for kind in ("P", "K")
            for row in snapshot.scan(kind).read_all().to_pylist()
        }
        edges: dict[str, list[tuple[str, str]]] = {}
        ends = {
            "out": "$a: P  $a K $b",
            "from": f'$a: P {{name: "{wanted[0]}"}}  $a K $b',
            "to": f'$b: P {{name: "{wanted[0]}"}}  $a K $b',
        }
        for way, pattern in ends.items():
            text = f"match {{ {pattern} }} return {{ $a.name as a, $b.name as b }}"
            for kernel in KERNELS:
                found = g.at(ref).query(text, kernel=kernel).to_pylist()
                pairs = sorted((row["a"], row["b"]) for row in found)
                assert edges.setdefault(way, pairs) == pairs, (way, kernel)
        return Answers(
            rows=rows,
            counts=(snapshot.count("P"), snapshot.count("K")),
            entities={name: g.at(ref).entity("P", name) for name in wanted},
            by_key={
                name: [
                    row["n"]
                    for row in g.at(ref)
                    .query(f'match {{ $p: P {{name: "{name}"}} }} return {{ $p.n as n }}')
                    .to_pylist()
                ]
                for name in wanted
            }
            if has_n
            else {},
            by_mail=[]
            if mail is None
            else sorted(
                row["n"]
                for row in g.at(ref)
                .query(f'match {{ $p: P {{mail: "{mail}"}} }} return {{ $p.name as n }}')
                .to_pylist()
            ),
            by_value=sorted(
                row["name"]
                for row in snapshot.scan("P", filter=pc.field("n") > 1000).read_all().to_pylist()
            )
            if has_n
            else [],
            columns={
                name: sorted(
                    (row["n"], row["v"])
                    for row in g.at(ref)
                    .query(f"match {{ $p: P }} return {{ $p.name as n, $p.{name} as v }}")
                    .to_pylist()
                )
                for name, _ in schema
            },
            edges=edges,
        )

    def check(self, branch: str) -> None:
        """The branch, and something that was visible before, by every handle."""
        older = self.earlier()
        with self.open() as fresh:
            for ref, version in ((branch, self.now(branch)), (older, self.past[older])):
                nodes = [key[1] for key in version.state if key[0] == "P"]
                wanted = [*self.chance.sample(nodes, min(3, len(nodes))), "nobody"]
                mails = [row["mail"] for row in version.state.values() if row.get("mail")]
                mail = self.chance.choice(mails) if mails else None
                expected = self.model(version, wanted, mail)
                for name, handle in (("open", self.g), ("reader", self.reader), ("new", fresh)):
                    found = self.ask(handle, ref, version.schema, wanted, mail)
                    assert found == expected, f"the {name} handle at {ref}: {self.told}"

    # Steps

    def step(self) -> None:
        branch = self.chance.choice(self.branches)
        steps: list[Callable[[str], None]] = [
            *[self.append, self.upsert, self.upsert, self.update, self.delete, self.link] * 2,
            self.refused,
            self.evolve,
            self.evolve,
            self.merge,
            self.merge,
            self.merge,
            self.restore,
            self.revert,
            self.optimize,
            self.fork,
        ]
        act = self.chance.choice(steps)
        self.told.append(f"{act.__name__} {branch}")
        act(branch)
        self.check(branch)

    def value(self, name: str, schema: Schema) -> Any:
        number = next(self.numbers)
        return f"s{number}" if dict(schema)[name].startswith("String") else number

    def row(self, name: str, schema: Schema, state: State) -> tuple[dict[str, Any], dict[str, Any]]:
        """Some values for an entity, and what it is afterwards."""
        names = [prop for prop, _ in schema]
        given: dict[str, Any] = {
            prop: self.value(prop, schema)
            for prop in self.chance.sample(names, self.chance.randint(0, len(names)))
        }
        if self.chance.random() < 0.3:
            given["mail"] = f"m{next(self.numbers)}"
        blank = {"id": name, "name": name, "mail": None} | {p: FILLS.get(p) for p in names}
        return {"name": name} | given, {**state.get(("P", name), blank), **given}

    def write(self, branch: str, method: str, kind: str, rows: list[dict[str, Any]]) -> None:
        with self.g.branch(branch).transaction() as tx:
            getattr(tx, method)(kind, rows)

    def append(self, branch: str) -> None:
        now = self.now(branch)
        state = dict(now.state)
        rows = []
        for _ in range(self.chance.randint(1, 3)):
            name = f"q{next(self.numbers)}"
            given, state["P", name] = self.row(name, now.schema, state)
            rows.append(given)
        self.write(branch, "append", "P", rows)
        self.know(branch, now.schema, state)

    def upsert(self, branch: str) -> None:
        """Again and again the same few, so that their places on several branches are alike."""
        now = self.now(branch)
        state = dict(now.state)
        name = f"p{self.chance.randrange(10)}"
        given, state["P", name] = self.row(name, now.schema, state)
        self.write(branch, "upsert", "P", [given])
        self.know(branch, now.schema, state)

    def update(self, branch: str) -> None:
        now = self.now(branch)
        names = [key[1] for key in now.state if key[0] == "P"]
        if not now.schema or not names:
            return
        chosen = self.chance.sample(names, min(2, len(names)))
        prop = self.chance.choice(now.schema)[0]
        value = self.value(prop, now.schema)
        with self.g.branch(branch).transaction() as tx:
            done = tx.update("P", set={prop: value}, where=pc.field("name").isin(chosen))
        assert done == len(chosen)
        state = dict(now.state)
        state |= {("P", name): {**state["P", name], prop: value} for name in chosen}
        self.know(branch, now.schema, state)

    def delete(self, branch: str) -> None:
        now = self.now(branch)
        names = [key[1] for key in now.state if key[0] == "P"]
        if not names:
            return
        name = self.chance.choice(names)
        self.g.branch(branch).mutate(f'delete P where name = "{name}"')
        state = {
            key: row
            for key, row in now.state.items()
            if key != ("P", name) and name not in (row.get("src"), row.get("dst"))
        }
        self.know(branch, now.schema, state)

    def link(self, branch: str) -> None:
        now = self.now(branch)
        names = [key[1] for key in now.state if key[0] == "P"]
        if not names:
            return
        state = dict(now.state)
        rows = []
        for one in self.chance.sample(names, min(2, len(names))):
            other, w = self.chance.choice(names), next(self.numbers)
            identity = f'["{one}","{other}"]'
            rows.append({"from": one, "to": other, "w": w})
            state["K", identity] = {"id": identity, "src": one, "dst": other, "w": w}
        self.write(branch, "upsert", "K", rows)
        self.know(branch, now.schema, state)

    def refused(self, branch: str) -> None:
        """A key, or a unique value, that is taken."""
        now = self.now(branch)
        nodes = [row for key, row in now.state.items() if key[0] == "P"]
        if not nodes:
            return
        taken = self.chance.choice(nodes)
        row = {"name": taken["name"]}
        if taken["mail"] is not None:
            row = {"name": f"q{next(self.numbers)}", "mail": taken["mail"]}
        try:
            self.write(branch, "append", "P", [row])
        except InvalidData:
            return
        raise AssertionError(f"{row} was taken twice on {branch}: {self.told}")

    def evolve(self, branch: str) -> None:
        """A property comes, goes, or is widened."""
        now = self.now(branch)
        name = self.chance.choice(list(TYPES))
        state = dict(now.state)
        known = dict(now.schema)
        if known.get(name) == "I32?" and self.chance.random() < 0.5:
            schema = tuple((n, "I64?" if n == name else t) for n, t in now.schema)
        elif name in known:
            schema = tuple(p for p in now.schema if p[0] != name)
            for key, row in now.state.items():
                if key[0] == "P":
                    state[key] = {n: value for n, value in row.items() if n != name}
        else:
            schema = (*now.schema, (name, self.chance.choice(TYPES[name])))
            for key, row in now.state.items():
                if key[0] == "P":
                    state[key] = {**row, name: FILLS.get(name)}
        self.g.branch(branch).apply_schema(text_of(schema))
        self.know(branch, schema, state)

    def fork(self, branch: str) -> None:
        """Branches are not deleted: with them their commits would go."""
        if len(self.branches) == len(BRANCHES):
            return
        new = BRANCHES[len(self.branches)]
        self.g.create_branch(new, ref=branch)
        self.branches.append(new)
        now = self.now(branch)
        self.know(new, now.schema, now.state)

    def optimize(self, branch: str) -> None:
        now = self.now(branch)
        self.g.branch(branch).optimize()
        self.know(branch, now.schema, now.state)

    def restore(self, branch: str) -> None:
        then = self.earlier()
        version = self.past[then]
        self.g.branch(branch).restore(then)
        self.know(branch, version.schema, version.state)

    def revert(self, branch: str) -> None:
        """As the model says and as a fresh handle does it on a twin of the branch."""
        commits = [
            c for c in self.g.at(branch).log(first_parent=True, limit=6) if c.kind == "write"
        ]
        if not commits:
            return
        commit = self.chance.choice(commits)
        now, after = self.now(branch), self.past[commit.id]
        before = self.past[commit.parents[0]]
        twin = self.on_twin(branch, lambda fresh: fresh.branch("twin").revert(commit.id))
        try:
            self.g.branch(branch).revert(commit.id)
            failed = False
        except (RevertFailed, InvalidData):
            failed = True
        assert failed == (twin is None), self.told
        if failed:
            return
        assert twin is not None
        schema, rows = twin
        if before.ids == after.ids == now.ids:
            undone = merge_states(after.state, now.state, before.state, EDGES)
            assert not undone.conflicts
            assert undone.state == rows, self.told
        assert schema == now.schema
        self.know(branch, schema, rows)

    def merge(self, into: str) -> None:
        """As a fresh handle does it on a twin, and where the schemas are one as the model says."""
        others = [branch for branch in self.branches if branch != into]
        if not others:
            return
        source = self.chance.choice(others)
        prefer = self.chance.choice([None, "ours", "theirs"])
        self.told[-1] += f" from {source} {prefer}"
        ours, theirs = self.now(into), self.now(source)
        base = self.base(into, source)
        twin = self.on_twin(into, lambda fresh: fresh.branch("twin").merge(source, strategy=prefer))
        try:
            outcome = self.g.branch(into).merge(source, strategy=prefer).outcome
        except MergeFailed:
            assert twin is None, self.told
            if base is not None and base.ids == ours.ids == theirs.ids:
                merged = merge_states(base.state, ours.state, theirs.state, EDGES, prefer)
                assert merged.conflicts, self.told
            return
        assert twin is not None, self.told
        schema, rows = twin
        if outcome == "merged":
            self.check_merged(base, ours, theirs, prefer, rows)
        else:
            newer = ours if outcome == "already_up_to_date" else theirs
            assert (schema, rows) == (newer.schema, newer.state)
        self.know(into, schema, rows)

    def check_merged(
        self, base: Version | None, ours: Version, theirs: Version, prefer: str | None, rows: State
    ) -> None:
        if base is not None and base.ids == ours.ids == theirs.ids:
            merged = merge_states(base.state, ours.state, theirs.state, EDGES, prefer)
            assert not merged.conflicts, self.told
            assert merged.state == rows, self.told
        for key, row in rows.items():
            mine, yours = ours.state.get(key), theirs.state.get(key)
            for name, value in row.items():
                # Every number is given once, so that none comes from elsewhere unseen.
                seen = [side[name] for side in (mine, yours) if side is not None and name in side]
                assert value in (*seen, FILLS.get(name)), (key, name, value, self.told)

    def base(self, into: str, source: str) -> Version | None:
        """The version that two branches come from, if it is one."""
        session, ledger = self.g._session, Ledger()
        heads = [session.live_head(branch, ledger) for branch in (into, source)]
        found = find_merge_bases(session, [heads[0]], heads[1], ledger)
        return self.past.get(found[0].commit.id) if len(found) == 1 else None

    def on_twin(self, branch: str, act: Callable[[Graph], object]) -> tuple[Schema, State] | None:
        """What comes of a step that a fresh handle takes on a twin of the branch; None if it is
        refused."""
        with self.open() as fresh:
            fresh.create_branch("twin", ref=branch)
            try:
                act(fresh)
                with self.open() as other:
                    return contents(other, "twin")
            except (MergeFailed, RevertFailed, InvalidData):
                return None
            finally:
                fresh.delete_branch("twin")


def contents(g: Graph, ref: str) -> tuple[Schema, State]:
    snapshot = g.at(ref)
    state = {
        (kind, row["id"]): row
        for kind in ("P", "K")
        for row in snapshot.scan(kind).read_all().to_pylist()
    }
    kinds = {"STRING": "String?", "I32": "I32?", "I64": "I64?"}
    schema = []
    for p in snapshot.type("P").properties:
        if p.name in TYPES:
            base = getattr(p.type, "base").name  # noqa: B009
            kind = TYPES["y"][0] if p.name == "y" else kinds[base]
            schema.append((p.name, kind))
    return tuple(schema), state


def live(seed: int, steps: int, *, cache_bytes: int = 1 << 30) -> None:
    world = World(seed, cache_bytes=cache_bytes)
    try:
        for _ in range(steps):
            world.step()
        with world.open() as fresh:
            found = fresh.verify(deep=True).findings
            damage = [one.message for one in found if one.severity == "error"]
        assert damage == [], world.told
    except BaseException as error:
        error.add_note(f"seed {seed}: {world.told}")
        raise
    finally:
        world.g.close()
        world.reader.close()
