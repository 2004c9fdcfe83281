"""Damage of stored objects, drawn from a seed, and everything that a user could then do."""

from __future__ import annotations

import io
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import omnigraph
from omnigraph import Graph
from omnigraph.settings import Settings
from omnigraph.store.intents import Intent, write_intent
from omnigraph.store.job_files import JobRun, claim_run
from tests.bench.aging import age

SCHEMA = """
node Person {
  name: String @key
  age: I32? @index
  photo: Blob?
  about: String? @index @analyzer("english")
  taste: Vector(4)? @index
}
node Note { text: String? }
edge Knows: Person -> Person { since: I32? }
"""
SETTINGS = Settings(durability="relaxed", folding="off", queue=False, grace=1.0)
PEOPLE = 1100
AGED = """query aged($n: I64) {
  match { $p: Person { age: $n } } return { $p.name as n } order { n }
}"""
LIKES = ("likes", "loved", "is hating")


def build_graph(root: Path) -> None:
    """A bit of everything that can be stored: blobs in and beside their file, deletion files,
    indexes, an archive, branches, tags, jobs, an intent, checksums, stored queries."""
    with omnigraph.init(root, schema=SCHEMA, settings=SETTINGS) as g:
        with g.transaction(actor="ann") as tx:
            tx.append(
                "Person",
                [
                    {
                        "name": f"p{n}",
                        "age": n % 7,
                        "photo": bytes([n % 251]) * (10 if n else 80_000),
                        "about": f"somebody who {LIKES[n % 3]} the number {n}",
                        "taste": [1.0, float(n), float(n % 7), 0.5],
                    }
                    for n in range(PEOPLE)
                ],
            )
            tx.append("Knows", [{"src": f"p{n}", "dst": f"p{n + 1}"} for n in range(PEOPLE - 1)])
        for n in range(4):
            g.mutate(f'insert Note {{ text: "n{n}" }}')
        g.optimize()
        g.store_queries({"aged": AGED})
        g.create_branch("side")
        g.branch("side").mutate('insert Note { text: "beside" }')
        g.create_tag("first", "main~1")
        g.mutate('delete Person where name = "p9"')
        g.mutate('update Person set { age: 99 } where name = "p8"')
        g.merge("side")
    age(root, 24 * 3600)
    with omnigraph.open(root, settings=SETTINGS) as g:
        g.cleanup(keep=3, older_than=0)
        g.mutate('insert Note { text: "after" }')
        g.mutate('delete Note where text = "n1"')
        objects = g._session.objects
        job = root / "__jobs" / ("0123456789abcdef" * 2)
        job.mkdir(parents=True)
        (job / "journal.json").write_text("{}")
        ended = g.jobs.submit("optimize", {"branch": "main"}, actor="ann")
        g.jobs.run(ended.id, lambda context: {"rows": 3})
        lost = g.jobs.submit("verify")
        claim_run(objects, lost.id, 1, JobRun(token=lost.id, began_at=1, heartbeat=1, total=7))
        g.jobs.cancel(g.jobs.submit("load", {"files": ["x.jsonl"]}).id)
        head = g.snapshot().graph_version
        write_intent(
            objects,
            Intent(
                id="01J00000000000000000000000",
                kind="load",
                created_at=1,
                heartbeat=1,
                branch="main",
                base=head.version,
                incarnation=head.incarnation,
            ),
        )


def rows_of(g: Graph, ref: str = "main") -> dict[str, Any]:
    snapshot = g.at(ref)
    return {
        name: sorted(
            (row for batch in snapshot.scan(name) for row in batch.to_pylist()),
            key=lambda row: row["id"],
        )
        for name in snapshot.types()
    }


def _export(g: Graph) -> Any:
    stream = io.BytesIO()
    g.export(to=stream)
    return sorted(stream.getvalue().splitlines())


READS: dict[str, Callable[[Graph], Any]] = {
    "rows": rows_of,
    "rows of a branch": lambda g: rows_of(g, "side"),
    "rows of a tag": lambda g: rows_of(g, "first"),
    "query": lambda g: g.query(
        "match { $p: Person { age: 3 } $p knows $q } "
        "return { $p.name as a, $q.name as b } order { a }"
    ).to_pylist(),
    "entity": lambda g: g.entity("Person", "p8"),
    "words": lambda g: g.search("loves 17", limit=5).to_pylist(),
    "phrase": lambda g: g.query(
        'match { $p: Person match_text($p.about, "the number 500") } return { $p.name }'
    ).to_pylist(),
    "nearest": lambda g: g.query(
        "match { $p: Person } return { $p.name as n } "
        "order { nearest($p.taste, [1.0, 5.0, 5.0, 0.5]) } limit 3"
    ).to_pylist(),
    "blob": lambda g: b"".join([(g.blob("Person", "p0", "photo") or _none()).read()]),
    "export": _export,
    "log": lambda g: [commit.id for commit in g.log(all=True)],
    "diff": lambda g: sorted(str(change) for change in g.at("main").diff("first")),
    "history": lambda g: [moment.commit.id for moment in g.history("Note", "x", limit=3)],
    "changes": lambda g: [
        block.commit.id for block in g.changes([one.id for one in g.log(limit=3)][-1])
    ],
    "branches": lambda g: (g.branches(), sorted(g.tags()), g.protected_branches()),
    "manifest": lambda g: g.manifest().num_rows,
    "degrees": lambda g: g.algorithm("degrees").to_arrow().num_rows,
    "intents": lambda g: len(g.recovery.list()),
    "jobs": lambda g: [(one.id, one.kind, one.arguments, one.result) for one in g.jobs.list()],
    "stored queries": lambda g: sorted(g.queries().items()),
    "stored query": lambda g: g.run_query("aged", {"n": 3}).to_pylist(),
    "format": lambda g: g.format().__class__.__name__,
}
WRITES: dict[str, Callable[[Graph], Any]] = {
    "verify": lambda g: g.verify(),
    "verify deep": lambda g: g.verify(deep=True),
    "dry cleanup": lambda g: g.cleanup(keep=1, older_than=0, dry_run=True),
    "mutate": lambda g: g.mutate('update Person set { age: 5 } where name = "p3"'),
    "insert": lambda g: g.mutate('insert Person { name: "new" }'),
    "merge": lambda g: g.merge("side", dry_run=True),
    "restore": lambda g: g.restore("main~1"),
    "optimize": lambda g: g.optimize(),
    "cleanup": lambda g: g.cleanup(keep=1, older_than=0),
}


def _none() -> Any:
    raise AssertionError("the blob is gone")


def stored_objects(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if path.is_file())


Mutation = tuple[str, Callable[[bytes], bytes | None]]


def mutations(draw: random.Random, size: int) -> Iterator[Mutation]:
    """None stands for an object that is gone."""

    def flip(data: bytes, place: int, bits: int) -> bytes:
        return data[:place] + bytes([data[place] ^ bits]) + data[place + 1 :]

    yield "removed", lambda _: None
    yield "emptied", lambda _: b""
    if not size:
        return
    cut = draw.randrange(size)
    yield f"cut at {cut}", lambda data: data[:cut]
    gone = draw.randrange(size)
    yield f"without byte {gone}", lambda data: data[:gone] + data[gone + 1 :]
    for _ in range(3):
        place, bits = draw.randrange(size), draw.randrange(1, 256)
        yield f"byte {place} ^ {bits}", lambda data, p=place, b=bits: flip(data, p, b)  # type: ignore[misc]
    place = draw.randrange(max(size - 64, 0), size)
    yield f"byte {place} ^ 128", lambda data: flip(data, place, 0x80)
    noise = draw.randbytes(min(size, 200))
    yield "noise", lambda _: noise
    yield "zeros", lambda data: bytes(len(data))
