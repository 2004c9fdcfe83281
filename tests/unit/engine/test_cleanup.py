"""Cleanup: takes what nothing needs, and never what somebody reads or is about to publish."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest

import omnigraph
from omnigraph import Graph, runtime
from omnigraph.engine.upkeep.cleanup_report import Cleaned
from omnigraph.errors import HistoryGap, InvalidArgument, OmnigraphError, Reclaimed
from omnigraph.settings import Settings
from omnigraph.store.intents import Intent, write_intent
from omnigraph.telemetry import Ledger
from tests.bench.aging import HOUR, PassingTime, at_point

SCHEMA = "node Person { name: String @key age: I32? }\nedge Knows: Person -> Person\n"
SETTINGS = Settings(durability="relaxed", folding="off", queue=False)


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "graph"


class Time:
    """That of the test that runs: writers and the store go by it."""

    now: PassingTime


@pytest.fixture(autouse=True)
def _time(monkeypatch: pytest.MonkeyPatch) -> None:
    Time.now = PassingTime(monkeypatch)


@pytest.fixture
def g(place: Path) -> Graph:
    return omnigraph.init(place, schema=SCHEMA, settings=SETTINGS, runtime=Time.now)


def another(place: Path) -> Graph:
    return omnigraph.open(place, settings=SETTINGS, runtime=Time.now)


def add(g: Any, *names: str, branch: str = "main", **options: Any) -> None:
    at = g if branch == "main" else g.branch(branch)
    with at.transaction(**options) as tx:
        tx.append("Person", [{"name": name} for name in names])


def names(g: Graph, ref: str = "main") -> list[str]:
    return sorted(g.at(ref).scan("Person").read_all()["name"].to_pylist())


def clean(g: Graph, place: Path, **options: Any) -> Cleaned:
    """Two hours later."""
    Time.now.wait(place, 2 * HOUR)
    return g.cleanup(**({"keep": 2, "older_than": 0} | options))


def files(place: Path) -> set[str]:
    found = (p for p in place.rglob("*") if p.is_file() and "__wait" not in p.parts)
    return {str(p.relative_to(place)) for p in found}


def assert_sound(g: Graph, *, tidy: bool = False) -> None:
    report = g.verify(deep=True)
    assert report.ok, report.errors
    if tidy:
        assert report.findings == []


def test_a_dry_run_lists_exactly_what_goes_and_changes_nothing(g: Graph, place: Path) -> None:
    for number in range(8):
        add(g, f"p{number}")
    g.create_branch("gone")
    add(g.branch("gone"), "x")
    g.delete_branch("gone")
    g.optimize()
    before = files(place)
    told = clean(g, place, dry_run=True)
    assert files(place) == before
    done = g.cleanup(keep=2, older_than=0)
    went = {one.key for one in done.removed}
    assert {one.key for one in told.removed} == went
    assert before - files(place) == went
    assert (told.bytes, told.files, told.by_reason()) == (done.bytes, done.files, done.by_reason())
    assert told.floors == done.floors
    assert_sound(g, tidy=True)


def test_what_is_kept_reads_as_before_and_what_went_says_so(g: Graph, place: Path) -> None:
    for number in range(8):
        add(g, f"p{number}", actor="ann", message=f"m{number}")
    commits = list(g.log())
    expected = {commit.id: names(g, commit.id) for commit in commits[:3]}
    clean(g, place, keep=3)
    with another(place) as fresh:
        for handle in (g, fresh):
            for commit, held in expected.items():
                assert names(handle, commit) == held
            assert names(handle, "main~2") == expected[commits[2].id]
            for ref in ("main~5", commits[5].id, f"main@{commits[5].id}"):
                with pytest.raises(Reclaimed) as told:
                    handle.at(ref)
                assert told.value.http_status == 410
            # The audit is whole: who did what, back to the beginning.
            log = [c for c in handle.log() if c.kind != "cleanup"]
            assert log == commits
            assert [c.kind for c in handle.log(limit=1)] == ["cleanup"]
            origins = {one.property: one.commit for one in handle.blame("Person", "p0")}
            assert origins["name"] is None  # who set it cannot be known any more
            with pytest.raises(HistoryGap):
                list(handle.changes())
            blocks = list(handle.changes(commits[2].id))
            assert [b.commit.message for b in blocks if b.commit.message] == ["m6", "m7"]


def test_what_was_used_again_just_before_it_was_to_go_is_known_to_be_needed(
    g: Graph, place: Path
) -> None:
    """Cleanup has said that it goes, and found out then that it must not: the branch says so."""
    for number in range(6):
        add(g, f"p{number}")
    old = g.at("main~3").commit.id
    with at_point("cleanup looked", lambda: another(place).create_branch("late", f"main@{old}")):
        clean(g, place, keep=1)
    assert not g.snapshot().graph_version.retains(g.at("late").graph_version.version)
    assert names(g, "late") == ["p0", "p1", "p2"]
    add(g, "on late", branch="late")
    for _ in range(2):
        assert_sound(g, tidy=True)
        clean(g, place, keep=1)
    add(g, "on main")
    g.merge("late")
    assert "on late" in names(g)
    assert_sound(g)


def test_a_branch_that_is_made_from_an_older_version_can_be_merged_after_cleanup(
    g: Graph, place: Path
) -> None:
    """Two heads may have a newer base in common than one of them and an older version has."""
    for number in range(4):
        add(g, f"p{number}")
    g.create_branch("side")
    add(g, "side 0", branch="side")
    for number in range(4, 8):
        add(g, f"p{number}")
    g.branch("side").merge("main")
    add(g, "side 1", branch="side")
    clean(g, place, keep=3)
    clean(g, place, keep=3)
    g.create_branch("late", "side~2")  # from before the merge
    assert names(g, "late") == ["p0", "p1", "p2", "p3", "side 0"]
    add(g, "on late", branch="late")
    clean(g, place, keep=3)
    g.merge("late")
    assert "on late" in names(g)
    assert_sound(g)


def test_a_snapshot_that_was_pinned_before_it_went_says_so(g: Graph, place: Path) -> None:
    add(g, "a")
    with another(place) as reader:
        old = reader.snapshot()
        for number in range(5):
            add(g, f"p{number}")
        g.optimize()
        clean(g, place, keep=1)
        with pytest.raises(Reclaimed):
            old.scan("Person").read_all()


def test_young_files_and_young_versions_stay(g: Graph, place: Path) -> None:
    for number in range(4):
        add(g, f"p{number}")
    with pytest.raises(ZeroDivisionError), at_point("staged", lambda: 1 / 0):
        add(g, "staged, and perhaps about to be published")
    assert g.cleanup(keep=1, older_than=0).removed == []  # nothing is older than the grace
    Time.now.wait(place, 2 * HOUR)
    assert g.cleanup(keep=9).by_reason().keys() == {"unreferenced"}
    everything = files(place)
    assert g.cleanup(keep=1, older_than="1d").removed == []  # the commits are young
    assert files(place) == everything
    assert g.snapshot().version == 6  # and nothing was published
    with pytest.raises(InvalidArgument, match="writers rely on"):
        g.cleanup(grace=1)
    with pytest.raises(InvalidArgument, match="duration"):
        g.cleanup(older_than="soon")
    with pytest.raises(InvalidArgument, match="at least"):
        g.cleanup(keep=0)


def test_deleted_branches_dropped_types_and_aborted_writes_are_reclaimed(
    g: Graph, place: Path
) -> None:
    add(g, "a", "b")
    g.mutate('insert Knows { from: "a", to: "b" }')
    g.create_branch("gone")
    add(g.branch("gone"), *(f"x{n}" for n in range(50)))
    g.delete_branch("gone")
    g.apply_schema("node Person { name: String @key age: I32? }\n")
    with pytest.raises(ZeroDivisionError), at_point("staged", lambda: 1 / 0):
        add(g, "never")
    done = clean(g, place, keep=1)
    assert {"dropped type", "old version", "unreferenced"} == set(done.by_reason())
    assert not list(place.glob("edges/*/data/*"))
    assert names(g) == ["a", "b"]
    assert_sound(g, tidy=True)
    assert g.branches() == ["main"]
    g.create_branch("gone")
    assert names(g, "gone") == ["a", "b"]
    assert clean(g, place, keep=1).by_reason().keys() <= {"old version", "unreferenced"}
    assert_sound(g, tidy=True)


@pytest.mark.parametrize("lost", [True, False])
def test_what_was_dropped_for_good_takes_the_older_versions_along(
    g: Graph, place: Path, lost: bool
) -> None:
    add(g, "a")
    first = g.snapshot().commit.id
    with g.transaction() as tx:
        tx.append("Knows", {"src": "a", "dst": "a"})
    g.create_branch("other")
    add(g, "b")
    g.create_tag("kept")
    g.apply_schema("node Person { name: String @key }\n", allow_data_loss=lost)
    add(g, "c")
    add(g, "d")
    assert names(g, "main~2") == ["a", "b"]  # until cleanup comes
    done = clean(g, place, keep=100, older_than="30d")
    assert bool(done.removed) == lost
    if lost:
        with pytest.raises(Reclaimed):
            g.at(f"main@{first}")
    else:
        assert names(g, f"main@{first}") == ["a"]
    assert names(g, "main~2") == ["a", "b"]  # the change itself
    assert names(g, "main~1") == ["a", "b", "c"]
    for ref in ("other", "kept"):  # these have what they had
        assert len(g.at(ref).scan("Knows").read_all()) == 1
    assert_sound(g, tidy=True)
    g.delete_branch("other")
    g.delete_tag("kept")
    clean(g, place, keep=100, older_than="30d")
    assert any((place / "edges").rglob("*.lance")) != lost
    assert_sound(g)


def test_a_schema_change_that_drops_nothing_forgets_nothing(g: Graph, place: Path) -> None:
    add(g, "a")
    g.apply_schema(f"{SCHEMA}node Note {{ text: String }}\n", allow_data_loss=True)
    add(g, "b")
    assert clean(g, place, keep=100, older_than="30d").removed == []
    assert names(g, "main~2") == ["a"]


def test_a_floor_is_not_told_that_nobody_says(g: Graph, place: Path) -> None:
    """The first of a chain stays, so there may be nothing to delete below a higher floor."""
    g.protect("main")
    Time.now.wait(place, 2 * HOUR)
    for dry_run in (True, False):
        done = g.cleanup(keep=1, older_than=0, dry_run=dry_run)
        assert (done.removed, done.floors) == ([], {})
    assert g.snapshot().graph_version.floor == 1


def test_cleaning_again_finds_nothing_and_publishes_nothing(g: Graph, place: Path) -> None:
    for number in range(5):
        add(g, f"p{number}")
    g.create_branch("side")
    g.delete_branch("side")
    g.create_tag("t", "main~2")
    clean(g, place)
    clean(g, place)
    version = g.snapshot().version
    assert clean(g, place).removed == []
    assert g.snapshot().version == version


def test_tags_and_bases_of_merges_to_come_stay_below_the_floor(g: Graph, place: Path) -> None:
    add(g, "base")
    g.create_branch("side")
    add(g.branch("side"), "s1")
    add(g, "early")
    g.create_tag("release")
    for number in range(6):
        add(g, f"p{number}")
    g.mutate('update Person set { age: 1 } where name = "base"')
    for _ in range(2):
        clean(g, place, keep=1)
    with another(place) as fresh:
        assert names(fresh, "release") == ["base", "early"]
        fresh.create_branch("hotfix", "release")
        add(fresh.branch("hotfix"), "h")
        assert names(fresh, "hotfix") == ["base", "early", "h"]
        fresh.delete_branch("hotfix")
        assert fresh.merge("side").outcome == "merged"
        assert names(fresh) == ["base", "early", *(f"p{n}" for n in range(6)), "s1"]
        assert fresh.entity("Person", "base") == {"id": "base", "name": "base", "age": 1}
        fresh.delete_tag("release")
        assert_sound(fresh)
        fresh.delete_branch("side")
        clean(fresh, place, keep=1)
        clean(fresh, place, keep=1)
        assert_sound(fresh, tidy=True)
        assert fresh.snapshot().graph_version.kept == ()
        assert len(list(place.glob("nodes/*/_versions/d*"))) == 1


def test_a_writer_that_slept_with_staged_files_stages_again(g: Graph, place: Path) -> None:
    """The deterministic form of hazard 7: its files are older than the cutoff and go."""
    add(g, "a")
    with another(place) as writer:
        add(writer, "b")

        def sleep() -> None:
            taken = files(place)
            done = clean(g, place, keep=1)
            assert any("/data/" in one.key for one in done.removed if one.key in taken)

        with at_point("staged", sleep) as reached:
            add(writer, "c")
        assert reached
        assert names(writer) == ["a", "b", "c"]
    assert names(g) == ["a", "b", "c"]
    assert_sound(g)


@pytest.mark.parametrize("write", ["append", "load"])
def test_a_writer_that_runs_again_and_again_keeps_no_file_for_longer_than_it_may(
    g: Graph, place: Path, monkeypatch: pytest.MonkeyPatch, write: str
) -> None:
    """Its rows are checked on each new head and not written again, so that they are as old as when
    they were first staged: cleanup goes by that, and so must the writer."""
    add(g, "a")
    puts = 0

    def busy() -> None:
        nonlocal puts
        puts += 1
        assert puts <= 4
        monkeypatch.setattr(runtime, "on_reach", None)
        if puts <= 2:  # each time less than half of the grace period
            Time.now.wait(place, 0.45 * HOUR)
            add(g, f"other{puts}")
        elif puts == 3:
            Time.now.wait(place, 0.25 * HOUR)
            assert "/data/" in "".join(one.key for one in g.cleanup(keep=1, older_than=0).removed)
        monkeypatch.setattr(runtime, "on_reach", hook)

    def hook(point: str) -> None:
        if point == "before put":
            busy()

    with another(place) as writer:
        assert writer._session.settings.grace == HOUR
        monkeypatch.setattr(runtime, "on_reach", hook)
        if write == "append":
            add(writer, "mine", retry_for=9 * HOUR)
        else:
            writer.load([{"name": "mine"}], type="Person", retry_for=9 * HOUR)
        monkeypatch.setattr(runtime, "on_reach", None)
    assert puts == 4
    assert names(g) == ["a", "mine", "other1", "other2"]
    assert_sound(g)


def test_a_writer_that_slept_before_its_put_does_not_win_a_number_that_is_gone(
    g: Graph, place: Path
) -> None:
    """Hazard 8: the number that it wants was taken by others and has been cleaned."""
    with another(place) as writer:
        add(writer, "w0")

        def sleep() -> None:
            for number in range(6):
                add(g, f"p{number}")
            clean(g, place, keep=1)
            for number in range(6, 9):
                add(g, f"p{number}")
            clean(g, place, keep=1)

        with at_point("before put", sleep) as reached:
            add(writer, "w1", retry_for=9 * HOUR)
        assert reached
    everything = sorted(["w0", "w1", *(f"p{n}" for n in range(9))])
    assert names(g) == everything
    with another(place) as fresh:
        assert names(fresh) == everything
    assert_sound(g)


def test_a_commit_without_files_that_slept_before_its_put_is_no_ghost(
    g: Graph, place: Path
) -> None:
    """There is no file that it misses: only the look at the floor after its put can tell."""
    with another(place) as writer:
        add(writer, "w0")

        def sleep() -> None:
            for number in range(6):
                add(g, f"p{number}")
            clean(g, place, keep=1)

        with at_point("before put", sleep) as reached:
            writer.protect("main")
        assert reached
    with another(place) as fresh:
        assert len(names(fresh)) == 7
        assert fresh.protected_branches() == ["main"]
        clean(fresh, place, keep=1)
        assert_sound(fresh, tidy=True)


def test_an_idle_handle_finds_the_head_after_cleanup(g: Graph, place: Path) -> None:
    with another(place) as idle:
        assert names(idle) == []
        for number in range(6):
            add(g, f"p{number}")
        clean(g, place, keep=1)
        assert len(names(idle)) == 6
        add(idle, "mine")
        assert len(names(g)) == 7
    assert_sound(g)


USES: dict[str, Callable[[Graph], object]] = {
    "restore": lambda w: w.restore("main~3"),
    "branch": lambda w: w.create_branch("new", "main~3"),
    "tag": lambda w: w.create_tag("new", "main~3"),
}


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("point", ["before pin", "before put"])
def test_an_old_version_that_is_about_to_be_used_again_is_spared_or_refused(
    g: Graph, place: Path, use: str, point: str
) -> None:
    for number in range(5):
        add(g, f"p{number}")
    g.optimize()
    Time.now.wait(place, 2 * HOUR)
    with another(place) as writer:

        def others() -> None:
            with another(place) as cleaner:
                assert cleaner.cleanup(keep=1, older_than=0).removed

        with at_point(point, others) as reached:
            if point == "before pin":
                with pytest.raises(Reclaimed):
                    USES[use](writer)
            else:
                USES[use](writer)
                ref = "main" if use == "restore" else "new"
                assert names(writer, ref) == ["p0", "p1"]
        assert reached
    assert_sound(g)
    assert not list((place / "__recovery").glob("*.json"))


@pytest.mark.parametrize("use", USES)
def test_who_slept_over_what_held_an_old_version_in_place_is_refused(
    g: Graph, place: Path, use: str
) -> None:
    for number in range(5):
        add(g, f"p{number}")
    g.optimize()
    with another(place) as writer:

        def sleep() -> None:
            with another(place) as cleaner:
                clean(cleaner, place, keep=1)
                clean(cleaner, place, keep=1)

        with at_point("before put", sleep) as reached, pytest.raises(OmnigraphError) as told:
            USES[use](writer)
        assert reached
        assert told.value.code in ("reclaimed", "conflict", "contention")
    assert_sound(g)
    assert g.branches() == ["main"]
    assert g.tags() == {}
    assert len(names(g)) == 5


@pytest.mark.parametrize("nth", [1, 2])
def test_a_merge_that_slept_looks_at_its_source_again(g: Graph, place: Path, nth: int) -> None:
    add(g, "a")
    g.create_branch("side")
    add(g.branch("side"), "s")
    add(g, "b")
    with another(place) as merger:

        def sleep() -> None:
            with another(place) as other:
                add(other.branch("side"), "t")
                other.branch("side").optimize()
                clean(other, place, keep=1)
                other.delete_branch("side")
                other.create_branch("side", "main")
                clean(other, place, keep=1)

        with at_point("tables committed" if nth == 1 else "before put", sleep):
            told = None
            try:
                merger.merge("side")
            except OmnigraphError as error:
                told = error
        assert told is None or told.applied is False
    assert_sound(g)
    assert set(names(g)) >= {"a", "b"}


@pytest.mark.parametrize(
    "point", ["cleanup announced", "cleanup archived", "cleanup pruned", "cleanup swept"]
)
def test_a_cleanup_that_is_killed_is_finished_by_the_next(
    g: Graph, place: Path, point: str
) -> None:
    for number in range(6):
        add(g, f"p{number}")
    g.optimize()
    with pytest.raises(ZeroDivisionError), at_point(point, lambda: 1 / 0):
        clean(g, place)
    with another(place) as fresh:
        assert len(names(fresh)) == 6
        assert fresh.verify(deep=True).ok
        clean(fresh, place)
        assert_sound(fresh, tidy=True)
        assert len([c for c in fresh.log() if c.kind == "write"]) == 6


def test_what_an_operation_said_it_would_do_is_spared_until_it_is_dead(
    g: Graph, place: Path
) -> None:
    for number in range(4):
        add(g, f"p{number}")
    now = g._session.runtime.now()
    job = Intent(id=g._session.runtime.ulid(), kind="load", created_at=now, heartbeat=now)
    write_intent(g._session.objects, job)
    with pytest.raises(ZeroDivisionError), at_point("staged", lambda: 1 / 0):
        add(g, "staged by the job")
    Time.now.wait(place, 2 * HOUR)
    kept = files(place)
    now = Time.now.now()
    write_intent(g._session.objects, msgspec.structs.replace(job, heartbeat=now))
    done = g.cleanup(keep=9, older_than=0)
    assert done.removed == []
    assert "under way" in done.spared[0]
    assert files(place) == kept
    Time.now.wait(place, 30 * 24 * HOUR)
    assert {"dead intent", "unreferenced"} <= set(g.cleanup(keep=9).by_reason())
    assert_sound(g, tidy=True)


def test_an_intent_that_cannot_be_read_is_told_and_left_alone(g: Graph, place: Path) -> None:
    for number in range(4):
        add(g, f"p{number}")
    (place / "__recovery").mkdir()
    broken = place / "__recovery" / "01ARZ3NDEKTSV4RRFFQ69G5FAV.json"
    broken.write_bytes(b"{")
    done = clean(g, place)
    assert "cannot be read" in done.spared[0]
    assert broken.exists()
    add(g, "and writing goes on")
    assert_sound(g)


def test_what_maintenance_made_of_a_kept_version_stands_for_it(g: Graph, place: Path) -> None:
    """Without a second copy of every row; refs, times and cursors of before find it."""
    for number in range(6):
        add(g, f"p{number}")
    last = g.snapshot().commit
    moment = datetime.fromtimestamp(last.created_at / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    cursor = [block.cursor for block in g.changes()][-1]
    (table,) = place.glob("nodes/*")
    assert g.optimize().commit is not None
    clean(g, place, keep=1)
    assert len(list((table / "data").iterdir())) == 1
    for ref in ("main", last.id, f"main@{last.id}", f"main*{moment}"):
        assert len(names(g, ref)) == 6
    add(g, "later")
    assert len(names(g, "main~1")) == 6
    told = [change.id for block in g.changes(cursor) for change in block.changes]
    assert told == ["later"]
    with pytest.raises(Reclaimed):
        g.at("main~2")
    assert_sound(g)


def test_a_cleanup_that_another_overtakes_looks_again(g: Graph, place: Path) -> None:
    """What the other took is missing from what it looked at, and is no damage."""
    for number in range(8):
        add(g, f"p{number}")
    Time.now.wait(place, 2 * HOUR)
    with another(place) as other:
        with at_point("cleanup looked", lambda: other.cleanup(keep=1, older_than=0)) as reached:
            g.cleanup(keep=5, older_than=0)
        assert reached
    assert len(names(g)) == 8
    assert_sound(g)


@pytest.mark.parametrize("what", ["branch", "tag"])
def test_a_name_that_was_used_and_cleaned_is_used_again_by_who_knows_nothing_of_it(
    g: Graph, place: Path, what: str
) -> None:
    """Its chain goes on: whoever begins it anew at the first number would break it in two."""
    for number in range(3):
        add(g, f"p{number}")
    for _ in range(3):
        with another(place) as one:
            if what == "branch":
                one.create_branch("name")
                add(one, "x", branch="name")
                one.delete_branch("name")
            else:
                one.create_tag("name", "main")
                one.delete_tag("name")
        clean(g, place, keep=1)
        clean(g, place, keep=1)
    with another(place) as last:
        if what == "branch":
            last.create_branch("name")
            add(last, "y", branch="name")
        else:
            last.create_tag("name", "main")
    with another(place) as fresh:
        assert names(fresh, "name") == names(fresh) + ["y"] * (what == "branch")
        end = fresh._session.head("name", Ledger())
        assert end.incarnation == 4
        assert end.version > end.first or what == "tag"
        assert_sound(fresh)
        clean(fresh, place, keep=1)
        assert names(fresh, "name")
        assert_sound(fresh)
