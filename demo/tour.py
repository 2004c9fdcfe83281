"""`make demo`: a library of papers, loaded by Spark, asked, edited on two branches by two processes
at once, merged, and read back in time.

Every step prints the command that it is about to run, so that the output can be read as a lesson.
`OMNIGRAPH_DEMO_SCALE=0.02` makes it a small one; `OMNIGRAPH_DEMO_KEEP=papers` leaves what it made
in that directory, which must not be there yet.
"""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph
from omnigraph.cli.run import INTERRUPTED, run
from omnigraph.engine.executors import find_executor, registered

HERE = Path(__file__).parent
SCALE = float(os.environ.get("OMNIGRAPH_DEMO_SCALE", "1"))
KEPT = os.environ.get("OMNIGRAPH_DEMO_KEEP", "")
AUTHORS, PAPERS = max(50, int(20_000 * SCALE)), max(100, int(30_000 * SCALE))
WORDS = """
first: Ada Alan Amara Anna Barbara Boris Carmen Chen Claude Dora Edsger Elif Emmy Fatima Felix
first: Grace Hana Hedy Ines Ivan Jun Kamal Karen Kofi Leila Linus Lise Luca Mae Maria Mina Nadia
first: Niklaus Noor Olga Omar Priya Radia Ravi Rosa Sana Sofia Tara Tim Uma Vera Viktor Wei Yuki
last: Abe Adler Aziz Baker Bauer Berg Bose Castro Chavez Cohen Costa Curie Dahl Diaz Dubois
last: Eriksen Farouk Ferrari Fischer Flores Gupta Haddad Hansen Hopper Ito Ivanova Jansen Kaya
last: Khan Kim Kovac Kumar Lamarr Larsen Lee Lopez Lovelace Mbeki Meyer Moreau Nakamura Ndiaye
last: Noether Novak Okafor Olsen Park Patel Perez Petrov Popov Ramos Rossi Sato Schmidt Silva
last: Singh Sokolov Suzuki Tanaka Torres Tran Turing Vogel Wang Weber Wirth Wong Yilmaz Zhang
how: Sparse Robust Adaptive Bayesian Spectral Causal Quantum Distributed Incremental Verified
how: Approximate Neural Streaming Convex Stochastic Local Optimal Private Parallel Interpretable
what: indexes embeddings joins priors kernels proofs samplers caches schedules graphs codes
what: estimators queries locks sketches partitions models searches bounds features
where: protein_folding traffic_forecasting ocean_currents machine_translation gene_regulation
where: power_grids citation_networks image_search fraud_detection crop_yields clinical_trials
where: gravitational_waves supply_chains speech_recognition glacier_melt particle_tracks
"""
WRITER = """
import json, sys
from omnigraph.cli.run import run
sys.exit(max(run(words) for words in json.loads(sys.argv[1])))
"""
COLOUR = sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def paint(code: str, text: str) -> str:
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


def words(of: str) -> list[str]:
    lines = [line.split() for line in WORDS.splitlines() if line.startswith(f"{of}:")]
    return [word.replace("_", " ") for line in lines for word in line[1:]]


def write_data(directory: Path) -> None:
    """Two node types and two edge types, about 110,000 entities at full scale."""
    directory.mkdir()
    doi = [f"10.1000/{n}" for n in range(PAPERS)]
    draw = random.Random(7)
    names = [f"{first} {last}" for first in words("first") for last in words("last")]
    author = [
        names[n] if n < len(names) else f"{names[n % len(names)]} {n // len(names) + 1}"
        for n in range(AUTHORS)
    ]
    draw.shuffle(author)
    how, what, where = words("how"), words("what"), words("where")
    titles = [f"{draw.choice(how)} {draw.choice(what)} for {draw.choice(where)}" for _ in doi]
    tables = {
        "Person": {"name": author},
        "Paper": {
            "doi": doi,
            "title": titles,
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


def typed(command: str) -> str:
    """A command as one would type it in 80 columns: a long one goes on below, before an option, or
    inside of its quotes."""
    first, *parts = re.split(r" (?=--?[a-z]+ |where )", command)
    lines = [f"$ {first}"]
    for part in parts:
        if len(lines[-1]) + len(part) <= 76:
            lines[-1] += f" {part}"
            continue
        quoted = part.startswith("where")
        lines[-1] += "" if quoted else " \\"
        lines.append(f"        {part}" if quoted else f"    {part}")
    return paint("36", "\n".join(lines))


def show(command: str, *, expected: int = 0) -> None:
    """Prints a command of the program, then runs it here, with the time that it takes."""
    print(f"\n{typed(command)}", flush=True)
    words = shlex.split(command)
    began = time.perf_counter()
    code = run(words[1:])
    sys.stderr.flush()
    if code == INTERRUPTED:
        raise KeyboardInterrupt
    print(paint("2", f"  … {time.perf_counter() - began:.2f} s"), flush=True)
    if code != expected:
        sys.exit(f"{command} ended with {code}")


def engine() -> str:
    """Spark, or this process where Spark cannot start."""
    if not registered("spark"):
        lacking = "it is not installed."
    else:
        lacking = find_executor("spark").lacks() or ""
    if lacking:
        print(f"\nSpark cannot start, so this is done in one process: {lacking}")
    return "local" if lacking else "spark"


def edit_at_once(edits: dict[str, list[str]]) -> None:
    """A process for each branch; every statement is a commit of its own."""
    # The directory has changed since the start, and a path to the package may be a relative one.
    environment = {**os.environ, "PYTHONPATH": str(Path(omnigraph.__file__).parents[1])}
    running = []
    for branch, statements in edits.items():
        calls = []
        for statement in statements:
            words = ["mutate", "--branch", branch, "--as", branch, "-q", "-e", statement]
            print(typed(f"omnigraph {shlex.join(words)}"))
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
    try:
        with workplace() as directory:
            os.chdir(directory)
            os.environ["OMNIGRAPH_ROOT"] = "papers.graph"
            Path("papers.pg").write_text((HERE / "papers.pg").read_text(encoding="utf-8"))
            Path("papers.gq").write_text((HERE / "papers.gq").read_text(encoding="utf-8"))
            write_data(Path("data"))
            tell()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    print(f"\nAll of it in {time.perf_counter() - began:.0f} s.")
    where_next()


@contextlib.contextmanager
def workplace() -> Iterator[str]:
    """A directory that goes with the tour, unless it is asked to stay."""
    if not KEPT:
        with tempfile.TemporaryDirectory(prefix="omnigraph-demo-") as directory:
            yield directory
        return
    try:
        Path(KEPT).mkdir(parents=True)
    except FileExistsError:
        sys.exit(f"{KEPT} is there already: remove it, or name another directory.")
    yield str(Path(KEPT).resolve())


def where_next() -> None:
    title(11, "Where to go next")
    if KEPT:
        print(f"  cd {KEPT}; omnigraph shell --root papers.graph    this graph, interactively")
        print(f"  cd {KEPT}; omnigraph web papers.graph             this graph, in a browser")
    else:
        print("  OMNIGRAPH_DEMO_KEEP=papers make demo    keeps this graph, to try things on")
        print("  omnigraph web papers/papers.graph       then opens it in a browser")
    print("  docs/user/quickstart.md                 a graph of your own in five minutes")
    print("  docs/user/README.md                     the guide: schema, queries, Spark, S3, …")
    print("  omnigraph --help                        all commands; each has examples")


def tell() -> None:
    title(1, "A graph has a schema, and lives in plain files")
    print(Path("papers.pg").read_text(encoding="utf-8").rstrip())
    show("omnigraph init papers.graph --schema papers.pg --as ada")

    title(2, "Load a library by the Spark pipeline: one commit, checked as a whole")
    show(f"omnigraph load data/ --engine {engine()} --as ada -m 'the library'")
    show("omnigraph stats")

    title(3, "Ask")
    print(Path("papers.gq").read_text(encoding="utf-8").rstrip())
    show("omnigraph query papers.gq prolific")
    show("omnigraph query papers.gq lineage --param doi=10.1000/99")
    show("omnigraph explain papers.gq lineage --param doi=10.1000/99")

    title(4, "Search, then walk from what was found")
    show("omnigraph search 'streaming indexes for oceans' -n 3")
    show("omnigraph query papers.gq about --param words='bayesian embeddings of proteins'")

    title(5, "Rank: algorithms run on the graph as it is at any ref")
    show("omnigraph algo pagerank --edges Cites --where 'Paper: year >= 2000' -n 5")

    title(6, "What is wrong is refused, and nothing changes")
    show(
        'omnigraph mutate -e \'insert Cites { from: "10.1000/1", to: "10.1000/nowhere" }\'',
        expected=6,
    )

    title(7, "The cost of a write is a contract: so many requests, at any size and depth")
    show("omnigraph mutate --io --as bob -e 'insert Note { text: \"to be read\" }'")

    title(8, "Two branches, edited at once by two processes")
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

    title(9, "Merge: by entity and property; what cannot be merged is shown")
    show("omnigraph merge eve --as ada")
    show("omnigraph merge joe --as ada", expected=4)
    show("omnigraph merge joe --as ada --strategy Paper.year=theirs")
    show("omnigraph log --graph -n 8")

    title(10, "Every commit stays readable")
    show("omnigraph history Paper 10.1000/29")
    show("omnigraph mutate --as bob -m oops -e 'delete Paper where year < 2000'")
    show("omnigraph query papers.gq count")
    show("omnigraph query papers.gq count --ref main~1")
    show("omnigraph restore main~1 --yes --as ada")
    show("omnigraph query papers.gq count")


if __name__ == "__main__":
    main()
