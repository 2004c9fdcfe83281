"""Queries on Spark over a graph of a million edges: the rows of the local engine."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.settings import Settings

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("spark")]

PEOPLE, EDGES = 200_000, 1_000_000
SCHEMA: Final = """
node Person { name: String @key  age: I32?  city: String  weight: F64? }
edge Knows: Person -> Person { since: I32 }
"""
QUERIES: Final = {
    "paths": "match { $a: Person  $a knows $b  $b knows $c } return { count($a) as n }",
    "groups": """match { $a: Person  $a knows $b }
        return { $a.city as c, count($b) as n, avg($b.age) as m, max($b.weight) as w }
        order { c }""",
    "best": """match { $a: Person  $b $k:knows $a }
        return { $a.name as a, count($k) as n } order { n desc } limit 20""",
    "near": 'match { $a: Person { name: "p17" }  $a knows{1,2} $b } return { $b.name }',
    "far": 'match { $a: Person { name: "p17" }  $a knows{1,6} $b } return { count($b) as n }',
    "either": 'match { $a: Person { name: "p9" }  $a <knows>{2,3} $b } return { count($b) as n }',
    "none": "match { $a: Person  not { $a knows $_ } } return { count($a) as n }",
    "optional": """match { $a: Person  $a.age > 87  optional { $a knows $b  $b.age > 80 } }
        return { $a.name, $b.name }""",
    "triangles": """match { $a: Person  $a knows $b  $b knows $c  $c knows $a }
        return { count($a) as n }""",
    "edges": "match { $a $k:knows $b  $k.since > 2020 } return { $a.name, $b.name, $k.since }",
    "patterns": """match { $a: Person  count { $a knows $b  $b.age < 18 } > 3 }
        return { $a.name, sum($b.age) { $a knows $b } as s }""",
    "functions": """match { $a: Person  upper($a.city) contains "C4"  $a.age % 7 = 3 }
        return distinct { $a.city, $a.age / 7 as w } order { w, $a.city }""",
    "page": "match { $a: Person } return { $a } order { $a.weight desc } offset 1000 limit 50",
}


@pytest.fixture(scope="module")
def g(tmp_path_factory: pytest.TempPathFactory, spark: Any) -> Iterator[Graph]:
    chance = np.random.default_rng(7)
    graph = omnigraph.init(
        str(tmp_path_factory.mktemp("large") / "g"),
        schema=SCHEMA,
        settings=Settings(durability="relaxed"),
    )
    names = pa.array([f"p{i}" for i in range(PEOPLE)])
    weights = chance.integers(-100, 100, PEOPLE) / 8
    weights[chance.random(PEOPLE) < 0.01] = np.nan
    people = {
        "name": names,
        "age": pa.array(
            chance.integers(0, 90, PEOPLE).astype(np.int32), mask=chance.random(PEOPLE) < 0.1
        ),
        "city": pa.array([f"c{i}" for i in chance.integers(0, 50, PEOPLE)]),
        "weight": pa.array(weights),
    }
    graph.load(pa.table(people), type="Person", engine="local")
    ends = [chance.integers(0, PEOPLE, EDGES) for _ in range(2)]
    ends[0][: EDGES // 5] //= 1000  # a few have very many
    edges = {
        "src": names.take(pa.array(ends[0])),
        "dst": names.take(pa.array(ends[1])),
        "since": pa.array(chance.integers(1990, 2024, EDGES).astype(np.int32)),
    }
    graph.load(pa.table(edges), type="Knows", engine="local")
    yield graph
    graph.close()


def comparable(table: pa.Table, *, ordered: bool) -> list[str]:
    rows = [repr(row) for row in table.to_pylist()]
    return rows if ordered else sorted(rows)


@pytest.mark.parametrize("name", QUERIES)
def test_a_million_edges_are_answered_as_by_the_local_engine(name: str, g: Graph) -> None:
    text = QUERIES[name]
    here = g.query(text).to_arrow()
    there = g.query(text, engine="spark").to_arrow()
    assert there.schema == here.schema
    assert here.num_rows > 0
    ordered = "order" in text
    assert comparable(here, ordered=ordered) == comparable(there, ordered=ordered)


def test_rows_stream_in_batches_that_the_driver_can_hold(g: Graph) -> None:
    text = "match { $a $k:knows $b } return { $a.name, $b.name }"
    sizes = [batch.num_rows for batch in g.query(text, engine="spark").batches()]
    assert sum(sizes) == EDGES
    assert max(sizes) <= 1 << 16
