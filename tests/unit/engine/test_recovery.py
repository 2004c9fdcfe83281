"""Intents: what a long operation said it would do can be finished, or given up, by others."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.write.publisher import publish
from omnigraph.errors import Conflict, Corrupt, IntentNotFound, InvalidArgument, ReadOnly, Reclaimed
from omnigraph.plan.publish import Append, Lineage, PublishPlan
from omnigraph.settings import Settings
from omnigraph.store.intents import Intent
from omnigraph.store.staging import stage_rows
from omnigraph.telemetry import Ledger
from tests.bench.aging import HOUR, MovingRuntime, age

SCHEMA = "node Note { text: String? }\nnode Person { name: String @key }\n"
SETTINGS = Settings(durability="relaxed", folding="off", queue=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "graph"


@pytest.fixture
def clock() -> MovingRuntime:
    return MovingRuntime()


@pytest.fixture
def g(place: Path, clock: MovingRuntime) -> Graph:
    return omnigraph.init(place, schema=SCHEMA, settings=SETTINGS, runtime=clock)


def notes(g: Graph) -> list[str]:
    return sorted(g.snapshot().scan("Note").read_all()["text"].to_pylist())


def stage(g: Graph, text: str) -> tuple[Intent, PublishPlan]:
    """A job that staged all of its rows, wrote down its plan, and died."""
    import pyarrow as pa

    session = g._session
    head = session.live_head("main", Ledger())
    intent = g.recovery.begin("load", actor="ann", branch="main", base=head)
    pin = head.pins["node:Note"]
    table = session.tables.open(pin.location, pin.lance_version, Ledger())
    rows = pa.table({"id": pa.array([session.runtime.ulid()]), "text": pa.array([text])})
    staged = stage_rows(table, rows, Ledger())
    plan = PublishPlan(
        branch="main",
        base_version=head.version,
        base_incarnation=head.incarnation,
        actions=(
            Append(
                table="node:Note",
                fragments=staged.fragments,
                fields=staged.fields,
                rows=1,
                bytes=staged.bytes,
            ),
        ),
        lineage=Lineage(kind="load", operation=session.runtime.ulid(), actor="ann"),
    )
    return g.recovery.beat(intent, plan=plan), plan


def add(g: Any, text: str) -> None:
    with g.transaction() as tx:
        tx.append("Note", {"text": text})


def test_a_dead_job_is_found_by_its_silence_and_finished_by_somebody_else(
    g: Graph, place: Path, clock: MovingRuntime
) -> None:
    intent, _ = stage(g, "staged")
    (alive,) = g.recovery.list()
    assert (alive.kind, alive.actor, alive.dead, alive.resumable) == ("load", "ann", False, True)
    add(g, "meanwhile")
    clock.ahead += 2 * HOUR
    age(place, 2 * HOUR)
    assert g.cleanup(keep=1, older_than="1d").removed == []  # what it staged is safe
    (dead,) = g.recovery.list()
    assert dead.dead
    assert dead.silent_for > HOUR
    commit = g.recovery.resume(intent.id)
    assert commit.actor == "omnigraph:recovery"
    assert commit.message == "resumed load of ann"
    assert notes(g) == ["meanwhile", "staged"]
    assert g.recovery.list() == []
    assert g.verify(deep=True).ok


def land(g: Graph, plan: PublishPlan) -> str:
    """As the job itself does, at the end."""

    class Work:
        def __init__(self) -> None:
            self.plan = plan
            self.base = g.snapshot().graph_version

        def replan(self, head: object) -> None:
            raise AssertionError

        def stale(self, head: object) -> bool:
            return False

    return publish(g._session, Work(), Ledger(), retry_for=1).commit


def test_what_had_landed_already_is_not_published_again(g: Graph) -> None:
    """The job died between its put and the end of its intent, long ago."""
    intent, plan = stage(g, "once")
    landed = land(g, plan)
    for number in range(5):
        add(g, f"later {number}")
    assert g.recovery.resume(intent.id).id == landed
    assert notes(g).count("once") == 1


def test_what_had_landed_and_left_the_chain_since_is_not_published_again(
    g: Graph, place: Path, clock: MovingRuntime
) -> None:
    """So long ago that cleanup took its version: only the history knows it (hazard 17)."""
    intent, plan = stage(g, "once")
    landed = land(g, plan)
    for number in range(5):
        add(g, f"later {number}")
    clock.ahead += 2 * HOUR
    age(place, 2 * HOUR)
    kept = place / "__recovery" / f"{intent.id}.json"
    held = kept.read_bytes()
    kept.unlink()
    g.cleanup(keep=1, older_than=0)
    kept.write_bytes(held)  # as one that could not be read at that time
    with omnigraph.open(place, settings=SETTINGS, runtime=clock) as other:
        with pytest.raises(Reclaimed):
            other.at(f"main@{landed}")
        assert other.recovery.resume(intent.id).id == landed
        assert notes(other).count("once") == 1
        assert other.recovery.list() == []


def test_what_is_discarded_is_in_the_log_and_goes_with_the_next_cleanup(
    g: Graph, place: Path
) -> None:
    intent, _ = stage(g, "never")
    add(g, "a")
    version = g.at("main~0").commit.id
    commit = g.recovery.discard(intent.id)
    assert commit is not None
    assert (commit.kind, commit.actor) == ("discard", "omnigraph:recovery")
    assert "ann" in str(commit.message)
    assert intent.id in str(commit.message)
    assert g.snapshot().graph_version.holds(version)  # no reader can tell
    age(place, 2 * HOUR)
    assert "unreferenced" in g.cleanup(keep=5).by_reason()
    assert notes(g) == ["a"]


def test_what_cleanup_may_have_taken_is_not_published(g: Graph, place: Path) -> None:
    intent, _ = stage(g, "late")
    hidden = place / "__recovery" / f"{intent.id}.json"
    held = hidden.read_bytes()
    hidden.unlink()
    for number in range(3):
        add(g, f"n{number}")
    age(place, 2 * HOUR)
    g.cleanup(keep=9)
    g._session.runtime.ahead += HOUR  # type: ignore[attr-defined]
    age(place, HOUR)
    g.mutate('insert Note { text: "x" }')
    g.cleanup(keep=1, older_than=0)
    hidden.write_bytes(held)
    with pytest.raises(Conflict):
        g.recovery.resume(intent.id)
    assert g.verify(deep=True).ok


def test_intents_that_cannot_be_used_say_why(g: Graph, place: Path) -> None:
    unfinished = g.recovery.begin("optimize", branch="main")
    with pytest.raises(InvalidArgument, match="had not staged everything"):
        g.recovery.resume(unfinished.id)
    with pytest.raises(IntentNotFound):
        g.recovery.resume("01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(InvalidArgument):
        g.recovery.discard("../_graph")
    broken = place / "__recovery" / "01ARZ3NDEKTSV4RRFFQ69G5FAV.json"
    broken.write_bytes(b"\x00")
    report = next(one for one in g.recovery.list() if one.problem)
    assert report.id == broken.stem
    assert not report.resumable
    for use in (g.recovery.resume, g.recovery.discard):
        with pytest.raises(Corrupt, match="cannot be read"):
            use(broken.stem)
    assert broken.exists()
    add(g, "writing goes on")
    with omnigraph.open(place, mode="r") as reader:
        assert len(reader.recovery.list()) == 2
        with pytest.raises(ReadOnly):
            reader.recovery.discard(unfinished.id)
    g.recovery.end(unfinished)
    assert len(g.recovery.list()) == 1


def test_files_that_a_load_kept_beside_the_graph_go_with_it(g: Graph, place: Path) -> None:
    def keep(prefix: str) -> Path:
        path = place / prefix / "piece.arrow"
        path.parent.mkdir(parents=True)
        path.write_bytes(b"rows")
        return path

    kept = keep(f"__jobs/{'a' * 32}")
    intent = g.recovery.begin("load", details={"files": f"__jobs/{'a' * 32}", "job": "nightly"})
    assert [one.job for one in g.recovery.list()] == ["nightly"]
    g.recovery.discard(intent.id)
    assert not kept.exists()
    odd = place / "nodes"
    wrong = g.recovery.begin("load", details={"files": "nodes"})
    with pytest.raises(Corrupt, match="nodes"):
        g.recovery.discard(wrong.id)
    g.recovery.end(wrong)
    assert odd.is_dir()  # only what passes is ever deleted
    lost = keep(f"__spool/{'B' * 26}")
    age(place, 2 * HOUR)
    g.cleanup(keep=1)
    assert lost.exists()  # a write without an intent may take that long
    g.recovery.end(g.recovery.begin("load", details={"files": f"__spool/{'B' * 26}"}))
    assert not lost.exists()
    lost = keep(f"__spool/{'C' * 26}")
    age(place, 30 * 24 * HOUR)
    g.cleanup(keep=1)
    assert not lost.exists()
