"""`make demo`: a library of papers, made, asked, edited on two branches by two processes at once,
merged, and read back in time.

Every step prints the command that it is about to run, so that the output can be read as a lesson.
`OMNIGRAPH_DEMO_SCALE=0.02` makes it a small one.
"""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph
from omnigraph.cli.app import run

HERE = Path(__file__).parent
SCALE = float(os.environ.get("OMNIGRAPH_DEMO_SCALE", "1"))
AUTHORS, PAPERS = max(50, int(20_000 * SCALE)), max(100, int(30_000 * SCALE))
WRITER = """
import json, sys
from omnigraph.cli.app import run
sys.exit(max(run(words) for words in json.loads(sys.argv[1])))
"""
COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def paint(code: str, text: str) -> str:
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


def write_data(directory: Path) -> None:
    """Two node types and two edge types, about 110,000 entities at full scale."""
    directory.mkdir()
    doi = [f"10.1000/{n}" for n in range(PAPERS)]
    author = [f"author {n}" for n in range(AUTHORS)]
    tables = {
        "Person": {"name": author},
        "Paper": {
            "doi": doi,
            "title": [f"On the nature of {n}" for n in range(PAPERS)],
            "year": pa.array([1990 + n * 7 % 35 for n in range(PAPERS)], pa.int32()),
        },
        "Wrote": {
            "from": [author[int(AUTHORS * (n * 0.618 % 1) ** 3)] for n in range(PAPERS)],
            "to": doi,
        },
        "Cites": {
            "from": doi[1:],
            "to": [doi[(n * 31 + 7) % (n + 1)] for n in range(PAPERS - 1)],
        },
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), directory / f"{name}.parquet")


def title(number: int, text: str) -> None:
    print(f"\n{paint('1', f'{number}. {text}')}")


def show(command: str, *, expected: int = 0) -> None:
    """Prints a command of the program, then runs it here, with the time that it takes."""
    print(f"\n{paint('36', f'$ {command}')}", flush=True)
    words = shlex.split(command)
    began = time.perf_counter()
    code = run(words[1:])
    sys.stderr.flush()
    print(paint("2", f"  … {time.perf_counter() - began:.2f} s"), flush=True)
    if code != expected:
        sys.exit(f"{command} ended with {code}")


def edit_at_once(edits: dict[str, list[str]]) -> None:
    """A process for each branch; every statement is a commit of its own."""
    # The directory has changed since the start, and a path to the package may be a relative one.
    environment = {**os.environ, "PYTHONPATH": str(Path(omnigraph.__file__).parents[1])}
    running = []
    for branch, statements in edits.items():
        calls = []
        for statement in statements:
            words = ["mutate", "--branch", branch, "--as", branch, "-q", "-e", statement]
            print(paint("36", f"$ omnigraph {shlex.join(words)}"))
            calls.append(words)
        running.append(
            subprocess.Popen(
                [sys.executable, "-c", WRITER, json.dumps(calls)],
                stdout=subprocess.DEVNULL,
                env=environment,
            )
        )
    if any(process.wait() for process in running):
        sys.exit("a writer failed")


def main() -> None:
    began = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="omnigraph-demo-") as directory:
        os.chdir(directory)
        os.environ["OMNIGRAPH_ROOT"] = "papers.graph"
        Path("papers.pg").write_text((HERE / "papers.pg").read_text(encoding="utf-8"))
        Path("papers.gq").write_text((HERE / "papers.gq").read_text(encoding="utf-8"))
        write_data(Path("data"))
        tell()
    print(f"\nAll of it in {time.perf_counter() - began:.0f} s.")
    print("Next: docs/user/quickstart.md for a graph of your own; `omnigraph --help`.")


def tell() -> None:
    title(1, "A graph has a schema, and lives in plain files")
    print(Path("papers.pg").read_text(encoding="utf-8").rstrip())
    show("omnigraph init papers.graph --schema papers.pg --as ada")

    title(2, "Load a library: one commit, checked as a whole")
    show("omnigraph load data/ --as ada -m 'the library'")
    show("omnigraph stats")

    title(3, "Ask")
    print(Path("papers.gq").read_text(encoding="utf-8").rstrip())
    show("omnigraph query papers.gq prolific")
    show("omnigraph query papers.gq lineage --param doi=10.1000/99")
    show("omnigraph explain papers.gq lineage --param doi=10.1000/99")

    title(4, "What is wrong is refused, and nothing changes")
    show(
        'omnigraph mutate -e \'insert Cites { from: "10.1000/1", to: "10.1000/nowhere" }\'',
        expected=6,
    )

    title(5, "The cost of a write is a contract: so many requests, at any size and depth")
    show("omnigraph mutate --io --as bob -e 'insert Note { text: \"to be read\" }'")

    title(6, "Two branches, edited at once by two processes")
    show("omnigraph branch create eve")
    show("omnigraph branch create joe")
    print()
    edit_at_once(
        {
            "eve": [
                'update Paper set { title: "On the nature of things" } where doi = "10.1000/29"',
                'update Paper set { year: 2025 } where doi = "10.1000/30"',
            ],
            "joe": [
                'update Paper set { year: 2024 } where doi = "10.1000/29"',
                'update Paper set { year: 2026 } where doi = "10.1000/30"',
            ],
        }
    )
    show("omnigraph diff main eve")

    title(7, "Merge: by entity and property; what cannot be merged is shown")
    show("omnigraph merge eve --as ada")
    show("omnigraph merge joe --as ada", expected=4)
    show("omnigraph merge joe --as ada --strategy Paper.year=theirs")
    show("omnigraph log --graph -n 8")

    title(8, "Every commit stays readable")
    show("omnigraph history Paper 10.1000/29")
    show("omnigraph mutate --as bob -m oops -e 'delete Paper where year < 2000'")
    show("omnigraph query papers.gq count")
    show("omnigraph query papers.gq count --ref main~1")
    show("omnigraph restore main~1 --yes --as ada")
    show("omnigraph query papers.gq count")


if __name__ == "__main__":
    main()
