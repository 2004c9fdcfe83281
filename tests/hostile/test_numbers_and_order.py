"""Texts and numbers at the edges: an answer or a diagnostic, never a trace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph.errors import Invalid, InvalidData, InvalidSchema
from tests.cli.world import Program

SCHEMA = "node P { name: String @key age: F64? n: I64? }\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "graph"
    with omnigraph.init(place, schema=SCHEMA) as g, g.transaction() as tx:
        tx.append(
            "P", [{"name": n, "age": a, "n": 1} for n, a in (("b", 1.0), ("A", 3.0), ("C", 2.0))]
        )
    return place


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        ("-x", ["A", "C", "b"]),
        ("lower(name)", ["A", "b", "C"]),
        ("-x + 1.0 desc", ["b", "C", "A"]),
        ("$p.n, -x", ["A", "C", "b"]),
    ],
)
def test_an_order_is_computed_from_result_columns(
    root: Path, order: str, expected: list[str]
) -> None:
    text = f"match {{ $p: P }} return {{ $p.name as name, $p.age as x }} order {{ {order} }}"
    with omnigraph.open(root, mode="r") as g:
        assert [row["name"] for row in g.query(text)] == expected


@pytest.mark.parametrize("kernel", ["adjacency", "indexed"])
@pytest.mark.parametrize(
    ("clauses", "expected"),
    [
        ("$p knows $p", {"a"}),
        ("$p knows{1,2} $p", {"a"}),
        ("$p knows{0,1} $p", {"a", "b"}),
        ("$p <knows> $p", {"a"}),
        ("$p knows $p not { $p owns $p }", {"a"}),
        ("$p knows $p $p owns $p", set()),
        ("$p: P $p * $p", {"a"}),
        ("$p $e: knows $p", {"a"}),
    ],
)
def test_an_edge_from_a_variable_to_itself_is_a_loop(
    tmp_path: Path, clauses: str, expected: set[str], kernel: Any
) -> None:
    schema = "node P { name: String @key }\nedge Knows: P -> P\nedge Owns: P -> P\n"
    with omnigraph.init(tmp_path / "loops", schema=schema) as g:
        with g.transaction() as tx:
            tx.append("P", [{"name": "a"}, {"name": "b"}])
            tx.append("Knows", [{"src": "a", "dst": "a"}, {"src": "a", "dst": "b"}])
        text = f"match {{ {clauses} }} return {{ $p.name as n }}"
        assert {row["n"] for row in g.query(text, kernel=kernel)} == expected


@pytest.mark.parametrize("extra", ["return distinct { $p.age as x }", "return { count($p) as x }"])
def test_over_groups_it_is_a_diagnostic(root: Path, extra: str) -> None:
    with omnigraph.open(root, mode="r") as g, pytest.raises(Invalid):
        g.query(f"match {{ $p: P }} {extra} order {{ -x }}").to_pylist()


@pytest.mark.parametrize("number", ["--9223372036854775808", "-(-9223372036854775808)", "1.0e999"])
def test_a_number_that_has_no_place_is_told(root: Path, number: str) -> None:
    with omnigraph.open(root, mode="r") as g, pytest.raises(Invalid):
        g.query(f"match {{ $p: P }} return {{ {number} as n }}").to_pylist()


def test_a_schema_with_a_number_that_is_too_large_is_told(tmp_path: Path) -> None:
    for text in (
        "node A @foo(1.0e999) { name: String @key }",
        "node A @foo(x: 1.0e999) { n: I32 }",
    ):
        with pytest.raises(InvalidSchema):
            omnigraph.init(tmp_path / "x", schema=text + "\n")


def test_a_number_that_is_too_large_is_refused_wherever_it_is_read(
    root: Path, tmp_path: Path
) -> None:
    csv = tmp_path / "P.csv"
    with omnigraph.open(root) as g:
        for number in ("1e400", "-1e400", "1" * 400):
            csv.write_text(f"name,age\nx,{number}\ny,1.5\n")
            with pytest.raises(InvalidData):
                g.load(csv)
        csv.write_text("name,age\nx,Infinity\ny,-Infinity\nz,NaN\n")
        g.load(csv)
    asked = "query q($a: F64) { match { $p: P { age: $a } } return { $p.name as n } }"
    for given in (("--params", '{"a": 1e400}'), ("--param", "a=1e400"), ("--param", "a=-1e400")):
        ran = Program()(["query", "-e", asked, *given, "--root", str(root)])
        assert ran.code in (2, 6), ran.out
        assert "bug" not in ran.err


SPELLINGS = ("NaN", "Infinity", "-Infinity")
OTHERS = ("nan", "NAN", "-NaN", "inf", "-inf", "INF", "+Infinity", "infinity", "1e400", "-1e400")
ASKED = "query q($a: F64) { match { $p: P } return { $a as x } limit 1 }"


def taken(root: Path, place: Path, text: str) -> dict[str, bool]:
    """Who takes this spelling of a number."""
    found = {}
    with omnigraph.open(root) as g:
        for way, name, content in (
            ("csv", "P.csv", f"name,age\nx,{text}\n"),
            ("jsonl", "P.jsonl", f'{{"type": "P", "data": {{"name": "x", "age": {text}}}}}\n'),
            ("quoted", "P.jsonl", f'{{"type": "P", "data": {{"name": "x", "age": "{text}"}}}}\n'),
        ):
            (place / name).write_text(content)
            try:
                g.load(place / name, mode="merge", engine="local")
            except InvalidData:
                found[way] = False
            else:
                found[way] = True
    for way, words in (("param", f"a={text}"), ("params", f'{{"a": {text}}}')):
        ran = Program()(["query", "-e", ASKED, f"--{way}", words, "--root", str(root)])
        assert ran.code in (0, 2, 6), ran.err
        assert "bug" not in ran.err
        found[way] = ran.code == 0
    return found


@pytest.mark.parametrize("text", [*SPELLINGS, *OTHERS])
def test_numbers_that_are_none_have_one_spelling_each(
    root: Path, tmp_path: Path, text: str
) -> None:
    known = text in SPELLINGS
    assert taken(root, tmp_path, text) == {
        "csv": known,
        "param": known,
        "jsonl": False,
        "quoted": False,
        "params": False,
    }


def test_in_python_they_are_what_python_has(root: Path) -> None:
    with omnigraph.open(root) as g:
        for text in SPELLINGS:
            number = float(text)
            with g.transaction() as tx:
                tx.upsert("P", {"name": "x", "age": number})
            assert repr((g.entity("P", "x") or {})["age"]) == repr(number)
            assert repr(g.query(ASKED, params={"a": number}).one()["x"]) == repr(number)
            with pytest.raises(InvalidData), g.transaction() as tx:
                tx.upsert("P", {"name": "x", "age": text})
