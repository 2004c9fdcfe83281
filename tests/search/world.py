"""Owns graphs that live through drawn histories, and what is asked of them after each step.

Rows are read back by plain scans, which others prove; only search is judged here. `clean` are the
commits in which no row under a segment is dead, so that scores are exact.
"""

from __future__ import annotations

import itertools
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from random import Random
from typing import Any, Final

import omnigraph
from omnigraph import Settings
from omnigraph.errors import MergeFailed, RefNotFound
from omnigraph.plan import optimize
from tests.search.compare import mismatch
from tests.search.questions import (
    INDEXES,
    TYPES,
    Question,
    Rows,
    draw_question,
    draw_text,
    draw_vector,
    schema_with,
)

KERNELS: Final = ("auto", "indexed", "adjacency")
SETTINGS: Final = Settings(durability="relaxed", queue=False)
BRANCHES: Final = ("main", "x", "y")
SEGMENTS: Final = {"index_rows": 1, "vector_rows": 1, "backlog": 1}
"""As if a handful of rows were many enough for an index."""
TINY: Final = 1e-9


@contextmanager
def limits(*, dead: float | None = None, **bounds: Any) -> Iterator[None]:
    """Maintenance with other limits, by hand and by itself; `dead`: the share of dead rows at
    which a segment is built anew."""
    chosen = (optimize.BY_HAND, optimize.BY_ITSELF)
    before, share = [replace(one) for one in chosen], optimize._DEAD
    if dead is not None:
        optimize._DEAD = dead
    for one in chosen:
        for name, value in bounds.items():
            object.__setattr__(one, name, value)
    try:
        yield
    finally:
        optimize._DEAD = share
        for one, old in zip(chosen, before, strict=True):
            for name in bounds:
                object.__setattr__(one, name, getattr(old, name))


def plain(view: Any, schema: str | None = None) -> Rows:
    """The rows of a snapshot, or of a transaction over one with this schema."""
    found = Rows(view.schema if schema is None else schema)
    for kind in TYPES:
        table = view.scan(kind)
        rows = (table if hasattr(table, "to_pylist") else table.read_all()).to_pylist()
        found[kind] = [{"@type": kind, **row} for row in rows]
    return found


class RolledBack(Exception):
    """Ends a transaction that only looks."""


class World:
    def __init__(
        self, chance: Random, *, folding: str = "off", segments: bool = False, size: int = 0
    ) -> None:
        self.chance = chance
        self.segments = segments
        self.rebuilds = optimize._DEAD == TINY
        """Maintenance builds a segment anew for a single dead row."""
        self.log: list[str] = []
        self.last = "main"
        self.number = itertools.count(1)
        indexes = {name for name in INDEXES if chance.random() < 0.8}
        self.schemas = dict.fromkeys(BRANCHES, frozenset(indexes))
        plain = replace(SETTINGS, folding=folding)  # type: ignore[arg-type]
        both = [plain, replace(plain, cache_bytes=1)]
        chance.shuffle(both)
        self.settings, self.others = both
        """One handle keeps columns in memory, and the other does not, so it asks indexes."""
        self.root = f"memory://{uuid.uuid4().hex}"
        self.g = omnigraph.init(self.root, schema=schema_with(indexes), settings=self.settings)
        self.clean = {self.g.commit.id: True}
        self.past: list[str] = []
        self.note("begin", "main", sorted(indexes))
        self.grow("main", size or chance.randint(4, 14))
        if segments and chance.random() < 0.8:
            self._optimize("main")
        for branch in BRANCHES[1:]:
            self.g.create_branch(branch)

    def close(self) -> None:
        self.g.close()

    def note(self, *what: Any) -> None:
        self.log.append(" ".join(map(str, what)))

    def head(self, branch: str) -> str:
        return str(self.g.at(branch).commit.id)

    def now(self, branch: str, clean: bool) -> None:
        """After a step; without segments nothing dead is ever counted."""
        commit = self.head(branch)
        self.clean[commit] = clean or not self.segments
        self.past.append(commit)

    # What rows look like.

    def doc(self, name: str) -> dict[str, Any]:
        return {
            "slug": name,
            "title": draw_text(self.chance),
            "body": draw_text(self.chance),
            "year": self.chance.choice((None, 1, 2, 3)),
            "v": draw_vector(self.chance),
        }

    def author(self, name: str) -> dict[str, Any]:
        return {"name": name, "bio": draw_text(self.chance), "v": draw_vector(self.chance)}

    def grow(self, branch: str, count: int) -> None:
        """New entities of each kind, in one commit: nothing dies."""
        clean = self.clean[self.head(branch)]
        docs = [self.doc(f"d{next(self.number):05d}") for _ in range(count)]
        few = min(max(1, count // 3), 20)
        authors = [self.author(f"a{next(self.number):05d}") for _ in range(few)]
        notes = [
            {"id": f"n{next(self.number):05d}", "title": draw_text(self.chance)}
            for _ in range(max(1, count // 3))
        ]
        self.note("grow", branch, count)
        with self.g.branch(branch).transaction() as tx:
            tx.append("Doc", docs)
            tx.append("Author", authors)
            tx.append("Note", notes)
            self._join(tx, plain(tx, ""))
        self.now(branch, clean)

    def _join(self, tx: Any, rows: Rows) -> None:
        """New edges, from and to what is there."""
        docs, authors = [[row["id"] for row in rows[kind]] for kind in ("Doc", "Author")]
        known = {(row["src"], row["dst"]) for kind in ("Wrote", "Cites") for row in rows[kind]}
        for kind, sources in (("Wrote", authors), ("Cites", docs)):
            pairs = [(a, b) for a in sources for b in docs if (a, b) not in known]
            most = self.chance.randint(0, 6) if len(pairs) < 10_000 else 1500
            chosen = self.chance.sample(pairs, min(len(pairs), most))
            edges = [{"from": a, "to": b} for a, b in chosen]
            for edge in edges:
                if kind == "Wrote":
                    edge |= {"note": draw_text(self.chance), "v": draw_vector(self.chance)}
                else:
                    edge |= {"why": draw_text(self.chance)}
            tx.append(kind, edges)

    # Steps.

    def step(self) -> None:
        branch = self.last = self.chance.choice(BRANCHES)
        steps = (
            self._grow, self._grow, self._upsert, self._load, self._update, self._update,
            self._delete, self._delete, self._optimize, self._optimize, self._merge,
            self._restore, self._schema, self._again, self._cleanup,
        )  # fmt: skip
        self.chance.choice(steps)(branch)

    def _grow(self, branch: str) -> None:
        self.grow(branch, self.chance.randint(1, 5))

    def _known(self, branch: str, kind: str) -> list[str]:
        return [row["id"] for row in plain(self.g.at(branch))[kind]]

    def _upsert(self, branch: str) -> None:
        names = [*self._known(branch, "Doc"), f"d{next(self.number):05d}"]
        chosen = self.chance.sample(names, min(len(names), self.chance.randint(1, 3)))
        self.note("upsert", branch, chosen)
        with self.g.branch(branch).transaction() as tx:
            tx.upsert("Doc", [self.doc(name) for name in chosen])
        self.now(branch, False)

    def _load(self, branch: str) -> None:
        names = [*self._known(branch, "Doc"), f"d{next(self.number):05d}"]
        chosen = self.chance.sample(names, min(len(names), self.chance.randint(1, 3)))
        self.note("load", branch, chosen)
        self.g.branch(branch).load([self.doc(name) for name in chosen], type="Doc", mode="merge")
        self.now(branch, False)

    def _update(self, branch: str) -> None:
        kind, name = self.chance.choice(
            (("Doc", "title"), ("Doc", "body"), ("Note", "title"), ("Author", "bio"),
             ("Wrote", "note"))
        )  # fmt: skip
        known = self._known(branch, kind)
        if not known:
            return
        chosen, text = self.chance.choice(known), draw_text(self.chance)
        self.note("update", branch, kind, name, chosen, repr(text)[:40])
        words = f"query u($i: String, $t: String?) {{ update {kind} set {{ {name}: $t }}"
        self.g.branch(branch).mutate(words + " where @id = $i }", params={"i": chosen, "t": text})
        self.now(branch, False)

    def _delete(self, branch: str) -> None:
        kind = self.chance.choice(TYPES)
        known = self._known(branch, kind)
        chosen = self.chance.sample(known, min(len(known), self.chance.randint(0, 3)))
        self.note("delete", branch, kind, chosen)
        for one in chosen:
            words = f"query r($i: String) {{ delete {kind} where @id = $i }}"
            self.g.branch(branch).mutate(words, params={"i": one})
        self.now(branch, False)

    def _optimize(self, branch: str) -> None:
        self.note("optimize", branch)
        before = self.clean[self.head(branch)]
        self.g.branch(branch).optimize()
        self.now(branch, before or self.rebuilds)

    def _merge(self, branch: str) -> None:
        source = self.chance.choice([name for name in BRANCHES if name != branch])
        self.note("merge", source, "into", branch)
        try:
            self.g.branch(branch).merge(source, strategy=self.chance.choice(("ours", "theirs")))
        except MergeFailed:
            return
        self.now(branch, False)
        self.schemas[branch] = self.schemas[branch] | self.schemas[source]

    def _restore(self, branch: str) -> None:
        back = list(self.g.at(branch).log(first_parent=True, limit=4))
        target = self.chance.choice(back[:-1] or back).id
        self.note("restore", branch, target)
        self.g.branch(branch).restore(target)
        self.now(branch, self.clean.get(target, False))

    def _schema(self, branch: str) -> None:
        """One index more or fewer."""
        indexes = self.schemas[branch] ^ {self.chance.choice(list(INDEXES))}
        self.note("schema", branch, sorted(indexes))
        before = self.clean[self.head(branch)]
        self.g.branch(branch).apply_schema(schema_with(set(indexes)))
        self.schemas[branch] = indexes
        self.now(branch, before)

    def _again(self, branch: str) -> None:
        if branch == "main":
            return
        self.note("again", branch)
        self.g.delete_branch(branch)
        self.g.create_branch(branch, ref="main")
        self.schemas[branch] = self.schemas["main"]

    def _cleanup(self, branch: str) -> None:
        self.note("cleanup")
        self.g.cleanup(keep=1000, older_than=0.0)

    # Questions.

    def ask(self) -> None:
        """Of the head of a branch by two handles and both kernels, of an old commit, and within a
        transaction."""
        self.ask_of(self.chance.choice((*BRANCHES, self.last, self.last)))

    def ask_of(self, branch: str) -> None:
        question = draw_question(self.chance)
        rows, exact = plain(self.g.at(branch)), self.clean[self.head(branch)]
        kernel = self.chance.choice(KERNELS)
        here = self.g.branch(branch)
        self._compare(question, rows, here, branch, exact=exact, kernel=kernel)
        if self.chance.random() < 0.5:
            with omnigraph.open(self.root, settings=self.others) as fresh:
                other = fresh.branch(branch)
                self._compare(question, rows, other, f"{branch}, anew", exact=exact, kernel=kernel)
                self._same(question, here, other)
        if self.chance.random() < 0.4:
            self._ask_of_the_past(question, self.chance.choice(self.past), kernel)
        if self.chance.random() < 0.4:
            self._ask_within(branch)

    def _ask_of_the_past(self, question: Question, commit: str, kernel: str) -> None:
        try:
            old = self.g.at(commit)
        except RefNotFound:  # it went with its branch
            return
        exact = self.clean[commit]
        self._compare(question, plain(old), old, commit, exact=exact, kernel=kernel)

    def _ask_within(self, branch: str) -> None:
        question = draw_question(self.chance)
        exact = self.clean[self.head(branch)]
        try:
            with self.g.branch(branch).transaction() as tx:
                names = [*self._known(branch, "Doc")[:2], f"d{next(self.number):05d}"]
                tx.upsert("Doc", [self.doc(name) for name in names])
                tx.append("Note", [{"id": "n-pending", "title": draw_text(self.chance)}])
                self._join(tx, plain(tx, ""))
                rows = plain(tx, self.g.at(branch).schema)
                self._compare(question, rows, tx, f"in a transaction on {branch}", exact=exact)
                raise RolledBack
        except RolledBack:
            pass

    def _compare(
        self, question: Question, rows: Rows, view: Any, where: str, *, exact: bool, **options: Any
    ) -> None:
        try:
            found = view.query(question.text, params=dict(question.params), **options).to_pylist()
            wrong = mismatch(question, rows, found, exact=exact)
        except Exception as error:
            raise AssertionError(self._story(question, rows, where, options)) from error
        assert wrong is None, f"{self._story(question, rows, where, options)}\n{wrong}"

    def _same(self, question: Question, here: Any, other: Any) -> None:
        """Two handles agree to the last digit, whatever maintenance is due."""
        if question.order is None:
            return
        one, two = [
            view.query(question.text, params=dict(question.params)).to_pylist()
            for view in (here, other)
        ]
        assert one == two, (
            f"{self._story(question, Rows(self.g.schema), 'two handles', {})}\n{one}\n{two}"
        )

    def _story(self, question: Question, rows: Rows, where: str, options: Any) -> str:
        shown = "\n".join(
            f"  {kind} {_short(row)}" for kind, every in rows.items() for row in every
        )
        steps = "\n".join(f"  {line}" for line in self.log)
        return (
            f"steps\n{steps}\nrows\n{shown}\n{_short(question.text)}\n"
            f"{_short(question.params)}\nasked of {where} {options}"
        )


def _short(what: Any) -> str:
    return str(what).replace("x" * 10_000, "x…x")


def live(chance: Random, steps: int, *, folding: str, segments: bool) -> None:
    """A history, with questions after each step."""
    bounds = SEGMENTS if segments else {}
    with limits(dead=chance.choice((None, TINY)), **bounds):
        world = World(chance, folding=folding, segments=segments)
        try:
            world.ask()
            for _ in range(steps):
                world.step()
                world.ask()
                world.ask()
        finally:
            world.close()
