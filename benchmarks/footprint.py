"""Owns the footprint of a graph: what a graph of many small changes takes on a disk after cleanup,
beside the same rows loaded at once, and where the bytes are."""

from __future__ import annotations

import random
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import omnigraph
from benchmarks.measure import Line
from omnigraph.engine.graph import Graph
from omnigraph.runtime import SYSTEM
from omnigraph.settings import Settings

SCHEMA = "node Person { name: String @key age: I64? @index city: String? about: String? }\n"
GRACE = 1.0
SETTINGS = Settings(durability="relaxed", grace=GRACE)
ROWS = 10_000
UPDATES = 10_000


class Rows:
    """People with a dozen words about each, about 120 bytes a row."""

    def __init__(self) -> None:
        self._random = random.Random(1)
        letters = "abcdefghijklmnopqrstuvwxyz"
        self._words = [
            "".join(self._random.choices(letters, k=self._random.randrange(3, 9)))
            for _ in range(2_000)
        ]

    def make(self, number: int) -> dict[str, Any]:
        return {
            "name": f"person-{number:08}",
            "age": self._random.randrange(100),
            "city": self._random.choice(self._words),
            "about": " ".join(self._random.choices(self._words, k=12)),
        }


def run(directory: Path) -> list[Line]:
    rows, many, once = Rows(), directory / "many", directory / "once"
    with omnigraph.init(many, schema=SCHEMA, settings=SETTINGS) as g:
        g.load([rows.make(number) for number in range(ROWS)], type="Person")
        for number in range(UPDATES):
            with g.transaction() as tx:
                tx.upsert("Person", rows.make(number * 7919 % ROWS))
        before = _bytes(many)
        _clean(g)
        cleaned = _bytes(many)
        g.optimize()
        _clean(g)
        optimized = _bytes(many)
        held = g.snapshot().scan("Person").read_all().drop_columns(["id"])
    with omnigraph.init(once, schema=SCHEMA, settings=SETTINGS) as g:
        g.load(held, type="Person")
        loaded = _bytes(once)
        g.optimize()
        _clean(g)
        indexed = _bytes(once)
    what = f"bytes after {UPDATES:,} one-row updates of {ROWS:,} rows and cleanup"
    return [
        _ratio(f"{what} / the same rows loaded at once and indexed", cleaned, indexed, bound=1.5),
        _ratio("the same, after optimize and another cleanup", optimized, indexed, bound=1.5),
        _ratio("the same / rows loaded at once, without indexes", cleaned, loaded),
        Line("before cleanup", _told(before)),
        Line("where they are after cleanup", _told(cleaned)),
        Line("where they are when loaded at once", _told(indexed)),
    ]


def _clean(g: Graph) -> None:
    SYSTEM.sleep(1.5 * GRACE)
    g.cleanup(keep=1, older_than=0)


def _bytes(place: Path) -> Counter[str]:
    found: Counter[str] = Counter()
    for path in place.rglob("*"):
        if path.is_file():
            parts = path.relative_to(place).parts
            found[parts[2] if parts[0] in ("nodes", "edges") else parts[0]] += path.stat().st_size
    return found


def _ratio(
    what: str, held: Counter[str], other: Counter[str], *, bound: float | None = None
) -> Line:
    ratio = held.total() / other.total()
    return Line(
        what,
        f"{ratio:.2f} × ({held.total() / 1024:,.0f} KB / {other.total() / 1024:,.0f} KB)",
        "" if bound is None else f"≤ {bound} ×",
        None if bound is None else ratio <= bound,
    )


def _told(held: Counter[str]) -> str:
    parts = [f"{name} {size / 1024:,.0f} KB" for name, size in held.most_common(5)]
    return f"{held.total() / 1024:,.0f} KB: {', '.join(parts)}"


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="omnigraph-bench-") as place:
        for line in run(Path(place)):
            print(f"| {line.what} | {line.value} | {line.target} | {line.holds} |")
