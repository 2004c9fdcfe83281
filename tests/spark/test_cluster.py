"""A standalone cluster, a real master and two workers, loads and reads a graph on the S3 server."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from tests.bench.processes import Worker
from tests.bench.s3 import S3Server
from tests.load.world import knows, person, write_lines
from tests.spark.servers import standalone

pytestmark = [pytest.mark.slow, pytest.mark.s3]

PEOPLE = 500


def test_two_workers_load_and_read_a_graph_on_an_object_store(
    s3_environment: S3Server, s3_prefix: str, tmp_path: Path
) -> None:
    people = [person(f"p{i}", age=i % 90) for i in range(PEOPLE)]
    edges = [knows(f"p{i}", f"p{(i * 7) % PEOPLE}") for i in range(PEOPLE)]
    bad = [person("p1"), knows("p1", "nobody")]
    path = write_lines(tmp_path / "all.jsonl", [*people, *edges, *bad])
    with tempfile.TemporaryDirectory() as place, standalone(Path(place)) as master:
        arguments = {
            "master": master,
            "root": s3_environment.url(s3_prefix),
            "source": str(path),
            "place": str(tmp_path),
        }
        with Worker("tests.spark.cluster:use", arguments) as worker:
            worker.wait_ready()
            worker.go()
            outcome = worker.outcome(within=900)
    assert outcome.error is None, f"{outcome.traceback}\n{outcome.stderr[-4000:]}"
    told: dict[str, Any] = outcome.result
    assert "may be on others" in told["local root"]
    assert told["counts"] == {"Person": PEOPLE, "Knows": PEOPLE}
    assert told["rejected"] == ["endpoint", "key"]
    assert told["executors"] == 2
    assert told["merged"] == {"Person": [1, 1]}
    assert told["read"] == [PEOPLE + 1, PEOPLE]
    assert told["plan"].count("(Python, columnar)") == 2
    assert told["where"] == [["p7", 7]]
    assert told["algorithms"] == [True, True]
    assert told["streamed"] == told["seen"] == ["one", "one", "two", "two"]
    assert told["optimized"]["Note"][1] == 1
    assert "may be on others" in told["export"]
    assert told["exported"] == {"Person": PEOPLE + 1}
    assert told["left"] == []
    assert told["verified"]
