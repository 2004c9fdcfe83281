"""A server with a graph for each module, and the graph itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.server.graphs import Graphs
from omnigraph.server.service import Service
from tests.docs.examples import make_graph
from tests.server.serving import Site, serving


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A graph of three people who know each other, for tests that only read."""
    root = tmp_path_factory.mktemp("server") / "people"
    make_graph(str(root)).close()
    return root


@pytest.fixture(scope="module")
def site(people: Path) -> Iterator[Site]:
    """A server with that graph under the name `people`."""
    with serving(Service(Graphs({"people": str(people)}))) as found:
        yield found


@pytest.fixture
def own(tmp_path: Path) -> Iterator[Site]:
    """A server with a graph of this test alone, also called `people`."""
    make_graph(str(tmp_path / "own")).close()
    with serving(Service(Graphs({"people": str(tmp_path / "own")}))) as found:
        yield found


@pytest.fixture
def graph(tmp_path: Path, own: Site) -> Iterator[omnigraph.Graph]:
    """The graph behind `own`, opened beside the server."""
    with omnigraph.open(str(tmp_path / "own")) as g:
        yield g
