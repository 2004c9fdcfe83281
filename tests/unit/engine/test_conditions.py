"""A condition is a text of the query language or an Arrow expression, wherever one is taken."""

from __future__ import annotations

from typing import Any

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Conflict, InvalidArgument, InvalidQuery
from tests.unit.engine.faulty import SCHEMA, SETTINGS, fresh_root, over

PAIRS: list[tuple[str, Any, list[str]]] = [
    ("age > 1", pc.field("age") > 1, ["bob", "cyd"]),
    ('name = "ann"', pc.field("name") == "ann", ["ann"]),
    ("age = 2 or age = 3", (pc.field("age") == 2) | (pc.field("age") == 3), ["bob", "cyd"]),
    ("not (age = 2)", ~(pc.field("age") == 2), ["ann", "cyd"]),
    ("age > 100", pc.field("age") > 100, []),
    ('name starts_with "a"', pc.starts_with(pc.field("name"), "a"), ["ann"]),
]


def new_graph() -> Graph:
    return omnigraph.init(fresh_root(), schema=SCHEMA, settings=SETTINGS)


@pytest.fixture
def g() -> Graph:
    g = new_graph()
    with g.transaction() as tx:
        tx.append("Person", [{"name": "ann", "age": 1}, {"name": "bob", "age": 2}])
    return g


def pairs() -> list[Any]:
    return [pytest.param(one, kept, id=text) for text, expr, kept in PAIRS for one in (text, expr)]


@pytest.mark.parametrize(("where", "kept"), pairs())
def test_it_keeps_the_same_rows_on_disk_pending_and_in_every_call(
    g: Graph, where: Any, kept: list[str]
) -> None:
    def names(rows: Any) -> list[str]:
        return sorted(rows["name"].to_pylist())

    with g.transaction() as tx:
        tx.append("Person", {"name": "cyd", "age": 3})
        assert names(tx.scan("Person", columns=["name"], filter=where)) == kept
        point = tx.savepoint()
        assert tx.update("Person", set={"age": 50}, where=where) == len(kept)
        aged = pc.field("age") == 50
        assert names(tx.scan("Person", columns=["name", "age"], filter=aged)) == kept
        point.rollback()
        assert tx.delete("Person", where=where) == len(kept)
        assert names(tx.scan("Person")) == sorted({"ann", "bob", "cyd"} - set(kept))
        point.rollback()
    for at in (g, g.snapshot(), g.branch("main")):
        assert names(at.scan("Person", columns=["name"], filter=where).read_all()) == kept
        columns = at.scan("Person", columns=["age"], filter=where).read_all().column_names
        assert columns == ["age"]
    done = g.algorithm("degrees", where={"Person": where})
    assert sorted(done.to_dict()) == kept


def test_what_is_no_condition_is_refused_in_the_same_words(g: Graph) -> None:
    for wrong, error in (("agee > 1", InvalidQuery), (7, InvalidArgument), ("", InvalidQuery)):
        with pytest.raises(error, match="Person"):
            g.algorithm("degrees", where={"Person": wrong})
        with g.transaction() as tx:
            for call in (
                lambda: g.scan("Person", filter=wrong),  # noqa: B023
                lambda: tx.scan("Person", filter=wrong),  # noqa: B023
                lambda: tx.update("Person", set={"age": 1}, where=wrong),  # noqa: B023
                lambda: tx.delete("Person", where=wrong),  # noqa: B023
            ):
                with pytest.raises(error):
                    call()
    with pytest.raises(InvalidArgument, match="nope"):
        g.algorithm("degrees", where={"Person": pc.field("nope") > 1})


def test_an_update_by_text_is_run_again_on_what_another_wrote(g: Graph) -> None:
    tx = g.transaction()
    assert tx.update("Person", set={"age": pc.field("age") + 10}, where='name = "ann"') == 1
    with over(g.root).transaction() as other:
        other.update("Person", set={"age": 5}, where='name = "ann"')
    tx.publish()
    row = g.entity("Person", "ann")
    assert row is not None
    assert row["age"] == 15


def test_a_query_of_a_block_sees_what_is_pending_and_not_what_comes_later(g: Graph) -> None:
    text = "match { $p: Person } return { $p.name as name, $p.age as age } order { $p.name }"
    with g.transaction() as tx:
        tx.append("Person", {"name": "cyd", "age": 3})
        tx.update("Person", set={"age": 20}, where='name = "bob"')
        tx.delete("Person", where='name = "ann"')
        early = tx.query(text)
        tx.append("Person", {"name": "dan", "age": 4})
        wanted = [{"name": "bob", "age": 20}, {"name": "cyd", "age": 3}]
        assert early.to_pylist() == wanted
        assert tx.query(text).to_pylist() == [*wanted, {"name": "dan", "age": 4}]
        older = "query q($n: I64) { match { $p: Person $p.age > $n } return { $p.name as name } }"
        assert tx.query(older, params={"n": 4}).one() == {"name": "bob"}
        with pytest.raises(InvalidQuery):
            tx.query("match { $p: Persn } return { $p }")
    assert g.query(text).to_pylist() == [*wanted, {"name": "dan", "age": 4}]


def test_what_a_query_of_a_block_asked_must_not_change_under_it(g: Graph) -> None:
    tx = g.transaction()
    count = tx.query("match { $p: Person } return { count($p) as n }").one()["n"]
    tx.append("Note", {"text": f"{count}"})
    with over(g.root).transaction() as other:
        other.append("Person", {"name": "cyd"})
    with pytest.raises(Conflict, match="it was read in the transaction"):
        tx.publish()
    tx = g.transaction()
    tx.query("match { $p: Person } return { count($p) as n }").one()
    tx.append("Note", {"text": "x"})
    with over(g.root).transaction() as other:
        other.append("Note", {"text": "y"})
    tx.publish()  # nobody asked about notes


def test_a_repeated_call_asks_what_was_there_the_first_time(g: Graph) -> None:
    def call(on: Graph) -> tuple[int, bool]:
        with on.transaction(idempotency_key="k") as tx:
            tx.append("Person", {"name": "cyd", "age": 3})
            n = tx.query("match { $p: Person } return { count($p) as n }").one()["n"]
        return n, tx.repeated

    assert call(g) == (3, False)
    with g.transaction() as tx:
        tx.append("Person", {"name": "dan", "age": 4})
    assert call(over(g.root)) == (3, True)
