"""Texts and numbers at the edges: an answer or a diagnostic, never a trace."""

from __future__ import annotations

from pathlib import Path

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
