"""`make demo`: a graph made, filled, changed by two processes at once, and read back in time.

Every step prints the code that it is about to run, so that the output can be read as a lesson.
"""

from __future__ import annotations

import inspect
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

import omnigraph
from omnigraph.errors import MergeFailed, OmnigraphError

SCHEMA = (Path(__file__).parent / "papers.pg").read_text(encoding="utf-8")
SCALE = float(os.environ.get("OMNIGRAPH_DEMO_SCALE", "1"))
PEOPLE, PAPERS = int(20_000 * SCALE), int(30_000 * SCALE)
BOLD, DIM, RESET = ("\033[1m", "\033[2m", "\033[0m") if sys.stdout.isatty() else ("", "", "")
if os.environ.get("NO_COLOR"):
    BOLD = DIM = RESET = ""


def make_a_graph(root: str) -> None:
    with omnigraph.init(root, schema=SCHEMA, actor="ada") as g:
        print(g.snapshot().types())


def load_in_one_commit(root: str) -> None:
    people = pa.table({"name": [f"author {n}" for n in range(PEOPLE)]})
    papers = pa.table(
        {
            "doi": [f"10.1000/{n}" for n in range(PAPERS)],
            "title": [f"On the nature of {n}" for n in range(PAPERS)],
            "year": pa.array([1990 + n % 35 for n in range(PAPERS)], pa.int32()),
        }
    )
    wrote = pa.table(
        {
            "from": [f"author {(n * 7) % PEOPLE}" for n in range(2 * PAPERS)],
            "to": [f"10.1000/{n % PAPERS}" for n in range(2 * PAPERS)],
        }
    )
    with omnigraph.open(root) as g, g.transaction(actor="ada", message="the library") as tx:
        tx.append("Person", people)
        tx.append("Paper", papers)
        tx.append("Wrote", wrote)
    print(f"{PEOPLE + 3 * PAPERS:,} entities in commit {tx.commit_id}")


def read_it(root: str) -> None:
    with omnigraph.open(root, mode="r") as g:
        now = g.snapshot()
        recent = now.scan("Paper", columns=["title"], filter=pc.field("year") >= 2023)
        print(f"{recent.read_all().num_rows:,} of {now.count('Paper'):,} papers are recent")


def make_a_mistake(root: str) -> None:
    with omnigraph.open(root) as g:
        try:
            with g.transaction(actor="bob") as tx:
                tx.append("Wrote", {"from": "author 1", "to": "10.1000/nowhere"})
        except OmnigraphError as error:
            print(f"refused, {error.code}: {error}")


def count_the_requests(root: str) -> None:
    with omnigraph.open(root) as g:
        with g.transaction(actor="bob") as tx:
            tx.append("Note", {"text": "the first write of a handle also looks around"})
        with g.transaction(actor="bob") as tx:
            tx.append("Note", {"text": "the next one does not"})
        print(tx.io)


def write_from_two_processes(root: str) -> None:
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=add_notes, args=(root, name)) for name in ("eve", "joe")]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    with omnigraph.open(root, mode="r") as g:
        for actor in ("eve", "joe"):
            print(f"{actor}: {sum(1 for _ in g.log(actor=actor))} commits, none lost")


def add_notes(root: str, actor: str) -> None:
    with omnigraph.open(root) as g:
        for number in range(25):
            with g.transaction(actor=actor, message=f"note {number}") as tx:
                tx.append("Note", {"text": f"{actor} was here"})


def change_the_schema(root: str) -> None:
    with omnigraph.open(root) as g:
        wider = SCHEMA.replace("year: I32", "year: I32\n  pages: I32 @default(10)")
        for step in g.plan_schema(wider).steps:
            print(f"{step.code}  {step.type}  {step.reason}")
        print("applied:", g.apply_schema(wider, actor="ada").applied)


def travel_in_time(root: str) -> None:
    with omnigraph.open(root) as g:
        with g.transaction(actor="bob", message="oops") as tx:
            gone = tx.delete("Paper", where=pc.field("year") < 2000)
        print(f"deleted {gone:,} papers and the edges to them")
        for ref in ("main", "main~1"):
            then = g.snapshot(ref)
            print(f"{ref:<7} {then.count('Paper'):,} papers, {then.count('Wrote'):,} Wrote")


def branch_and_compare(root: str) -> None:
    with omnigraph.open(root) as g:
        g.create_branch("review")
        with g.transaction(branch="review", actor="eve", message="better title") as tx:
            tx.upsert("Paper", {"doi": "10.1000/29", "title": "On the nature of things"})
        with g.transaction(actor="bob", message="right year") as tx:
            tx.upsert("Paper", {"doi": "10.1000/29", "year": 2025})
        for change in g.diff("main", "review"):
            print(change.op, change.type, change.id, change.changed)


def merge(root: str) -> None:
    with omnigraph.open(root) as g:
        print(g.merge("review", actor="ada").outcome, "- both changes to one entity, no conflict")
        with g.transaction(branch="review", actor="eve") as tx:
            tx.upsert("Paper", {"doi": "10.1000/30", "title": "Eve's title"})
        with g.transaction(actor="bob") as tx:
            tx.upsert("Paper", {"doi": "10.1000/30", "title": "Bob's title"})
        try:
            g.merge("review")
        except MergeFailed as error:
            for conflict in error.conflicts:
                print(f"{conflict.kind}: {conflict.message}")
        print(g.merge("review", actor="ada", strategy={"Paper.title": "theirs"}).outcome)


def look_at_the_log(root: str) -> None:
    with omnigraph.open(root, mode="r") as g:
        for commit in g.log(limit=8):
            print(f"{commit.id}  {commit.kind:<7} {commit.actor or '':<5} {commit.message or ''}")


STEPS: tuple[tuple[str, Callable[[str], None]], ...] = (
    ("Make a graph from a schema", make_a_graph),
    ("Load it, in one commit that is checked as a whole", load_in_one_commit),
    ("Read it", read_it),
    ("What is wrong is refused, and nothing changes", make_a_mistake),
    ("The cost of a write is a contract: four requests, at any size and depth", count_the_requests),
    ("Two processes write to one branch at once", write_from_two_processes),
    ("Change the schema: planned first, one commit, no data rewritten", change_the_schema),
    ("Delete too much, and look at how it was before", travel_in_time),
    ("Branch: one request, whatever the size. Then see how the two differ", branch_and_compare),
    ("Merge: by entity and property; what cannot be merged is shown", merge),
    ("Who did what", look_at_the_log),
)


def main() -> None:
    directory = tempfile.mkdtemp(prefix="omnigraph-demo-")
    root = f"{directory}/papers.graph"
    began = time.perf_counter()
    try:
        for number, (title, step) in enumerate(STEPS, 1):
            print(f"\n{BOLD}{number}. {title}{RESET}")
            print(DIM + _body(step) + RESET)
            start = time.perf_counter()
            step(root)
            print(f"{DIM}   … {time.perf_counter() - start:.2f} s{RESET}")
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    print(f"\nAll of it in {time.perf_counter() - began:.1f} s.")
    print("Next: README.md for a first graph of your own, docs/dev/protocol.md for how it works.")


def _body(step: Callable[[str], None]) -> str:
    lines = inspect.getsource(step).rstrip().split("\n")[1:]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
