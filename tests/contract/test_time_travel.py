"""Old commits answer as they did: with their rows, and with the schema that was theirs."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import BranchNotFound, InvalidArgument, RefNotFound, TypeNotFound
from omnigraph.settings import Settings

FIRST = "node Person { name: String @key age: I32? }\nedge Knows: Person -> Person\n"
SECOND = """
node Human @rename_from("Person") {
  name: String @key
  years: I64? @rename_from("age")
  city: String? @default("rome")
}
edge Knows: Human -> Human
"""
THIRD = 'node Human { name: String @key city: String? @default("rome") }\n'


def rows(g: Graph, kind: str, ref: str) -> list[dict[str, Any]]:
    found = g.at(ref).scan(kind).read_all().to_pylist()
    return [{n: v for n, v in row.items() if n != "id"} for row in found]


@pytest.fixture
def lived(root: str) -> tuple[Graph, dict[str, str]]:
    """A graph whose schema changed twice, and its commits by what they did."""
    g = omnigraph.init(root, schema=FIRST, settings=Settings(durability="relaxed"))
    commits = {"init": g.snapshot().commit.id}
    with g.transaction() as tx:
        tx.append("Person", [{"name": "ann", "age": 1}, {"name": "bob", "age": 2}])
        tx.append("Knows", {"id": "k", "from": "ann", "to": "bob"})
    commits["rows"] = g.snapshot().commit.id
    g.apply_schema(SECOND)
    commits["renamed"] = g.snapshot().commit.id
    with g.transaction() as tx:
        tx.upsert("Human", {"name": "ann", "years": 2**40})
        tx.delete("Human", where=pc.field("name") == "bob")
    commits["changed"] = g.snapshot().commit.id
    g.apply_schema(THIRD)
    commits["dropped"] = g.snapshot().commit.id
    return g, commits


def test_an_old_commit_is_read_with_the_schema_of_that_commit(
    root: str, lived: tuple[Graph, dict[str, str]]
) -> None:
    _, commits = lived
    with omnigraph.open(root, mode="r") as g:  # also by a handle that has seen nothing
        assert rows(g, "Person", commits["init"]) == []
        assert rows(g, "Person", commits["rows"]) == [
            {"name": "ann", "age": 1},
            {"name": "bob", "age": 2},
        ]
        assert rows(g, "Human", commits["renamed"]) == [
            {"name": "ann", "years": 1, "city": "rome"},
            {"name": "bob", "years": 2, "city": "rome"},
        ]
        assert rows(g, "Human", commits["changed"]) == [
            {"name": "ann", "years": 2**40, "city": "rome"}
        ]
        assert rows(g, "Human", "main") == [{"name": "ann", "city": "rome"}]
        assert [len(rows(g, "Knows", commits[at])) for at in ("rows", "renamed", "changed")] == [
            1,
            1,
            0,
        ]
        assert g.at(commits["rows"]).types() == ["Person", "Knows"]
        assert g.at(commits["rows"]).schema == FIRST
        assert g.at("main").types() == ["Human"]
        with pytest.raises(TypeNotFound, match="Person"):
            g.at("main").scan("Person")
        with pytest.raises(TypeNotFound, match="Human"):
            g.at(commits["rows"]).scan("Human")


def test_one_entity_is_followed_through_renames(lived: tuple[Graph, dict[str, str]]) -> None:
    g, commits = lived
    then = g.at(commits["rows"]).entity("Person", "ann")
    assert then is not None
    assert then["age"] == 1
    now = g.entity("Human", "ann")
    assert now is not None
    assert (now["name"], now["city"]) == ("ann", "rome")
    assert g.entity("Human", "bob") is None
    moments = g.history("Human", "bob")
    assert [(m.commit.id, m.change.op) for m in moments] == [
        (commits["changed"], "delete"),
        (commits["rows"], "insert"),
    ]


def test_a_diff_between_schemas_tells_rows_and_steps_apart(
    lived: tuple[Graph, dict[str, str]],
) -> None:
    g, commits = lived
    renamed = g.at(commits["renamed"]).diff(commits["rows"])
    assert list(renamed) == []
    assert renamed.schema.steps
    changed = {(str(c.op), c.type, c.id): c for c in g.at(commits["changed"]).diff(commits["rows"])}
    assert set(changed) == {
        ("update", "Human", "ann"),
        ("delete", "Human", "bob"),
        ("delete", "Knows", "k"),
    }
    assert changed["update", "Human", "ann"].changed == ("years",)


@pytest.mark.parametrize("back", ["rows", "renamed", "changed"])
def test_restoring_brings_rows_and_schema_back(
    lived: tuple[Graph, dict[str, str]], back: str
) -> None:
    g, commits = lived
    kept = {kind: rows(g, kind, commits[back]) for kind in g.at(commits[back]).types()}
    commit = g.restore(commits[back])
    assert (commit.kind, commit.parents) == ("restore", (commits["dropped"],))
    assert {kind: rows(g, kind, "main") for kind in g.snapshot().types()} == kept
    assert list(g.diff(commits[back])) == []
    assert rows(g, "Human", commits["dropped"]) == [{"name": "ann", "city": "rome"}]


def test_every_form_of_a_ref_names_a_commit(lived: tuple[Graph, dict[str, str]]) -> None:
    g, commits = lived
    at = g.at(commits["rows"]).commit.created_at
    seconds, micros = divmod(at, 1_000_000)
    moment = dt.datetime.fromtimestamp(seconds, dt.UTC).replace(microsecond=micros).isoformat()
    g.create_tag("then", commits["rows"])
    for ref in (commits["rows"], f"main@{commits['rows']}", "main~3", f"main*{moment}", "then"):
        assert g.at(ref).commit.id == commits["rows"], ref
    for ref, error in (
        ("main~99", RefNotFound),
        (f"main@{'0' * 26}", RefNotFound),
        ("main*1999-01-01", RefNotFound),
        ("", InvalidArgument),
        ("main~x", BranchNotFound),  # a name like any other
    ):
        with pytest.raises(error):
            g.at(ref)
