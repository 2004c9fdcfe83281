"""What one handle knows of a table on one branch is never taken for what it is on another, where
the same fragment numbers and field ids belong to other files and columns."""

from __future__ import annotations

import itertools
from typing import Any

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidData
from omnigraph.plan.migrate import properties
from omnigraph.settings import Settings

KEYED = """
node P { name: String @key  v: I64?  mail: String? @unique }
edge K: P -> P { w: I64? }
"""
PLAIN = "node P { name: String @key }\n"
NUMBER = "node P { name: String @key  x: I64? }\n"
TEXT = "node P { name: String @key  x: String? }\n"
VALUES = "match { $p: P } return { $p.name as n, $p.x as x } order { n }"
EMPTY = "match { $p: P  $p.x is null } return { $p.name as n, $p.x as x } order { n }"
COUNTER = itertools.count()
QUICK = Settings(durability="relaxed", queue=False, folding="off")


class World:
    """A graph with one handle that does everything."""

    def __init__(self, schema: str) -> None:
        self.root = f"memory://addresses-{next(COUNTER)}"
        self.g = omnigraph.init(self.root, schema=schema, settings=QUICK)

    def write(self, method: str, kind: str, *rows: dict[str, Any], branch: str = "main") -> None:
        with self.g.branch(branch).transaction() as tx:
            getattr(tx, method)(kind, list(rows))

    def head(self, branch: str = "main") -> str:
        return self.g.at(branch).commit.id

    def fresh(self) -> Graph:
        return omnigraph.open(self.root, settings=QUICK)

    def damage(self) -> list[str]:
        found = self.fresh().verify(deep=True).findings
        return [one.message for one in found if one.severity == "error"]


def asked(g: Graph, text: str, ref: str = "main") -> list[tuple[Any, ...]]:
    return [tuple(dict(row).values()) for row in g.at(ref).query(text)]


@pytest.fixture
def keyed() -> World:
    """Twenty rows, and an entity that was changed so often that its old rows were forgotten."""
    world = World(KEYED)
    world.write("append", "P", *[{"name": f"r{n}"} for n in range(20)])
    world.write(
        "append", "K", *[{"id": f"k{n}", "from": f"r{n}", "to": "r0"} for n in range(3, 19)]
    )
    return world


def heat(world: World) -> None:
    for n in range(9):
        world.write("upsert", "P", {"name": "hot", "v": n, "mail": f"m{n}"})
        world.write("upsert", "K", {"id": "k3", "from": "r3", "to": "r0", "w": n})


def test_a_row_of_a_branch_is_found_where_another_branch_has_dead_rows_of_that_number(
    keyed: World,
) -> None:
    keyed.g.create_branch("b")
    heat(keyed)
    keyed.write("append", "P", {"name": "z", "v": 1}, branch="b")
    assert keyed.g.at("b").entity("P", "z") == keyed.fresh().at("b").entity("P", "z")
    by_key = 'match { $p: P {name: "z"} } return { $p.v as v }'
    assert asked(keyed.g, by_key, "b") == [(1,)]
    keyed.write("upsert", "P", {"name": "z", "v": 2}, branch="b")
    assert asked(keyed.fresh(), by_key, "b") == [(2,)]
    assert keyed.damage() == []


def test_rows_that_are_written_after_a_restore_are_found(keyed: World) -> None:
    before = keyed.head()
    heat(keyed)
    keyed.g.restore(before)
    keyed.write("append", "P", {"name": "z", "v": 1, "mail": "z@x"})
    keyed.write("append", "K", {"id": "e", "from": "r1", "to": "r2"})
    assert keyed.g.entity("P", "z") == keyed.fresh().entity("P", "z")
    with pytest.raises(InvalidData, match="mail"):
        keyed.write("append", "P", {"name": "z2", "mail": "z@x"})
    with keyed.g.transaction() as tx:
        assert tx.delete("P", where=pc.field("name") == "r1") == 1
    assert keyed.g.entity("K", "e") is None
    assert keyed.damage() == []


@pytest.fixture(params=["by id", "as earlier releases did"])
def naming(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Earlier releases called a column like its property, and such columns stay: what is kept of
    them must be told apart by more than the name."""
    if request.param != "by id":
        monkeypatch.setattr(properties, "fresh_column", lambda name, origin, used: name)


@pytest.mark.usefixtures("naming")
def test_a_column_that_two_branches_added_with_other_types_is_two_columns() -> None:
    world = World(PLAIN)
    world.write("append", "P", *[{"name": f"p{n}"} for n in range(2)])
    for branch, schema, value in (("a", NUMBER, 5), ("b", TEXT, "five")):
        world.g.create_branch(branch)
        world.g.branch(branch).apply_schema(schema)
        world.write("append", "P", {"name": "x", "x": value}, branch=branch)
    for handle in (world.g, world.fresh()):
        for branch, value in (("a", 5), ("b", "five"), ("a", 5)):
            nulls = [("p0", None), ("p1", None)]
            assert asked(handle, EMPTY, branch) == nulls
            assert asked(handle, VALUES, branch) == [*nulls, ("x", value)]


@pytest.mark.usefixtures("naming")
def test_a_column_that_was_added_anew_after_a_restore_is_another_column() -> None:
    world = World(PLAIN)
    world.write("append", "P", {"name": "p"})
    before = world.head()
    world.g.apply_schema(NUMBER)
    world.write("append", "P", {"name": "q", "x": 5})
    numbers = [("p", None), ("q", 5)]
    assert asked(world.g, VALUES) == numbers
    then = world.head()
    world.g.restore(before)
    world.g.apply_schema(TEXT)
    world.write("append", "P", {"name": "r", "x": "five"})
    for handle in (world.g, world.fresh()):
        assert asked(handle, VALUES) == [("p", None), ("r", "five")]
        assert asked(handle, VALUES, then) == numbers
