"""Owns the numbers of the storage core: one-row commits, depth, and upserts into a large table."""

from __future__ import annotations

import itertools
import sqlite3
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

import omnigraph
from benchmarks.measure import Line, medians, milliseconds
from omnigraph.settings import Settings

EVENTS = "node Event { at: I64 note: String? }\n"
PEOPLE = "node Person { name: String @key age: I64? }\n"
EVENT_ROWS = pa.schema(
    [pa.field("id", pa.string(), nullable=False), ("at", pa.int64()), ("note", pa.string())]
)
KEYED_ROWS = 1_000_000
UPSERTED = 1_000
DEPTHS = (10, 2_000)


def run(directory: Path) -> list[Line]:
    return [*one_row_commits(directory), *depth(directory), *upserts(directory)]


def one_row_commits(directory: Path) -> list[Line]:
    relaxed = Settings(durability="relaxed")
    ours = _event_writer(directory / "relaxed", relaxed)
    contenders: dict[str, Callable[[], object]] = {
        "ours, relaxed": ours,
        "ours, full durability": _event_writer(directory / "full", Settings()),
        "Lance append": _lance_writer(directory / "lance"),
        "Lance append, warm handle": _warm_lance_writer(directory / "warm"),
        "sqlite": _sqlite_writer(directory / "sqlite"),
        **_installed_peers(directory),
    }
    for call in contenders.values():
        for _ in range(10):
            call()
    seconds = medians(contenders, rounds=150)
    ratio = seconds["ours, relaxed"] / seconds["Lance append"]
    requests = ours()
    lines = [
        Line(
            "reads and writes of a one-row commit",
            f"{requests[0]} and {requests[1]}",
            "0 and 4",
            requests == (0, 4),
        ),
        Line(
            "one-row commit, relaxed / native Lance append",
            f"{ratio:.2f} × ({milliseconds(seconds['ours, relaxed'])} / "
            f"{milliseconds(seconds['Lance append'])})",
            "≤ 1.5 ×",
            ratio <= 1.5,
        ),
    ]
    others = ", ".join(f"{name} {milliseconds(value)}" for name, value in seconds.items())
    return [*lines, Line("one-row commit, medians of one run", others)]


def depth(directory: Path) -> list[Line]:
    """The version file lists every fragment, so that a commit is as fast as tails are short."""
    write = _event_writer(directory / "depth", Settings(durability="relaxed"))
    rates = {}
    done = 0
    for target in DEPTHS:
        for _ in range(target - done):
            write()
        times = []
        for _ in range(100):
            start = time.perf_counter()
            write()
            times.append(time.perf_counter() - start)
        done = target + 100
        rates[target] = 1 / statistics.median(times)
    shallow, deep = DEPTHS
    ratio = rates[deep] / rates[shallow]
    return [
        Line(
            f"commits a second at depth {deep:,} / at depth {shallow}",
            f"{ratio:.2f} ({rates[deep]:.0f} / {rates[shallow]:.0f})",
            "≥ 0.8",
            ratio >= 0.8,
        )
    ]


def upserts(directory: Path) -> list[Line]:
    names = [f"person-{n:07d}" for n in range(KEYED_ROWS)]
    rows = pa.table({"name": names, "age": pa.array(np.arange(KEYED_ROWS))})
    graph = omnigraph.init(
        directory / "people", schema=PEOPLE, settings=Settings(durability="relaxed")
    )
    with graph.transaction() as tx:
        tx.append("Person", rows)
    uri = str(directory / "people-lance")
    plain = rows.add_column(0, "id", rows["name"])
    table = lance.write_dataset(plain, uri, enable_stable_row_ids=False)
    table.create_scalar_index("id", "BTREE")
    random = np.random.default_rng(7)

    def some() -> pa.Table:
        chosen = np.sort(random.choice(KEYED_ROWS, UPSERTED, replace=False))
        return pa.table({"name": [names[n] for n in chosen], "age": pa.array(chosen, pa.int64())})

    def ours() -> None:
        with graph.transaction() as tx:
            tx.upsert("Person", some())

    def native() -> None:
        nonlocal table
        given = some()
        given = given.add_column(0, "id", given["name"])
        merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
        merge.execute(given)
        table = lance.dataset(uri)

    start = time.perf_counter()
    ours()
    first = time.perf_counter() - start
    native()
    seconds = medians({"ours": ours, "Lance merge_insert": native}, rounds=15)
    ratio = seconds["ours"] / seconds["Lance merge_insert"]
    return [
        Line(
            f"upsert of {UPSERTED:,} keys into {KEYED_ROWS:,} / Lance merge_insert, indexed",
            f"{ratio:.2f} × ({milliseconds(seconds['ours'])} / "
            f"{milliseconds(seconds['Lance merge_insert'])})",
            "≤ 2 ×",
            ratio <= 2,
        ),
        Line("the first such upsert, which reads the keys", milliseconds(first)),
    ]


def _event_writer(root: Path, settings: Settings) -> Callable[[], tuple[int, int]]:
    graph = omnigraph.init(root, schema=EVENTS, settings=settings)
    numbers = itertools.count()

    def write() -> tuple[int, int]:
        with graph.transaction() as tx:
            tx.append("Event", {"at": next(numbers)})
        return tx.io.reads, tx.io.writes

    return write


def _event(number: int) -> pa.Table:
    return pa.table({"id": [str(number)], "at": [number], "note": [None]}, schema=EVENT_ROWS)


def _lance_writer(root: Path) -> Callable[[], object]:
    lance.write_dataset(EVENT_ROWS.empty_table(), str(root))
    numbers = itertools.count()
    return lambda: lance.write_dataset(_event(next(numbers)), str(root), mode="append")


def _warm_lance_writer(root: Path) -> Callable[[], object]:
    table = lance.write_dataset(EVENT_ROWS.empty_table(), str(root))
    numbers = itertools.count()

    def write() -> None:
        nonlocal table
        table = lance.write_dataset(_event(next(numbers)), table, mode="append")

    return write


def _sqlite_writer(root: Path) -> Callable[[], object]:
    connection = sqlite3.connect(root)
    connection.execute("create table event (id text, at integer, note text)")
    numbers = itertools.count()

    def write() -> None:
        connection.execute("insert into event values (?, ?, null)", (str(next(numbers)), 1))
        connection.commit()

    return write


def _installed_peers(directory: Path) -> dict[str, Callable[[], object]]:
    """Those of the peers that are installed (`make bench` installs them all)."""
    found: dict[str, Callable[[], object]] = {}
    for name, make in (("lancedb", _lancedb_writer), ("delta-rs", _delta_writer)):
        try:
            found[name] = make(directory / name)
        except ImportError:
            continue
    return found


def _lancedb_writer(root: Path) -> Callable[[], object]:
    import lancedb

    database: Any = lancedb.connect(root)
    table = database.create_table("event", schema=EVENT_ROWS)
    numbers = itertools.count()
    return lambda: table.add(_event(next(numbers)))


def _delta_writer(root: Path) -> Callable[[], object]:
    import deltalake

    write: Any = deltalake.write_deltalake
    numbers = itertools.count()
    return lambda: write(str(root), _event(next(numbers)), mode="append")
