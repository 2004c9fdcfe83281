"""A command imports only what it needs. The times are in `benchmarks/startup.py`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import omnigraph

SOURCE = Path(omnigraph.__file__).parents[1]
SLOW = {"lance", "pandas", "pyarrow", "numpy", "duckdb", "obstore", "lark", "opentelemetry", "rich"}
NAMES = 'match { $p: Person { name: "Ada" } } return { $p.name }'


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("startup") / "people.graph"
    with omnigraph.init(place, schema="node Person { name: String @key }") as g:
        g.mutate('insert Person { name: "Ada" }', actor="ada")
    return place


def run_program(root: Path, *arguments: str) -> tuple[int, set[str]]:
    """The exit code of the program, and what it imported."""
    code = (
        "import sys, atexit; sys.argv = ['omnigraph', *sys.argv[1:]]\n"
        "atexit.register(lambda: print(*sys.modules, file=sys.stderr))\n"
        "from omnigraph.cli.app import main; main()"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        env={**os.environ, "PYTHONPATH": str(SOURCE), "OMNIGRAPH_ROOT": str(root)},
        capture_output=True,
        text=True,
        check=False,
    )
    return ran.returncode, set(ran.stderr.splitlines()[-1].split())


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (["log"], 0),
        (["log", "--graph", "--all"], 0),
        (["branch", "list"], 0),
        (["tag", "list"], 0),
        (["stats"], 0),
        (["stats", "--root", "/nowhere.graph"], 3),
        (["query", "--root", "/nowhere.graph", "-e", NAMES], 3),
        (["log", "nothing"], 3),
        (["query", "--ref", "nothing", "-e", NAMES], 3),
        (["diff", "main~9", "main"], 3),
        (["branch", "delete", "nothing", "--yes"], 3),
        (["mutate", "--branch", "nothing", "-e", "delete Person where true"], 3),
        (["query", "-e", "match {"], 6),
        (["query", "-e", "match { $c: Company } return { $c.name }"], 6),
        (["explain", "-e", "match { $p: Person } return { $p.age }"], 6),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_reading_the_log_and_refusing_imports_nothing_slow(
    root: Path, line: list[str], code: int
) -> None:
    ended, imported = run_program(root, *line)
    assert ended == code
    assert not imported & SLOW


@pytest.mark.parametrize(
    "line",
    [["query", "-e", NAMES], ["explain", "-e", NAMES], ["diff", "main~1", "main", "--summary"]],
    ids=lambda line: line[0],
)
def test_the_program_reads_rows_without_pandas_and_without_making_a_grammar(
    root: Path, line: list[str]
) -> None:
    ended, imported = run_program(root, *line)
    assert ended == 0
    assert not imported & {"pandas", "lark", "duckdb"}


def test_pandas_comes_in_with_pyspark_and_arrow_knows_its_series() -> None:
    code = (
        "import sys; from omnigraph.cli.without_pandas import leave_out; leave_out()\n"
        "import pyarrow as pa; pa.array([1]); assert 'pandas' not in sys.modules\n"
        "import pyspark, pandas as pd\n"
        "print(pa.array(pd.Series([1.5, None]), from_pandas=True).null_count)"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "1\n"


def test_the_library_leaves_pandas_to_its_caller() -> None:
    code = (
        "import omnigraph.engine.opening, pyarrow as pa, sys\n"
        "pa.array([1]); print('pandas' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCE)}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert ran.stdout == "True\n"
