"""One JVM for a run, and an entry point where the package is not installed."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from omnigraph.engine.executors import registered

FOR_SMALL_DATA = {
    "spark.sql.shuffle.partitions": 2,
    # Compiling takes longer than what is compiled.
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -Xshare:auto",
    "spark.sql.codegen.wholeStage": False,
    "spark.sql.codegen.factoryMode": "NO_CODEGEN",
}


def entry_point(place: Path) -> Path:
    """A directory that, on the path of Python, registers the engine."""
    info = place / "omnigraph_checkout-0.dist-info"
    info.mkdir(exist_ok=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: omnigraph-checkout\nVersion: 0\n")
    (info / "entry_points.txt").write_text(
        "[omnigraph.engines]\nspark = omnigraph.spark.executor:make\n"
    )
    return place


@pytest.fixture(scope="session")
def spark_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The engine is found by its entry point; a bare checkout has none, so one is put beside."""
    if registered("spark"):
        yield
        return
    place = entry_point(tmp_path_factory.mktemp("site"))
    sys.path.append(str(place))
    yield
    sys.path.remove(str(place))


@pytest.fixture(scope="module")
def spark(spark_engine: None) -> Iterator[Any]:
    """The JVM is started once and stays; the session ends with the module, because whoever loads
    while one is running loads on Spark."""
    import omnigraph.spark
    from omnigraph.spark.session import active_session

    left = active_session()
    if left is not None:  # of a test that started one by a command
        left.stop()
    made = omnigraph.spark.session("local[2,3]", **FOR_SMALL_DATA)
    yield made
    made.stop()
