"""Schema changes as one commit each, with data before and after, seen through time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData, UnsupportedChange
from tests.contract.graphs import begin, field, ids, rows, write

BEFORE = """
node Person {
  name: String @key
  age: I32?
  mood: enum(calm, wild)?
  note: String?
}
node Thing { label: String? }
edge Knows: Person -> Person { weight: F32? }
"""


@pytest.fixture
def s(root: str) -> Any:
    with begin(root, BEFORE) as g:
        write(
            g,
            lambda tx: (
                tx.append("Person", [{"name": "A", "age": 1, "mood": "calm", "note": "x"}]),
                tx.append("Person", [{"name": "B", "note": "y"}]),
                tx.append("Knows", [{"id": "k", "src": "A", "dst": "B", "weight": 0.5}]),
                tx.append("Thing", {"id": "t", "label": "l"}),
            ),
        )
        yield g


def files(g: Graph) -> set[str]:
    """Every file of rows; empty for a remote root, where the pins say the same."""
    found = Path(g.root).glob("*/*/data/*") if "://" not in g.root else ()
    return {str(path) for path in found}


def pins(g: Graph) -> dict[str, tuple[str, str]]:
    return {p.type_id: (p.location, p.lance_version) for p in g.snapshot().graph_version.tables}


def change(g: Graph, old: str, new: str) -> Any:
    schema = g.snapshot().schema
    assert old in schema
    return g.apply_schema(schema.replace(old, new), message="change")


def test_the_same_schema_again_is_no_commit(s: Graph) -> None:
    done = s.apply_schema(BEFORE)
    assert (done.applied, done.commit) == (False, None)
    assert s.apply_schema("// a comment\n" + BEFORE).applied is False
    assert len(list(s.log())) == 2


def test_a_change_is_one_commit_of_kind_schema(s: Graph) -> None:
    done = change(s, "age: I32?", "age: I32?\n  nick: String?")
    assert done.applied
    assert (done.commit.kind, done.commit.message) == ("schema", "change")
    assert s.snapshot().commit == done.commit
    assert s.plan_schema(BEFORE).steps != ()


def test_new_types_are_there_at_once_and_not_before(s: Graph) -> None:
    change(s, "node Thing", "node City { name: String @key }\nedge In: Person -> City\nnode Thing")
    write(s, lambda tx: tx.append("City", {"name": "c"}))
    write(s, lambda tx: tx.append("In", {"src": "A", "dst": "c"}))
    assert ids(s, "City") == ["c"]
    assert s.at("main~3").types() == ["Person", "Thing", "Knows"]


def test_new_properties_are_null_or_have_their_default(s: Graph) -> None:
    before = files(s)
    change(s, "age: I32?", "age: I32?\n  nick: String?\n  tags: [String]?\n  place: Vector(2)?")
    assert files(s) == before  # null columns are metadata
    change(
        s, "note: String?", 'note: String?\n  level: I64 @default(3)\n  kind: String @default("k")'
    )
    write(s, lambda tx: tx.append("Person", {"name": "C", "nick": "cee", "place": [1, 2]}))
    write(s, lambda tx: tx.upsert("Person", {"name": "A", "level": 9}))
    assert rows(s, "Person", "age", "nick", "level", "kind", "place") == [
        {"id": "A", "age": 1, "nick": None, "level": 9, "kind": "k", "place": None},
        {"id": "B", "age": None, "nick": None, "level": 3, "kind": "k", "place": None},
        {"id": "C", "age": None, "nick": "cee", "level": 3, "kind": "k", "place": [1.0, 2.0]},
    ]
    found = s.snapshot().scan("Person", filter=field("level") == 3).read_all()
    assert sorted(found["name"].to_pylist()) == ["B", "C"]


@pytest.mark.stored
def test_renames_and_drops_touch_no_data_file(s: Graph) -> None:
    before, tables = files(s), pins(s)
    schema = (
        BEFORE.replace("node Person", 'node Human @rename_from("Person")')
        .replace("edge Knows: Person -> Person", 'edge Met: Human -> Human @rename_from("Knows")')
        .replace("age: I32?", 'years: I32? @rename_from("age")')
        .replace("  note: String?\n", "")
        .replace("node Thing { label: String? }\n", "")
    )
    s.apply_schema(schema)
    assert files(s) == before
    assert pins(s).items() <= tables.items()
    assert s.snapshot().types() == ["Human", "Met"]
    assert rows(s, "Human") == [
        {"id": "A", "name": "A", "years": 1, "mood": "calm"},
        {"id": "B", "name": "B", "years": None, "mood": None},
    ]
    assert rows(s, "Met", "weight") == [{"id": "k", "weight": 0.5}]
    # The old names are still there for who travels back.
    assert rows(s, "Person", "age", "note", ref="main~1")[0] == {"id": "A", "age": 1, "note": "x"}
    assert rows(s, "Thing", ref="main~1") == [{"id": "t", "label": "l"}]
    # And everything goes on under the new ones, lookups and filters included.
    with pytest.raises(InvalidData, match='Human "A" exists already'):
        write(s, lambda tx: tx.append("Human", {"name": "A"}))
    write(s, lambda tx: tx.update("Human", set={"years": 2}, where=field("years") == 1))
    write(s, lambda tx: tx.append("Met", {"id": "m", "src": "B", "dst": "A"}))
    write(s, lambda tx: tx.delete("Human", where=field("name") == "B"))
    assert rows(s, "Human", "years") == [{"id": "A", "years": 2}]
    assert rows(s, "Met") == []
    s.optimize()
    assert rows(s, "Human", "years") == [{"id": "A", "years": 2}]


def test_a_property_dropped_and_added_again_does_not_come_back_with_its_values(s: Graph) -> None:
    change(s, "  note: String?\n", "")
    change(s, "age: I32?", "age: I32?\n  note: String?")
    assert {row["note"] for row in rows(s, "Person", "note")} == {None}
    write(s, lambda tx: tx.upsert("Person", {"name": "A", "note": "new"}))
    found = s.snapshot().scan("Person", filter=field("note") == "new").read_all()
    assert found["name"].to_pylist() == ["A"]
    s.optimize()
    assert [row["note"] for row in rows(s, "Person", "note")] == ["new", None]
    assert [row["note"] for row in rows(s, "Person", "note", ref="main~3")] == ["x", "y"]


@pytest.mark.stored
def test_a_type_dropped_and_added_again_is_empty_and_lives_elsewhere(s: Graph) -> None:
    old = s.snapshot().graph_version.pins["node:Thing"].location
    change(s, "node Thing { label: String? }\n", "")
    s.apply_schema(BEFORE)
    new = s.snapshot().graph_version.pins["node:Thing"].location
    assert ids(s, "Thing") == []
    assert new != old
    assert new.split("-")[0] == old.split("-")[0]  # hazard 15: the same name, another place
    assert ids(s, "Thing", ref="main~2") == ["t"]


def test_names_may_be_swapped(s: Graph) -> None:
    schema = BEFORE.replace("age: I32?", "X").replace("note: String?", "Y")
    schema = schema.replace("X", 'note: I32? @rename_from("age")')
    schema = schema.replace("Y", 'age: String? @rename_from("note")')
    s.apply_schema(schema)
    assert rows(s, "Person", "age", "note")[0] == {"id": "A", "age": "x", "note": 1}
    found = s.snapshot().scan("Person", filter=field("age") == "x").read_all()
    assert found["note"].to_pylist() == [1]


def test_numbers_are_widened_with_their_values(s: Graph) -> None:
    change(s, "age: I32?", "age: I64?")
    change(s, "weight: F32?", "weight: F64?")
    write(s, lambda tx: tx.upsert("Person", {"name": "B", "age": 2**40}))
    assert [row["age"] for row in rows(s, "Person", "age")] == [1, 2**40]
    assert rows(s, "Knows", "weight") == [{"id": "k", "weight": 0.5}]
    with pytest.raises(UnsupportedChange):
        change(s, "age: I64?", "age: I32?")
    assert rows(s, "Person", "age", ref="main~3") == [
        {"id": "A", "age": 1},
        {"id": "B", "age": None},
    ]


VALIDATED: dict[str, tuple[str, str, Any]] = {
    # what: old text, new text, a statement that makes the data fit
    "required": (
        "age: I32?",
        "age: I32",
        lambda tx: tx.update("Person", set={"age": 6}, where=None),
    ),
    "narrower enum": (
        "enum(calm, wild)",
        "enum(wild)",
        lambda tx: tx.update("Person", set={"mood": "wild"}, where=None),
    ),
    "range": (
        "note: String?",
        "note: String?\n  @range(age, 5..9)",
        lambda tx: tx.update("Person", set={"age": 7}, where=field("age") == 1),
    ),
    "pattern": (
        "note: String?",
        'note: String?\n  @check(note, "^z")',
        lambda tx: tx.update("Person", set={"note": "zz"}, where=None),
    ),
    "unique": (
        "mood: enum(calm, wild)?",
        "mood: enum(calm, wild)? @unique",
        lambda tx: tx.update("Person", set={"mood": "wild"}, where=field("name") == "B"),
    ),
    "card": (
        "Person -> Person",
        "Person -> Person @card(2..3)",
        lambda tx: tx.append("Knows", {"src": "A", "dst": "A"}),
    ),
}


@pytest.mark.parametrize("case", VALIDATED)
def test_a_rule_is_added_only_when_the_data_keep_it(case: str, tmp_path: Path) -> None:
    old, new, fit = VALIDATED[case]
    schema = BEFORE.replace(old, new)
    given = [
        {"name": "A", "age": 1, "mood": "calm", "note": "x"},
        {"name": "B", "mood": "calm", "note": "y"},
    ]
    with begin(str(tmp_path / "g"), BEFORE) as g:
        write(g, lambda tx: tx.append("Person", given))
        write(g, lambda tx: tx.append("Knows", {"src": "A", "dst": "B"}))
        with pytest.raises(InvalidData) as error:
            g.apply_schema(schema)
        assert error.value.violations
        assert len(list(g.log())) == 3
        assert g.snapshot().schema == BEFORE
        write(g, fit)
        assert g.apply_schema(schema).applied
        with pytest.raises(InvalidData):
            write(g, lambda tx: _break(tx, case))


def _break(tx: Any, case: str) -> None:
    if case == "card":
        tx.delete("Knows", where=field("dst") == "A")
    else:
        tx.append("Person", _breaking(case))


def _breaking(case: str) -> dict[str, Any]:
    row: dict[str, Any] = {"name": "N", "age": 6, "note": "z"}
    match case:
        case "required":
            row.pop("age")
        case "narrower enum":
            row["mood"] = "calm"
        case "range":
            row["age"] = 1
        case "pattern":
            row["note"] = "x"
        case "unique":
            row["mood"] = "wild"
    return row


def test_more_values_of_an_enum_and_fewer_rules_are_free(s: Graph) -> None:
    before = files(s)
    change(s, "enum(calm, wild)", "enum(calm, wild, sad)")
    write(s, lambda tx: tx.upsert("Person", {"name": "A", "mood": "sad"}))
    assert rows(s, "Person", "mood")[0]["mood"] == "sad"
    assert before < files(s) or s.root.startswith(("s3", "http"))


def test_a_schema_change_and_writers_do_not_lose_each_other(s: Graph, root: str) -> None:
    other = omnigraph.open(root)
    tx = other.transaction()
    tx.append("Person", {"name": "C"})
    change(s, "age: I32?", "age: I32?\n  nick: String?")
    tx.publish()
    write(other, lambda tx: tx.upsert("Person", {"name": "C", "nick": "c"}))
    assert [row["nick"] for row in rows(s, "Person", "nick")] == [None, None, "c"]
