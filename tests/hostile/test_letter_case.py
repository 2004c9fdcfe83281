"""Names that differ in capitals only are two names, in every check and on every way."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData
from omnigraph.settings import Settings

SCHEMA = """
node Person { name: String @key ab: I32? aB: I32? abC: String? @unique(ab, aB) @unique(abC) }
node PERSON { name: String @key nAme: String? @unique(nAme) }
edge Knows: Person -> PERSON { ab: I32? aB: I32? @unique(src, aB) }
edge KNOWS: Person -> Person
"""
ROWS = [
    {"name": "a", "ab": 1, "aB": 1, "abC": "x"},
    {"name": "A", "ab": 1, "aB": 2, "abC": "X"},
    {"name": "b", "ab": 2, "aB": 1, "abC": None},
]
TWICE = {"name": "c", "ab": 2, "aB": 1, "abC": "y"}


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    return omnigraph.init(tmp_path / "graph", schema=SCHEMA, settings=Settings(folding="off"))


Write = Callable[[Graph, list[dict[str, Any]], Path], object]


def append(g: Graph, given: list[dict[str, Any]], _: Path) -> None:
    with g.transaction() as tx:
        tx.append("Person", given)


def mutate(g: Graph, given: list[dict[str, Any]], _: Path) -> None:
    for row in given:
        texts = ", ".join(f"{k}: {json.dumps(v)}" for k, v in row.items())
        g.mutate(f"insert Person {{ {texts} }}")


def jsonl(g: Graph, given: list[dict[str, Any]], place: Path) -> None:
    path = place / "rows.jsonl"
    path.write_text("".join(json.dumps({"type": "Person", "data": r}) + "\n" for r in given))
    g.load(path, engine="local")


def csv(g: Graph, given: list[dict[str, Any]], place: Path) -> None:
    path = place / "Person.csv"
    names = list(given[0])
    lines = [",".join("" if r[n] is None else str(r[n]) for n in names) for r in given]
    path.write_text("\n".join([",".join(names), *lines, ""]))
    g.load(path, engine="local")


def arrow(g: Graph, given: list[dict[str, Any]], _: Path) -> None:
    g.load(pa.Table.from_pylist(given), type="Person", engine="local")


WRITES = {"append": append, "mutate": mutate, "jsonl": jsonl, "csv": csv, "arrow": arrow}


@pytest.mark.parametrize("way", WRITES)
def test_a_rule_is_about_the_properties_that_it_names(g: Graph, tmp_path: Path, way: str) -> None:
    write = WRITES[way]
    write(g, ROWS, tmp_path)
    before = g.snapshot().commit.id
    for given in ([TWICE], [TWICE | {"aB": 7}, TWICE | {"name": "d", "aB": 7}]):
        with pytest.raises(InvalidData):
            write(g, given, tmp_path)
        if way != "mutate":
            assert g.snapshot().commit.id == before
            assert g.entity("Person", "c") is None
    found = g.query(
        "match { $p: Person } return { $p.name, $p.ab, $p.aB, $p.abC } order { $p.name }"
    )
    assert [tuple(row.values()) for row in found][:3] == [
        ("A", 1, 2, "X"),
        ("a", 1, 1, "x"),
        ("b", 2, 1, None),
    ]
    assert not g.verify(deep=True).findings


def test_types_that_differ_in_capitals_are_two(g: Graph, tmp_path: Path) -> None:
    with g.transaction() as tx:
        tx.append("Person", [{"name": "a"}, {"name": "b"}])
        tx.append("PERSON", [{"name": "a", "nAme": "x"}])
        tx.append("Knows", [{"src": "a", "dst": "a", "ab": 1, "aB": 1}])
        tx.append("KNOWS", [{"src": "a", "dst": "b"}])
    assert g.snapshot().count("Person") == 2
    assert g.snapshot().count("PERSON") == 1
    assert g.entity("PERSON", "b") is None
    with pytest.raises(InvalidData):
        g.load([{"src": "a", "dst": "a", "ab": 2, "aB": 1}], type="Knows", engine="local")
    with pytest.raises(InvalidData):
        g.load([{"src": "b", "dst": "b"}], type="Knows", engine="local")  # no such PERSON
    g.load([{"src": "a", "dst": "a", "ab": 1, "aB": 2}], type="Knows", engine="local")
    g.export(to=tmp_path / "out", format="csv")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert {"Person.csv", "PERSON.csv"} <= names
    copy = omnigraph.init(tmp_path / "copy", schema=SCHEMA)
    copy.load(tmp_path / "out", engine="local")
    assert copy.snapshot().count("PERSON") == 1
    assert not copy.verify(deep=True).findings


@pytest.mark.parametrize("query_rows", [1, 1_000_000])
def test_result_columns_that_differ_in_capitals_are_two(tmp_path: Path, query_rows: int) -> None:
    """In memory and by duckdb."""
    settings = Settings(query_rows=query_rows)
    with omnigraph.init(tmp_path / "graph", schema=SCHEMA, settings=settings) as g:
        with g.transaction() as tx:
            tx.append("Person", ROWS)
        for text, expected in (
            ("return { $p.ab as x, $p.aB as xX } order { xX desc, x }", [(1, 2), (1, 1), (2, 1)]),
            (
                "return distinct { $p.ab as x, $p.aB as xX } order { xX, x }",
                [(1, 1), (2, 1), (1, 2)],
            ),
            (
                "return { $p.aB as xX, sum($p.ab) as x, count($p) as xx } order { xX }",
                [(1, 3, 2), (2, 1, 1)],
            ),
        ):
            found = g.query(f"match {{ $p: Person }} {text}")
            assert [tuple(row.values()) for row in found] == expected
