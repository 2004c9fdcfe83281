"""A query keeps to its bounds, says which one it met, and leaves nothing running."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.query import expand, pattern
from omnigraph.errors import (
    Cancelled,
    InvalidArgument,
    InvalidParameters,
    LimitReached,
    MemoryLimit,
    QueryTimeout,
)
from omnigraph.runtime import SystemRuntime
from tests.unit.engine.query.people import SCHEMA, crowd, fill, settings

EVERYBODY = "match { $p: Person } return { $p.name }"
TWO_HOPS = "match { $p: Person  $p $k:knows $q  $q $l:knows $r } return { $p.name, $r.name }"


class Clock(SystemRuntime):
    """Time that passes when told to; `looked` is called whenever somebody looks."""

    def __init__(self) -> None:
        super().__init__()
        self.time = 1000.0
        self.looked: Callable[[], None] = lambda: None

    def monotonic(self) -> float:
        self.looked()
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def people(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graph]:
    """Batches are small, so that a few people are many batches."""
    for module in (pattern, expand):
        monkeypatch.setattr(module, "CHUNK", 16)
    root = f"memory://{uuid.uuid4().hex}"
    with omnigraph.init(root, schema=SCHEMA, settings=settings(), runtime=clock) as g:
        fill(g, crowd(100, 400))
        yield g


@pytest.fixture(autouse=True)
def _nothing_left_running(people: Graph) -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


# Time


@pytest.mark.parametrize("text", [EVERYBODY, TWO_HOPS, "match { $p: Person } return { $p }"])
def test_a_query_that_takes_too_long_ends_with_its_timeout(
    people: Graph, clock: Clock, text: str
) -> None:
    batches = people.query(text, timeout=5).batches()
    assert next(batches).num_rows
    clock.time += 5.5
    with pytest.raises(QueryTimeout, match="5 s") as caught:
        list(batches)
    assert caught.value.limit == "timeout"


def test_the_clock_begins_when_rows_are_asked_for(people: Graph, clock: Clock) -> None:
    result = people.query(EVERYBODY, timeout=5)
    clock.time += 60
    assert len(result) == 100
    again = people.query(EVERYBODY, timeout=5)
    clock.time += 60
    assert "scan Person" in again.explain(analyze=True)
    clock.time += 60
    assert len(again) == 100


@pytest.mark.parametrize(
    "rest",
    [
        "return { $p.age, count($q) as n }",
        "return distinct { $p, $q }",
        "return { $p.name } order { $q.name }",
        "return { $p.name, count { $q knows{1,3} $_ } as n }",
    ],
)
def test_time_passes_inside_every_kind_of_answer(people: Graph, clock: Clock, rest: str) -> None:
    looks = 0

    def tick() -> None:
        nonlocal looks
        looks += 1
        clock.time += 1

    clock.looked = tick
    with pytest.raises(QueryTimeout):
        people.query(f"match {{ $p: Person  $p $k:knows $q }} {rest}", timeout=4).to_arrow()
    assert looks < 20


# Being cancelled


def test_whoever_reads_is_told_that_it_was_cancelled(people: Graph) -> None:
    result = people.query(TWO_HOPS)
    batches = result.batches()
    next(batches)
    other = threading.Thread(target=result.cancel)
    other.start()
    other.join()
    with pytest.raises(Cancelled) as caught:
        list(batches)
    assert caught.value.limit == "cancelled"


def test_a_query_that_runs_in_another_thread_stops_at_its_next_look(
    people: Graph, clock: Clock
) -> None:
    """It is held at its fifth look at the clock, cancelled, and let go: it looks once more."""
    inside, go = threading.Event(), threading.Event()
    looks: list[int] = []
    told: list[LimitReached] = []

    def look() -> None:
        if threading.current_thread() is worker:
            looks.append(len(looks))
            if len(looks) == 5:
                inside.set()
                assert go.wait(60)

    result = people.query(
        "match { $p: Person  $p $k:knows $q } return { $p.age, count($q) as n }", timeout=1e9
    )

    def read() -> None:
        try:
            result.to_arrow()
        except LimitReached as error:
            told.append(error)

    worker = threading.Thread(target=read)
    clock.looked = look
    worker.start()
    assert inside.wait(60)
    result.cancel()
    go.set()
    worker.join()
    assert [error.limit for error in told] == ["cancelled"]
    assert len(looks) == 5


def test_a_query_cancelled_before_it_began_does_nothing(people: Graph) -> None:
    result = people.query(EVERYBODY)
    before = result.io.reads
    result.cancel()
    with pytest.raises(Cancelled):
        result.to_arrow()
    assert result.io.reads == before


def test_one_cancelled_query_leaves_the_others_alone(people: Graph) -> None:
    first, second = people.query(EVERYBODY), people.query(EVERYBODY)
    first.cancel()
    assert len(second) == 100
    assert len(people.query(EVERYBODY)) == 100


# Memory


@pytest.mark.parametrize(
    "text",
    [
        "match { $p: Person  $p $k:knows $q } return { $p.name, $q.name } order { $q.age }",
        "match { $p: Person  $p $k:knows $q } return { $p, $k, count($q) as n }",
        "match { $p: Person  $p $k:knows $q } return distinct { $p.name, $k.since }",
    ],
)
def test_what_must_be_held_keeps_to_the_memory_limit(people: Graph, text: str) -> None:
    with pytest.raises(MemoryLimit, match="2,000 bytes") as caught:
        people.query(text, memory_limit=2000).to_arrow()
    assert caught.value.limit == "memory_limit"
    assert len(people.query(text, memory_limit=10_000_000)) > 0


def test_rows_that_stream_by_need_no_memory(people: Graph) -> None:
    assert len(people.query(TWO_HOPS, memory_limit=20_000)) > 1000


def test_a_product_keeps_to_the_memory_limit(people: Graph) -> None:
    with pytest.raises(MemoryLimit, match="1,000 bytes"):
        people.query(PRODUCT, memory_limit=1000).to_arrow()


def test_many_rows_on_disk_keep_to_the_memory_limit_too(people: Graph) -> None:
    with omnigraph.open(people.root, settings=settings(query_rows=8)) as g:
        text = "match { $p: Person  $p $k:knows $q } return { $k, count($q) as n }"
        with pytest.raises(MemoryLimit) as caught:
            g.query(text, memory_limit=3000).to_arrow()
        assert caught.value.limit == "memory_limit"
        assert len(g.query(text)) == 400


# Products


PRODUCT = "match { $a: Person  $b: Person } return { $a.name, $b.name }"


def test_a_product_is_bounded_whole_and_in_pieces(
    people: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert len(people.query(PRODUCT)) == 10_000
    monkeypatch.setattr(pattern, "_PRODUCT", 9_000)
    with pytest.raises(MemoryLimit, match="nothing joins") as caught:
        people.query(PRODUCT).to_arrow()
    assert caught.value.limit == "rows"
    assert "L203" in caught.value.hint
    assert len(people.query(PRODUCT + " limit 7")) == 7


def test_a_product_that_is_only_counted_is_not_bounded(
    people: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pattern, "_PRODUCT", 9_000)
    text = "match { $a: Person  $b: Person  $c: Person } return { count($a) as n }"
    assert people.query(text).one() == {"n": 1_000_000}


def test_one_small_side_is_no_product(people: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pattern, "_PRODUCT", 50)
    text = 'match { $a: Person {name: "p1"}  $b: Person } return { $b.name }'
    assert len(people.query(text)) == 100


# Nonsense


@pytest.mark.parametrize(
    "bounds",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": float("nan")},
        {"memory_limit": 0},
        {"memory_limit": -5},
        {"kernel": "quantum"},
    ],
    ids=str,
)
def test_bounds_that_make_no_sense_are_refused_at_once(
    people: Graph, bounds: dict[str, Any]
) -> None:
    with pytest.raises(InvalidArgument):
        people.query(EVERYBODY, **bounds)


@pytest.mark.parametrize("what", ["offset", "limit"])
def test_a_negative_amount_is_an_error(people: Graph, what: str) -> None:
    text = f"query q($n: I64) {{ match {{ $p: Person }} return {{ $p.name }} {what} $n }}"
    with pytest.raises(InvalidParameters, match=f"{what} is not below zero"):
        people.query(text, params={"n": -1}).to_arrow()
