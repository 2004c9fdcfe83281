"""Maintenance by hand: one commit that no reader can see, beside writers, told type by type."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import runtime
from omnigraph.engine.cache import Cache
from omnigraph.engine.graph import Graph
from omnigraph.engine.upkeep.optimize_report import Progress
from omnigraph.errors import (
    InvalidArgument,
    PreconditionFailed,
    ReadOnly,
    RefNotFound,
    TypeNotFound,
)
from omnigraph.settings import Settings
from omnigraph.store.indexes import list_segments
from omnigraph.store.tables import Table

SCHEMA = """
node Person { name: String @key  age: I64? @index  bio: String? @index }
node Note { text: String }
edge Knows: Person -> Person { since: I64? }
"""
BY_HAND = Settings(durability="relaxed", folding="off")
MANY = 1500


@pytest.fixture
def g(tmp_path: Path) -> Iterator[Graph]:
    with omnigraph.init(tmp_path / "g", schema=SCHEMA, settings=BY_HAND) as graph:
        yield graph


def put(g: Graph, *names: str, age: int = 1, branch: str = "main") -> str:
    with g.branch(branch).transaction() as tx:
        tx.upsert("Person", [{"name": name, "age": age} for name in names])
    assert tx.commit_id is not None
    return tx.commit_id


def many(g: Graph, count: int = MANY, begin: int = 0) -> None:
    with g.transaction() as tx:
        rows = [
            {"name": f"p{n:05d}", "age": n, "bio": f"word{n % 7} text"}
            for n in range(begin, begin + count)
        ]
        tx.append("Person", rows)


def table(g: Graph, key: str = "node:Person") -> Table:
    snapshot = g.snapshot()
    pin = snapshot.graph_version.pins[key]
    return g._session.tables.open(pin.location, pin.lance_version, snapshot.io)


def people(g: Graph, ref: str = "main") -> dict[str, int]:
    rows = g.at(ref).scan("Person", columns=["id", "age"]).read_all().to_pylist()
    return {row["id"]: row["age"] for row in rows}


@contextlib.contextmanager
def at(point: str, meddle: Callable[[], object]) -> Iterator[None]:
    """Runs something, once, when the protocol reaches a point."""
    left = [meddle]

    def reached(where: str) -> None:
        if where == point and left:
            left.pop()()

    runtime.on_reach = reached
    try:
        yield
    finally:
        runtime.on_reach = None
    assert not left, f"{point} was not reached"


def test_small_fragments_become_one_and_nothing_else_changes(g: Graph) -> None:
    for name in "abcd":
        put(g, name)
    before = people(g)
    done = g.optimize()
    assert done.commit is not None
    assert (done.commit.kind, done.commit.actor) == ("optimize", "omnigraph:maintenance")
    report = done.types["Person"]
    assert (report.fragments, report.rewritten) == ((4, 1), 4)
    assert not done.types["Note"].changed
    assert people(g) == before
    assert list(g.diff("main~1")) != []
    assert list(g.diff(f"main@{done.commit.parents[0]}")) == []


def test_the_second_time_there_is_nothing_to_do(g: Graph) -> None:
    many(g)
    put(g, "a")
    put(g, "b")
    assert g.optimize().commit is not None
    version = g.snapshot().version
    again = g.optimize()
    assert again.commit is None
    assert not any(report.changed for report in again.types.values())
    assert g.snapshot().version == version


def test_a_dry_run_tells_what_would_be_done_and_does_nothing(g: Graph) -> None:
    many(g)
    put(g, "a")
    put(g, "b")
    before = g.snapshot().version
    told = g.optimize(dry_run=True)
    assert told.commit is None
    assert told.dry_run
    assert told.io.writes == 0
    assert g.snapshot().version == before
    done = g.optimize()
    for name, report in done.types.items():
        assert told.types[name].fragments == report.fragments
        assert told.types[name].indexed == report.indexed
    with omnigraph.open(g.root, mode="r", settings=BY_HAND) as reader:
        assert reader.optimize(dry_run=True).commit is None
        with pytest.raises(ReadOnly):
            reader.optimize()


def test_what_the_schema_asks_for_is_indexed_and_cold_readers_use_it(g: Graph) -> None:
    many(g)
    with g.transaction() as tx:
        tx.append("Note", {"text": "x"})
    done = g.optimize()
    (why,) = done.types["Note"].pending
    assert why == "id_btree: fewer than 1,024 rows: reading them is as fast"
    assert set(done.types["Person"].indexed) == {
        "id_btree",
        "name_btree",
        "age_btree",
        "bio_btree",
        "bio_inverted_standard",
    }
    with omnigraph.open(g.root, mode="r", settings=BY_HAND) as cold:
        snapshot = cold.snapshot()
        found = snapshot.view(snapshot.type("Person")).find(("id",), ["p00777"], snapshot.io)
        assert len(found.addresses) == 1
        rows = MANY * len("p00000")
        assert snapshot.io.read_bytes < rows * 4, "read as much as the column holds"
        assert not [k for k in Cache.shared_by(cold._session).bookings() if k[0] == "keys"], (
            "held the whole column for one lookup"
        )


def test_segments_stay_few_however_often_it_runs(g: Graph) -> None:
    for n in range(12):
        many(g, 1100, begin=n * 1100)
        g.optimize()
    segments = [s for s in list_segments(table(g)) if s.name == "id_btree"]
    assert len(segments) <= 4
    live = [n for s in segments for n in s.fragments if n in table(g).marks]
    assert sorted(live) == sorted(table(g).marks)


def test_what_different_segments_cover_is_written_as_one(g: Graph) -> None:
    """Hazard 13: segments must not keep fragments apart, as they do in Lance's own plan."""
    many(g)
    g.optimize()
    (old,) = table(g).marks
    many(g, begin=MANY)
    before = {n for s in list_segments(table(g)) for n in s.fragments}
    assert before == {old}
    assert len(table(g).marks) == 2
    g.optimize()
    (fragment,) = table(g).marks
    segments = list_segments(table(g))
    assert {n for s in segments for n in s.fragments} == {fragment}
    assert len(segments) == len({s.name for s in segments})
    assert len(people(g)) == 2 * MANY


def test_an_index_that_the_schema_no_longer_asks_for_goes(g: Graph) -> None:
    many(g)
    g.optimize()
    g.apply_schema(SCHEMA.replace("bio: String? @index", "bio: String?"))
    done = g.optimize()
    assert done.types["Person"].dropped == ("bio_btree", "bio_inverted_standard")
    assert {s.name for s in list_segments(table(g))} == {"id_btree", "name_btree", "age_btree"}


def test_types_can_be_chosen_and_are_checked(g: Graph) -> None:
    put(g, "a")
    put(g, "b")
    for text in "xy":
        with g.transaction() as tx:
            tx.append("Note", {"text": text})
    done = g.optimize(types=["Note"])
    assert list(done.types) == ["Note"]
    assert len(table(g).marks) == 2
    with pytest.raises(TypeNotFound):
        g.optimize(types=["Nobody"])
    with pytest.raises(InvalidArgument):
        g.optimize(types=[3])  # type: ignore[list-item]


def test_progress_is_told(g: Graph) -> None:
    many(g)
    put(g, "a")
    put(g, "b")
    seen: list[Progress] = []
    g.optimize(progress=seen.append)
    assert [p.type for p in seen if p.doing == "looking"] == ["Note", "Person", "Knows"]
    assert {p.total for p in seen} == {3}
    assert "building id_btree" in {p.doing for p in seen}


def test_rows_that_were_deleted_are_left_behind(g: Graph) -> None:
    many(g, 4000)
    with g.transaction() as tx:
        tx.delete("Person", where=pc.field("age") < 1500)
    assert table(g).marks[0].physical == 4000
    done = g.optimize()
    assert done.types["Person"].rewritten == 1
    (mark,) = table(g).marks.values()
    assert (mark.rows, mark.physical, mark.deletion) == (2500, 2500, None)


# Beside writers


@pytest.mark.parametrize("point", ["staged", "tables committed", "before put"])
def test_rows_appended_meanwhile_are_kept_and_nothing_is_done_twice(g: Graph, point: str) -> None:
    many(g)
    put(g, "a")
    put(g, "b")
    with omnigraph.open(g.root, settings=BY_HAND) as other:
        # Within the turn of the branch nobody else on this machine can land.
        meddle = (lambda: many(other, 3, begin=9000)) if point == "staged" else (lambda: None)
        with at(point, meddle):
            done = g.optimize(types=["Person"])
    assert done.commit is not None
    assert len(people(g)) == MANY + 2 + (3 if point == "staged" else 0)
    marks = table(g).marks
    # What was staged is carried over, with its segments: their numbers were kept free.
    covered = {n for s in list_segments(table(g)) if s.name == "id_btree" for n in s.fragments}
    assert covered.intersection(marks)
    assert sum(mark.rows for n, mark in marks.items() if n in covered) == MANY + 2


def test_a_row_deleted_meanwhile_stays_deleted(g: Graph) -> None:
    for name in "abc":
        put(g, name)
    with omnigraph.open(g.root, settings=BY_HAND) as other:

        def delete() -> None:
            with other.transaction() as tx:
                tx.delete("Person", where=pc.field("name") == "b")

        with at("staged", delete):
            done = g.optimize()
    assert done.commit is not None, "it was planned again"
    assert people(g) == {"a": 1, "c": 1}
    assert len(table(g).marks) == 1


def test_who_finds_the_work_done_by_another_makes_no_commit(g: Graph) -> None:
    put(g, "a")
    put(g, "b")
    with (
        omnigraph.open(g.root, settings=BY_HAND) as other,
        at("staged", lambda: other.optimize()),
    ):
        assert g.optimize().commit is None
    assert [c.kind for c in g.log()] == ["optimize", "write", "write", "init"]


def test_a_writer_does_not_notice(g: Graph) -> None:
    put(g, "a")
    put(g, "b")
    with (
        omnigraph.open(g.root, settings=BY_HAND) as other,
        at("staged", lambda: other.optimize()),
        g.transaction() as tx,
    ):
        tx.update("Person", set={"age": 7}, where=pc.field("name") == "a")
    assert people(g) == {"a": 7, "b": 1}


# Commits that nobody can see


def test_who_pinned_a_commit_may_write_after_maintenance(g: Graph) -> None:
    put(g, "a")
    older = put(g, "b")
    first = g.optimize().commit
    many(g, begin=5000)
    assert first is not None
    with pytest.raises(PreconditionFailed), g.transaction(if_commit=first.id) as tx:
        tx.append("Note", {"text": "x"})
    seen = put(g, "d")
    done = g.optimize().commit
    assert done is not None
    for pinned in (seen, done.id):
        with g.transaction(if_commit=pinned) as tx:
            tx.scan("Note")
    with pytest.raises(PreconditionFailed), g.transaction(if_commit=older) as tx:
        tx.append("Note", {"text": "x"})
    with g.transaction(if_commit=seen) as tx:
        tx.append("Note", {"text": "x"})
    with pytest.raises(PreconditionFailed), g.transaction(if_commit=seen) as tx:
        tx.append("Note", {"text": "y"})
    assert g.snapshot().count("Note") == 1


def test_a_pinned_commit_is_checked_again_when_maintenance_comes_between(g: Graph) -> None:
    put(g, "a")
    seen = put(g, "b")
    with (
        omnigraph.open(g.root, settings=BY_HAND) as other,
        at("staged", lambda: other.optimize()),
        g.transaction(if_commit=seen) as tx,
    ):
        tx.append("Note", {"text": "x"})
    assert g.snapshot().count("Note") == 1


def test_steps_back_are_steps_that_a_reader_can_see(g: Graph) -> None:
    commits = [g.snapshot().commit.id]
    for n in range(40):
        commits.append(put(g, "a", "b", age=n))
        if n % 3 == 0:
            put(g, f"x{n}")
            commits.append(g.snapshot().commit.id)
            assert g.optimize().commit is not None
    commits.reverse()
    assert g.snapshot().commit.kind == "optimize"
    for back, commit in enumerate(commits[1:], 1):
        assert g.at(f"main~{back}").commit.id == commit, back
    with pytest.raises(RefNotFound):
        g.at(f"main~{len(commits)}")
    g.create_branch("side")
    put(g, "y", branch="side")
    assert people(g, "side~1") == people(g, "main")
    assert g.at("side~2").commit.id == commits[1]
    assert g.at(f"side~{len(commits)}").commit.id == commits[-1]


def test_the_feed_has_an_empty_block_for_it(g: Graph) -> None:
    put(g, "a")
    put(g, "b")
    done = g.optimize()
    blocks = list(g.changes())
    assert done.commit is not None
    assert blocks[-1].commit.id == done.commit.id
    assert list(blocks[-1].changes) == []


def test_a_tag_of_lance_names_the_rows_of_the_branch(g: Graph) -> None:
    import lance

    put(g, "a")
    put(g, "b")
    g.create_branch("side")
    put(g, "c", branch="side")
    g.optimize()
    g.branch("side").optimize()
    uri = f"{g.root}/{g.snapshot().graph_version.pins['node:Person'].location}"
    assert lance.dataset(uri, version="main").count_rows() == 2
    assert lance.dataset(uri, version="side").count_rows() == 3


def test_maintenance_of_the_target_does_not_keep_it_from_being_forwarded(g: Graph) -> None:
    put(g, "a")
    put(g, "b")
    g.create_branch("side")
    put(g, "c", branch="side")
    assert g.optimize().commit is not None
    assert g.merge("side").outcome == "fast_forward"
    assert people(g) == {"a": 1, "b": 1, "c": 1}
    for back, names in enumerate(["abc", "ab", "a", ""]):
        assert sorted(people(g, f"main~{back}")) == list(names)


def test_a_source_that_was_only_maintained_has_nothing_to_bring(g: Graph) -> None:
    put(g, "a")
    put(g, "b")
    g.create_branch("side")
    assert g.branch("side").optimize().commit is not None
    assert g.merge("side").outcome == "already_up_to_date"
    put(g, "c", branch="side")
    assert g.merge("side").outcome == "fast_forward"
    assert g.branch("side").optimize().commit is not None
    assert g.merge("side").outcome == "already_up_to_date"


def test_a_table_that_was_only_maintained_is_taken_from_the_other_side_by_pointer(
    g: Graph,
) -> None:
    put(g, "a")
    put(g, "b")
    g.create_branch("side")
    put(g, "c", branch="side")
    with g.transaction() as tx:
        tx.append("Note", {"text": "x"})
    assert g.optimize().commit is not None
    done = g.merge("side")
    assert (done.outcome, done.adopted) == ("merged", ("node:Person",))
    assert sorted(people(g)) == ["a", "b", "c"]
    assert g.snapshot().count("Note") == 1


def test_as_many_rows_are_not_the_same_rows(g: Graph) -> None:
    """Meanwhile the branch goes back and another row is deleted instead: the fragment has as many
    rows as before, and only its deletion file tells that they are others (hazard 6)."""
    put(g, "a", "b", "c")
    put(g, "d")

    def remove(graph: Graph, name: str) -> None:
        with graph.transaction() as tx:
            tx.delete("Person", where=pc.field("name") == name)

    remove(g, "a")
    with omnigraph.open(g.root, settings=BY_HAND) as other:

        def meddle() -> None:
            other.restore("main~1")
            remove(other, "b")

        with at("staged", meddle):
            assert g.optimize().commit is not None
    assert sorted(people(g)) == ["a", "c", "d"]
    with omnigraph.open(g.root, mode="r", settings=BY_HAND) as cold:
        assert sorted(people(cold)) == ["a", "c", "d"]
