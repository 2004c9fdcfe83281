"""A fresh graph on each kind of root."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from omnigraph import Graph
from tests.contract.graphs import begin


@pytest.fixture
def g(root: str) -> Iterator[Graph]:
    with begin(root) as graph:
        yield graph
