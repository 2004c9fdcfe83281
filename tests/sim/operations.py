"""The operations that crashes are tried on, and what a whole graph reads as."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow.compute as pc

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.errors import GraphNotFound

SCHEMA = """
node Person { name: String @key  age: I64 }
node Note { text: String }
node Draft { text: String }
edge Knows: Person -> Person { since: I64 }
"""

# A new type, a property with a value for old rows, and a wider one: columns and tables change.
LATER_SCHEMA = """
node Person { name: String @key  age: I64  city: String @default("Rome")  email: String? }
node Note { text: String }
node Draft { text: String }
node Tag { word: String @key }
edge Knows: Person -> Person { since: I64 }
edge Tagged: Person -> Tag
"""

State = dict[str, Any]
"""Everything that a reader can see, in a form that compares; None for "there is no graph"."""


def prepare(root: str) -> None:
    """A graph with some history, several fragments, deletion files (of people only), a second
    branch, and a type without rows."""
    with omnigraph.init(root, schema=SCHEMA) as g:
        for number in range(4):
            with g.transaction() as tx:
                people = [{"name": f"p{number}{letter}", "age": number} for letter in "abc"]
                tx.upsert("Person", people)
                tx.append("Note", [{"text": f"note {number}"}, {"text": f"more {number}"}])
                tx.append("Knows", [{"src": f"p{number}a", "dst": f"p{number}b", "since": 1}])
        with g.transaction() as tx:
            tx.delete("Person", where=pc.field("name") == "p1c")
        g.create_branch("old")


def init(root: str) -> None:
    omnigraph.init(root, schema=SCHEMA).close()


def write_one_type(root: str) -> None:
    with omnigraph.open(root) as g, g.transaction() as tx:
        tx.append("Note", [{"text": "one"}, {"text": "two"}])


def write_many_types(root: str) -> None:
    with omnigraph.open(root) as g, g.transaction() as tx:
        tx.upsert("Person", [{"name": "new", "age": 1}, {"name": "p0a", "age": 99}])
        tx.append("Note", [{"text": "many"}])
        tx.append("Knows", [{"src": "new", "dst": "p0a", "since": 3}])


def write_first_rows(root: str) -> None:
    """Lance makes the directory of a table's data files with the first of them."""
    with omnigraph.open(root) as g, g.transaction() as tx:
        tx.append("Draft", [{"text": "first"}])


def delete_first_rows(root: str) -> None:
    """As that of its deletion files."""
    with omnigraph.open(root) as g, g.transaction() as tx:
        tx.delete("Note", where=pc.field("text") == "note 2")


def upsert(root: str) -> None:
    with omnigraph.open(root) as g, g.transaction() as tx:
        tx.upsert("Person", [{"name": "p0a", "age": 50}, {"name": "fresh", "age": 51}])


def delete(root: str) -> None:
    """Cascades to edges."""
    with omnigraph.open(root) as g, g.transaction() as tx:
        tx.delete("Person", where=pc.field("age") == 2)


def overwrite(root: str) -> None:
    with omnigraph.open(root) as g, g.transaction() as tx:
        tx.overwrite("Note", [{"text": "only"}])


def apply_schema(root: str) -> None:
    with omnigraph.open(root) as g:
        g.apply_schema(LATER_SCHEMA)


def compact(root: str) -> None:
    with omnigraph.open(root) as g:
        g.optimize()


def create_branch(root: str) -> None:
    with omnigraph.open(root) as g:
        g.create_branch("new")


def delete_branch(root: str) -> None:
    with omnigraph.open(root) as g:
        g.delete_branch("old")


def lose_a_race(root: str) -> None:
    """A write whose rows another commit changes before it is bound: it runs again."""
    with omnigraph.open(root) as g, g.transaction(message="loser") as tx:
        tx.upsert("Person", [{"name": "p0a", "age": 7}])
        with omnigraph.open(root) as other, other.transaction(message="winner") as first:
            first.upsert("Person", [{"name": "p0b", "age": 8}])


OPERATIONS: dict[str, Callable[[str], None]] = {
    each.__name__: each
    for each in (
        init,
        write_one_type,
        write_many_types,
        write_first_rows,
        delete_first_rows,
        upsert,
        delete,
        overwrite,
        apply_schema,
        compact,
        create_branch,
        delete_branch,
        lose_a_race,
    )
}

BETWEEN: dict[str, int] = {"lose_a_race": 1}
"""How many commits an operation makes on its way to the last."""


def read_state(root: str, *, mode: Any = "r") -> State | None:
    """All that a reader sees of the graph; ids and times, which differ from run to run, aside."""
    try:
        g = omnigraph.open(root, mode=mode)
    except GraphNotFound:
        return None
    with g:
        return {branch: _read_branch(g, branch) for branch in g.branches()}


def _read_branch(g: Graph, branch: str) -> State:
    snapshot = g.at(branch)
    rows = {}
    for name in snapshot.types():
        generated = name in ("Note", "Draft", "Knows", "Tagged")
        table = snapshot.scan(name).read_all()
        assert table.num_rows == snapshot.count(name)
        if generated:
            table = table.drop_columns(["id"])
        rows[name] = sorted(map(repr, table.to_pylist()))
    commits = [(c.kind, c.message, sorted(c.statistics)) for c in g.at(branch).log()]
    fragments = {pin.key: pin.fragments for pin in snapshot.graph_version.tables}
    return {
        "version": snapshot.version,
        "schema": snapshot.schema,
        "rows": rows,
        "log": commits,
        "fragments": fragments,
    }


def check_still_writable(root: str) -> None:
    """Every kind of write works on the graph, and is read back."""
    with omnigraph.open(root) as g:
        before = g.snapshot()
        with g.transaction(message="after the crash") as tx:
            tx.append("Note", [{"text": "after"}])
            if "Tag" in before.types():
                tx.upsert("Tag", [{"word": "w"}])
                tx.upsert("Person", [{"name": "z", "age": 1, "city": "Oslo"}])
            else:
                tx.upsert("Person", [{"name": "z", "age": 1}])
            tx.append("Knows", [{"src": "z", "dst": "z", "since": 1}])
        with g.transaction() as tx:
            tx.delete("Person", where=pc.field("name") == "z")
        g.optimize()
        g.create_branch("after")
        after = g.at("after")
        assert after.count("Note") == before.count("Note") + 1
        assert after.count("Person") == before.count("Person")
        assert after.count("Knows") == before.count("Knows")
    with omnigraph.open(root, mode="r") as g:
        assert "after" in g.snapshot().scan("Note").read_all()["text"].to_pylist()
