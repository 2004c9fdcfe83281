"""The one fixture: a hostile graph among what must stay as it is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hostile.world import World, build_graph, make_world


@pytest.fixture(scope="session")
def pristine(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("hostile") / "graph"
    build_graph(root)
    return root


@pytest.fixture
def world(pristine: Path, tmp_path: Path) -> Iterator[World]:
    yield from make_world(tmp_path, pristine)
