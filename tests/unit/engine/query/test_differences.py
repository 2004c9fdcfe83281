"""What people of other languages may not expect: each is decided (decision 49) and in the guide."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import InvalidData, InvalidQuery

SCHEMA = """
node A { k: String @key  f: F32?  d: F64?  s: String?  b: Bool?  must: I32 @default(0) }
node N { n: F64 @key }
edge E: A -> A { w: I32? }
"""


@pytest.fixture
def g(tmp_path: Path) -> Iterator[Graph]:
    with omnigraph.init(tmp_path / "g", schema=SCHEMA) as graph:
        yield graph


def keys(g: Graph, condition: str, **params: Any) -> list[str]:
    text = f"match {{ $a: A  {condition} }} return {{ $a.k as k }} order {{ k }}"
    if params:
        text = f"query q($x: F32) {{ {text} }}"
    return [row["k"] for row in g.query(text, params=params or None)]


def test_a_decimal_is_f64_and_an_f32_is_widened_exactly(g: Graph) -> None:
    g.load([{"k": "tenth", "f": 0.1}, {"k": "half", "f": 0.5}], type="A")
    assert keys(g, "$a.f = 0.1") == keys(g, "$a.f in [0.1]") == []
    assert keys(g, "$a.f > 0.1 $a.f < 0.11") == ["tenth"]
    assert keys(g, "$a.f = 0.5") == ["half"]
    assert keys(g, "$a.f = $x", x=0.1) == ["tenth"]
    assert g.scan("A", filter="f = 0.1").read_all().num_rows == 0


@pytest.mark.parametrize("key", [math.nan, math.inf, -math.inf])
def test_a_key_is_a_finite_number(g: Graph, key: float) -> None:
    with pytest.raises(InvalidData, match=r"`n` .* must be a finite number"):
        g.load(pa.table({"n": [key]}), type="N")


def test_a_key_is_never_empty_and_a_space_is_one(g: Graph) -> None:
    with pytest.raises(InvalidData, match="must not be empty"):
        g.mutate('insert A { k: "" }')
    g.mutate('insert A { k: " " }')
    assert keys(g, "true = true") == [" "]


def test_case_is_mapped_one_character_to_one(g: Graph) -> None:
    text = "İI ß ŉ Σς"
    g.load([{"k": "a", "s": text}], type="A")
    asked = "match { $a: A } return { lower($a.s) as low, upper($a.s) as high }"
    found = g.query(asked).one()
    assert found == {"low": "İi ß ŉ σς", "high": "İI ß ŉ ΣΣ"}
    assert len(found["low"]) == len(found["high"]) == len(text)


def test_nothing_moves_an_edge(g: Graph) -> None:
    g.load([{"k": name} for name in "abc"], type="A")
    g.load([{"id": "e", "from": "a", "to": "b"}], type="E")
    with pytest.raises(InvalidData, match='cannot become "c"; delete the edge and insert another'):
        g.load([{"id": "e", "from": "a", "to": "c"}], type="E", mode="merge")
    with pytest.raises(InvalidData, match='cannot become "c"'), g.transaction() as tx:
        tx.upsert("E", {"id": "e", "src": "c", "dst": "b"})
    for _ in range(2):
        g.load([{"from": "a", "to": "b"}], type="E", mode="merge")
    assert g.count("E") == 3


def test_order_and_extremes_agree_on_what_comes_first(g: Graph) -> None:
    numbers = [math.nan, -math.inf, 0.0, -0.0, 1.5]
    texts = ["z", "Z", "é", "\U0001f600", "\uffee"]
    flags = [True, False, True, False, True]
    rows = {"k": texts, "d": numbers, "b": flags}
    g.load(pa.table(rows), type="A")
    for name in ("k", "d", "b"):
        ordered = [
            row["v"]
            for row in g.query(f"match {{ $a: A }} return {{ $a.{name} as v }} order {{ v }}")
        ]
        ends = g.query(f"match {{ $a: A }} return {{ min($a.{name}), max($a.{name}) }}").one()
        assert repr([ordered[0], ordered[-1]]) == repr(list(ends.values())), name
    assert [row["k"] for row in g.query("match { $a: A } return { $a.k as k } order { k }")] == (
        sorted(texts)
    )
    assert keys(g, "$a.d = $a.d") == sorted(texts)
    assert keys(g, "$a.d > 1.0e300") == ["z"]
    assert len(keys(g, "$a.d = 0.0")) == 2
    assert keys(g, '$a.k > "\uffee"') == ["\U0001f600"]


def test_a_zero_with_a_sign_is_the_same_key(g: Graph) -> None:
    g.load([{"n": 0.0}], type="N")
    g.load([{"n": -0.0}], type="N", mode="merge")
    assert g.count("N") == 1


def test_a_required_property_set_to_null_is_refused_without_a_row(g: Graph) -> None:
    with pytest.raises(InvalidQuery, match="never null"):
        g.mutate('update A set { must: null } where k = "nobody"')
