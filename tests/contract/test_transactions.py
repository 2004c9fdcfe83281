"""Every statement, alone and mixed with others in one block that sees itself."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from omnigraph import Graph
from omnigraph.errors import InvalidArgument, InvalidData, TypeNotFound
from tests.contract.graphs import field, ids, people, rows, write


def test_append_adds_and_refuses_what_is_there(g: Graph) -> None:
    with g.transaction() as tx:
        assert tx.append("Person", [{"name": "A"}, {"name": "B", "age": 3}]) == 2
    with pytest.raises(InvalidData, match='Person "B" exists already'), g.transaction() as tx:
        tx.append("Person", [{"name": "C"}, {"name": "B"}])
    assert rows(g, "Person", "age") == [{"id": "A", "age": None}, {"id": "B", "age": 3}]


def test_entities_without_a_key_get_ids_that_grow(g: Graph) -> None:
    write(g, lambda tx: tx.append("Note", [{"text": str(n)} for n in range(5)]))
    found = rows(g, "Note", "text")
    assert [row["text"] for row in found] == list("01234")
    assert len({row["id"] for row in found}) == 5


def test_a_keyless_entity_may_be_given_its_id(g: Graph) -> None:
    write(g, lambda tx: tx.append("Note", {"id": "mine", "text": "x"}))
    assert ids(g, "Note") == ["mine"]
    with pytest.raises(InvalidData, match='"mine" exists already'):
        write(g, lambda tx: tx.append("Note", {"id": "mine"}))


def test_upsert_changes_what_is_there_and_keeps_what_is_not_given(g: Graph) -> None:
    write(g, lambda tx: tx.append("Person", {"name": "A", "age": 1, "email": "a@x"}))
    with g.transaction() as tx:
        assert tx.upsert("Person", [{"name": "A", "age": 2}, {"name": "B", "email": "b@x"}]) == 2
    assert rows(g, "Person", "age", "email") == [
        {"id": "A", "age": 2, "email": "a@x"},
        {"id": "B", "age": None, "email": "b@x"},
    ]
    assert tx.commit is not None
    counted = tx.commit.statistics["node:Person"]
    assert (counted.inserted, counted.updated, counted.deleted) == (1, 1, 0)


def test_upsert_of_rows_that_give_different_properties_keeps_each(g: Graph) -> None:
    people(g, "A", "B", age=1, mood="calm")
    change = [{"name": "B", "mood": "wild"}, {"name": "A", "age": 5}, {"name": "C"}]
    write(g, lambda tx: tx.upsert("Person", change))
    assert rows(g, "Person", "age", "mood") == [
        {"id": "A", "age": 5, "mood": "calm"},
        {"id": "B", "age": 1, "mood": "wild"},
        {"id": "C", "age": None, "mood": None},
    ]


def test_update_sets_values_and_expressions_where_a_condition_holds(g: Graph) -> None:
    people(g, "A", "B", age=1)
    people(g, "C", age=9)
    with g.transaction() as tx:
        change = {"age": field("age") + 1, "mood": "wild"}
        assert tx.update("Person", set=change, where=field("age") < 5) == 2
        assert tx.update("Person", set={"age": 0}, where=field("name") == "nobody") == 0
    assert rows(g, "Person", "age", "mood") == [
        {"id": "A", "age": 2, "mood": "wild"},
        {"id": "B", "age": 2, "mood": "wild"},
        {"id": "C", "age": 9, "mood": None},
    ]
    write(g, lambda tx: tx.update("Person", set={"mood": None}, where=None))
    assert {row["mood"] for row in rows(g, "Person", "mood")} == {None}


def test_delete_removes_where_a_condition_holds(g: Graph) -> None:
    people(g, "A", "B", age=1)
    people(g, "C", age=2)
    with g.transaction() as tx:
        assert tx.delete("Person", where=field("age") == 1) == 2
        assert tx.delete("Person", where=field("age") == 1) == 0
    assert ids(g, "Person") == ["C"]
    write(g, lambda tx: tx.delete("Person", where=None))
    assert ids(g, "Person") == []
    assert g.snapshot().count("Person") == 0


def test_overwrite_replaces_every_entity(g: Graph) -> None:
    people(g, "A", "B")
    with g.transaction() as tx:
        assert tx.overwrite("Person", [{"name": "B", "age": 2}, {"name": "C"}]) == 2
    assert rows(g, "Person", "age") == [{"id": "B", "age": 2}, {"id": "C", "age": None}]
    assert tx.commit is not None
    counted = tx.commit.statistics["node:Person"]
    assert (counted.inserted, counted.deleted) == (2, 2)
    write(g, lambda tx: tx.overwrite("Person", []))
    assert ids(g, "Person") == []
    people(g, "A")
    assert ids(g, "Person") == ["A"]


def test_insert_update_and_delete_of_one_entity_in_one_block_see_each_other(g: Graph) -> None:
    with g.transaction() as tx:
        tx.append("Person", {"name": "A", "age": 1})
        assert tx.update("Person", set={"age": field("age") + 1}, where=field("age") == 1) == 1
        assert tx.scan("Person", columns=["name", "age"]).to_pylist() == [{"name": "A", "age": 2}]
        tx.upsert("Person", {"name": "A", "mood": "calm"})
        assert tx.scan("Person", columns=["age", "mood"]).to_pylist() == [
            {"age": 2, "mood": "calm"}
        ]
        assert tx.count("Person") == 1
        assert tx.delete("Person", where=field("mood") == "calm") == 1
        assert tx.count("Person") == 0
    assert tx.commit is None
    assert len(list(g.log())) == 1


@pytest.mark.stored
def test_delete_then_insert_again_in_one_block_is_a_new_entity(g: Graph) -> None:
    write(g, lambda tx: tx.append("Person", {"name": "A", "age": 1, "email": "a@x"}))
    with g.transaction() as tx:
        tx.delete("Person", where=field("name") == "A")
        tx.append("Person", {"name": "A", "age": 2})
        with pytest.raises(InvalidData, match="exists already"):
            tx.append("Person", {"name": "A"})
    assert rows(g, "Person", "age", "email") == [{"id": "A", "age": 2, "email": None}]
    with g.transaction() as tx:
        tx.delete("Person", where=None)
        tx.upsert("Person", {"name": "A"})
    assert rows(g, "Person", "age") == [{"id": "A", "age": None}]


def test_a_pending_row_can_be_upserted_updated_and_hidden_again(g: Graph) -> None:
    people(g, "A", age=1)
    with g.transaction() as tx:
        tx.upsert("Person", [{"name": "A", "age": 2}, {"name": "B", "age": 2}])
        tx.upsert("Person", [{"name": "B", "mood": "wild"}, {"name": "A", "mood": "calm"}])
        tx.update("Person", set={"age": 3}, where=field("mood") == "wild")
        tx.delete("Person", where=field("name") == "A")
        tx.append("Person", {"name": "C", "age": 9})
        assert sorted(tx.scan("Person")["name"].to_pylist()) == ["B", "C"]
    assert rows(g, "Person", "age", "mood") == [
        {"id": "B", "age": 3, "mood": "wild"},
        {"id": "C", "age": 9, "mood": None},
    ]


def test_overwrite_in_a_block_hides_everything_before_it(g: Graph) -> None:
    people(g, "A", "B")
    with g.transaction() as tx:
        tx.append("Person", {"name": "C"})
        tx.overwrite("Person", {"name": "D", "age": 1})
        tx.upsert("Person", [{"name": "D", "mood": "calm"}, {"name": "A"}])
        assert tx.delete("Person", where=field("name") == "B") == 0
        assert sorted(tx.scan("Person")["name"].to_pylist()) == ["A", "D"]
    assert rows(g, "Person", "age", "mood") == [
        {"id": "A", "age": None, "mood": None},
        {"id": "D", "age": 1, "mood": "calm"},
    ]


def test_nodes_and_their_edges_can_be_inserted_in_one_block_in_any_order(g: Graph) -> None:
    with g.transaction() as tx:
        tx.append("Knows", {"src": "A", "dst": "B", "since": date(2020, 2, 29)})
        tx.append("Person", [{"name": "A"}, {"name": "B"}])
    assert rows(g, "Knows", "since") == [{"id": '["A","B"]', "since": date(2020, 2, 29)}]


@pytest.mark.stored
def test_a_statement_that_fails_leaves_the_block_as_it_was(g: Graph) -> None:
    with g.transaction() as tx:
        tx.append("Person", {"name": "A"})
        with pytest.raises(InvalidData):
            tx.append("Person", [{"name": "B"}, {"name": "A"}])
        with pytest.raises(InvalidArgument):
            tx.update("Person", set={"name": "B"}, where=None)
        with pytest.raises(TypeNotFound):
            tx.append("Persn", {"name": "C"})
        assert tx.scan("Person")["name"].to_pylist() == ["A"]
    assert ids(g, "Person") == ["A"]


def test_an_exception_in_the_block_leaves_nothing(g: Graph) -> None:
    tx = g.transaction()
    with pytest.raises(ZeroDivisionError), tx:
        tx.append("Person", {"name": "A", "age": 1 // (tx.append("Person", {"name": "B"}) - 1)})
    assert len(list(g.log())) == 1
    with pytest.raises(InvalidArgument, match="abandoned"):
        tx.append("Person", {"name": "B"})


def test_an_empty_block_makes_no_commit(g: Graph) -> None:
    with g.transaction() as tx:
        assert tx.append("Person", []) == 0
        assert tx.upsert("Person", []) == 0
        assert tx.delete("Person", where=None) == 0
    assert tx.commit is None
    assert tx.commit_id is None
    assert len(list(g.log())) == 1


def test_a_block_is_over_when_it_is_over(g: Graph) -> None:
    with g.transaction() as tx:
        tx.append("Person", {"name": "A"})
    for attempt in (
        lambda: tx.append("Person", {"name": "B"}),
        lambda: tx.scan("Person"),
        lambda: tx.count("Person"),
        lambda: tx.delete("Person", where=None),
        lambda: tx.update("Person", set={"age": 1}, where=None),
        tx.publish,
    ):
        with pytest.raises(InvalidArgument, match="published"):
            attempt()


GIVEN = [{"name": "A", "age": 1}, {"name": "B", "age": None}]
FORMS: dict[str, Any] = {
    "list of dicts": lambda: GIVEN,
    "generator": lambda: (row for row in GIVEN),
    "table": lambda: pa.Table.from_pylist(GIVEN),
    "batch": lambda: pa.RecordBatch.from_pylist(GIVEN),
    "reader": lambda: pa.Table.from_pylist(GIVEN).to_reader(),
    "pandas": lambda: pd.DataFrame({"name": ["A", "B"], "age": [1, np.nan]}),
    "polars": lambda: pl.DataFrame(GIVEN),
}


@pytest.mark.parametrize("form", FORMS)
def test_rows_come_in_any_form(form: str, tmp_path: Any) -> None:
    from tests.contract.graphs import begin

    with begin(str(tmp_path / "g")) as g:
        for statement in ("append", "upsert", "overwrite"):
            write(g, lambda tx, s=statement: getattr(tx, s)("Person", FORMS[form]()))  # type: ignore[misc]
            assert rows(g, "Person", "age") == [{"id": "A", "age": 1}, {"id": "B", "age": None}]


def test_a_filter_with_a_thousand_values_finds_them(g: Graph) -> None:
    given = [{"region": "r", "number": n, "code": f"c'{n}"} for n in range(1500)]
    write(g, lambda tx: tx.append("Item", given))
    wanted = pc.field("code").isin([f"c'{n}" for n in range(0, 3000, 2)])
    with g.transaction() as tx:
        assert tx.delete("Item", where=wanted) == 750
    assert g.snapshot().count("Item") == 750


def test_what_an_update_cannot_set_is_told_once(g: Graph) -> None:
    write(g, lambda tx: tx.append("Person", {"name": "A"}))
    with pytest.raises(InvalidData) as error, g.transaction() as tx:
        tx.update("Person", set={"age": "x"}, where=None)
    assert error.value.message.count("'x'") + error.value.message.count('"x"') == 1
    assert ", but it is " in error.value.message
