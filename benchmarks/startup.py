"""Owns what a command costs before it does anything: processor time in units of `import pyarrow`,
in the same run."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import omnigraph
from benchmarks.measure import Line

ROUNDS = 9
POINT = 'match { $p: Person { name: "person 7" } } return { $p.name }'
AT_MOST_ONE = {
    "log": ["log"],
    "branch list": ["branch", "list"],
    "stats": ["stats"],
    "no such root": ["stats", "--root", "/nowhere.graph"],
    "no such ref": ["log", "nothing"],
    "a text that is no query": ["query", "-e", "match {"],
    "a query of an unknown type": ["query", "-e", "match { $c: Company } return { $c.name }"],
}
AT_MOST_TWO_AND_A_HALF = {
    "a point query": ["query", "-e", POINT],
    "explain": ["explain", "-e", POINT],
    "diff --summary": ["diff", "main~1", "main", "--summary"],
}


def run(directory: Path) -> list[Line]:
    root = directory / "startup.graph"
    with omnigraph.init(root, schema="node Person { name: String @key }") as g:
        g.load([{"name": f"person {n}"} for n in range(1000)], type="Person")
    # Bytecode is kept, as it is wherever a package is installed.
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    environment = {**kept, "OMNIGRAPH_ROOT": str(root)}
    unit = _least([sys.executable, "-c", "import pyarrow"], environment)
    lines = [Line("import pyarrow, processor time", f"{unit * 1000:.0f} ms")]
    for most, commands in ((1.0, AT_MOST_ONE), (2.5, AT_MOST_TWO_AND_A_HALF)):
        for name, words in commands.items():
            taken = _least([sys.executable, "-m", "omnigraph", *words], environment) / unit
            lines.append(
                Line(f"start-up: {name}", f"{taken:.2f} ×", f"at most {most:g} ×", taken <= most)
            )
    return lines


def _least(command: Sequence[str], environment: Mapping[str, str]) -> float:
    """The least seconds of the processor, because nothing can make a run cheaper than it is."""
    taken = []
    for _ in range(ROUNDS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, env=environment, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(taken)
