"""What an F32 holds is decided after rounding, in every way that a number comes in."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import Invalid
from tests.unit.engine.faulty import SETTINGS, fresh_root

SCHEMA = "node A { x: F32?  l: [F32]?  v: Vector(2)? }\n"
LARGEST = float(np.finfo(np.float32).max)
FITS = ["3.4028235e38", "-3.4028235e38", "3.4028235677973362e38"]
BEYOND = ["3.4028235677973366e38", "3.4028236e38", "-3.4028236e38", "1e39"]
"""By how a float of 32 bits rounds: the first of these lies half way to what would come next."""


def default(g: Graph, value: str) -> None:
    g.apply_schema(SCHEMA.replace("x: F32?", f"x: F32? @default({value})"))
    rows(g, {"l": []})


def rows(g: Graph, given: Any) -> None:
    with g.transaction() as tx:
        tx.append("A", given)


def update(g: Graph, value: Any) -> None:
    rows(g, {"x": 1.0})
    with g.transaction() as tx:
        tx.update("A", set={"x": value}, where=None)


def mutate(g: Graph, kind: str, name: str, value: Any) -> None:
    g.mutate(f"query q($x: {kind}) {{ insert A {{ {name}: $x }} }}", params={"x": value})


def file(g: Graph, ending: str, text: str, **options: Any) -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = Path(directory) / f"numbers.{ending}"
        place.write_text(text)
        g.load(place, engine="local", **options)


WAYS: dict[str, Callable[[Graph, str], object]] = {
    "a dict": lambda g, v: rows(g, {"x": float(v)}),
    "a list": lambda g, v: rows(g, {"l": [float(v)]}),
    "a vector": lambda g, v: rows(g, {"v": [float(v), 0.0]}),
    "an array": lambda g, v: rows(g, {"v": np.array([float(v), 0.0])}),
    "Arrow": lambda g, v: rows(g, pa.table({"x": [float(v)]})),
    "lists of Arrow": lambda g, v: rows(g, pa.table({"l": [[float(v)]]})),
    "pandas": lambda g, v: rows(g, pd.DataFrame({"x": [float(v)]})),
    "an update": lambda g, v: update(g, float(v)),
    "a computed update": lambda g, v: update(g, pc.field("x") * float(v)),
    "a literal": lambda g, v: g.mutate(f"insert A {{ x: {v} }}"),
    "a literal in a list": lambda g, v: g.mutate(f"insert A {{ l: [{v}] }}"),
    "a parameter": lambda g, v: mutate(g, "F32", "x", float(v)),
    "a wider parameter": lambda g, v: mutate(g, "F64", "x", float(v)),
    "a parameter that is a list": lambda g, v: mutate(g, "[F32]", "l", [float(v)]),
    "a parameter that is a vector": lambda g, v: mutate(g, "Vector(2)", "v", [float(v), 0]),
    "JSON": lambda g, v: file(g, "jsonl", f'{{"type": "A", "data": {{"x": {v}}}}}\n'),
    "CSV": lambda g, v: file(g, "csv", f"x\n{v}\n", type="A"),
    "a default": lambda g, v: default(g, v),
}


def held(g: Graph) -> list[float]:
    found = []
    for row in g.snapshot().scan("A").read_all().to_pylist():
        found += [row["x"], *(row["l"] or ()), *(row["v"] or ())]
    return [abs(one) for one in found if one]


VECTORS = ("a vector", "an array", "a parameter that is a vector")
"""Of such a length a vector has no distance, so it is refused (decision 40)."""


@pytest.mark.parametrize("way", [way for way in WAYS if way not in VECTORS])
def test_what_rounds_to_a_number_is_one(way: str) -> None:
    for number in FITS:
        g = omnigraph.init(fresh_root(), schema=SCHEMA, settings=SETTINGS)
        WAYS[way](g, number)
        assert held(g) == [LARGEST], number


@pytest.mark.parametrize("way", WAYS)
def test_what_rounds_to_infinity_is_refused(way: str) -> None:
    for number in BEYOND:
        g = omnigraph.init(fresh_root(), schema=SCHEMA, settings=SETTINGS)
        with pytest.raises(Invalid):
            WAYS[way](g, number)
        assert LARGEST not in held(g), number
