"""Folding a chain: old versions move to the archive, and nothing becomes unreadable by it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.upkeep.optimize import optimize
from omnigraph.engine.upkeep.optimize_report import Optimized
from omnigraph.errors import OmnigraphError, Reclaimed
from omnigraph.plan.optimize import Limits
from omnigraph.settings import Settings
from omnigraph.store.history import Archive
from omnigraph.telemetry import Ledger
from tests.bench.aging import HOUR, PassingTime, at_point
from tests.bench.faults import Crashed

SCHEMA = "node Person { name: String @key age: I32? }\n"
SETTINGS = Settings(durability="relaxed", folding="off", queue=False)
BLOCK = 8


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "graph"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> PassingTime:
    return PassingTime(monkeypatch)


@pytest.fixture
def g(place: Path, clock: PassingTime) -> Graph:
    return omnigraph.init(place, schema=SCHEMA, settings=SETTINGS, runtime=clock)


def another(place: Path, clock: PassingTime) -> Graph:
    return omnigraph.open(place, settings=SETTINGS, runtime=clock)


def add(g: Graph, *names: str, branch: str = "main") -> str:
    with g.branch(branch).transaction() as tx:
        tx.append("Person", [{"name": name} for name in names])
    return g.at(branch).commit.id


def names(g: Graph, ref: str = "main") -> list[str]:
    return sorted(g.at(ref).scan("Person").read_all()["name"].to_pylist())


def fold(g: Graph, *, dry_run: bool = False, branch: str = "main") -> Optimized:
    """As `optimize` does, with small blocks."""
    return optimize(g._session, branch, None, limits=Limits(versions=BLOCK), dry_run=dry_run)


def chained(place: Path, branch: str = "main") -> list[int]:
    """Without the first, which keeps its place, if others have gone."""
    files = (place / "__manifest" / branch).glob("*.json")
    found = sorted(2**64 - 1 - int(path.stem) for path in files)
    assert found[0] == 1
    return found if 2 in found else found[1:]


def test_old_versions_leave_the_chain_and_every_ref_reads_as_before(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    told = {add(g, f"p{n}"): n + 1 for n in range(20)}
    middle = g.at("main~10").commit
    clock.wait(place, 2 * HOUR)
    log = [commit.id for commit in g.log()]
    planned = fold(g, dry_run=True)
    assert (planned.commit, planned.folded) == (None, 16)
    assert chained(place) == list(range(1, 22))
    done = fold(g)
    assert done.commit is not None
    assert (done.commit.kind, done.folded) == ("optimize", 16)
    assert chained(place) == list(range(17, 23))
    for other in (g, another(place, clock)):
        for commit, count in told.items():
            assert len(names(other, f"main@{commit}")) == count
            assert len(names(other, commit)) == count
        for back in range(20):
            assert len(names(other, f"main~{back}")) == 20 - back
        moment = datetime.fromtimestamp(middle.created_at / 1e6, UTC)
        stamp = moment.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        assert other.at(f"main*{stamp}").commit.id == middle.id
        assert [commit.id for commit in other.log()] == [done.commit.id, *log]
        report = other.verify(deep=True)
        assert report.ok, report.errors


def test_a_chain_that_is_young_or_short_is_not_folded(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    for n in range(20):
        add(g, f"p{n}")
    assert fold(g).folded == 0  # young
    clock.wait(place, 2 * HOUR)
    assert fold(g).folded == 16
    assert fold(g).commit is None  # what is left is less than a block
    for n in range(20):
        add(g, f"q{n}")
    assert fold(g).folded == 0


def test_the_head_at_the_grace_period_and_all_after_it_stay(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    for n in range(8):
        add(g, f"p{n}")
    clock.wait(place, 2 * HOUR)  # version 9 has been the head since
    for n in range(8):
        add(g, f"q{n}")
    assert fold(g).folded == 8
    assert chained(place)[0] == 9


@pytest.mark.parametrize(
    "point", ["versions archived", "staged", "before put", "fold published", "fold pruned"]
)
def test_a_fold_that_is_killed_loses_nothing_and_is_finished_by_the_next(
    g: Graph, place: Path, clock: PassingTime, point: str
) -> None:
    for n in range(20):
        add(g, f"p{n}")
    clock.wait(place, 2 * HOUR)

    def kill() -> None:
        raise Crashed

    with pytest.raises(Crashed), at_point(point, kill):
        fold(g)
    again = another(place, clock)
    assert [len(names(again, f"main~{back}")) for back in range(20)] == list(range(20, 0, -1))
    assert again.verify(deep=True).ok
    clock.wait(place, 2 * HOUR)
    for n in range(BLOCK):
        add(again, f"q{n}")
    clock.wait(place, 2 * HOUR)
    fold(again)
    assert chained(place)[0] >= 17
    assert len(names(again, "main~27")) == 1
    assert again.verify(deep=True).ok


def test_writers_that_come_between_do_not_fail_and_the_fold_lands(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    for n in range(20):
        add(g, f"p{n}")
    clock.wait(place, 2 * HOUR)
    writer = another(place, clock)
    with at_point("before put", lambda: add(writer, "between")) as reached:
        done = fold(g)
    assert reached
    assert done.folded == 16
    assert len(names(g)) == 21
    assert g.verify(deep=True).ok


def test_two_folds_at_once_fold_once(g: Graph, place: Path, clock: PassingTime) -> None:
    for n in range(20):
        add(g, f"p{n}")
    clock.wait(place, 2 * HOUR)
    with at_point("versions archived", lambda: fold(another(place, clock))) as reached:
        done = fold(g)
    assert reached
    assert done.commit is None
    assert sum(commit.kind == "optimize" for commit in g.log()) == 1
    assert g.verify(deep=True).ok


def test_a_writer_that_slept_does_not_win_a_number_that_was_folded(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    """Hazard 8: its put would land where the chain has no object any more."""
    add(g, "first")
    patient = replace(SETTINGS, retry_for=10 * HOUR)
    sleeper = omnigraph.open(place, settings=patient, runtime=clock)
    sleeper.snapshot()

    def sleep() -> None:
        for n in range(20):
            add(g, f"p{n}")
        clock.wait(place, 2 * HOUR)
        assert fold(g).folded

    with at_point("before put", sleep) as reached:
        sleeper.mutate('insert Person { name: "slept" }')
    assert reached
    assert len(names(another(place, clock))) == 22
    assert min(chained(place)) >= 17
    assert [c.id for c in g.log()] == [c.id for c in another(place, clock).log()]
    assert g.verify(deep=True).ok


def test_a_ghost_on_the_chain_is_not_taken_for_the_version_that_was_folded(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    for n in range(20):
        add(g, f"p{n}")
    ghost = sorted((place / "__manifest" / "main").glob("*.json"))[-1 - 4]
    data = ghost.read_bytes().replace(b'"kind":"write"', b'"kind":"ghost"')
    assert b"ghost" in data
    clock.wait(place, 2 * HOUR)
    fold(g)
    kinds = [commit.kind for commit in g.log()]
    ghost.write_bytes(data)
    other = another(place, clock)
    assert [commit.kind for commit in other.log()] == kinds
    assert len(names(other, "main~16")) == 4
    clock.wait(place, 2 * HOUR)
    other.cleanup(keep=3, older_than=0)
    assert not ghost.exists()
    assert [c.kind for c in other.log()] == ["cleanup", *kinds]


def test_cleanup_goes_on_below_what_was_folded(g: Graph, place: Path, clock: PassingTime) -> None:
    for n in range(20):
        add(g, f"p{n}")
    g.create_tag("early", "main~18")
    clock.wait(place, 2 * HOUR)
    fold(g)
    log = [commit.id for commit in g.log()]
    clock.wait(place, 2 * HOUR)
    planned = g.cleanup(keep=10, older_than=0, dry_run=True)
    report = g.cleanup(keep=10, older_than=0)
    assert {one.key for one in planned.removed} == {one.key for one in report.removed}
    assert len(names(g, "main~9")) == 11
    assert len(names(g, "early")) == 2
    with pytest.raises(Reclaimed):
        g.at("main~12")
    assert [commit.id for commit in g.log()][1:] == log
    clock.wait(place, 2 * HOUR)
    g.cleanup(keep=1, older_than=0)
    assert [commit.id for commit in g.log()][2:] == log
    verified = g.verify(deep=True)
    assert verified.ok, verified.errors
    assert len(names(g)) == 20


def test_of_what_was_folded_and_is_reclaimed_the_log_and_what_tags_need_stay(
    g: Graph, place: Path, clock: PassingTime, tmp_path: Path
) -> None:
    commits = [add(g, f"p{n}") for n in range(24)]
    g.create_tag("early", f"main@{commits[5]}")
    clock.wait(place, 2 * HOUR)
    fold(g)
    for n in range(24, 28):
        add(g, f"p{n}")
    clock.wait(place, 2 * HOUR)
    reader = another(place, clock)
    told = [(commit.id, commit.operation) for commit in reader.log()]
    g.cleanup(keep=2, older_than=0)
    omnigraph.copy(place, tmp_path / "copy", settings=SETTINGS, runtime=clock)
    copied = another(tmp_path / "copy", clock)
    for one in (g, reader, another(place, clock), copied):
        assert [(commit.id, commit.operation) for commit in one.log()][-len(told) :] == told
        assert names(one, "early") == sorted(f"p{n}" for n in range(6))
        with pytest.raises(Reclaimed):
            one.at(f"main@{commits[9]}")
    assert copied.verify(deep=True).ok
    assert g.verify(deep=True).ok


def test_branches_merges_restores_and_feeds_go_through_the_fold(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    for n in range(4):
        add(g, f"p{n}")
    g.create_branch("side")
    cursor = [block.cursor for block in g.changes()][2]
    for n in range(16):
        add(g, f"q{n}")
    add(g, "on side", branch="side")
    clock.wait(place, 2 * HOUR)
    assert fold(g).folded == 16
    other = another(place, clock)
    told = [change.id for block in other.changes(cursor) for change in block.changes]
    assert sorted(told) == sorted(["p2", "p3", *(f"q{n}" for n in range(16))])
    other.create_branch("old", "main~14")
    assert len(names(other, "old")) == 6
    other.merge("side")
    assert len(names(other)) == 21
    other.restore("main~12")
    assert len(names(other)) < 21
    assert other.verify(deep=True).ok


def test_a_fold_on_a_graph_that_is_copied_comes_along(
    g: Graph, place: Path, clock: PassingTime, tmp_path: Path
) -> None:
    for n in range(20):
        add(g, f"p{n}")
    clock.wait(place, 2 * HOUR)
    fold(g)
    omnigraph.copy(place, tmp_path / "copy", settings=SETTINGS, runtime=clock)
    copied = another(tmp_path / "copy", clock)
    assert [c.id for c in copied.log()] == [c.id for c in g.log()]
    assert len(names(copied, "main~15")) == 5
    add(copied, "more")
    assert copied.verify(deep=True).ok


def test_what_was_folded_while_a_copy_was_made_does_not_reach_into_its_future(
    g: Graph, place: Path, clock: PassingTime, tmp_path: Path
) -> None:
    for n in range(4):
        add(g, f"p{n}")

    def go_on() -> None:
        for n in range(20):
            add(g, f"q{n}")
        clock.wait(place, 2 * HOUR)
        fold(g)

    # Between the look at the chains and the look at the histories.
    with at_point("chains surveyed", go_on) as reached:
        omnigraph.copy(place, tmp_path / "copy", settings=SETTINGS, runtime=clock)
    assert reached
    copied = another(tmp_path / "copy", clock)
    assert len(names(copied)) == 4
    for n in range(20):
        add(copied, f"other{n}")
    clock.wait(tmp_path / "copy", 2 * HOUR)
    fold(copied)
    assert len(names(copied, "main~10")) == 14
    assert all(name[0] in "po" for name in names(copied, "main~3"))
    assert copied.verify(deep=True).ok


def test_small_segments_are_written_as_one_and_readers_with_old_names_find_it(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    reader = another(place, clock)
    for turn in range(12):
        for n in range(BLOCK):
            add(g, f"p{turn}-{n}")
        clock.wait(place, 2 * HOUR)
        assert fold(g).folded >= BLOCK
        reader.snapshot()
        assert len(list(reader.log())) == len(list(g.log()))
    segments = Archive("main").segments(g._session.metered(Ledger()))
    assert len(segments) <= 9
    assert len(names(reader, "main~90")) == 6
    assert g.verify(deep=True).ok


def test_damage_of_a_segment_is_found_and_named(g: Graph, place: Path, clock: PassingTime) -> None:
    for n in range(20):
        add(g, f"p{n}")
    clock.wait(place, 2 * HOUR)
    fold(g)
    (segment,) = (place / "__history" / "main").iterdir()
    whole = segment.read_bytes()
    middle = len(whole) // 2
    for broken in (whole[:-200], whole[:middle] + b"\x01" * 80 + whole[middle + 80 :], b""):
        segment.write_bytes(broken)
        report = another(place, clock).verify()
        assert not report.ok
        assert any(segment.name in finding.object for finding in report.errors), report.errors
    segment.unlink()
    assert not another(place, clock).verify().ok
    with pytest.raises(OmnigraphError):
        another(place, clock).at("main~12")
