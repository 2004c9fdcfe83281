"""A server for each module, and a graph of each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import omnigraph
from omnigraph.client.remote_graph import RemoteGraph
from tests.client.served import Served, serving

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  born: Date?
  seen: DateTime?
  place: Vector(2)?
  photo: Blob?
  tags: [String]?
  score: F64?
}
node Note {
  text: String
}
edge Knows: Person -> Person {
  since: Date?
}
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture
def root(server: Served) -> str:
    return server.new_root()


@pytest.fixture
def g(root: str) -> Iterator[RemoteGraph]:
    with omnigraph.init(root, schema=SCHEMA) as made:
        assert isinstance(made, RemoteGraph)
        yield made
