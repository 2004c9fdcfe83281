"""Maintenance and large loads over a server are jobs, and look like the calls that they are."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import omnigraph
from omnigraph.client.remote_graph import RemoteGraph
from omnigraph.engine.load.progress import LoadProgress
from omnigraph.engine.upkeep.optimize_report import Progress
from omnigraph.errors import InvalidArgument, InvalidData, JobNotFound
from tests.client.conftest import SCHEMA
from tests.client.served import Served, serving


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Everything but the smallest loads becomes a job."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "in").mkdir()
    with serving(folder, more="load_job_bytes = 1000\n", top='sources = ["in"]\n') as found:
        yield found


@pytest.fixture
def g(small: Served) -> Iterator[RemoteGraph]:
    with omnigraph.init(small.new_root(), schema=SCHEMA) as made:
        assert isinstance(made, RemoteGraph)
        yield made


def test_maintenance_gives_its_reports(g: RemoteGraph) -> None:
    for number in range(4):
        g.mutate(f'insert Note {{ text: "{number}" }}')
    told: list[Progress] = []
    tried = g.optimize(dry_run=True)
    assert (tried.dry_run, tried.commit) == (True, None)
    done = g.optimize(progress=told.append)
    assert done.dry_run is False
    assert "Note" in done.types
    assert g.verify(deep=True).ok
    assert g.cleanup(dry_run=True).dry_run is True
    with pytest.raises(InvalidArgument):
        g.cleanup(grace=0)
    with pytest.raises(JobNotFound):
        g.jobs.get("01M7JGQ6QC0X247AYXK9H7M2MN")
    kinds = [one.kind for one in g.jobs.list()]
    assert kinds == ["optimize", "optimize", "verify", "cleanup", "cleanup"]
    assert g.recovery.list() == []


def test_a_large_load_is_waited_for(g: RemoteGraph) -> None:
    told: list[LoadProgress] = []
    rows = [{"name": f"p{number:04}", "age": number % 90} for number in range(500)]
    done = g.load(rows, type="Person", progress=told.append, message="many")
    assert done.counts["Person"].inserted == 500
    assert done.commit is not None
    assert done.commit.message == "many"
    assert g.count("Person") == 500
    assert {"sending"} < {one.stage for one in told}
    with pytest.raises(InvalidData, match="exists already"):
        g.load(rows, type="Person")
    wrong = [*rows, {"name": "x", "age": "old"}]
    merged = g.load(wrong, type="Person", mode="merge", on_error="quarantine")
    assert [one.type for one in merged.rejected] == ["Person"]
    again = g.load([{"name": "q", "tags": ["a" * 2000]}], type="Person", idempotency_key="once")
    repeat = g.load([{"name": "q", "tags": ["a" * 2000]}], type="Person", idempotency_key="once")
    assert again.commit_id == repeat.commit_id
    assert g.count("Person") == 501


def test_several_files_are_one_load(g: RemoteGraph, tmp_path: Path) -> None:
    (tmp_path / "Person.csv").write_text("name,age\n" + "".join(f"n{n},{n}\n" for n in range(300)))
    (tmp_path / "more.jsonl").write_text('{"type": "Note", "data": {"text": "from a line"}}\n')
    done = g.load([tmp_path / "Person.csv", tmp_path / "more.jsonl"])
    assert {name: one.inserted for name, one in done.counts.items()} == {"Person": 300, "Note": 1}


def test_a_job_is_asked_for_followed_and_cancelled(g: RemoteGraph) -> None:
    job = g.jobs.submit("verify", {"deep": True}, idempotency_key="v1")
    assert g.jobs.submit("verify", {"deep": True}, idempotency_key="v1").id == job.id
    states = [one.state for one in g.jobs.events(job.id, poll=0.01)]
    assert states[-1] == "done"
    with pytest.raises(InvalidArgument, match="deeep"):
        g.jobs.submit("verify", {"deeep": True})


def test_files_of_the_server_are_loaded(g: RemoteGraph, small: Served) -> None:
    source = small.folder / "in" / "Person.csv"
    source.write_text("name\nDan\n")
    job = g.jobs.submit("load", {"uri": str(source)})
    *_, last = g.jobs.events(job.id, poll=0.01)
    assert last.state == "done", last
    assert g.count("Person") == 1


def test_the_command_line_waits_for_a_job(g: RemoteGraph) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "omnigraph", "--root", g.root, "optimize"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    listed = subprocess.run(
        [sys.executable, "-m", "omnigraph", "--root", g.root, "jobs", "list"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "optimize, done" in listed.stdout
