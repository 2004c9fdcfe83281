"""Owns the numbers of mutations: one statement from its text beside the bare transaction, a key in
a large table, and many statements in one text."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa

import omnigraph
from benchmarks.measure import Line, medians, milliseconds
from omnigraph import Graph
from omnigraph.settings import Settings

SCHEMA = """
node Event { at: I64  note: String? }
node Person { name: String @key  age: I64? }
edge Knows: Person -> Person { since: I64? }
"""
TARGET = 1.5
ROWS = 1_000_000
STATEMENTS = 10_000


def run(directory: Path) -> list[Line]:
    return [*single_inserts(directory), *large_table(directory), *many_statements(directory)]


def _graph(root: Path) -> Graph:
    graph = omnigraph.init(root, schema=SCHEMA, settings=Settings(durability="relaxed"))
    with graph.transaction() as tx:
        tx.append("Person", [{"name": "a", "age": 1}, {"name": "b", "age": 2}])
    return graph


def single_inserts(directory: Path) -> list[Line]:
    """Each contender has a graph of its own, so that all are equally deep at any time."""
    pairs = {
        "keyless insert": (_bare_event, _insert_event),
        "keyed insert": (_bare_person, _insert_person),
        "edge insert": (_bare_knows, _insert_knows),
    }
    contenders: dict[str, Callable[[], object]] = {}
    for what, (bare, mutation) in pairs.items():
        contenders[f"{what}, transaction"] = bare(_graph(directory / f"bare-{what}"))
        contenders[f"{what}, from text"] = mutation(_graph(directory / f"text-{what}"))
    for call in contenders.values():
        for _ in range(10):
            call()
    seconds = medians(contenders, rounds=150)
    lines = []
    for what in pairs:
        bare_time, text_time = seconds[f"{what}, transaction"], seconds[f"{what}, from text"]
        ratio = text_time / bare_time
        lines.append(
            Line(
                f"{what}, parsed and checked from its text each time / bare transaction",
                f"{ratio:.2f} × ({milliseconds(text_time)} / {milliseconds(bare_time)})",
                f"≤ {TARGET} ×",
                ratio <= TARGET,
            )
        )
    return lines


def _bare_event(graph: Graph) -> Callable[[], object]:
    numbers = itertools.count()

    def write() -> None:
        with graph.transaction() as tx:
            tx.append("Event", {"at": next(numbers)})

    return write


def _insert_event(graph: Graph) -> Callable[[], object]:
    numbers = itertools.count()
    return lambda: graph.mutate(f"insert Event {{ at: {next(numbers)} }}")


def _bare_person(graph: Graph) -> Callable[[], object]:
    numbers = itertools.count()

    def write() -> None:
        number = next(numbers)
        with graph.transaction() as tx:
            tx.upsert("Person", {"name": f"p{number}", "age": number})

    return write


def _insert_person(graph: Graph) -> Callable[[], object]:
    numbers = itertools.count()

    def write() -> None:
        number = next(numbers)
        graph.mutate(f'insert Person {{ name: "p{number}", age: {number} }}')

    return write


def _bare_knows(graph: Graph) -> Callable[[], object]:
    numbers = itertools.count()

    def write() -> None:
        with graph.transaction() as tx:
            tx.append("Knows", {"from": "a", "to": "b", "since": next(numbers)})

    return write


def _insert_knows(graph: Graph) -> Callable[[], object]:
    numbers = itertools.count()
    return lambda: graph.mutate(f'insert Knows {{ from: "a", to: "b", since: {next(numbers)} }}')


def large_table(directory: Path) -> list[Line]:
    """An update by key looks one row up; by another property it reads a column."""
    graph = _graph(directory / "large")
    names = pa.array([f"person-{n:07d}" for n in range(ROWS)])
    with graph.transaction() as tx:
        tx.append("Person", pa.table({"name": names, "age": np.arange(ROWS)}))
    graph.optimize()
    numbers = itertools.count(17)

    def by_key() -> None:
        n = next(numbers)
        graph.mutate(f'update Person set {{ age: 0 - {n} }} where name = "person-{n * 7:07d}"')

    def by_age() -> None:
        n = next(numbers)
        graph.mutate(f"update Person set {{ age: 0 - {n} }} where age = {n * 11}")

    by_key()
    by_age()
    seconds = medians({"by key": by_key, "by another property": by_age}, rounds=15)
    told = ", ".join(f"{name} {milliseconds(value)}" for name, value in seconds.items())
    return [Line(f"update of one of {ROWS:,} rows", told)]


def many_statements(directory: Path) -> list[Line]:
    graph = _graph(directory / "many")
    text = "\n".join(f'insert Person {{ name: "n{n}", age: {n} }}' for n in range(STATEMENTS))
    start = time.perf_counter()
    graph.mutate(text)
    seconds = time.perf_counter() - start
    rate = f"{STATEMENTS / seconds:,.0f} statements a second"
    return [Line(f"{STATEMENTS:,} inserts in one text", rate)]
