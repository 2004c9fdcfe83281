"""Fixtures that every test may use: roots of each kind, the S3 server, the proxy, hypothesis.

The server starts when a test first needs it and ends with the run; the controller of pytest-xdist
(or the only process) owns it, so workers may come and go.
"""

from __future__ import annotations

import os
import sys
import tempfile
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from tests.bench.proxy import Proxy
from tests.bench.s3 import S3Server, shared_server, stop_server

RUN_DIRECTORY = "OMNIGRAPH_BENCH_DIRECTORY"
RUN_OWNER = "OMNIGRAPH_BENCH_OWNER"

# A shared machine pauses tests at will, so no example has a deadline; time limits have own tests.
_slow_is_fine = [HealthCheck.too_slow, HealthCheck.data_too_large]
settings.register_profile(
    "ci",
    deadline=None,
    max_examples=40,
    stateful_step_count=20,
    derandomize=True,  # what CI says must not depend on luck; `make sim` draws anew each time
    suppress_health_check=_slow_is_fine,
)
settings.register_profile(
    "dev", deadline=None, max_examples=100, suppress_health_check=_slow_is_fine
)
settings.register_profile(
    "deep",
    deadline=None,
    max_examples=2000,
    stateful_step_count=100,
    suppress_health_check=_slow_is_fine,
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_configure(config: pytest.Config) -> None:
    """The controller names the directory of this run; workers inherit it by the environment."""
    # A proxy of the machine must not come between a client and our own server.
    os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1,localhost"
    if not hasattr(config, "workerinput"):
        name = f"omnigraph-bench-{uuid.uuid4().hex}"  # made only when the server is needed
        os.environ[RUN_DIRECTORY] = str(Path(tempfile.gettempdir()) / name)
        os.environ[RUN_OWNER] = str(os.getpid())


def pytest_unconfigure(config: pytest.Config) -> None:
    """Runs in the controller after all workers have ended, whatever the tests did."""
    if not hasattr(config, "workerinput"):
        stop_server(Path(os.environ[RUN_DIRECTORY]))


@pytest.fixture(autouse=True)
def _without_spark(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that a test of Spark left in this process is nobody else's: with one, loads that
    choose their engine themselves choose Spark."""
    name = "omnigraph.spark.executor"
    if name in sys.modules and "spark" not in request.path.parts:
        monkeypatch.setattr(sys.modules[name], "active_session", lambda: None)


@pytest.fixture(scope="session")
def s3_server() -> S3Server:
    """The S3 server of this run, started by whoever asks first."""
    return shared_server(Path(os.environ[RUN_DIRECTORY]), owner=int(os.environ[RUN_OWNER]))


@pytest.fixture
def s3_prefix() -> str:
    """A prefix that no other test, worker or run has."""
    return f"t/{uuid.uuid4().hex}"


@pytest.fixture
def s3_environment(s3_server: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """The AWS_* variables of this process point at the server, and only at it."""
    use_environment(monkeypatch, s3_server.env())
    return s3_server


@pytest.fixture(scope="session")
def _proxy_of_this_worker(s3_server: S3Server) -> Iterator[Proxy]:
    proxy = Proxy(s3_server.endpoint)
    yield proxy
    proxy.close()


@pytest.fixture
def proxy(_proxy_of_this_worker: Proxy) -> Iterator[Proxy]:
    """The counting proxy in front of the S3 server, as new; this worker's own."""
    _proxy_of_this_worker.reset()
    yield _proxy_of_this_worker
    _proxy_of_this_worker.reset()


@pytest.fixture
def proxied_root(
    proxy: Proxy, s3_server: S3Server, s3_prefix: str, monkeypatch: pytest.MonkeyPatch
) -> str:
    """A fresh S3 root whose requests all pass through the proxy."""
    use_environment(monkeypatch, s3_server.env(endpoint=proxy.endpoint))
    return s3_server.url(s3_prefix)


@pytest.fixture(
    params=["local", "memory", pytest.param("s3", marks=pytest.mark.s3)],
)
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A fresh root of each kind, for suites that every store must pass alike."""
    match request.param:
        case "local":
            return str(tmp_path / "graph")
        case "memory":
            return f"memory://{uuid.uuid4().hex}"
        case _:
            server: S3Server = request.getfixturevalue("s3_environment")
            return server.url(request.getfixturevalue("s3_prefix"))


def use_environment(monkeypatch: pytest.MonkeyPatch, variables: dict[str, str]) -> None:
    """Replace all AWS_* variables: one left over from outside would win over ours."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
