"""A process that gets no more memory or threads: one sentence, and never a word of damage."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.errors import OutOfMemory
from omnigraph.store.resource_errors import find_scarcity

SCHEMA = "node T { name: String @key t: String? }\nedge To: T -> T\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("scarce") / "graph"
    names = [f"n{n}" for n in range(20_000)]
    with omnigraph.init(place, schema=SCHEMA) as g, g.transaction() as tx:
        tx.append("T", pa.table({"name": names, "t": ["x" * 100] * len(names)}))
        tx.append("To", pa.table({"src": names, "dst": names[::-1]}))
    return place


COMMANDS = {
    "query": ("query", "-e", "match { $t: T $t to $u } return { $u.t, collect($t.t) as c }"),
    "verify": ("verify", "--deep"),
    "mutate": ("mutate", "-e", 'insert T { name: "z" }'),
    "stats": ("stats",),
}


@pytest.mark.parametrize("megabytes", [700, 1500])
@pytest.mark.parametrize("command", COMMANDS)
def test_too_little_memory_is_told_as_that(root: Path, command: str, megabytes: int) -> None:
    words = [sys.executable, "-m", "omnigraph", *COMMANDS[command], "--root", str(root)]
    ran = subprocess.run(
        ["bash", "-c", f"ulimit -v {megabytes << 10}; exec {shlex.join(words)}"],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"NO_COLOR": "1"},
    )
    told = ran.stdout + ran.stderr
    assert ran.returncode in (0, 1, 7, 134, -6), told  # Rust ends a process that it cannot serve
    for word in ("bug", "Traceback", "corrupt", "cannot be read", "wrong.", "cleanup"):
        assert word not in told
    if ran.returncode == 7:
        assert "There is not enough memory." in told or "No more threads" in told
    if ran.returncode == 1:
        assert "memory" in told
    with omnigraph.open(root, mode="r") as g:
        assert g.snapshot().count("To") == 20_000


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), "memory"),
        (RuntimeError("can't start new thread"), "threads"),
        (OSError(11, "Resource temporarily unavailable"), "memory"),
        (ValueError("C Data interface error: can't start new thread. Detail: Python"), "threads"),
        (Exception("failed to spawn thread: Os { code: 11, kind: WouldBlock }"), "threads"),
        (Exception("malloc of size 4096 failed"), "memory"),
        (Exception("Unable to allocate 5 GiB for an array"), "memory"),
    ],
)
def test_libraries_say_it_in_many_ways(error: Exception, expected: str) -> None:
    found = find_scarcity(error)
    assert isinstance(found, OutOfMemory)
    assert expected in found.message


def test_other_errors_are_not_taken_for_it() -> None:
    for text in ("file not found", "invalid magic", "thread 'x' panicked at index", "EOF"):
        assert find_scarcity(ValueError(text)) is None
