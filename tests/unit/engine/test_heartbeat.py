"""Long operations of one process: after a while an intent says that they are there, and cleanup of
another process leaves them what they have staged, however long they take."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph, runtime
from omnigraph.engine.upkeep import heartbeat
from omnigraph.engine.upkeep.recovery import Recovery
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger
from tests.bench.aging import HOUR, PassingTime, at_point

SCHEMA = "node Person { name: String @key age: I32? }\n"
SETTINGS = Settings(durability="relaxed", folding="off", queue=False, retry_for=99 * HOUR)
ROWS = [{"name": f"p{n}"} for n in range(50)]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "graph"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> PassingTime:
    return PassingTime(monkeypatch)


@pytest.fixture
def g(place: Path, clock: PassingTime) -> Graph:
    g = omnigraph.init(place, schema=SCHEMA, settings=SETTINGS, runtime=clock)
    for n in range(4):
        g.mutate(f'insert Person {{ name: "before{n}" }}')
    clock.wait(place, 3 * HOUR)  # there is something to clean, whatever is under way
    return g


@pytest.fixture
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    """A minute is over at once."""
    monkeypatch.setattr(heartbeat, "_OFTEN", 0.01)


def until(found: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 30
    while not found():
        assert time.monotonic() < deadline
        time.sleep(0.005)


def data_files(place: Path) -> int:
    return len(list(place.glob("nodes/*/data/*")))


class Elsewhere:
    """Another process, hours later, which cleans."""

    def __init__(
        self,
        place: Path,
        clock: PassingTime,
        *,
        beats: bool = True,
        then: Callable[[], None] = lambda: None,
    ) -> None:
        self.place, self.clock, self.beats = place, clock, beats
        self.then = then
        self.kinds: list[str | None] = []
        self.files = 0

    def __call__(self) -> None:
        other = omnigraph.open(self.place, settings=SETTINGS, runtime=self.clock)
        if self.beats:
            until(lambda: bool(other.recovery.list()))
        self.clock.wait(self.place, 3 * HOUR)
        self.then()
        if self.beats:
            until(lambda: not other.recovery.list()[0].dead)
        self.kinds = [one.kind for one in other.recovery.list()]
        with pytest.raises(ZeroDivisionError), at_point("staged", lambda: 1 / 0):
            other.mutate('insert Person { name: "aborted" }')
        other.cleanup(keep=1, older_than=0)
        self.files = data_files(self.place)
        # Something was cleaned, so that its commit is what the operation binds to.
        assert next(other.log()).kind == "cleanup"


def test_a_load_that_lasts_is_published_as_it_was_staged(
    g: Graph, place: Path, clock: PassingTime, soon: None
) -> None:
    elsewhere = Elsewhere(place, clock)
    with at_point("staged", elsewhere) as reached:
        g.load(ROWS, type="Person", actor="ann")
    assert reached
    assert elsewhere.kinds == ["load"]
    assert data_files(place) == elsewhere.files
    assert g.snapshot().scan("Person").read_all().num_rows == 54
    assert g.recovery.list() == []
    report = g.verify(deep=True)
    assert report.ok, report.errors


def test_without_the_intent_it_would_have_to_stage_again(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    elsewhere = Elsewhere(place, clock, beats=False)
    with at_point("staged", elsewhere):
        g.load(ROWS, type="Person")
    assert data_files(place) == elsewhere.files + 1
    assert g.snapshot().scan("Person").read_all().num_rows == 54
    assert g.verify(deep=True).ok


def test_an_optimize_that_lasts_keeps_what_it_staged(
    g: Graph, place: Path, clock: PassingTime, soon: None
) -> None:
    elsewhere = Elsewhere(place, clock)
    with at_point("staged", elsewhere) as reached:
        done = g.optimize()
    assert reached
    assert elsewhere.kinds == ["optimize"]
    assert done.commit is not None
    assert g.recovery.list() == []
    assert g.verify(deep=True).ok


def test_a_short_operation_writes_no_intent(g: Graph, place: Path) -> None:
    with at_point("staged", lambda: None) as reached:
        g.load(ROWS, type="Person")
    g.optimize()
    assert reached
    assert not (place / "__recovery").exists()


def test_a_load_that_dies_with_everything_staged_can_be_published_by_anybody(
    g: Graph, place: Path, clock: PassingTime, soon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(place, settings=SETTINGS, runtime=clock)

    def hook(point: str) -> None:
        if point == "staged":
            until(lambda: bool(other.recovery.list()))
        if point == "tables committed":
            raise ZeroDivisionError

    with monkeypatch.context() as patch:
        patch.setattr(Recovery, "end", lambda self, intent: None)  # killed
        patch.setattr(runtime, "on_reach", hook)
        with pytest.raises(ZeroDivisionError):
            g.load(ROWS, type="Person", actor="ann", message="people")
    clock.wait(place, 2 * HOUR)
    (intent,) = other.recovery.list()
    assert (intent.kind, intent.dead, intent.resumable) == ("load", True, True)
    other.cleanup(keep=1, older_than="2d")
    commit = other.recovery.resume(intent.id)
    assert (commit.actor, commit.message) == (
        "omnigraph:recovery",
        "resumed load of ann: people",
    )
    assert other.snapshot().scan("Person").read_all().num_rows == 54
    assert other.verify(deep=True).ok


def test_one_that_nobody_can_go_on_with_holds_cleanup_up_for_the_grace_period_only(
    g: Graph, place: Path, clock: PassingTime, soon: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(place, settings=SETTINGS, runtime=clock)
    with monkeypatch.context() as patch:
        patch.setattr(Recovery, "end", lambda self, intent: None)

        def die() -> None:
            until(lambda: bool(other.recovery.list()))
            raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError), at_point("staged", die):
            g.load(ROWS, type="Person")
    (intent,) = other.recovery.list()
    assert not intent.resumable
    clock.wait(place, 2 * HOUR)
    other.cleanup(keep=9, older_than="7d")  # the first publishes, and takes what was old then
    assert other.recovery.list() == []
    assert data_files(place) == 4


def test_what_cleanup_said_while_an_intent_was_there_does_not_outdate_it(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    """The cutoff that cleanup publishes lies before what the intent counts on."""
    work = heartbeat.Heartbeat(g._session, "load", branch="main")
    work.beat()
    Elsewhere(place, clock, beats=False, then=work.beat)()
    assert work.covers(g._session.head("main", Ledger()))


def test_an_intent_that_was_silent_for_too_long_covers_nothing(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    work = heartbeat.Heartbeat(g._session, "load", branch="main")
    work.beat()
    clock.wait(place, 9 * HOUR)
    Elsewhere(place, clock, beats=False)()
    assert not work.covers(g._session.head("main", Ledger()))
