"""Filters that Lance answers give what filters in memory give, whatever properties are called and
whatever their values hold; and they read less."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph import Graph
from omnigraph.engine import columns as columns_module
from omnigraph.engine.query import scan as scan_module
from omnigraph.engine.query.rows import TypeRows
from tests.unit.engine.query.people import fill, graph, reopened, within

SCHEMA = """
node Item {
  name: String @key
  select: String?  where: I64?  orderBy: String?  from_: Bool?  group: Date?  camelCase: I32?
  u: U64?  f: F64?  list: [String]?  limit: enum(low, high)?
}
"""

TEXTS = ["it's", 'say "x"', "100%", "a_b", "back\\slash", "", "null", "--", "näh", "tab\t", "`q`"]


def item(chance: Random, n: int) -> dict[str, Any]:
    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.15 else value

    return {
        "name": f"i{n}",
        "select": maybe(chance.choice(TEXTS)),
        "where": maybe(chance.randint(-2, 2)),
        "orderBy": maybe(chance.choice(TEXTS)),
        "from_": maybe(chance.random() < 0.5),
        "group": maybe(date(2024, 1, 1) + timedelta(days=chance.randint(0, 3))),
        "camelCase": maybe(chance.randint(0, 3)),
        "u": maybe(chance.choice([0, 2**64 - 1, 7])),
        "f": maybe(chance.choice([0.0, -0.0, float("nan"), 1.5, float("inf")])),
        "list": maybe([chance.choice(TEXTS)]),
        "limit": maybe(chance.choice(["low", "high"])),
    }


@pytest.fixture
def pushing(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Small tables go to Lance too; holds the conditions that went there."""
    monkeypatch.setattr(scan_module, "_SMALL", 0)
    monkeypatch.setattr(TypeRows, "wants", lambda rows, names: False)
    monkeypatch.setattr(TypeRows, "is_held", lambda rows, name: False)
    asked: list[str] = []
    real = TypeRows.matching

    def matching(rows: TypeRows, condition: pc.Expression) -> Any:
        asked.append(str(condition))
        return real(rows, condition)

    monkeypatch.setattr(TypeRows, "matching", matching)
    return asked


@pytest.fixture(scope="module")
def items() -> Iterator[Graph]:
    chance = Random(7)
    with graph(SCHEMA) as g:
        rows = [item(chance, n) for n in range(300)]
        fill(g, {"Item": rows[:200]})
        fill(g, {"Item": rows[200:]})
        with g.transaction() as tx:
            tx.delete("Item", where=pc.field("name").isin(["i3", "i250"]))
        yield g


def names(g: Graph, condition: str, **params: Any) -> list[str]:
    return sorted(row["i.name"] for row in g.query(asking(condition, params), params=params))


def asking(condition: str, params: Any = ()) -> str:
    kinds = {str: "String", int: "I64", bool: "Bool", date: "Date", list: "[String]", float: "F64"}
    declared = ", ".join(f"${name}: {kinds[type(value)]}" for name, value in dict(params).items())
    return f"query q({declared}) {{ match {{ $i: Item  {condition} }} return {{ $i.name }} }}"


PUSHED: list[tuple[str, dict[str, Any]]] = [
    *[("$i.select = $x", {"x": text}) for text in TEXTS],
    *[("$i.orderBy != $x", {"x": text}) for text in TEXTS[:4]],
    ("$i.select < $x", {"x": "b"}),
    ("$x <= $i.select", {"x": "b"}),
    ("$i.where > $x", {"x": 0}),
    ("$x > $i.where", {"x": 0}),
    ("$i.where = -1", {}),
    ("$i.where in [1, 2]", {}),
    ("$i.select in $x", {"x": TEXTS[:3]}),
    ("$i.from_ = true", {}),
    ("not ($i.from_ = $x)", {"x": True}),
    ("$i.group >= $x", {"x": date(2024, 1, 2)}),
    ("$i.camelCase = 2", {}),
    ('$i.limit = "high"', {}),
    ("$i.orderBy is null", {}),
    ("$i.orderBy is not null and $i.where = 1", {}),
    ('$i.where = 1 or $i.select = "it\'s"', {}),
    ("not ($i.where = 1 and $i.camelCase = 2)", {}),
]

KEPT: list[tuple[str, dict[str, Any]]] = [
    ("$i.f = 0.0", {}),
    ("$i.f >= 1.0", {}),
    ("$i.f = $x", {"x": float("nan")}),
    ("$i.f = $x", {"x": -0.0}),
    ("$i.f in [0.0, 1.5]", {}),
    ("$i.where < 0.5", {}),
    ("$i.where = $x", {"x": float("nan")}),
    ("$i.u > 7", {}),
    ("$i.u = 18446744073709551615", {}),
    ('$i.list contains "100%"', {}),
    ("$i.where + 1 = 2", {}),
    ('$i.select contains "%"', {}),
    ("$i.camelCase = 9999999999", {}),
    ("$i.where = $i.camelCase", {}),
    ("$i.where in []", {}),
    ("$i.f is null", {}),
    ('$i.@id > "i2"', {}),
]


@pytest.mark.parametrize(("condition", "params"), PUSHED, ids=str)
def test_a_pushed_filter_keeps_what_one_in_memory_keeps(
    items: Graph, request: pytest.FixtureRequest, condition: str, params: dict[str, Any]
) -> None:
    wanted = names(items, condition, **params)
    asked = request.getfixturevalue("pushing")
    assert names(items, condition, **params) == wanted
    assert len(asked) == 1


@pytest.mark.parametrize(("condition", "params"), KEPT, ids=str)
def test_what_lance_may_answer_otherwise_stays_with_us(
    items: Graph, request: pytest.FixtureRequest, condition: str, params: dict[str, Any]
) -> None:
    wanted = names(items, condition, **params)
    asked = request.getfixturevalue("pushing")
    assert names(items, condition, **params) == wanted
    assert asked == []


def test_of_several_conditions_each_goes_its_own_way(items: Graph, pushing: list[str]) -> None:
    found = names(items, "$i.where = 1  $i.f > 1.0  $i.u = 7")
    kept = [
        row["name"]
        for row in items.snapshot().scan("Item").read_all().to_pylist()
        if row["where"] == 1
        and row["u"] == 7
        and row["f"] is not None
        and not row["f"] <= 1.0  # NaN is above all numbers
    ]
    assert found == sorted(kept)
    assert len(pushing) == 1
    assert "where" in pushing[0]
    assert '"f"' not in pushing[0]


def test_a_renamed_property_is_filtered_under_its_column(pushing: list[str]) -> None:
    with graph("node Item { name: String @key  old: String?  other: String? }") as g:
        rows = [{"name": f"i{n}", "old": f"v{n % 3}", "other": f"v{n % 2}"} for n in range(12)]
        fill(g, {"Item": rows})
        g.apply_schema(
            "node Item { name: String @key"
            '  other: String? @rename_from("old")  former: String? @rename_from("other") }'
        )
        fill(g, {"Item": [{"name": "late", "other": "v1", "former": "v9"}]})
        assert names(g, '$i.other = "v1"') == sorted(["i1", "i10", "i4", "i7", "late"])
        assert names(g, '$i.former = "v9"') == ["late"]
        assert len(pushing) == 2
        assert len(names(g, '$i.former = "v1"')) == 6


def test_pending_rows_are_judged_like_stored_ones(items: Graph, pushing: list[str]) -> None:
    tx = items.transaction()  # never published
    tx.append("Item", [{"name": "new1", "where": 1}, {"name": "new2", "where": 2}])
    tx.update("Item", set={"where": 1}, where=pc.field("name") == "i5")
    tx.update("Item", set={"where": 2}, where=pc.field("name") == "i6")
    tx.delete("Item", where=pc.field("name") == "i7")
    kept = tx.scan("Item").to_pylist()
    wanted = sorted(row["name"] for row in kept if row["where"] == 1)
    found = within(tx, asking("$i.where = 1")).to_pylist()
    assert sorted(row["i.name"] for row in found) == wanted
    assert {"new1", "i5"} <= set(wanted)
    assert pushing


# Large tables, as they are


ROWS = 60_000


@pytest.fixture(scope="module")
def large() -> Iterator[Graph]:
    """Its columns are larger than what is read at a first touch."""
    schema = "node Doc { name: String @key  topic: String?  body: String? }"
    with graph(schema) as g:
        chance = Random(3)
        words = [f"{chance.getrandbits(200):050x}" for _ in range(500)]
        table = pa.table(
            {
                "name": [f"d{n}" for n in range(ROWS)],
                "topic": [f"topic {n % 5000}" for n in range(ROWS)],
                "body": [words[n % 500] + words[n * 7 % 500] + str(n) for n in range(ROWS)],
            }
        )
        with g.transaction() as tx:
            tx.append("Doc", table)
        yield g


def ask(g: Graph, text: str) -> tuple[list[dict[str, Any]], int]:
    result = g.query(text)
    rows = sorted(result.to_pylist(), key=repr)
    return rows, result.io.read_bytes


def test_a_filter_on_a_large_table_reads_only_what_it_needs(large: Graph) -> None:
    text = 'match { $d: Doc  $d.topic = "topic 77" } return { $d.name, $d.body }'
    with reopened(large) as g:
        found, size = ask(g, text)
    assert len(found) == ROWS / 5000
    with reopened(large) as g:
        everything, whole = ask(g, "match { $d: Doc } return { $d.body }")
    assert len(everything) == ROWS
    assert size < whole / 2


def test_asking_again_and_again_reads_the_column_once(large: Graph) -> None:
    """A few questions go to Lance; then the column is worth its memory, and costs nothing."""
    touches = columns_module._TOUCHES
    costs = []
    with reopened(large) as g:
        for n in range(touches + 4):
            text = f'match {{ $d: Doc  $d.topic = "topic {n}" }} return {{ count($d) as n }}'
            result = g.query(text)
            assert result.one() == {"n": ROWS // 5000}
            costs.append(result.io.read_bytes)
    assert min(costs[:touches]) > 0
    assert max(costs[-2:]) < min(costs[:touches]) / 10


@pytest.mark.parametrize(
    ("condition", "keeps"),
    [
        ('$d.topic = "topic 5" or $d.topic = "topic 6"', lambda n: n % 5000 in (5, 6)),
        ('$d.topic in ["topic 5", "it\'s", "100%"]', lambda n: n % 5000 == 5),
        ('not ($d.topic != "topic 9")', lambda n: n % 5000 == 9),
        ('$d.topic >= "topic 999"', lambda n: f"topic {n % 5000}" >= "topic 999"),
        ('$d.@id in ["d1", "d59999", "x"]', lambda n: n in (1, 59_999)),
    ],
)
def test_large_tables_give_the_rows_that_small_ones_give(
    large: Graph, condition: str, keeps: Callable[[int], bool]
) -> None:
    with reopened(large) as g:
        found, _ = ask(g, f"match {{ $d: Doc  {condition} }} return {{ $d.name }}")
    assert found == sorted(({"d.name": f"d{n}"} for n in range(ROWS) if keeps(n)), key=repr)
