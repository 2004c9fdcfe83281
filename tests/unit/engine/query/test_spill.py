"""What duckdb answers for many rows is what is answered in memory for few: a setting makes eight
rows many."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from omnigraph import Graph
from omnigraph.engine.query import expand, pattern
from omnigraph.engine.query.guard import Guard
from omnigraph.engine.query.spill import Spill
from omnigraph.errors import Cancelled, MemoryLimit, QueryTimeout, ValueOutOfRange
from tests.unit.engine.query.people import fill, graph, reopened

SCHEMA = """
interface Named { label: String? }
node Thing implements Named {
  name: String @key
  i: I32?  l: I64?  u: U64?  f: F32?  d: F64?  yes: Bool?
  day: Date?  at: DateTime?  kind: enum(red, green, blue)?
  tags: [String]?  floats: [F64]?
}
node Other implements Named { name: String @key }
edge Near: Thing -> Thing { weight: F32? }
"""

NAN = float("nan")
FLOATS = [0.0, -0.0, NAN, 0.1, 1e30, float("inf"), -2.5, None]


def thing(chance: Random, n: int) -> dict[str, Any]:
    def maybe(value: Any) -> Any:
        return None if chance.random() < 0.2 else value

    return {
        "name": f"t{n}",
        "label": maybe(chance.choice(["a", "A", "ä", "", "z\u0000", "'; drop --"])),
        "i": maybe(chance.randint(-3, 3)),
        "l": maybe(chance.choice([-(2**62), 2**61, 2**53 + 1, 0, 7])),
        "u": maybe(chance.choice([2**64 - 1, 2**63, 0, 7])),
        "f": chance.choice(FLOATS),
        "d": chance.choice(FLOATS),
        "yes": maybe(chance.random() < 0.5),
        "day": maybe(date(1969, 12, 30) + timedelta(days=chance.randint(0, 4))),
        "at": maybe(
            datetime(1969, 12, 31, 23, 59, 59, 999000, UTC)
            + timedelta(milliseconds=chance.randint(0, 3))
        ),
        "kind": maybe(chance.choice(["red", "green", "blue"])),
        "tags": maybe([chance.choice("abc") for _ in range(chance.randint(0, 2))]),
        "floats": maybe(
            [chance.choice([0.0, -0.0, NAN, 1.5]) for _ in range(chance.randint(0, 2))]
        ),
    }


@pytest.fixture(scope="module")
def handles() -> Iterator[tuple[Graph, Graph]]:
    """Two handles of one graph: for one, rows are few; for the other, eight are many."""
    chance = Random(4)
    with graph(SCHEMA) as few:
        things = [thing(chance, n) for n in range(150)]
        fill(
            few,
            {
                "Thing": things,
                "Other": [{"name": f"t{n}", "label": "a"} for n in range(0, 150, 3)],
                "Near": [
                    {
                        "from": chance.choice(things)["name"],
                        "to": chance.choice(things)["name"],
                        "weight": chance.choice([0.1, 0.7, None]),
                    }
                    for _ in range(300)
                ],
            },
        )
        with reopened(few, query_rows=8) as many:
            yield few, many


@pytest.fixture(params=["whole", "in pieces"])
def both(
    request: pytest.FixtureRequest,
    handles: tuple[Graph, Graph],
    monkeypatch: pytest.MonkeyPatch,
) -> tuple[Graph, Graph]:
    if request.param == "in pieces":
        for module in (pattern, expand):
            monkeypatch.setattr(module, "CHUNK", 37)
    return handles


def plain(value: Any) -> Any:
    """Comparable and sortable: NaN equal, one zero, lists from collect in any order."""
    match value:
        case float():
            return "NaN" if value != value else f"{value + 0.0:.12g}"
        case list():
            return sorted(map(repr, map(plain, value)))
        case dict():
            return {name: plain(part) for name, part in value.items()}
        case _:
            return value


def answers(
    both: tuple[Graph, Graph], text: str, **params: Any
) -> tuple[list[Any], list[Any], pa.Schema]:
    few, many = (handle.query(text, params=params).to_arrow() for handle in both)
    assert few.schema == many.schema
    return [plain(r) for r in few.to_pylist()], [plain(r) for r in many.to_pylist()], few.schema


PROPERTIES = ["i", "l", "u", "f", "d", "yes", "day", "at", "kind", "label", "tags", "floats"]
SUMS = ["i", "u", "f", "d"]

UNORDERED = [
    *[
        f"match {{ $t: Thing }} return {{ $t.{p}, count($t) as n, min($t.name) as m }}"
        for p in PROPERTIES
    ],
    *[f"match {{ $t: Thing }} return distinct {{ $t.{p}, $t.yes as y }}" for p in PROPERTIES],
    *[
        f"match {{ $t: Thing }} return {{ $t.kind, count($t.{p}) as n, count(distinct $t.{p}) as d,"
        f" collect($t.{p}) as c, collect(distinct $t.{p}) as cd }}"
        for p in PROPERTIES
        if p not in ("tags", "floats")
    ],
    *[
        f"match {{ $t: Thing }} return {{ $t.yes, min($t.{p}) as low, max($t.{p}) as high }}"
        for p in PROPERTIES
        if p not in ("tags", "floats", "yes")
    ],
    *[
        f"match {{ $t: Thing  $t.{p} < 100 or $t.{p} is null }} return {{ $t.kind,"
        f" sum($t.{p}) as s, sum(distinct $t.{p}) as sd,"
        f" avg($t.{p}) as a, avg(distinct $t.{p}) as ad }}"
        for p in SUMS
    ],
    "match { $t: Thing } return { avg($t.l) as a, avg($t.u) as u }",
    "match { $t: Thing } return { $t, count($t) as n }",
    "match { $t: Thing  $t near $o } return { $t.kind, collect($o) as all }",
    "match { $t: Thing  optional { $t near $o } } return { $o, count($t) as n }",
    "match { $t: Thing  optional { $t near $o } } return distinct { $o, $t.kind }",
    (
        "match { $t: Thing  $t near $o  $o near $p } return { $t.kind, count($p) as n,"
        " sum($t.i) as s, avg($t.f) as a, sum($t.f) as f }"
    ),
    (
        "match { $t: Thing  $t.f < 100  $t near $o  $o near $p }"
        " return { $t.kind, avg($t.f) as a, sum($t.f) as f }"
    ),
    "match { $t: Thing  $t $w:near $o } return { $t.day, sum($w.weight) as s, collect($w) as e }",
    "match { $t: Thing } return { year($t.at) as y, count($t) as n, max($t.at) as latest }",
    "match { $t: Thing } return { $t.i + 1 as k, count($t) + 1 as n, toString($t.at) as at }",
    'match { $t: Thing } return { $t.at, toString($t.at) + " " + toString(count($t)) as s }',
    "match { $t: Thing } return { $t.day, $t.f, year($t.day) + count($t) as y, $t.f + 1.0 as g }",
    "match { $t: Thing } return { count($t) as n, sum($t.i) as s, collect($t.i) as c }",
    'match { $t: Thing  $t.name = "nobody" } return { count($t) as n, sum($t.i) as s }',
    'match { $t: Thing  $t.name = "nobody" } return { $t.kind, count($t) as n }',
    "match { $n: Named } return distinct { $n }",
]

ORDERED = [
    *[
        f"match {{ $t: Thing }} return {{ $t.name, $t.{p} }} order {{ $t.{p} {way} }} {cut}"
        for p in PROPERTIES
        if p not in ("tags", "floats")
        for way, cut in (("asc", ""), ("desc", "offset 3 limit 50"))
    ],
    "match { $t: Thing } return { $t.name } order { $t.yes, $t.d desc, $t.i } limit 60 offset 40",
    "match { $n: Named } return { $n } order { $n.label } limit 120",
    "match { $n: Named } return { $n } order { $n.label desc }",
    "match { $n: Named } return distinct { $n, 1 as c } order { c }",
    "match { $n: Named } return { $n, count($n) as c } order { c desc } limit 120",
    "match { $t: Thing  optional { $t near $o } } return { $t.name, $o.name } order { $t.kind }",
    "match { $t: Thing } return { $t.name } order { $t.name } offset 1000",
    "match { $t: Thing } return { $t.name } order { $t.name } limit 0",
    "match { $t: Thing } return distinct { $t.kind, $t.tags } order { $t.kind desc } limit 11",
    "match { $t: Thing } return { $t.day, count($t) as n } order { n desc } limit 3 offset 1",
    "match { $t: Thing  $t near $o } return { $t.name, $o.i } order { $o.f desc, $o.d } limit 99",
]


@pytest.mark.parametrize("text", UNORDERED)
def test_groups_and_distinct_rows_are_those_of_memory(both: tuple[Graph, Graph], text: str) -> None:
    few, many, _ = answers(both, text)
    assert sorted(map(repr, many)) == sorted(map(repr, few))


@pytest.mark.parametrize("text", ORDERED)
def test_ordered_rows_are_those_of_memory_ties_and_nulls_included(
    both: tuple[Graph, Graph], text: str
) -> None:
    few, many, _ = answers(both, text)
    assert many == few


def test_it_is_duckdb_that_answers(
    handles: tuple[Graph, Graph], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else this file would compare nothing."""
    asked: list[str] = []
    real = Spill._connected

    def connected(spill: Spill) -> Any:
        asked.append("")
        return real(spill)

    monkeypatch.setattr(Spill, "_connected", connected)
    for number, text in enumerate((UNORDERED[0], UNORDERED[12], ORDERED[0]), 1):
        handles[1].query(text).to_arrow()
        assert len(asked) == number
    handles[0].query(UNORDERED[0]).to_arrow()
    assert len(asked) == 3


# Numbers at their bounds


NUMBERS = """
node N { name: String @key  l: I64?  u: U64?  g: I64? }
edge To: N -> N
"""


@pytest.fixture
def numbers() -> Iterator[Callable[[list[int], str], list[Any]]]:
    """Asks a query of given numbers, of both kinds of handle, which agree."""
    opened: list[Graph] = []

    def ask(values: list[int], text: str) -> list[Any]:
        few = graph(NUMBERS)
        rows = [
            {"name": f"n{n}", "l": v if v < 2**63 else None, "u": max(v, 0), "g": n % 2}
            for n, v in enumerate(values)
        ]
        names = [row["name"] for row in rows]
        edges = [{"from": start, "to": end} for start in names for end in names]
        fill(few, {"N": rows, "To": edges})
        many = reopened(few, query_rows=2)
        opened.extend((few, many))
        found: list[list[Any]] = []
        for handle in (few, many):
            try:
                found.append(handle.query(text).to_pylist())
            except ValueOutOfRange as error:
                found.append([type(error)])
        assert sorted(map(repr, found[0])) == sorted(map(repr, found[1]))
        return found[1]

    yield ask
    for handle in opened:
        handle.close()


def test_the_exact_total_decides_whether_a_sum_fits(numbers: Any) -> None:
    text = "match { $n: N } return { sum($n.l) as s }"
    large = 2**62
    assert numbers([large, large, -large, 1], text) == [{"s": large + 1}]
    assert numbers([large, large, large, 1], text) == [ValueOutOfRange]
    assert numbers([2**63 - 1, 0, 0], text) == [{"s": 2**63 - 1}]


def test_a_row_that_counts_often_overflows_only_in_the_total(numbers: Any) -> None:
    """Every number stands there nine times, counted, not listed."""
    text = "match { $n: N  $n to $o  $p: N } return { $n.g, sum($n.l) as s }"
    found = numbers([2**60, 5, -(2**60)], text)
    assert sorted(row["s"] for row in found) == [0, 45]
    assert numbers([2**60, 5, 0], text) == [ValueOutOfRange]


def test_unsigned_sums_are_exact_up_to_the_bound_of_signed_ones(numbers: Any) -> None:
    text = "match { $n: N } return { sum($n.u) as s, max($n.u) as m }"
    assert numbers([2**62, 2**61, 5], text) == [{"s": 2**62 + 2**61 + 5, "m": 2**62}]
    assert numbers([2**64 - 1, 0, 0], text) == [ValueOutOfRange]


# Errors on the way


@pytest.mark.parametrize(
    "text",
    [
        "match { $t: Thing } return { $t.u * 2 as k, count($t) as n }",
        "match { $t: Thing } return { $t.kind, sum($t.u * 2) as n }",
        "match { $t: Thing } return distinct { $t.u * 2 as k }",
        "match { $t: Thing } return { $t.name } order { $t.u * 2 }",
        "match { $t: Thing } return { $t.name, date($t.name) as d } order { $t.name }",
    ],
)
def test_an_error_in_the_middle_is_told_as_ours(both: tuple[Graph, Graph], text: str) -> None:
    told = []
    for handle in both:
        with pytest.raises(ValueOutOfRange) as caught:
            handle.query(text).to_arrow()
        assert caught.value.__cause__ is None
        told.append(str(caught.value))
    assert told[0] == told[1]
    assert "duckdb" not in told[1].lower()


LONG = "SELECT sum(a.range * b.range % 7) FROM range(10000000) a, range(10000000) b"


def spill(guard: Guard) -> Spill:
    return Spill(iter([[pa.array([1, 2])], [pa.array([3])]]), guard)


def test_a_cancelled_query_does_not_wait_for_duckdb() -> None:
    guard = Guard(time.monotonic, timeout=None, memory_limit=None)
    threads = threading.active_count()
    timer = threading.Timer(0.2, guard.cancel)
    timer.start()
    with pytest.raises(Cancelled) as caught:
        spill(guard)._whole(LONG)
    timer.join()
    assert caught.value.limit == "cancelled"
    assert threading.active_count() == threads


def test_a_timeout_does_not_wait_for_duckdb() -> None:
    guard = Guard(time.monotonic, timeout=0.2, memory_limit=None)
    guard.begin()
    with pytest.raises(QueryTimeout) as caught:
        spill(guard)._whole(LONG)
    assert caught.value.limit == "timeout"


@pytest.mark.parametrize("limit", [1, 1000, 300_000])
def test_duckdb_keeps_to_the_memory_limit(limit: int) -> None:
    def batches() -> Iterator[list[pa.Array]]:
        for n in range(40):
            yield [pa.array([f"{n} {row} {'x' * 50}" for row in range(1000)])]

    guard = Guard(time.monotonic, timeout=None, memory_limit=limit)
    with pytest.raises(MemoryLimit) as caught:
        Spill(batches(), guard).distinct()
    assert caught.value.limit == "memory_limit"


def test_nothing_is_left_on_disk(
    handles: tuple[Graph, Graph], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither after an answer, nor when somebody stops reading, nor after an error."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    many = handles[1]
    many.query(ORDERED[0]).to_arrow()
    reading = many.query(ORDERED[0]).batches()
    next(reading)
    assert len(list(tmp_path.iterdir())) == 1
    reading.close()  # type: ignore[attr-defined]
    with pytest.raises(ValueOutOfRange):
        many.query("match { $t: Thing } return { $t.u * 2 as k, count($t) as n }").to_arrow()
    assert list(tmp_path.iterdir()) == []
