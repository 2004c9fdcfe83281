"""Many rows, where other ways of joining, grouping and sorting begin: against the oracle where one
variable is enough, against sqlite where edges are followed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import Any

import pytest

from omnigraph.lang.gq import bind_parameters
from omnigraph.lang.gq.checked import Read
from tests.model.query_data import Dataset
from tests.model.query_engine import EngineExecutor, mismatch
from tests.model.query_executors import compiled
from tests.model.query_results import plain
from tests.model.query_sqlite import is_total, run_sqlite, stored
from tests.model.query_texts import DrawnQuery
from tests.model.query_worlds import draw_row

AWKWARD = """
interface Row {
    s: String? i: I32? j: I64? w: U64? f: F64? g: F32? b: Bool? d: Date? t: DateTime?
    e: enum(open, closed)? l: [I64]? k: [String]?
}
node N implements Row { x: I64? @index y: Date? }
node M implements Row { x: I64? @index y: String? }
"""
PLAIN = """
node Person { age: I32? city: String? score: F64? }
node Company { name: String? size: I64? }
edge Knows: Person -> Person { since: I32? weight: F64? }
edge Likes: Person -> Person
edge WorksAt: Person -> Company { since: I32? }
"""
SCALARS = "sijwfgbdte"


def awkward_rows(count: int) -> Dataset:
    chance = Random(count)
    data = Dataset(AWKWARD)
    for kind in data.catalog.nodes:
        data.nodes[kind.name] = [
            {"id": f"n{i}", **draw_row(chance, kind)} for i in range(count // 2)
        ]
    return data


def plain_graph(people: int, edges: int) -> Dataset:
    chance = Random(people)

    def some(*values: Any) -> Any:
        return chance.choice(values)

    data = Dataset(PLAIN)
    data.nodes["Person"] = [
        {
            "id": f"p{i}",
            "age": some(None, *range(20, 60)),
            "city": some(None, "Bern", "bern", "Zürich", "Ö", "\U0001f600"),
            "score": some(None, 0.5, 1.25, -2.0, 100.0),
        }
        for i in range(people)
    ]
    data.nodes["Company"] = [
        {"id": f"c{i}", "name": some(None, "Acme", "Globex"), "size": i % 7} for i in range(40)
    ]
    ids = {kind: [row["id"] for row in rows] for kind, rows in data.nodes.items()}
    for kind in data.catalog.edges:
        properties = [p.name for p in kind.properties]
        drawn = {"since": lambda: some(None, *range(2000, 2020)), "weight": lambda: some(0.5, 2.0)}
        data.edges[kind.name] = [
            {
                "id": f"{kind.name}{i}",
                "src": chance.choice(ids[kind.source]),
                "dst": chance.choice(ids[kind.target]),
                **{name: drawn[name]() for name in properties},
            }
            for i in range(edges)
        ]
    return data


@pytest.fixture(scope="module")
def awkward() -> Iterator[EngineExecutor]:
    executor = EngineExecutor(awkward_rows(1_600), commits=3)
    yield executor
    executor.close()


@pytest.fixture(scope="module", params=["indexed", "adjacency"])
def graph(request: pytest.FixtureRequest) -> Iterator[EngineExecutor]:
    executor = EngineExecutor(plain_graph(1_500, 4_000), commits=3, kernel=request.param)
    yield executor
    executor.close()


@pytest.mark.parametrize("name", SCALARS)
def test_many_values_are_sorted_grouped_and_filtered(awkward: EngineExecutor, name: str) -> None:
    rest = [
        f"{{ $n.@id }} order {{ $n.{name} }}",
        f"{{ $n.{name}, $n.@id }} order {{ $n.{name} desc, $n.b }} limit 700 offset 300",
        f"distinct {{ $n.{name} }}",
        f"distinct {{ $n.{name}, $n.b }} order {{ $n.{name} desc }}",
        f"{{ $n.{name}, count($n) as c, max($n.d) as m }} order {{ c desc }}",
        f"{{ $n.e, count(distinct $n.{name}) as c, collect(distinct $n.{name}) as l }}",
        f"{{ count($n.{name}) as c, count(distinct $n.{name}) as d }}",
    ]
    if name != "b":
        rest += [f"{{ $n.b, min($n.{name}) as lo, max($n.{name}) as hi }} order {{ $n.b }}"]
    for part in rest:
        query = DrawnQuery(f"match {{ $n: Row }} return {part}", {})
        found = mismatch(awkward, awkward.data, query)
        assert found is None, f"{query.text}\n{found[:3000]}"


@pytest.mark.parametrize(
    "text",
    [
        "match { $n: Row } return distinct { $n.l }",
        "match { $n: Row } return { $n.k, count($n) as c }",
        "match { $n: Row } return { $n } order { $n.s } limit 600",
        "match { $n: Row  $n.f > 0.5 } return { $n.@id, $n.f }",
        "match { $n: Row  not $n.g <= 1 } return { $n.@id, $n.g }",
        "match { $n: Row  $n.w > $n.j } return { $n.@id }",
        "match { $n: M  $n.x in [1, 2, 3] } return { $n.@id, $n.x, $n.y }",
        "match { $n: Row  $n.x in [1, 2, 3] } return { $n.@id, $n.x }",
        'match { $n: Row  ($n.s contains "a" or $n.k contains "a") } return { $n.@id }',
        "match { $n: Row } return { avg($n.i) as a, sum($n.i) as s, $n.e } order { $n.e }",
        "match { $n: Row  $n.i in [1, 2] } return { $n.i % 3 as r, $n.b, sum($n.i) as s }",
    ],
)
def test_many_awkward_rows_are_answered_as_the_oracle_does(
    awkward: EngineExecutor, text: str
) -> None:
    found = mismatch(awkward, awkward.data, DrawnQuery(text, {}))
    assert found is None, found[:3000]


def agree(executor: EngineExecutor, text: str) -> None:
    query = compiled(executor.data, text)
    expected = run_sqlite(query, executor.data, bind_parameters(query, {}))
    assert expected is not None
    rows = executor.run(text, {})
    found = [tuple(plain(stored(value)) for value in row.values()) for row in rows]
    wanted = [tuple(plain(value) for value in row) for row in expected]
    assert isinstance(query.body, Read)
    if is_total(query.body):
        assert found == wanted
    else:
        assert Counter(found) == Counter(wanted)


@pytest.mark.parametrize(
    "text",
    [
        "match { $p knows $q } return { $p.@id, $q.@id }",
        "match { $p: Person  $p $w:knows $q  $w.since > 2010 } return { $p.@id, $w.@id, $q.city }",
        "match { $p: Person  $p knows $q  $q likes $r } return { count($p) as n }",
        "match { $p knows $q  $q knows $r  $r worksAt $c } return { $c.name, count($p) as n }",
        "match { $p: Person  $p <knows> $q } return { $p.@id, $q.@id }",
        "match { $p: Person  $p (knows|likes) $q } return { $p.age, count($q) as n }",
        'match { $c: Company { name: "Acme" }  $c worksAt $p } return { $c.@id, $p.@id }',
        "match { $p knows $q } return { $p.city, avg($q.score) as a } order { $p.city }",
        "match { $p $w:knows $q } return { $q.age, count($w) as n, sum($w.weight) as s }",
        "match { $p knows $q  $p.age = $q.age } return { $p.@id, $q.@id }",
        "match { $p: Person  not { $p worksAt $_ } } return { $p.@id }",
        "match { $p: Person  exists { $p knows $q  $q.age > 55 } } return { $p.@id }",
        "match { $p: Person } return { $p.@id, count { $p knows $_ } as n }",
        "match { $p: Person } return { $p.@id, count { $p $_:knows $_ } as n }",
        "match { $p: Person  not { $p knows $q  $q worksAt $c  $c.size > 2 } } return { $p.@id }",
        "match { $p knows $q  $q knows $p } return distinct { $p.city, $q.city } order { $p.city }",
        "match { $p knows $q  $p likes $q } return { $p.@id, $q.@id }",
        "match { $p: Person  $q: Person  $p.age > 58  $q.age > 57 } return { count($q) as n }",
        "match { $p: Person  $q: Person  $p.age > 58  $q.age > 57  $p != $q } return { $p.@id }",
        "match { $a worksAt $c  $b worksAt $c  $a.age = $b.age } return { $a.@id, $b.@id }",
        "match { $p knows $q  $q worksAt $c  $p worksAt $c } return { $c.@id, count($p) as n }",
    ],
)
def test_many_edges_are_followed_as_sqlite_joins_them(graph: EngineExecutor, text: str) -> None:
    agree(graph, text)
