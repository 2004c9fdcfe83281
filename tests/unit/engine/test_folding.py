"""Maintenance by itself: reads stay as cheap as they were, and nobody who writes notices."""

from __future__ import annotations

import threading
from pathlib import Path

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph.engine.graph import Graph
from omnigraph.engine.upkeep.folding import PURPOSE
from omnigraph.errors import StoreFailure
from omnigraph.plan.optimize import BY_ITSELF, LAGGING
from omnigraph.settings import Settings
from omnigraph.telemetry import Ledger
from tests.processes.history import asked_for, check_linear, kinds

SCHEMA = """
node Person { name: String @key  age: I64? @index }
node Event { text: String }
edge Knows: Person -> Person
"""
INLINE = Settings(durability="relaxed")
BACKGROUND = Settings(durability="relaxed", folding="background")
OFF = Settings(durability="relaxed", folding="off")


def create(path: Path, settings: Settings = INLINE) -> Graph:
    return omnigraph.init(path / "g", schema=SCHEMA, settings=settings)


def append(g: Graph, n: int) -> Ledger:
    with g.transaction() as tx:
        tx.append("Person", {"name": f"person-{n:06}", "age": n})
    return tx.io


def fragments(g: Graph, key: str = "node:Person") -> int:
    return g.snapshot().graph_version.pins[key].fragments


def ask_cold(g: Graph, n: int) -> Ledger:
    """A point query by somebody who knows nothing of the graph."""
    with omnigraph.open(g.root, mode="r", settings=OFF) as cold:
        snapshot = cold.snapshot()
        view = snapshot.view(snapshot.type("Person"))
        found = view.find(("id",), [f"person-{n:06}"], snapshot.io).addresses
        (row,) = view.take(found, view.schema.names, snapshot.io).to_pylist()
        assert row["age"] == n
        snapshot.io.record("get", "open", count=cold.io.reads)
        return snapshot.io


def ask_warm(g: Graph, n: int) -> Ledger:
    snapshot = g.snapshot()
    view = snapshot.view(snapshot.type("Person"))
    found = view.find(("id",), [f"person-{n:06}"], snapshot.io).addresses
    assert len(view.take(found, view.schema.names, snapshot.io)) == 1
    return snapshot.io


def check_flat(path: Path, commits: int) -> None:
    """A point query costs at most three times what it cost after ten commits, at every point."""
    with create(path) as g:
        for n in range(10):
            append(g, n)
        few, few_warm, few_write = ask_cold(g, 5), ask_warm(g, 5), append(g, 10)
        looks = {*range(commits - BY_ITSELF.tail - 2, commits), commits // 2, commits // 3}
        for n in range(11, commits):
            write = append(g, n)
            assert (write.reads, write.writes) == (few_write.reads, few_write.writes)
            if n in looks:
                many, first, many_warm = (
                    ask_cold(g, n // 2),
                    ask_warm(g, n // 2 + 1),  # opens the file that both rows are in
                    ask_warm(g, n // 2),
                )
                assert many.reads <= 3 * few.reads, (n, many, few)
                assert many.hops <= 3 * few.hops, (n, many, few)
                assert many.read_bytes <= 128 * 1024, (n, many)
                assert first.reads <= many.reads, (n, first, many)
                assert many_warm.reads <= 3 * few_warm.reads, (n, many_warm, few_warm)
        done = kinds(check_linear(g))
        assert done["write"] == commits
        assert done["optimize"] <= commits / BY_ITSELF.tail
        assert fragments(g) <= 2 * BY_ITSELF.tail


def test_a_point_query_stays_as_cheap_as_it_was(tmp_path: Path) -> None:
    check_flat(tmp_path, 400)


@pytest.mark.slow
def test_a_point_query_stays_as_cheap_as_it_was_for_ten_thousand_commits(tmp_path: Path) -> None:
    check_flat(tmp_path, 10_000)


def test_without_folding_it_does_not(tmp_path: Path) -> None:
    with create(tmp_path, OFF) as g:
        for n in range(60):
            append(g, n)
        assert fragments(g) == 60
        assert g.maintenance is None
        assert ask_cold(g, 30).reads > 60


def test_a_fold_is_a_commit_of_its_own_on_a_ledger_of_its_own(tmp_path: Path) -> None:
    with create(tmp_path) as g:
        ledgers = [append(g, n) for n in range(BY_ITSELF.tail + 1)]
        (fold,) = [c for c in g.log() if c.kind == "optimize"]
        assert fold.actor == "omnigraph:maintenance"
        assert g.snapshot().commit == fold
        assert fragments(g) == 1
        for ledger in ledgers:
            assert PURPOSE not in ledger.by_purpose
        # The one that made it due cost the same as the one before.
        assert ledgers[-1].counts == ledgers[-2].counts
        assert g.maintenance is not None
        assert list(g.maintenance.io.by_purpose) == [PURPOSE]
        assert g.maintenance.folds == 1
        assert g.maintenance.failed is None


def test_the_result_of_a_write_names_the_write(tmp_path: Path) -> None:
    with create(tmp_path) as g:
        for n in range(3 * BY_ITSELF.tail):
            with g.transaction() as tx:
                tx.append("Event", {"text": str(n)})
            assert tx.commit is not None
            assert tx.commit.kind == "write"
            with g.transaction(if_commit=tx.commit.id) as next_tx:
                next_tx.append("Event", {"text": "sure"})
        assert kinds(g.log())["optimize"] > 2


def test_rows_that_change_all_the_time_are_folded_too(tmp_path: Path) -> None:
    with create(tmp_path) as g:
        with g.transaction() as tx:
            tx.append("Person", [{"name": f"p{n}", "age": 0} for n in range(100)])
        for n in range(200):
            with g.transaction() as tx:
                tx.update("Person", set={"age": n}, where=pc.field("name") == f"p{n % 100}")
        assert fragments(g) <= 2 * BY_ITSELF.tail
        ages = g.snapshot().scan("Person", columns=["age"]).read_all()["age"].to_pylist()
        assert sorted(ages) == list(range(100, 200))


def test_a_fold_that_fails_is_not_the_writers_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with create(tmp_path) as g:

        def broken(*_: object, **__: object) -> None:
            raise StoreFailure("the disk is on fire")

        with monkeypatch.context() as patch:
            patch.setattr("omnigraph.engine.upkeep.workers.stage_compaction", broken)
            for n in range(BY_ITSELF.tail + 3):
                append(g, n)
        assert g.maintenance is not None
        assert g.maintenance.failed == "the disk is on fire"
        assert fragments(g) == BY_ITSELF.tail + 3
        append(g, 100)
        assert fragments(g) == 1, "the next write makes up for it"


class PanicException(BaseException):
    """As Lance's: no `except Exception` catches it."""


@pytest.mark.parametrize("error", [StoreFailure, RuntimeError, MemoryError, PanicException])
def test_the_background_survives_whatever_a_fold_throws_and_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: type[BaseException],
) -> None:
    with create(tmp_path, BACKGROUND) as g:

        def broken(*_: object, **__: object) -> None:
            raise error("the disk is on fire")

        assert g.maintenance is not None
        with monkeypatch.context() as patch:
            patch.setattr("omnigraph.engine.upkeep.workers.stage_compaction", broken)
            for n in range(BY_ITSELF.tail + 1):
                append(g, n)
            g.maintenance.wait()
        assert "the disk is on fire" in (g.maintenance.failed or "")
        assert "the disk is on fire" in caplog.text
        append(g, 100)
        g.maintenance.wait()
        assert fragments(g) == 1, "the next write makes up for it"


@pytest.mark.parametrize("error", [RuntimeError, PanicException])
@pytest.mark.parametrize(
    "what", ["lookup.Lookups.carry", "lookup.Lookups.follow", "upkeep.folding.Folding.after"]
)
def test_what_fails_after_a_commit_has_landed_is_not_the_writers_failure(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    what: str,
    error: type[BaseException],
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise error("Already mutably borrowed")

    with create(tmp_path) as g:
        for n in range(3):
            append(g, n)
        with monkeypatch.context() as patch:
            patch.setattr(f"omnigraph.engine.{what}", broken)
            append(g, 3)
            assert g.optimize().commit is not None
        assert "Already mutably borrowed" in caplog.text
        append(g, 4)
        ages = g.snapshot().scan("Person").read_all()["age"].to_pylist()
        assert sorted(ages) == [0, 1, 2, 3, 4]


def test_in_the_background_a_write_does_not_wait_for_the_fold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.engine.upkeep import folding, optimize

    go, threads = threading.Event(), set()
    fold = optimize.optimize

    def held(*args: object, **options: object) -> object:
        threads.add(threading.current_thread().name)
        assert go.wait(60)
        return fold(*args, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(folding, "optimize", held)
    with create(tmp_path, BACKGROUND) as g:
        for n in range(BY_ITSELF.tail + 10):
            append(g, n)
        assert fragments(g) == BY_ITSELF.tail + 10, "nobody has folded yet"
        go.set()
        assert g.maintenance is not None
        g.maintenance.wait()
        assert threads == {"omnigraph-folding"}
        assert fragments(g) < BY_ITSELF.tail
    assert "omnigraph-folding" not in {t.name for t in threading.enumerate()}


def test_when_the_background_lags_far_behind_the_writer_folds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.engine.upkeep.folding import Folding

    monkeypatch.setattr(Folding, "_hand_over", lambda *_: None)
    with create(tmp_path, BACKGROUND) as g:
        for n in range(BY_ITSELF.tail * LAGGING):
            append(g, n)
        assert fragments(g) == BY_ITSELF.tail * LAGGING
        append(g, 1000)
        assert fragments(g) == 1


def test_closing_ends_the_thread_and_later_writes_elsewhere_go_on(tmp_path: Path) -> None:
    g = create(tmp_path, BACKGROUND)
    for n in range(BY_ITSELF.tail + 1):
        append(g, n)
    g.close()
    g.close()
    assert "omnigraph-folding" not in {t.name for t in threading.enumerate()}
    with omnigraph.open(g.root, settings=INLINE) as other:
        append(other, 500)
        assert other.snapshot().count("Person") == BY_ITSELF.tail + 2


@pytest.mark.parametrize("settings", [INLINE, BACKGROUND], ids=["inline", "background"])
def test_many_threads_write_while_tails_are_folded(tmp_path: Path, settings: Settings) -> None:
    with create(tmp_path, settings) as g:

        def write(worker: int) -> None:
            for n in range(25):
                append(g, worker * 1000 + n)

        threads = [threading.Thread(target=write, args=(worker,)) for worker in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert g.maintenance is not None
        g.maintenance.wait()
        commits = check_linear(g)
        assert asked_for(commits) == {"init": 1, "write": 100}
        assert kinds(commits)["optimize"] >= 1
        assert g.snapshot().count("Person") == 100
        assert fragments(g) <= 2 * BY_ITSELF.tail


def test_a_handle_for_reading_folds_nothing(tmp_path: Path) -> None:
    create(tmp_path).close()
    with omnigraph.open(tmp_path / "g", mode="r", settings=INLINE) as reader:
        assert reader.maintenance is None


def test_the_setting_comes_from_the_environment() -> None:
    assert Settings.from_environment({"OMNIGRAPH_FOLDING": "background"}).folding == "background"
    with pytest.raises(omnigraph.errors.InvalidArgument, match="'inline', 'background', 'off'"):
        Settings.from_environment({"OMNIGRAPH_FOLDING": "sometimes"})
