"""The small graph that the examples of docstrings are about, and their run."""

from __future__ import annotations

import doctest
from collections.abc import Iterator
from pathlib import Path

import omnigraph
from omnigraph import Graph

SCHEMA = """node Person {
    name: String @key
    age: I32?
    rank: F64?
    photo: Blob?
}

edge Knows: Person -> Person {
    since: I32?
}
"""
PEOPLE = [{"name": "Ada", "age": 36}, {"name": "Bob", "age": 41}, {"name": "Cyd"}]
KNOWS = [
    {"from": "Ada", "to": "Bob", "since": 2010},
    {"from": "Bob", "to": "Cyd", "since": 2020},
]


def example_graph() -> Iterator[str]:
    """The graph as the page shows it."""
    yield "```pg"
    yield from SCHEMA.splitlines()
    yield "```"
    yield ""
    yield "```python"
    yield 'with g.transaction(actor="ada", message="three people") as tx:'
    yield f'    tx.append("Person", {PEOPLE!r})'.replace("'", '"')
    yield f'    tx.append("Knows", {KNOWS!r})'.replace("'", '"')
    yield "```"


def make_graph(root: str) -> Graph:
    g = omnigraph.init(root, schema=SCHEMA)
    with g.transaction(actor="ada", message="three people") as tx:
        tx.append("Person", PEOPLE)
        tx.append("Knows", KNOWS)
    return g


def run_examples(name: str, text: str, g: Graph, directory: Path) -> str:
    """What went wrong, empty if nothing did."""
    parser = doctest.DocTestParser()
    told: list[str] = []
    held = {"g": g, "omnigraph": omnigraph}
    test = parser.get_doctest(text, held, name, None, None)
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.IGNORE_EXCEPTION_DETAIL)
    runner.run(test, out=told.append)
    return "".join(told)
