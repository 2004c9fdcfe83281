"""Rules between rows: keys, uniqueness, endpoints, cascade, cardinality, orphans."""

from __future__ import annotations

import pytest

from omnigraph import Graph
from omnigraph.errors import InvalidData
from tests.contract.graphs import field, ids, people, rows, write


def notes(g: Graph, *names: str) -> None:
    write(g, lambda tx: tx.append("Note", [{"id": name} for name in names]))


def items(g: Graph, *numbers: int) -> None:
    write(g, lambda tx: tx.append("Item", [{"region": "r", "number": n} for n in numbers]))


def item(number: int) -> str:
    return f'["r","{number}"]'


def refused(error: pytest.ExceptionInfo[InvalidData]) -> list[tuple[str, str, str | None]]:
    return [(v.type, v.rule, v.id) for v in error.value.violations]


def test_deleting_a_node_takes_its_edges_along(g: Graph) -> None:
    people(g, "A", "B", "C")
    notes(g, "n")
    pairs = [("A", "B"), ("B", "A"), ("B", "C"), ("C", "C"), ("A", "A")]
    write(g, lambda tx: tx.append("Knows", [{"src": s, "dst": d} for s, d in pairs]))
    write(g, lambda tx: tx.append("Wrote", {"src": "A", "dst": "n"}))
    with g.transaction() as tx:
        tx.append("Knows", {"src": "C", "dst": "A"})
        tx.delete("Person", where=field("name") == "A")
        assert tx.count("Knows") == 2
    assert ids(g, "Knows") == ['["B","C"]', '["C","C"]']
    assert ids(g, "Wrote") == []
    assert ids(g, "Note") == ["n"]


def test_an_edge_needs_both_its_ends(g: Graph) -> None:
    people(g, "A")
    with pytest.raises(InvalidData, match="there is no Person with that id") as error:
        write(
            g, lambda tx: tx.append("Knows", [{"src": "A", "dst": "X"}, {"src": "Y", "dst": "A"}])
        )
    assert refused(error) == [
        ("Knows", "endpoint", '["Y","A"]'),
        ("Knows", "endpoint", '["A","X"]'),
    ]
    assert {(v.property, v.value) for v in error.value.violations} == {
        ("to", '"X"'),
        ("from", '"Y"'),
    }
    tx = g.transaction()
    tx.delete("Person", where=None)
    tx.append("Knows", {"src": "A", "dst": "A"})
    with pytest.raises(InvalidData, match="no Person"):
        tx.publish()
    assert len(list(g.log())) == 2


def test_a_keyed_edge_given_twice_is_an_upsert(g: Graph) -> None:
    people(g, "A", "B")
    write(g, lambda tx: tx.append("Knows", {"src": "A", "dst": "B"}))
    write(g, lambda tx: tx.upsert("Knows", {"src": "A", "dst": "B", "since": "2020-01-01"}))
    assert len(rows(g, "Knows")) == 1
    assert str(rows(g, "Knows", "since")[0]["since"]) == "2020-01-01"


def test_an_edge_keeps_its_ends(g: Graph) -> None:
    people(g, "A", "B")
    notes(g, "n", "m")
    write(g, lambda tx: tx.append("Wrote", {"id": "w", "src": "A", "dst": "n"}))
    with pytest.raises(InvalidData, match='cannot become "m"'):
        write(g, lambda tx: tx.upsert("Wrote", {"id": "w", "src": "A", "dst": "m"}))
    write(g, lambda tx: tx.upsert("Wrote", {"id": "w", "src": "A", "dst": "n"}))
    assert rows(g, "Wrote") == [{"id": "w", "src": "A", "dst": "n"}]


def test_a_source_has_at_most_the_edges_that_card_allows(g: Graph) -> None:
    people(g, "A", "B")
    notes(g, "1", "2", "3")
    two = [{"src": "A", "dst": "1"}, {"src": "A", "dst": "2"}]
    write(g, lambda tx: tx.append("Wrote", two))
    with pytest.raises(
        InvalidData, match='3 Wrote edges from Person "A" are too many; @card allows at most 2'
    ):
        write(g, lambda tx: tx.append("Wrote", {"src": "A", "dst": "3"}))
    with g.transaction() as tx:
        tx.delete("Wrote", where=field("dst") == "1")
        tx.append("Wrote", {"src": "A", "dst": "3"})
    assert [row["dst"] for row in rows(g, "Wrote")] == ["2", "3"]
    write(g, lambda tx: tx.append("Wrote", {"src": "B", "dst": "3"}))


def test_a_source_whose_edges_change_keeps_the_least_that_card_asks_for(g: Graph) -> None:
    people(g, "A", "B")  # no edges yet: the minimum holds only for sources that a write changes
    items(g, 1, 2)
    write(g, lambda tx: tx.append("Owns", {"src": "A", "dst": item(1)}))
    with pytest.raises(
        InvalidData, match='0 Owns edges from Person "A" are too few; @card allows at least 1'
    ):
        write(g, lambda tx: tx.delete("Owns", where=None))
    with pytest.raises(InvalidData, match="at least 1") as error:
        write(g, lambda tx: tx.delete("Item", where=field("number") == 1))
    assert refused(error) == [("Owns", "card", "A")]
    with g.transaction() as tx:
        tx.delete("Owns", where=None)
        tx.append("Owns", {"src": "A", "dst": item(2)})
    write(g, lambda tx: tx.delete("Person", where=field("name") == "A"))  # takes its edges along
    assert ids(g, "Owns") == []
    assert ids(g, "Person") == ["B"]


def test_overwriting_edges_counts_old_sources_too(g: Graph) -> None:
    people(g, "A", "B")
    items(g, 1)
    write(g, lambda tx: tx.append("Owns", {"src": "A", "dst": item(1)}))
    with pytest.raises(InvalidData, match='0 Owns edges from Person "A"'):
        write(g, lambda tx: tx.overwrite("Owns", {"src": "B", "dst": item(1)}))


def test_a_unique_value_is_there_once(g: Graph) -> None:
    write(g, lambda tx: tx.append("Person", {"name": "A", "email": "x"}))
    for change in (
        lambda tx: tx.append("Person", {"name": "B", "email": "x"}),
        lambda tx: tx.upsert("Person", {"name": "B", "email": "x"}),
        lambda tx: tx.append("Person", [{"name": "B", "email": "y"}, {"name": "C", "email": "y"}]),
    ):
        with pytest.raises(InvalidData, match="@unique") as error:
            write(g, change)
        assert error.value.violations[0].rule == "unique"
        assert error.value.violations[0].property == "email"
    write(g, lambda tx: tx.upsert("Person", {"name": "A", "email": "x", "age": 1}))
    write(g, lambda tx: tx.append("Person", [{"name": "D"}, {"name": "E"}]))  # null equals nothing
    assert ids(g, "Person") == ["A", "D", "E"]


def test_update_cannot_give_one_unique_value_to_many(g: Graph) -> None:
    people(g, "A", "B")
    with pytest.raises(InvalidData, match="@unique"):
        write(g, lambda tx: tx.update("Person", set={"email": "same"}, where=None))
    write(g, lambda tx: tx.update("Person", set={"email": "one"}, where=field("name") == "A"))


def test_unique_values_may_be_swapped_in_one_block(g: Graph) -> None:
    two = [{"name": "A", "email": "a"}, {"name": "B", "email": "b"}]
    write(g, lambda tx: tx.append("Person", two))
    with g.transaction() as tx:
        tx.update("Person", set={"email": "b"}, where=field("name") == "A")
        tx.update("Person", set={"email": "a"}, where=field("name") == "B")
    assert [row["email"] for row in rows(g, "Person", "email")] == ["b", "a"]
    with g.transaction() as tx:
        tx.delete("Person", where=field("name") == "A")
        tx.append("Person", {"name": "C", "email": "b"})
    assert ids(g, "Person") == ["B", "C"]


def test_a_composite_unique_compares_all_its_parts_and_no_nulls(g: Graph) -> None:
    given = [
        {"region": "r", "number": 1, "code": "c"},
        {"region": "s", "number": 1, "code": "c"},
        {"region": "r", "number": 2},
        {"region": "r", "number": 3},
    ]
    write(g, lambda tx: tx.append("Item", given))
    with pytest.raises(InvalidData, match=r"region, code") as error:
        write(g, lambda tx: tx.append("Item", {"region": "r", "number": 9, "code": "c"}))
    assert error.value.violations[0].id == '["r","9"]'


def test_a_key_made_of_parts_does_not_confuse_them(g: Graph) -> None:
    write(
        g,
        lambda tx: tx.append(
            "Item", [{"region": 'a","1', "number": 1}, {"region": "a", "number": 1}]
        ),
    )
    write(g, lambda tx: tx.upsert("Item", {"region": "a", "number": 1, "price": 2}))
    assert sorted(row["price"] or 0 for row in rows(g, "Item", "price")) == [0, 2]


def test_overwriting_nodes_refuses_to_leave_an_edge_without_its_end(g: Graph) -> None:
    people(g, "A", "B", "C")
    pairs = [("A", "B"), ("B", "C")]
    write(g, lambda tx: tx.append("Knows", [{"src": s, "dst": d} for s, d in pairs]))
    with pytest.raises(InvalidData, match="would be gone, but Knows") as error:
        write(g, lambda tx: tx.overwrite("Person", [{"name": "A"}, {"name": "B"}]))
    assert refused(error) == [("Person", "orphan", "C")]
    with g.transaction() as tx:
        tx.delete("Knows", where=field("dst") == "C")
        tx.overwrite("Person", [{"name": "A", "age": 1}, {"name": "B"}])
    assert rows(g, "Person", "age") == [{"id": "A", "age": 1}, {"id": "B", "age": None}]
    assert ids(g, "Knows") == ['["A","B"]']


def test_ids_of_any_letters_are_told_apart(g: Graph) -> None:
    names = [
        "Ä",
        "a\u0308",
        "o'brien",
        '"',
        "; drop table",
        "日本",
        "🙂",
        "a b",
        "%2F",
        "../x",
        " ",
    ]
    people(g, *names)
    write(g, lambda tx: tx.append("Knows", [{"src": n, "dst": n} for n in names]))
    assert ids(g, "Person") == sorted(names)
    for name in names:
        found = g.snapshot().scan("Person", filter=field("name") == name).read_all()
        assert found["name"].to_pylist() == [name]
        with pytest.raises(InvalidData, match="exists already"):
            people(g, name)
    for name in names:
        write(g, lambda tx, name=name: tx.delete("Person", where=field("name") == name))  # type: ignore[misc]
    assert ids(g, "Knows") == []
