"""Jobs: any process lists and cancels them, and one that died is done by another, exactly once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.job_work import work_of
from omnigraph.engine.upkeep.jobs import JobContext
from omnigraph.errors import InvalidArgument, JobEnded, JobNotFound, JobRunning, ReadOnly
from omnigraph.settings import Settings
from tests.bench.aging import MovingRuntime, age
from tests.bench.processes import Worker, results_of

SCHEMA = "node Note { text: String }"
ACTORS = "tests.processes.job_actors"
WEEK = 8 * 24 * 3600.0


@pytest.fixture
def place(tmp_path: Path) -> str:
    root = str(tmp_path / "g")
    omnigraph.init(root, schema=SCHEMA).close()
    return root


def later(root: str) -> Graph:
    """Seen by somebody a minute later."""
    clock = MovingRuntime()
    clock.ahead = 61.0
    return omnigraph.open(root, runtime=clock)


def nothing(context: JobContext) -> Mapping[str, Any]:
    return {"told": context.key}


def test_a_job_is_asked_for_run_and_told_by_anybody(root: str) -> None:
    with omnigraph.init(root, schema=SCHEMA) as g:
        job = g.jobs.submit("verify", {"deep": True}, actor="ada")
        assert (job.state, job.kind, job.arguments, job.actor) == (
            "queued",
            "verify",
            {"deep": True},
            "ada",
        )
        states = []

        def work(context: JobContext) -> Mapping[str, Any]:
            context.progress(1, 2, "half")
            states.append(g.jobs.get(job.id).state)
            with pytest.raises(JobRunning):
                g.jobs.run(job.id, nothing)
            return work_of(g, job)(context)

        done = g.jobs.run(job.id, work)
        assert states == ["running"]
        assert (done.state, done.run, done.done, done.total) == ("done", 1, 1, 2)
        assert done.result is not None
        assert done.result["ok"] is True
        if not root.startswith("memory"):
            with omnigraph.open(root, mode="r") as other:
                assert other.jobs.list() == [done]
                assert list(other.jobs.events(job.id)) == [done]
                with pytest.raises(ReadOnly):
                    other.jobs.cancel(job.id)
        with pytest.raises(JobEnded):
            g.jobs.run(job.id, nothing)
        with pytest.raises(JobEnded):
            g.jobs.cancel(job.id)


def test_what_fails_says_why_and_what_waits_is_cancelled(place: str) -> None:
    with omnigraph.open(place) as g:
        wrong = g.jobs.submit("algorithm", {"name": "nothing", "write_to": "rank"})
        failed = g.jobs.run(wrong.id, work_of(g, wrong))
        assert failed.state == "failed"
        assert failed.problem is not None
        assert failed.problem["code"] == "invalid_argument"
        waiting = g.jobs.submit("optimize")
        assert g.jobs.cancel(waiting.id).state == "cancelled"
        with pytest.raises(JobEnded):
            g.jobs.run(waiting.id, nothing)
        with pytest.raises(JobNotFound):
            g.jobs.get("01M7JGQ6QC0X247AYXK9H7M2MN")
        with pytest.raises(JobNotFound):
            g.jobs.get("../../etc/passwd")
        with pytest.raises(InvalidArgument, match="no kind of job"):
            g.jobs.submit("dance")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "result",
    ["x", 5, {"x": object()}, {"x": "\udcff"}, {1: [2]}, {"x": 2**70}, {"x": float("nan")}],
)
def test_whatever_the_work_gives_the_job_has_ended(place: str, result: Any) -> None:
    """Else it would be lost, and done again, and again."""
    with omnigraph.open(place) as g:
        job = g.jobs.run(g.jobs.submit("verify").id, lambda context: result)
        assert job.ended
        assert job.state == "done" or "JSON" in str(job.problem)


@pytest.mark.parametrize("point", ["before", "after"])
def test_the_work_of_a_process_that_was_killed_is_done_once(place: str, point: str) -> None:
    with omnigraph.open(place) as g:
        job_id = g.jobs.submit("load").id
    with Worker(f"{ACTORS}:insert", {"root": place, "job_id": job_id, "point": point}) as worker:
        worker.wait_ready()
        worker.go()
        worker.wait_for(point)
        with omnigraph.open(place) as g:
            assert g.jobs.get(job_id).state == "running"
            with pytest.raises(JobRunning):
                g.jobs.run(job_id, nothing)
        worker.kill()
    with later(place) as g:
        assert g.jobs.get(job_id).state == "lost"
        assert [one.state for one in g.jobs.events(job_id)] == ["lost"]

        def again(context: JobContext) -> Mapping[str, Any]:
            done = g.mutate('insert Note { text: "x" }', idempotency_key=context.key)
            return {"commit": done.commit_id, "repeated": done.repeated}

        done = g.jobs.run(job_id, again)
        assert (done.state, done.run) == ("done", 2)
        assert done.result is not None
        assert done.result["repeated"] is (point == "after")
        assert g.count("Note") == 1


def test_a_job_of_another_process_stops_when_it_is_asked_to(place: str) -> None:
    with omnigraph.open(place) as g:
        job_id = g.jobs.submit("load").id
        with Worker(f"{ACTORS}:wait_for_cancel", {"root": place, "job_id": job_id}) as worker:
            worker.wait_ready()
            worker.go()
            worker.wait_for("working")
            asked = g.jobs.cancel(job_id, actor="bob")
            assert (asked.state, asked.cancelling) == ("running", True)
            worker.resume()
            (told,) = results_of([worker.outcome()])
        assert told["state"] == "cancelled"
        assert g.jobs.get(job_id).state == "cancelled"


def test_a_lost_job_that_was_to_be_cancelled_is_cancelled(place: str) -> None:
    with omnigraph.open(place) as g:
        job_id = g.jobs.submit("load").id
    with Worker(f"{ACTORS}:wait_for_cancel", {"root": place, "job_id": job_id}) as worker:
        worker.wait_ready()
        worker.go()
        worker.wait_for("working")
        worker.kill()
    with later(place) as g:
        assert g.jobs.cancel(job_id).state == "cancelled"


def test_one_process_gets_a_job_however_many_ask(place: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with omnigraph.open(place) as g:
        job_id, ran = g.jobs.submit("load").id, []

        def work(context: JobContext) -> Mapping[str, Any]:
            ran.append(context.key)
            return {}

        def attempt(_: int) -> bool:
            try:
                g.jobs.run(job_id, work)
            except (JobRunning, JobEnded):
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(attempt, range(8))) == 1
        assert len(ran) == 1


def test_cleanup_takes_old_jobs_and_leaves_new_ones(place: str) -> None:
    with omnigraph.open(place, settings=Settings(folding="off")) as g:
        old = g.jobs.submit("load")
        g.jobs.run(old.id, nothing)
        age(Path(place), WEEK)
        new = g.jobs.submit("load")
        removed = g.cleanup(keep=1, older_than="7d").removed
        assert {one.reason for one in removed if "__job/" in one.key} == {"old job"}
        assert [one.id for one in g.jobs.list()] == [new.id]


HOSTILE: tuple[dict[str, Any], ...] = (
    {"kind": "shell"},
    {"id": "../../../outside"},
    {"arguments": []},
    {"created_at": -1},
    {"format": 7},
    {"actor": "x" * 5000},
)


@pytest.mark.parametrize("change", HOSTILE, ids=lambda one: next(iter(one)))
def test_a_job_that_nobody_wrote_is_data(place: str, change: dict[str, Any]) -> None:
    with omnigraph.open(place) as g:
        good = g.jobs.submit("load", {"source": "/etc/passwd"})
        file = Path(place) / "__job" / f"{good.id}.json"
        with pytest.raises(InvalidArgument, match="files"):
            work_of(g, good)
        file.write_text(json.dumps({**json.loads(file.read_text()), **change}))
        (told,) = g.jobs.list()
        assert (told.id, told.state) == (good.id, "unreadable")
        with pytest.raises(JobEnded):
            g.jobs.run(good.id, nothing)
        for name in ("x.json", f"{good.id}.run-1.json", f"{good.id}.run-0001.json"):
            (file.parent / name).write_text("{}")
        assert len(g.jobs.list()) == 1
        assert g.verify().ok


def test_arguments_that_a_kind_does_not_know_are_refused(place: str) -> None:
    with omnigraph.open(place) as g:
        for kind, arguments in (
            ("cleanup", {"grace": 0}),
            ("optimize", {"engine": "spark"}),
            ("verify", {"deep": "yes"}),
            ("algorithm", {"name": "degrees", "write_to": "x", "options": {"actor": "eve"}}),
            ("algorithm", {"name": "degrees", "write_to": "x", "options": {"name": "pagerank"}}),
            ("algorithm", {"name": "degrees", "write_to": "x", "options": {"write_to": "y"}}),
        ):
            job = g.jobs.submit(kind, arguments)  # type: ignore[arg-type]
            try:
                told = g.jobs.run(job.id, work_of(g, job))
            except InvalidArgument:
                continue
            assert told.state == "failed"
            assert told.problem is not None
            assert told.problem["code"] == "invalid_argument"
