"""Jobs: a driver that was killed is run again under its name and goes on from what it staged."""

from __future__ import annotations

import os
from itertools import count
from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import InvalidArgument, InvalidData, JobRunning
from omnigraph.spark.load import job as jobs
from tests.bench.processes import Worker
from tests.contract.graphs import rows
from tests.load.world import contents, knows, new_graph, person, write_lines
from tests.spark.drivers import cut_small

pytestmark = pytest.mark.usefixtures("spark")

POINTS = (
    "job claimed",
    "intent written",
    "load read",
    "load checked",
    "rows staged",
    "staged",
    "plan noted",
    "tables committed",
    "before put",
    "after put",
    "job published",
)
NOTES = 7


def entries(size: int = 40) -> list[Any]:
    people = [person(f"p{i}", age=i) for i in range(size)]
    edges = [knows(f"p{i}", f"p{(i * 7) % size}") for i in range(size)]
    notes = [{"type": "Note", "data": {"text": f"t{i}"}} for i in range(NOTES)]
    return [*people, *edges, *notes]


@pytest.fixture
def g(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Graph:
    cut_small(monkeypatch.setattr)
    return new_graph(tmp_path)


def killed_at(point: str, g: Graph, path: Path, *, times: int = 1, **options: Any) -> None:
    arguments = {
        "root": g.root,
        "source": str(path),
        "place": str(path.parent),
        "point": point,
        "times": times,
        "job": "nightly",
        **options,
    }
    with Worker("tests.spark.drivers:load", arguments) as worker:
        worker.wait_ready()
        worker.go()
        outcome = worker.outcome(within=600)
    assert outcome.killed, outcome


def data_files(g: Graph) -> set[Path]:
    return set(Path(g.root).glob("*/*/data/*.lance"))


def journal(g: Graph, stage: str) -> set[Path]:
    return set(Path(g.root).glob(f"__jobs/*/journal/{stage}-*"))


def check_right(g: Graph, path: Path, tmp_path: Path) -> None:
    """The graph is what one process makes of the same, and nothing is left beside it."""
    (tmp_path / "other").mkdir()
    other = new_graph(tmp_path / "other")
    other.load(path, engine="local")
    for kind in ("Person", "Knows"):
        assert contents(g)[kind] == contents(other)[kind]
    assert len({row["id"] for row in rows(g, "Note")}) == NOTES == len(rows(g, "Note"))
    assert g.recovery.list() == []
    assert not list(Path(g.root).glob("__jobs/*/*"))
    assert g.verify().ok


def test_a_killed_job_goes_on_from_what_was_staged(g: Graph, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "all.jsonl", entries())
    head = g.snapshot().version
    killed_at("rows staged", g, path)
    assert g.snapshot().version == head
    (report,) = g.recovery.list()
    assert (report.kind, report.job, report.resumable) == ("load", "nightly", False)
    staged = data_files(g)
    assert len(staged) > 3  # several of a type
    result = g.load(path, engine="spark", job="nightly")
    assert data_files(g) == staged  # nothing was written again
    assert (result.rows, result.repeated) == (80 + NOTES, False)
    check_right(g, path, tmp_path)
    again = g.load(path, engine="spark", job="nightly")
    assert again.repeated
    assert again.commit == result.commit
    assert g.snapshot().version == head + 1
    check_right_files(g)


def check_right_files(g: Graph) -> None:
    assert g.recovery.list() == []
    assert not list(Path(g.root).glob("__jobs/*/*"))


class Killed(BaseException):
    """Nothing of the driver runs after this."""


def stopped_at(point: str, g: Graph, path: Path, **options: Any) -> None:
    """As if the process had been killed there: nothing is released, ended or removed."""

    def die(reached: str) -> None:
        if reached == point:
            raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(omnigraph.runtime, "on_reach", die)
        patch.setattr("omnigraph.engine.upkeep.recovery.Recovery.end", lambda *_: None)
        for name in ("release", "remove"):
            patch.setattr(jobs.Job, name, lambda _: None)
        with pytest.raises(Killed):
            g.load(path, engine="spark", job="nightly", **options)


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_every_mode_goes_on_from_every_point(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Any
) -> None:
    """Without processes of their own, so that all points can be gone through."""
    cut_small(monkeypatch.setattr)
    births = count()
    # The run before this one is dead: whoever has its number now was born later.
    monkeypatch.setattr(jobs, "_process", lambda pid: f"{pid}/{next(births)}")
    base = write_lines(tmp_path / "base.jsonl", [person(f"b{i}", city="Ulm") for i in range(25)])
    known = [person(f"b{i}", age=i) for i in range(5)] if mode == "merge" else []
    path = write_lines(tmp_path / "all.jsonl", [*known, *entries()])
    (tmp_path / "other").mkdir()
    other = new_graph(tmp_path / "other")
    other.load(base, engine="local")
    expected = other.load(path, engine="local", mode=mode)
    for point in POINTS:
        place = tmp_path / point.replace(" ", "-")
        place.mkdir()
        g = new_graph(place)
        g.load(base, engine="local")
        head = g.snapshot().version
        stopped_at(point, g, path, mode=mode)
        landed = point in ("after put", "job published")
        assert g.snapshot().version == head + landed, point
        staged = data_files(g)
        result = g.load(path, engine="spark", job="nightly", mode=mode)
        assert result.repeated == landed, point
        if point in POINTS[POINTS.index("rows staged") :]:
            assert data_files(g) == staged, point
        if not landed:
            assert result.counts == expected.counts, point
        for kind in ("Person", "Knows"):
            assert contents(g)[kind] == contents(other)[kind], point
        assert len(rows(g, "Note")) == NOTES
        check_right_files(g)
        assert g.verify().ok


@pytest.mark.slow
@pytest.mark.parametrize("point", POINTS)
def test_a_driver_may_die_anywhere(g: Graph, tmp_path: Path, point: str) -> None:
    path = write_lines(tmp_path / "all.jsonl", entries())
    head = g.snapshot().version
    killed_at(point, g, path)
    landed = point in ("after put", "job published")
    assert g.snapshot().version == head + landed
    assert landed or rows(g, "Person") == []
    staged = data_files(g)
    result = g.load(path, engine="spark", job="nightly")
    assert result.repeated == landed
    if point in POINTS[POINTS.index("rows staged") :]:
        assert data_files(g) == staged
    assert g.snapshot().version == head + 1
    check_right(g, path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "times"), [("read", 1), ("read", 4), ("staged", 1), ("staged", 5)]
)
def test_a_driver_may_die_between_tasks(g: Graph, tmp_path: Path, stage: str, times: int) -> None:
    path = write_lines(tmp_path / "all.jsonl", entries(120))
    killed_at(f"journal {stage}", g, path, times=times)
    kept = {path: path.stat().st_mtime_ns for path in journal(g, stage)}
    assert len(kept) >= times
    assert rows(g, "Person") == []
    pieces = set(Path(g.root).glob("__jobs/*/pieces/*"))
    seen: list[set[Path]] = []

    def look(point: str) -> None:
        if point == "staged":
            found = set(Path(g.root).glob("__jobs/*/pieces/*"))
            seen.append(found)
            assert {path: path.stat().st_mtime_ns for path in kept} == kept

    omnigraph.runtime.on_reach = look
    try:
        result = g.load(path, engine="spark", job="nightly")
    finally:
        omnigraph.runtime.on_reach = None
    assert result.rows == 240 + NOTES
    if stage == "staged":
        assert seen == [pieces]  # nothing was read again
    check_right(g, path, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("point", ["load checked", "rows staged", "before put", "after put"])
@pytest.mark.parametrize("mode", ["merge", "overwrite"])
def test_other_modes_go_on_too(g: Graph, tmp_path: Path, point: str, mode: Any) -> None:
    base = write_lines(tmp_path / "base.jsonl", [person(f"p{i}", city="Ulm") for i in range(25)])
    g.load(base, engine="local")
    path = write_lines(tmp_path / "all.jsonl", entries())
    killed_at(point, g, path, mode=mode)
    staged = data_files(g)
    result = g.load(path, engine="spark", job="nightly", mode=mode)
    if point != "load checked":
        assert data_files(g) == staged
    (tmp_path / "other").mkdir()
    other = new_graph(tmp_path / "other")
    other.load(base, engine="local")
    expected = other.load(path, engine="local", mode=mode)
    if not result.repeated:
        assert result.counts == expected.counts
    for kind in ("Person", "Knows"):
        assert contents(g)[kind] == contents(other)[kind]
    assert g.verify().ok


@pytest.mark.slow
def test_a_job_goes_on_after_others_have_written(g: Graph, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "all.jsonl", entries())
    killed_at("rows staged", g, path)
    with g.transaction() as tx:
        tx.append("Person", {"name": "quick"})
    g.load(path, engine="spark", job="nightly")
    names = {row["name"] for row in rows(g, "Person")}
    assert names == {"quick", *(f"p{i}" for i in range(40))}
    with g.transaction() as tx:
        tx.upsert("Person", {"name": "q", "email": "e"})
    more = write_lines(tmp_path / "more.jsonl", [person("z", email="e")])
    with pytest.raises(InvalidData, match="another Person has already"):
        g.load(more, engine="spark", job="other")
    assert g.recovery.list() == []


@pytest.mark.slow
def test_a_branch_that_the_job_creates_is_its_own_when_it_goes_on(g: Graph, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "all.jsonl", entries())
    options: dict[str, Any] = {"branch": "import", "create_branch_from": "main"}
    killed_at("branch created", g, path, **options)
    staged = data_files(g)
    result = g.load(path, engine="spark", job="nightly", **options)
    assert result.rows == 80 + NOTES
    assert data_files(g) == staged
    assert len(rows(g, "Person", ref="import")) == 40
    assert rows(g, "Person") == []


@pytest.mark.slow
def test_what_a_job_has_staged_is_given_up_with_it(g: Graph, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "all.jsonl", entries())
    killed_at("rows staged", g, path)
    (report,) = g.recovery.list()
    with pytest.raises(InvalidArgument, match="had not staged everything") as caught:
        g.recovery.resume(report.id)
    assert "Run the job 'nightly' again" in caught.value.hint
    g.recovery.discard(report.id)
    check_right_files(g)
    g.load(path, engine="spark", job="nightly")
    check_right(g, path, tmp_path)


@pytest.mark.slow
def test_anybody_publishes_what_a_job_has_staged(g: Graph, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "all.jsonl", entries())
    killed_at("plan noted", g, path)
    (report,) = g.recovery.list()
    commit = g.recovery.resume(report.id)
    check_right(g, path, tmp_path)
    again = g.load(path, engine="spark", job="nightly")
    assert again.repeated
    assert again.commit == commit


# Names


def test_two_runs_of_one_job_at_once_are_told_from_each_other(
    g: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = g._session
    held = jobs.begin_or_resume_job(session, "nightly", "call")
    with pytest.raises(JobRunning, match=f"'nightly' is running in process {os.getpid()}"):
        jobs.begin_or_resume_job(session, "nightly", "call")
    path = write_lines(tmp_path / "one.jsonl", [person("a")])
    with pytest.raises(JobRunning):
        g.load(path, engine="spark", job="nightly")
    assert rows(g, "Person") == []
    held.release()
    other = jobs.begin_or_resume_job(session, "nightly", "call")
    with pytest.raises(JobRunning, match="taken over by another run"):
        held.require_held()
    other.require_held()
    monkeypatch.setattr(jobs, "_place", lambda: "elsewhere/boot/pid")
    with pytest.raises(JobRunning, match="was heard of 0 s ago on"):
        jobs.begin_or_resume_job(session, "nightly", "call")
    other.remove()
    with pytest.raises(JobRunning, match="was given up"):
        other.require_held()
    with pytest.raises(InvalidArgument, match="job"):
        g.load(path, engine="spark", job="")


@pytest.mark.slow
def test_a_job_is_the_same_load_or_an_error(g: Graph, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "all.jsonl", entries())
    killed_at("load read", g, path)
    with pytest.raises(InvalidArgument, match="begun with other sources or options"):
        g.load(path, engine="spark", job="nightly", mode="merge")
    g.load(path, engine="spark", job="nightly")
    check_right(g, path, tmp_path)


@pytest.mark.slow
def test_a_file_that_changed_meanwhile_is_read_again(g: Graph, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "all.jsonl", entries())
    killed_at("rows staged", g, path)
    write_lines(path, [*entries(), person("late")])
    result = g.load(path, engine="spark", job="nightly")
    assert result.rows == 81 + NOTES
    check_right(g, path, tmp_path)


def test_a_job_that_was_refused_leaves_nothing(g: Graph, tmp_path: Path) -> None:
    path = write_lines(tmp_path / "bad.jsonl", [person("a"), person("a")])
    with pytest.raises(InvalidData):
        g.load(path, engine="spark", job="nightly")
    check_right_files(g)
    write_lines(path, [person("a")])
    assert g.load(path, engine="spark", job="nightly").rows == 1
    assert g.load(path, engine="local", job="nightly").repeated


@pytest.mark.slow
def test_a_dataframe_is_read_once_for_a_job(
    g: Graph, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph import runtime

    frame = spark.range(0, 50, 1, 3).selectExpr("concat('t', id, '-', rand()) as text")

    class Stopped(BaseException):
        pass

    def stop(point: str) -> None:
        if point == "load read":
            raise Stopped

    monkeypatch.setattr(runtime, "on_reach", stop)
    with pytest.raises(Stopped):
        g.load(frame, type="Note", job="notes")
    monkeypatch.setattr(runtime, "on_reach", None)
    (entry,) = journal(g, "read")
    before = entry.read_bytes()
    kept: list[bytes] = []
    monkeypatch.setattr(
        runtime, "on_reach", lambda p: kept.append(entry.read_bytes()) if p == "staged" else None
    )
    result = g.load(frame, type="Note", job="notes")
    assert result.rows == 50
    assert kept == [before]
