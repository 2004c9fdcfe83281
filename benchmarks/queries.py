"""Owns the numbers of queries: beside ladybug and duckdb, on one graph, in one run, answers equal.

100,000 nodes and 2,000,000 edges. Each question is asked of a warm graph with a prepared or cached
plan; ladybug and we take turns, and what counts is the ratio of the medians. duckdb comes after
them, for reference.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import ladybug
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import omnigraph
from benchmarks.measure import Line, medians, milliseconds
from omnigraph.lang.gq import compile_query
from omnigraph.settings import Settings

_NODES, _EDGES, _CITIES = 100_000, 2_000_000, 200
_SCHEMA = """
node Person { name: String @key  city: String  age: I32 }
edge Knows: Person -> Person { weight: F64 }
"""
_START = "p4711"
_TEN_LINES = """query q%d($city: String, $old: I32 = 30) {
  match {
    $p: Person { city: $city }
    $p knows $f
    $f $k:knows $h
    $h.age > $old and not $h.name starts_with "x"
    not { $h knows $p }
  }
  return { $h.city as city, count($h) as n, avg($k.weight) as w } order { n desc } limit 10
}
"""


@dataclass(frozen=True)
class Question:
    what: str
    gq: str
    cypher: str
    sql: str
    target: float
    rounds: int


QUESTIONS = (
    Question(
        "point lookup by key",
        "query q($n: String) { match { $p: Person { name: $n } } return { $p.city, $p.age } }",
        "MATCH (p:Person) WHERE p.name = $n RETURN p.city, p.age",
        "SELECT city, age FROM person WHERE name = $n",
        3.0,
        200,
    ),
    Question(
        "two hops from one node, average at the end",
        "query q($n: String) { match { $p: Person { name: $n } $p knows $f $f knows $h }"
        " return { avg($h.age) as a, count($h) as n } }",
        "MATCH (p:Person)-[:Knows]->(f:Person)-[:Knows]->(h:Person) WHERE p.name = $n"
        " RETURN avg(h.age), count(h)",
        "SELECT avg(h.age), count(*) FROM knows a JOIN knows b ON a.dst = b.src"
        " JOIN person h ON h.name = b.dst WHERE a.src = $n",
        1.0,
        100,
    ),
    Question(
        "three hops from one node, distinct count",
        "query q($n: String) { match { $p: Person { name: $n } $p knows $f $f knows $h"
        " $h knows $e } return { count(distinct $e) as n } }",
        "MATCH (p:Person)-[:Knows]->(f:Person)-[:Knows]->(h:Person)-[:Knows]->(e:Person)"
        " WHERE p.name = $n RETURN count(DISTINCT e.name)",
        "SELECT count(DISTINCT c.dst) FROM knows a JOIN knows b ON a.dst = b.src"
        " JOIN knows c ON b.dst = c.src WHERE a.src = $n",
        1.0,
        50,
    ),
    Question(
        "bounded {1,3} by shortest distance, count",
        "query q($n: String) { match { $p: Person { name: $n } $p knows{1,3} $e }"
        " return { count($e) as n } }",
        "MATCH (p:Person)-[e:Knows* SHORTEST 1..3]->(t:Person) WHERE p.name = $n RETURN count(*)",
        "",
        0.5,
        50,
    ),
    Question(
        "count of all two-hop paths",
        "match { $a: Person $a knows $b $b knows $c } return { count($c) as n }",
        "MATCH (a:Person)-[:Knows]->(b:Person)-[:Knows]->(c:Person) RETURN count(*)",
        "SELECT sum(i.n * o.n)::BIGINT FROM (SELECT dst, count(*) n FROM knows GROUP BY dst) i"
        " JOIN (SELECT src, count(*) n FROM knows GROUP BY src) o ON i.dst = o.src",
        1.0,
        20,
    ),
    Question(
        "group by end property with count, average of an edge property, order, limit",
        "match { $a: Person $a $k:knows $b }"
        " return { $b.city as city, count($k) as n, avg($k.weight) as w }"
        " order { n desc, city } limit 10",
        "MATCH (a:Person)-[k:Knows]->(b:Person) RETURN b.city AS city, count(*) AS n,"
        " avg(k.weight) AS w ORDER BY n DESC, city LIMIT 10",
        "SELECT b.city, count(*) n, avg(k.weight) w FROM knows k JOIN person b ON b.name = k.dst"
        " GROUP BY b.city ORDER BY n DESC, b.city LIMIT 10",
        1.0,
        10,
    ),
)


def make_data(directory: Path) -> tuple[pa.Table, pa.Table]:
    """No parallel edges and no self-loops, so that all three mean the same by a path."""
    random = np.random.default_rng(7)
    pairs = np.unique(random.integers(0, _NODES, (_EDGES * 21 // 20, 2)), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    pairs = pairs[np.sort(random.permutation(len(pairs))[:_EDGES])]
    names = pa.array([f"p{n}" for n in range(_NODES)])
    nodes = pa.table(
        {
            "name": names,
            "city": pa.array([f"city {n}" for n in random.integers(0, _CITIES, _NODES)]),
            "age": pa.array(random.integers(1, 90, _NODES), pa.int32()),
        }
    )
    edges = pa.table(
        {
            "src": names.take(pa.array(pairs[:, 0])),
            "dst": names.take(pa.array(pairs[:, 1])),
            "weight": pa.array(random.random(len(pairs))),
        }
    )
    pq.write_table(nodes, directory / "Person.parquet")
    pq.write_table(edges, directory / "Knows.parquet")
    return nodes, edges


def run(directory: Path) -> list[Line]:
    make_data(directory)
    graph = omnigraph.init(
        directory / "graph", schema=_SCHEMA, settings=Settings(durability="relaxed")
    )
    graph.load([directory / "Person.parquet", directory / "Knows.parquet"])
    theirs = ladybug.Connection(ladybug.Database(str(directory / "ladybug.db")))
    theirs.execute("CREATE NODE TABLE Person(name STRING PRIMARY KEY, city STRING, age INT32)")
    theirs.execute("CREATE REL TABLE Knows(FROM Person TO Person, weight DOUBLE)")
    for name in ("Person", "Knows"):
        theirs.execute(f'COPY {name} FROM "{directory / name}.parquet"')
    ducks = duckdb.connect()
    for name in ("person", "knows"):
        source = directory / f"{name.capitalize()}.parquet"
        ducks.execute(f"CREATE TABLE {name} AS SELECT * FROM read_parquet('{source}')")
    lines = [_measure(question, graph, theirs, ducks) for question in QUESTIONS]
    return [*lines, _front(graph), _import()]


def _front(graph: Any) -> Line:
    """From another text each time, so that nothing is known of it yet."""
    catalog = graph.snapshot().catalog
    numbers = iter(range(10_000))
    found = medians({"ours": lambda: compile_query(_TEN_LINES % next(numbers), catalog)}, rounds=99)
    return Line(
        "parse and check of a ten-line query",
        milliseconds(found["ours"]),
        "at most 5 ms",
        found["ours"] <= 0.005,
    )


def _import() -> Line:
    """Of a new interpreter, beside one that imports nothing."""

    def start(code: str) -> Callable[[], object]:
        return lambda: subprocess.run([sys.executable, "-c", code], check=True)

    found = medians({"ours": start("import omnigraph"), "none": start("pass")}, rounds=15)
    seconds = found["ours"] - found["none"]
    return Line("`import omnigraph`", milliseconds(seconds), "at most 150 ms", seconds <= 0.15)


def _measure(question: Question, graph: Any, theirs: Any, ducks: Any) -> Line:
    given = {"n": _START} if "$n" in question.gq else {}
    prepared = theirs.prepare(question.cypher)

    def ours() -> list[tuple[Any, ...]]:
        table = graph.query(question.gq, params=given).to_arrow()
        return list(zip(*[column.to_pylist() for column in table.columns], strict=True))

    def ladybugs() -> list[tuple[Any, ...]]:
        return [tuple(row) for row in theirs.execute(prepared, given).get_all()]

    def duckdbs() -> list[tuple[Any, ...]]:
        rows: list[tuple[Any, ...]] = ducks.execute(question.sql, given or None).fetchall()
        return rows

    contenders: dict[str, Callable[[], list[tuple[Any, ...]]]] = {
        "ours": ours,
        "ladybug": ladybugs,
    }
    if question.sql:
        contenders["duckdb"] = duckdbs
    answers = {name: call() for name, call in contenders.items()}
    for name, answer in answers.items():
        _require_equal(question.what, name, answers["ours"], answer)
    for call in contenders.values():
        call()
    # The two that are compared take turns with each other alone: whoever comes after one of
    # duckdb's long calls on all cores finds cold caches.
    reference = {name: contenders.pop(name) for name in ("duckdb",) if name in contenders}
    found = medians(contenders, rounds=question.rounds)
    found |= medians(reference, rounds=max(3, question.rounds // 10))
    ratio = found["ours"] / found["ladybug"]
    shown = ", ".join(f"{name} {milliseconds(found[name])}" for name in found)
    return Line(
        question.what,
        f"{ratio:.2f} × ladybug ({shown})",
        f"at most {question.target:g} ×",
        ratio <= question.target,
    )


def _require_equal(
    what: str, name: str, ours: list[tuple[Any, ...]], theirs: list[tuple[Any, ...]]
) -> None:
    same = len(ours) == len(theirs) and all(
        a == b or (isinstance(a, float) and abs(a - b) <= 1e-9 * max(abs(a), abs(b)))
        for left, right in zip(ours, theirs, strict=True)
        for a, b in zip(left, right, strict=True)
    )
    if not same:
        raise AssertionError(f"{what}: {name} gives {theirs[:3]}, we give {ours[:3]}")
