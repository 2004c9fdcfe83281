"""A graph that somebody else made, and what lies outside of it and must stay as it is."""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph
from omnigraph import Graph
from omnigraph.settings import Settings
from omnigraph.store.job_files import CancelRequest, JobRequest, ask_cancel, write_request

SCHEMA = """
node Person { name: String @key age: I32? photo: Blob? }
node Note { text: String? }
edge Knows: Person -> Person { since: I32? }
"""
SETTINGS = Settings(durability="relaxed", folding="off", grace=1.0)
PEOPLE = "query people($age: I64?) { match { $p: Person { age: $age } } return { $p.name } }"
JOB = "01J00000000000000000000001"
CANARY = "do not touch this"
JsonObject = dict[str, Any]


def build_graph(root: Path) -> None:
    """Small, with a bit of everything: a branch, a tag, a merge, a deletion, a blob, a stored
    query, a job that was cancelled."""
    with omnigraph.init(root, schema=SCHEMA, settings=SETTINGS) as g:
        with g.transaction(actor="ann") as tx:
            tx.append("Person", [{"name": "a", "age": 1, "photo": b"picture"}, {"name": "b"}])
            tx.append("Knows", {"src": "a", "dst": "b", "since": 3})
        g.create_branch("side")
        g.branch("side").mutate('insert Note { text: "beside" }')
        g.mutate('insert Person { name: "c" }')
        g.mutate('delete Person where name = "c"')
        g.merge("side")
        g.create_tag("first", "main~1")
        g.store_queries({"people": PEOPLE})
        request = JobRequest(id=JOB, kind="verify", created_at=1, arguments={"deep": True})
        write_request(g._session.objects, request)
        ask_cancel(g._session.objects, JOB, CancelRequest(at=1))


@dataclass(frozen=True)
class World:
    """`root` is the hostile graph; `outside` is everything else that a user has."""

    root: Path
    outside: Path

    def open(self) -> Graph:
        return omnigraph.open(self.root, settings=SETTINGS)

    @property
    def head(self) -> Path:
        return min((self.root / "__manifest" / "main").glob("*.json"))

    def change_head(self, change: Callable[[JsonObject], None]) -> None:
        change_json(self.head, change)

    def change_catalog(self, change: Callable[[JsonObject], None]) -> None:
        """A catalog is named by its bytes, so the head gets another one."""
        held = json.loads(self.head.read_bytes())
        catalog = json.loads((self.root / "_schema" / f"{held['catalog']}.json").read_bytes())
        change(catalog)
        data = json.dumps(catalog).encode()
        digest = hashlib.sha256(data).hexdigest()
        (self.root / "_schema" / f"{digest}.json").write_bytes(data)
        self.change_head(lambda version: version.update(catalog=digest))

    def write_intent(self, **fields: object) -> str:
        name = "01J00000000000000000000000"
        intent = {"format": 1, "id": name, "kind": "load", "created_at": 1, "heartbeat": 1} | fields
        path = self.root / "__recovery" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(intent))
        return name


def change_json(path: Path, change: Callable[[JsonObject], None]) -> None:
    held = json.loads(path.read_bytes())
    change(held)
    path.write_text(json.dumps(held))


def fingerprint(directory: Path) -> dict[str, str]:
    """Every entry below a directory: names, links, bytes."""
    found = {}
    for path in sorted(directory.rglob("*")):
        name = str(path.relative_to(directory))
        if path.is_symlink():
            found[name] = f"link to {path.readlink()}"
        elif path.is_file():
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest()
        else:
            found[name] = "directory"
    return found


def make_world(directory: Path, pristine: Path) -> Iterator[World]:
    """Asserts afterwards that nothing outside the root has changed."""
    world = World(directory / "area" / "graph", directory / "area" / "outside")
    shutil.copytree(pristine, world.root, symlinks=True)
    (world.outside / "documents").mkdir(parents=True)
    (world.outside / "documents" / "canary.txt").write_text(CANARY)
    shutil.copytree(pristine, world.outside / "other.graph")
    before = fingerprint(world.outside)
    beside = {path.name for path in directory.rglob("*") if not path.is_relative_to(world.root)}
    yield world
    assert fingerprint(world.outside) == before
    now = {
        path.name
        for path in directory.rglob("*")
        if not path.is_relative_to(world.root) and not path.is_relative_to(directory / "results")
    }
    assert now - {"results"} == beside


def read_everything(g: Graph) -> dict[str, Any]:
    """What anybody can see in a graph."""
    snapshot = g.snapshot()
    return {
        name: [
            row
            for batch in snapshot.scan(name)
            for row in pa.Table.from_batches([batch]).to_pylist()
        ]
        for name in snapshot.types()
    }
