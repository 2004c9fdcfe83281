"""What a statement of a block gave back counts as read: the code of the block went on with it."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc
import pytest

from omnigraph import Graph
from omnigraph.engine.write.transaction import Transaction
from omnigraph.errors import Conflict, InvalidData, OmnigraphError
from tests.unit.engine.faulty import new_graph, over
from tests.unit.engine.test_write_skew import at

SCHEMA = """
node Counter { name: String  n: I64 }
node Person { name: String @key  n: I64?  age: I64? }
edge Knows: Person -> Person
"""
HITS = pc.field("name") == "hits"


@pytest.fixture
def g() -> Graph:
    return new_graph(SCHEMA)


def bump(tx: Transaction) -> None:
    if tx.update("Counter", set={"n": pc.field("n") + 1}, where=HITS) == 0:
        tx.append("Counter", {"name": "hits", "n": 1})


def hits(g: Graph) -> list[int]:
    found: list[int] = g.snapshot().scan("Counter", filter=HITS).read_all()["n"].to_pylist()
    return sorted(found)


def test_insert_unless_there_is_not_done_twice(g: Graph) -> None:
    first, second = g.transaction(), over(g.root).transaction()
    bump(first)
    bump(second)
    first.publish()
    with pytest.raises(Conflict, match=r"affected 0 entities.*would affect 1") as error:
        second.publish()
    assert error.value.retryable
    assert error.value.applied is False
    assert hits(g) == [1]


def test_run_calls_again_until_the_numbers_hold(g: Graph) -> None:
    together, first = threading.Barrier(4), threading.local()
    failures: list[OmnigraphError] = []

    def unit(tx: Transaction) -> None:
        bump(tx)
        if not getattr(first, "passed", False):
            first.passed = True
            together.wait(30)

    def one() -> None:
        try:
            over(g.root).run(unit)
        except OmnigraphError as error:
            failures.append(error)

    threads = [threading.Thread(target=one) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert hits(g) == [4]


Unit = Callable[[Any], object]
TOLD: dict[str, tuple[Unit, Unit, str]] = {
    "an update that would find more": (
        lambda tx: tx.update("Person", set={"n": 1}, where=pc.field("n").is_null()),
        lambda tx: tx.append("Person", {"name": "new"}),
        "affected 2 entities.*affect 3",
    ),
    "an update that would find fewer": (
        lambda tx: tx.update("Person", set={"n": 1}, where=None),
        lambda tx: tx.delete("Person", where=pc.field("name") == "A"),
        "affected 2 entities.*affect 1",
    ),
    "a deletion that would find nothing": (
        lambda tx: tx.delete("Person", where=pc.field("name") == "A"),
        lambda tx: tx.delete("Person", where=pc.field("name") == "A"),
        "affected 1 entities.*affect 0",
    ),
}


@pytest.mark.parametrize("case", TOLD)
def test_another_number_on_another_base_is_a_conflict(g: Graph, case: str) -> None:
    mine, yours, words = TOLD[case]
    other = over(g.root)
    tx = g.transaction()
    mine(tx)
    tx.append("Counter", {"name": "done", "n": 0})
    with other.transaction() as between:
        yours(between)
    with pytest.raises(Conflict, match=words):
        tx.publish()
    assert other.snapshot().count("Counter") == 0
    done = g.run(lambda tx: (mine(tx), tx.append("Counter", {"name": "done", "n": 0})))
    assert done is not None


@pytest.mark.parametrize("point", ["staged", "tables committed", "before put"])
def test_the_same_numbers_go_on(g: Graph, point: str) -> None:
    other = over(g.root)

    def meddle() -> None:
        with other.transaction() as between:
            between.update("Person", set={"n": 5}, where=pc.field("name") == "A")

    tx = g.transaction()
    where = pc.field("name") == "A"
    assert tx.update("Person", set={"n": pc.field("n") + 1}, where=where) == 1
    assert tx.upsert("Person", [{"name": "A", "age": 7}, {"name": "Z"}]) == 2
    assert tx.delete("Person", where=pc.field("name") == "nobody") == 0
    with at(point, meddle):
        tx.publish()
    assert g.entity("Person", "A") == {"id": "A", "name": "A", "n": 6, "age": 7}


def test_a_mutation_tells_its_numbers_when_it_is_done_and_runs_again(g: Graph) -> None:
    other = over(g.root)

    def meddle() -> None:
        with other.transaction() as between:
            between.append("Person", {"name": "C"})

    with at("before put", meddle):
        done = g.mutate("update Person set { n: 1 } where true")
    assert done.counts["Person"].updated == 3


def test_a_refusal_that_the_code_went_on_from_is_read_too(g: Graph) -> None:
    other = over(g.root)
    tx = g.transaction()
    with pytest.raises(InvalidData, match='"A" exists already'):
        tx.append("Person", {"name": "A"})
    tx.append("Counter", {"name": "A was there", "n": 1})
    with other.transaction() as between:
        between.delete("Person", where=pc.field("name") == "A")
    with pytest.raises(Conflict, match="read in the transaction"):
        tx.publish()
    assert other.snapshot().count("Counter") == 0


@pytest.mark.parametrize("how", ["append", "upsert", "overwrite"])
def test_ids_that_a_block_was_told_are_those_that_land_under_another_schema_too(
    g: Graph, how: str
) -> None:
    tx = over(g.root).transaction()
    getattr(tx, how)("Counter", [{"name": "hits", "n": 1}, {"id": "own", "name": "x", "n": 2}])
    told = {row["name"]: row["id"] for row in tx.scan("Counter").to_pylist()}
    g.apply_schema(SCHEMA + "node Word { word: String @key }\n")
    tx.publish()
    landed = {row["name"]: row["id"] for row in g.snapshot().scan("Counter").read_all().to_pylist()}
    assert landed == told
    assert told["x"] == "own"
