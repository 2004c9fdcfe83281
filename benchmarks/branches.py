"""Owns the numbers of branches: creating, deleting, merging and comparing, in seconds and requests,
beside the same work on plain copies of the table with duckdb."""

from __future__ import annotations

import itertools
import shutil
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph
from benchmarks.measure import Line, medians, milliseconds
from omnigraph import Graph
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger, watch_requests

PEOPLE = "node Person { name: String @key age: I64? score: F64? note: String? }\n"
ROWS = 1_000_000
CHANGED = 1_000
ROUNDS = 5


def run(directory: Path) -> list[Line]:
    table = _people()
    with omnigraph.init(
        directory / "branches", schema=PEOPLE, settings=Settings(durability="relaxed")
    ) as g:
        with g.transaction() as tx:
            tx.append("Person", table)
        copies = _Copies(directory / "copies", table)
        return [*_life(g, copies), *_merges(g, copies)]


def _people() -> pa.Table:
    numbers = np.arange(ROWS)
    return pa.table(
        {
            "name": [f"p{n:07}" for n in range(ROWS)],
            "age": pa.array(numbers % 90),
            "score": pa.array(np.random.default_rng(1).random(ROWS)),
            "note": [f"note {n % 1000}" for n in range(ROWS)],
        }
    )


def _changes(table: pa.Table, offset: int) -> pa.Table:
    """A thousand rows, spread over the table, each with another age."""
    picked = table.take(pa.array(np.arange(offset, ROWS, ROWS // CHANGED)))
    return picked.set_column(1, "age", pa.array(np.full(CHANGED, 1000 + offset)))


def _requests(call: Callable[[], object]) -> Ledger:
    with watch_requests() as watch:
        call()
    return watch.total()


def _told(ledger: Ledger) -> str:
    return f"{ledger.reads} reads, {ledger.writes} writes, {ledger.bytes / 1e6:.1f} MB"


class _Copies:
    """Branches as people make them without a tool: a copy of the file, and SQL over copies."""

    def __init__(self, directory: Path, table: pa.Table) -> None:
        directory.mkdir()
        self.directory = directory
        self.base = directory / "base.parquet"
        self.table = table
        pq.write_table(table, self.base)
        self.ours = self._changed("ours", 1)
        self.theirs = self._changed("theirs", 2)

    def _changed(self, name: str, offset: int) -> Path:
        rows = self.table.to_pydict()["age"]
        for place in range(offset, ROWS, ROWS // CHANGED):
            rows[place] = 1000 + offset
        path = self.directory / f"{name}.parquet"
        pq.write_table(self.table.set_column(1, "age", pa.array(rows)), path)
        return path

    def copy(self) -> None:
        shutil.copyfile(self.base, self.directory / "branch.parquet")

    def delete(self) -> None:
        (self.directory / "branch.parquet").unlink()

    def diff(self) -> None:
        found = duckdb.sql(
            f"select n.name, o.age, n.age from '{self.base}' o full join '{self.theirs}' n "
            "using (name) where (o.age, o.score, o.note) is distinct from (n.age, n.score, n.note)"
        ).arrow()
        assert pa.table(found).num_rows == CHANGED

    def merge(self) -> None:
        """Three-way, by column, into a new file."""
        columns = ", ".join(
            f"case when t.{c} is distinct from b.{c} then t.{c} else o.{c} end as {c}"
            for c in ("age", "score", "note")
        )
        duckdb.sql(
            f"copy (select name, {columns} from '{self.base}' b full join '{self.ours}' o "
            f"using (name) full join '{self.theirs}' t using (name)) "
            f"to '{self.directory / 'merged.parquet'}' (format parquet)"
        )


def _life(g: Graph, copies: _Copies) -> list[Line]:
    names = itertools.count()
    made: list[str] = []

    def create() -> None:
        made.append(f"branch {next(names)}")
        g.create_branch(made[-1])

    contenders: dict[str, Callable[[], object]] = {
        "create": create,
        "delete": lambda: g.delete_branch(made[-1]),
        "copy": copies.copy,
        "remove": copies.delete,
    }
    for call in contenders.values():
        call()
    seconds = medians(contenders, rounds=30)
    created = _requests(create)
    deleted = _requests(lambda: g.delete_branch(made[-1]))
    return [
        Line(
            "create a branch of 1,000,000 rows / copy their file",
            f"{milliseconds(seconds['create'])} ({_told(created)}) / "
            f"{milliseconds(seconds['copy'])}",
            "1 write, ≤ 1 read",
            (created.writes, created.reads <= 1) == (1, True),
        ),
        Line(
            "delete it / remove the file",
            f"{milliseconds(seconds['delete'])} ({_told(deleted)}) / "
            f"{milliseconds(seconds['remove'])}",
            "1 write, ≤ 2 reads",
            (deleted.writes, deleted.reads <= 2) == (1, True),
        ),
    ]


def _merges(g: Graph, copies: _Copies) -> list[Line]:
    """Each round changes and merges two new branches, so that nothing was merged before."""
    numbers = itertools.count()

    def changed() -> tuple[str, str]:
        n = next(numbers)
        for offset, side in enumerate(("ours", "theirs"), start=1):
            g.create_branch(f"{side} {n}")
            with g.branch(f"{side} {n}").transaction() as tx:
                tx.upsert("Person", _changes(copies.table, offset))
        return f"ours {n}", f"theirs {n}"

    times: dict[str, list[float]] = {"merge": [], "copies": [], "cold": []}
    merged = first = Ledger()
    for _ in range(ROUNDS):
        ours, theirs = changed()
        start = time.perf_counter()
        result = g.branch(ours).merge(theirs)
        times["merge"].append(time.perf_counter() - start)
        assert result.changes == {"Person": {"update": CHANGED}}
        merged = result.io
        start = time.perf_counter()
        copies.merge()
        times["copies"].append(time.perf_counter() - start)
        ours, theirs = changed()
        start = time.perf_counter()
        first = _cold(g.root, (ours, theirs))
        times["cold"].append(time.perf_counter() - start)
    seconds = {name: statistics.median(values) for name, values in times.items()}
    _, theirs = changed()

    def diff() -> None:
        assert g.at(theirs).diff("main").summary() == {"Person": {"update": CHANGED}}

    compared = _requests(diff)
    seconds |= medians({"diff": diff, "diff of copies": copies.diff}, rounds=ROUNDS)
    return [
        Line(
            "merge 1,000 changed rows of 1,000,000 on each side / three-way join of copies "
            "with duckdb",
            f"{milliseconds(seconds['merge'])} ({_told(merged)}) / "
            f"{milliseconds(seconds['copies'])}",
        ),
        Line(
            "the same by a handle that was just opened, which reads the keys",
            f"{milliseconds(seconds['cold'])} ({_told(first)})",
        ),
        Line(
            "diff of 1,000 changed rows of 1,000,000 / full join of copies with duckdb",
            f"{milliseconds(seconds['diff'])} ({_told(compared)}) / "
            f"{milliseconds(seconds['diff of copies'])}",
        ),
    ]


def _cold(root: str, pair: tuple[str, str]) -> Ledger:
    with omnigraph.open(root, settings=Settings(durability="relaxed")) as g:
        return g.branch(pair[0]).merge(pair[1]).io
