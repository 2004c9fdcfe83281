"""Worlds to measure on a local disk and on S3 through the proxy, and the exported metrics."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

import pytest
from opentelemetry import metrics
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader

from tests.bench.proxy import Proxy
from tests.bench.s3 import S3Server
from tests.conftest import use_environment
from tests.cost.meter import Exported
from tests.cost.world import CORE, World

KINDS = ["local", pytest.param("s3", marks=pytest.mark.s3)]


class MakeWorld(Protocol):
    def __call__(self, types: tuple[str, ...] = CORE) -> World: ...


@pytest.fixture(scope="session")
def exported() -> Exported:
    """The process's own meter provider, as an application would set it."""
    reader = InMemoryMetricReader()
    metrics.set_meter_provider(MeterProvider(metric_readers=[reader]))
    return Exported(reader)


@pytest.fixture
def connect(
    proxy: Proxy, s3_server: S3Server, monkeypatch: pytest.MonkeyPatch
) -> Callable[[bool], None]:
    """Points the environment at the proxy, or past it."""

    def connect(watched: bool) -> None:
        endpoint = proxy.endpoint if watched else None
        use_environment(monkeypatch, s3_server.env(endpoint=endpoint))

    return connect


@pytest.fixture(params=KINDS)
def make_world(request: pytest.FixtureRequest, tmp_path: Path, exported: Exported) -> MakeWorld:
    """Makes graphs on one kind of root."""
    if request.param == "local":
        return lambda types=CORE: World(str(tmp_path / uuid.uuid4().hex), exported, types=types)
    return request.getfixturevalue("make_s3_world")  # type: ignore[no-any-return]


@pytest.fixture
def make_s3_world(
    exported: Exported, proxy: Proxy, s3_server: S3Server, connect: Callable[[bool], None]
) -> MakeWorld:
    def make(types: tuple[str, ...] = CORE) -> World:
        root = s3_server.url(f"t/{uuid.uuid4().hex}")
        return World(root, exported, proxy, connect, types)

    return make
