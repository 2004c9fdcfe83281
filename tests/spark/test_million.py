"""A graph of a million edges: Spark and one process come to the same, in every mode."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.settings import Settings

pytestmark = [pytest.mark.usefixtures("spark"), pytest.mark.slow]

NODES, EDGES = 100_000, 1_000_000
SCHEMA = """
node Person { name: String @key  age: I32? @range(age, 0..150)  email: String? @unique }
edge Knows: Person -> Person { weight: F64? }
edge Likes: Person -> Person { since: I32? @key(src, dst) }
"""


def people(first: int, count: int, age: int) -> pa.Table:
    numbers = np.arange(first, first + count)
    return pa.table(
        {
            "name": pa.array([f"p{n}" for n in numbers]),
            "age": pa.array((numbers + age) % 100, pa.int32()),
            "email": pa.array([f"e{n}" if n % 3 else None for n in numbers]),
        }
    )


def edges(count: int, step: int, column: str, kind: pa.DataType) -> pa.Table:
    """Each pair of ends once: the target follows from the source and the round."""
    numbers = np.arange(count)
    source, turn = numbers % NODES, numbers // NODES
    target = (source * 7 + turn * step + 1) % NODES
    return pa.table(
        {
            "from": pa.array([f"p{n}" for n in source]),
            "to": pa.array([f"p{n}" for n in target]),
            column: pa.array(numbers % 1000).cast(kind),
        }
    )


def everything(g: Graph) -> dict[str, pa.Table]:
    """All rows in an order of their own; ids that were made are left out."""
    snapshot = g.snapshot()
    found = {}
    for name, columns in (
        ("Person", ["id", "name", "age", "email"]),
        ("Knows", ["src", "dst", "weight"]),
        ("Likes", ["id", "src", "dst", "since"]),
    ):
        rows = snapshot.scan(name, columns=columns).read_all()
        found[name] = rows.sort_by([(column, "ascending") for column in columns])
    return found


def test_every_mode_comes_to_the_same_graph(tmp_path: Path) -> None:
    settings = Settings(durability="relaxed")
    here = omnigraph.init(str(tmp_path / "here"), schema=SCHEMA, settings=settings)
    there = omnigraph.init(str(tmp_path / "there"), schema=SCHEMA, settings=settings)

    def load(files: dict[str, pa.Table], **options: Any) -> None:
        place = tmp_path / "data"
        place.mkdir(exist_ok=True)
        for old in place.iterdir():
            old.unlink()
        for name, rows in files.items():
            pq.write_table(rows, place / f"{name}.parquet", row_group_size=250_000)
        one = here.load(place, engine="local", **options)
        other = there.load(place, engine="spark", **options)
        assert one.counts == other.counts
        key = [("source", "ascending"), ("line", "ascending")]
        told = [r.rejected_rows().sort_by(key).drop_columns(["id", "row"]) for r in (one, other)]
        assert told[0].equals(told[1])
        left, right = everything(here), everything(there)
        for name in left:
            assert left[name].combine_chunks().equals(right[name].combine_chunks()), name

    likes = edges(EDGES, 13, "since", pa.int32())
    load({"Person": people(0, NODES, 0), "Knows": edges(EDGES, 11, "weight", pa.float64())})
    load({"Likes": likes.slice(0, EDGES // 2)})
    load({"Likes": likes.slice(EDGES // 4)}, mode="merge")
    load({"Person": people(NODES // 2, NODES, 7)}, mode="merge", on_error="quarantine")
    wrong = pa.concat_tables([people(0, 1000, 0), people(NODES * 2, 5000, 0)])
    load({"Person": wrong}, on_error="quarantine")
    load({"Knows": edges(EDGES // 2, 3, "weight", pa.float64())}, mode="overwrite")
    assert there.verify().ok
