"""Owns the numbers of many writers: threads of one process on one branch, with and without groups,
beside one writer alone and the bare put that each commit ends with."""

from __future__ import annotations

import itertools
import os
import statistics
import threading
import time
from collections.abc import Callable
from pathlib import Path

import omnigraph
from benchmarks.measure import Line, milliseconds
from omnigraph import Graph
from omnigraph.settings import Settings

SCHEMA = "node Person { name: String @key age: I64? }\n"
THREADS = (1, 8, 64)
COMMITS = 320
ALONE = 200


def run(directory: Path) -> list[Line]:
    return [*alone(directory), *together(directory)]


def alone(directory: Path) -> list[Line]:
    """A keyed one-row mutation, durable, and a file that is created, linked and synced."""
    with omnigraph.init(directory / "alone", schema=SCHEMA) as graph:
        write = _writer(graph)
        ours = [_seconds(write) for _ in range(ALONE)]
        requests = write()
    put = statistics.median(_seconds(_bare_put(directory / "put")) for _ in range(ALONE))
    median = statistics.median(ours[ALONE // 4 :])
    return [
        Line("reads and writes of a keyed commit", str(requests), "(0, 4)", requests == (0, 4)),
        Line(
            "keyed one-row mutation, full durability, median (mean)",
            f"{milliseconds(median)} ({milliseconds(statistics.mean(ours))}), "
            f"{median / put:.1f} × a bare put",
        ),
    ]


def together(directory: Path) -> list[Line]:
    lines = []
    for count in THREADS:
        rates = {
            groups: _rate(directory / f"{count}-{groups}", count, groups=groups)
            for groups in (False, True)
        }
        lines.append(
            Line(
                f"commits a second of {count} threads, in groups / one by one",
                f"{rates[True]:.0f} / {rates[False]:.0f}",
            )
        )
    return lines


def _rate(root: Path, threads: int, *, groups: bool) -> float:
    with omnigraph.init(root, schema=SCHEMA, settings=Settings(group_commit=groups)) as graph:
        write = _writer(graph)
        for _ in range(10):
            write()

        def work() -> None:
            for _ in range(COMMITS // threads):
                write()

        writers = [threading.Thread(target=work) for _ in range(threads)]
        start = time.perf_counter()
        for writer in writers:
            writer.start()
        for writer in writers:
            writer.join()
        return COMMITS // threads * threads / (time.perf_counter() - start)


def _writer(graph: Graph) -> Callable[[], tuple[int, int]]:
    numbers = itertools.count()
    graph.mutate('insert Person { name: "first", age: 0 }')

    def write() -> tuple[int, int]:
        done = graph.mutate(f'insert Person {{ name: "p{next(numbers)}", age: 1 }}')
        return done.io.reads, done.io.writes

    return write


def _bare_put(folder: Path) -> Callable[[], object]:
    folder.mkdir(exist_ok=True)
    number = len(list(folder.iterdir()))

    def put() -> None:
        temporary = folder / f".{number}"
        with temporary.open("xb") as file:
            file.write(b"x" * 1500)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(folder / f"{number}")
        descriptor = os.open(folder, os.O_RDONLY)
        os.fsync(descriptor)
        os.close(descriptor)

    return put


def _seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start
