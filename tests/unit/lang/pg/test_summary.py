"""The short form of a schema: what is in it, and what is left out first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidArgument, TypeNotFound

SCHEMA = """
node Person @description("Somebody who works here") {
    name: String @key
    age: I32? @description("in years")
    role: enum(boss, helper)
    note: String?
    face: Vector(3)?
}
edge Knows: Person -> Person @description("who knows whom") { since: Date? }
"""


@pytest.fixture
def g(tmp_path: Path) -> Iterator[Graph]:
    g = omnigraph.init(tmp_path / "people", schema=SCHEMA)
    g.mutate('insert Person { name: "Ada", age: 36, role: "boss" }')
    g.mutate(
        'insert Person { name: "Bob", role: "helper" } insert Knows { from: "Ada", to: "Bob" }'
    )
    with g:
        yield g


def test_it_tells_what_a_query_needs(g: Graph) -> None:
    lines = g.describe().splitlines()
    assert lines[0] == "node Person (2) -- Somebody who works here"
    assert '  name: String key  e.g. "Ada"' in lines[1]
    assert lines[2].startswith("  age: I32? -- in years  e.g. 36")
    assert "  role: enum(boss, helper)" in lines
    assert "  face: Vector(3)?" in lines
    assert "edge Knows: Person -> Person (1) as $a knows $b -- who knows whom" in lines


def test_it_never_has_more_characters_than_it_may(tmp_path: Path) -> None:
    text = "\n".join(
        f"node T{n} {{ name: String @key a{n}: I32? b{n}: String? c{n}: Date? }}"
        for n in range(120)
    )
    with omnigraph.init(tmp_path / "many", schema=text) as g:
        whole = g.describe(characters=100_000)
        assert "b119: String?" in whole
        for most in (200, 500, 2_000, 6_000, 8_000, 12_000):
            shown = g.describe(characters=most)
            assert len(shown) <= most
            assert "T0" in shown
        assert "more types)" in g.describe(characters=500)


def test_examples_go_before_descriptions(g: Graph) -> None:
    whole = g.describe()
    shorter = g.describe(characters=len(whole) - 1)
    assert "e.g." not in shorter
    assert "in years" in shorter


def test_it_is_of_single_types_too(g: Graph) -> None:
    assert "Knows" not in g.describe(types=["Person"])
    with pytest.raises(TypeNotFound):
        g.describe(types=["Persn"])
    with pytest.raises(InvalidArgument):
        g.describe(characters=10)


def test_what_was_deleted_is_no_example(g: Graph) -> None:
    g.mutate('delete Person where name = "Ada"')
    shown = g.describe()
    assert '"Ada"' not in shown
    assert '"Bob"' in shown
