"""Writes the frozen graphs of the current format: a small one, and one that has grown old. Run once
per format, never again: the point of the files is that newer programs did not write them.

    python -m tests.frozen.make
"""

from __future__ import annotations

import json
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph import Graph
from omnigraph.model.version import FORMAT
from omnigraph.settings import Settings
from tests.frozen.aged import answers_aged, build_aged

HERE = Path(__file__).parent
SCHEMA = """
node Person { name: String @key age: I32? @range(age, 0..200) tags: [String]? photo: Blob? }
node Note { text: String? }
edge Knows: Person -> Person { since: Date? }
"""
WIDER = SCHEMA.replace("text: String?", "text: String? mood: enum(good, bad)?")


def contents(g: Graph, ref: str) -> dict[str, list[dict[str, Any]]]:
    """Everything at a ref that JSON can hold."""
    snapshot = g.at(ref)
    found = {}
    for name in snapshot.types():
        columns = [c for c in snapshot.view(snapshot.type(name)).schema.names if c != "photo"]
        rows = snapshot.scan(name, columns=columns).read_all().to_pylist()
        text = json.dumps(sorted(rows, key=lambda row: row["id"]), default=str)
        found[name] = json.loads(text)
    return found


def answers(g: Graph) -> dict[str, Any]:
    return {
        "branches": g.branches(),
        "tags": {name: commit.id for name, commit in g.tags().items()},
        "contents": {ref: contents(g, ref) for ref in ["main", "side", "first", "main~1"]},
        "log": [commit.id for commit in g.log(all=True)],
    }


def build(root: Path) -> Graph:
    g = omnigraph.init(root, schema=SCHEMA, actor="ann", settings=Settings(folding="off"))
    g.load([{"type": "Person", "data": {"name": f"p{i}", "age": i}} for i in range(40)])
    g.mutate('insert Person { name: "x", tags: ["a", "b"] }', actor="bob", message="x")
    g.create_tag("first")
    g.mutate('insert Knows { from: "p1", to: "x", since: date("2020-02-29") }')
    g.create_branch("side")
    g.branch("side").apply_schema(WIDER)
    g.mutate('delete Person where name = "p3"')
    g.branch("side").mutate('insert Note { text: "on side", mood: "good" }')
    g.merge("side")
    g.optimize()
    g.mutate('update Person set { age: 99 } where name = "p5"')
    return g


def freeze(name: str, build: Callable[[Path], Graph], told: Callable[[Graph], Any]) -> None:
    """Unless it is there: what an older program wrote is never written again."""
    if (HERE / f"{name}.tar.gz").exists():
        return
    with tempfile.TemporaryDirectory() as directory:
        with build(Path(directory) / "graph") as made:
            answer = told(made)
        with tarfile.open(HERE / f"{name}.tar.gz", "w:gz") as archive:
            archive.add(Path(directory) / "graph", arcname="graph")
    text = json.dumps(answer, indent=1, sort_keys=True)
    (HERE / f"{name}.json").write_text(f"{text}\n")


if __name__ == "__main__":
    freeze(f"format-{FORMAT}", build, answers)
    freeze(f"format-{FORMAT}-aged", build_aged, answers_aged)
