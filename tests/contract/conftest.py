"""A fresh graph on each kind of root: in storage, behind a server, behind a server of two
workers."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from omnigraph import Graph
from tests.bench.s3 import S3Server
from tests.client.served import Served, serving
from tests.contract.graphs import begin

STORED = ("local", "memory", pytest.param("s3", marks=pytest.mark.s3))
TWICE = ("test_transactions", "test_branches", "test_stored_queries")
"""Modules that are also asked of two workers, which share nothing but the storage."""


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every test runs on each kind of root that it can have."""
    given = metafunc.definition.iter_markers("parametrize")
    if "root" not in metafunc.fixturenames or any(one.args[0] == "root" for one in given):
        return
    kinds: list[object] = [*STORED]
    if metafunc.definition.get_closest_marker("stored") is None:
        kinds.append("served")
        if metafunc.module.__name__.rsplit(".", 1)[-1] in TWICE:
            kinds.append("workers")
    metafunc.parametrize("root", kinds, indirect=True)


@pytest.fixture(scope="session")
def one_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served")) as server:
        yield server


@pytest.fixture(scope="session")
def two_workers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("workers"), workers=2) as server:
        yield server


@pytest.fixture
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh root of each kind."""
    match request.param:
        case "local":
            return str(tmp_path / "graph")
        case "memory":
            return f"memory://{uuid.uuid4().hex}"
        case "served":
            one: Served = request.getfixturevalue("one_server")
            return one.new_root()
        case "workers":
            two: Served = request.getfixturevalue("two_workers")
            return two.new_root()
        case _:
            server: S3Server = request.getfixturevalue("s3_environment")
            return server.url(request.getfixturevalue("s3_prefix"))


@pytest.fixture
def g(root: str) -> Iterator[Graph]:
    with begin(root) as graph:
        yield graph
