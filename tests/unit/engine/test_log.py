"""The log against a plain walk over the DAG, over random histories, and what reading it costs."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph
from omnigraph import Graph
from omnigraph.engine.history.ancestry import contains, joined, origin_of
from omnigraph.engine.history.log import Log
from omnigraph.errors import (
    BranchNotFound,
    Corrupt,
    InvalidArgument,
)
from omnigraph.model.version import Commit, GraphVersion
from omnigraph.plan.log_drawing import render_lanes
from omnigraph.plan.publish import Merged
from omnigraph.plan.successor import point_to
from omnigraph.runtime import SystemRuntime
from omnigraph.settings import Settings
from omnigraph.store.versions import version_key
from omnigraph.telemetry import Ledger
from tests.bench.chains import put, version_after

COUNTER = itertools.count()
RELAXED = Settings(durability="relaxed")
BRANCHES = ["main", "a", "b", "a/c"]


class Skewed(SystemRuntime):
    """The clock of a machine that is seconds off."""

    seconds = 0

    def now(self) -> int:
        return super().now() + self.seconds * 1_000_000


class World:
    """A graph with commits that change no table, and the DAG that it should have."""

    def __init__(self) -> None:
        self.clock = Skewed()
        root = f"memory://log-{next(COUNTER)}"
        schema = "node Person { name: String @key }"
        self.g = omnigraph.init(root, schema=schema, settings=RELAXED, runtime=self.clock)
        self.commits: dict[str, Commit] = {}
        self._note("main")

    def head(self, branch: str) -> GraphVersion:
        return self.g._session.head(branch, Ledger())

    def _note(self, branch: str) -> Commit:
        commit = self.head(branch).commit
        self.commits[commit.id] = commit
        return commit

    def put(self, version: GraphVersion) -> Commit:
        put(self.g._session, version)
        return self._note(version.branch)

    def add(self, branch: str = "main", *, merged: Merged | None = None, **said: Any) -> Commit:
        head, session = self.head(branch), self.g._session
        kind = "merge" if merged else "write"
        return self.put(version_after(session, head, merged=merged, **{"kind": kind, **said}))

    def merge(self, source: str, into: str, **said: Any) -> str:
        ours, theirs, session = self.head(into), self.head(source), self.g._session
        if contains(ours, origin_of(session, theirs, Ledger())):
            return "already_up_to_date"
        if contains(theirs, origin_of(session, ours, Ledger())):
            done = self.g.branch(into).merge(source).outcome
            self._note(into)
            return done
        self.add(
            into,
            merged=Merged(
                commit=theirs.commit.id, at=point_to(theirs), ancestry=joined(ours, theirs)
            ),
        )
        return "merged"

    def opened(self) -> Graph:
        """A handle that has read nothing yet."""
        return omnigraph.open(self.g.root, settings=RELAXED)

    def expected(self, *heads: str, first_parent: bool = False) -> list[Commit]:
        """All children first; of those that may come, the latest."""

        def parents(commit: Commit) -> tuple[str, ...]:
            return commit.parents[:1] if first_parent else commit.parents

        reached, ahead = set[str](), [self.head(name).commit.id for name in heads]
        while ahead:
            commit = ahead.pop()
            if commit not in reached:
                reached.add(commit)
                ahead += parents(self.commits[commit])
        order: list[Commit] = []
        left = {commit: self.commits[commit] for commit in reached}
        while left:
            behind = {parent for commit in left.values() for parent in parents(commit)}
            free = [commit for commit in left.values() if commit.id not in behind]
            order.append(max(free, key=lambda commit: (commit.created_at, commit.id)))
            del left[order[-1].id]
        return order


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["add", "add", "create", "merge", "merge", "delete"]),
        st.integers(0, 3),
        st.integers(0, 3),
        st.sampled_from([0, 0, 0, 1000, -1000]),
    ),
    min_size=4,
    max_size=24,
)
Steps = list[tuple[str, int, int, int]]


def play(world: World, steps: Steps) -> None:
    """Numbers name a branch among those that are there; clocks are off as told."""
    for step, one, two, seconds in steps:
        there = world.g.branches()
        name, other = there[one % len(there)], there[two % len(there)]
        world.clock.seconds = seconds
        if step == "add":
            world.add(name)
        elif step == "create" and BRANCHES[one] not in there:
            world.g.create_branch(BRANCHES[one], other)
        elif step == "delete" and name != "main":
            world.g.delete_branch(name)
        elif step == "merge" and name != other:
            world.merge(name, other)


@given(STEPS)
def test_children_come_before_parents_and_later_ones_first_whatever_the_clocks_say(
    steps: Steps,
) -> None:
    world = World()
    play(world, steps)
    names = world.g.branches()
    for g in (world.g, world.opened()):
        for name in names:
            expected = world.expected(name)
            assert list(g.at(name).log()) == expected
            assert list(g.at(name).log(limit=3)) == expected[:3]
            assert list(g.at(name).log(first_parent=True)) == world.expected(
                name, first_parent=True
            )
        assert list(g.log(all=True)) == world.expected(*names)
        drawn = g.log(all=True).lanes()
        assert [row.entry.id for row in drawn] == [commit.id for commit in world.expected(*names)]


@given(STEPS)
def test_a_page_costs_about_a_read_for_each_commit(steps: Steps) -> None:
    world = World()
    play(world, steps)
    chains = len(world.g._session.versions(Ledger()).list_branches())
    for limit in (1, 4, None):
        log = world.opened().log(limit=limit)
        commits = list(log)
        # Finding the head, a window of read-ahead and the fork of each chain come on top.
        assert log.io.reads <= 2 + 2 * len(commits) + 2 * chains


def test_a_merge_by_a_slow_clock_still_comes_before_what_it_merged() -> None:
    world = World()
    world.g.create_branch("dev")
    world.clock.seconds = 1000
    source = world.add("dev")
    world.g.create_branch("copy", "dev")
    world.add("dev")
    world.clock.seconds = 0
    world.add()
    world.merge("copy", "main")
    merge = world.head("main").commit
    assert merge.created_at > source.created_at
    assert merge.parents[1] == source.id
    log = [commit.id for commit in world.g.log(all=True)]
    assert log.index(merge.id) < log.index(source.id)
    assert list(world.g.log(all=True)) == world.expected("main", "dev", "copy")


def line(length: int) -> World:
    world = World()
    for _ in range(length - 1):
        world.add()
    return world


def test_a_log_reads_as_far_as_it_is_iterated() -> None:
    world = line(200)
    log = world.opened().log()
    finding = log.io.reads
    assert finding <= 2
    next(log)
    assert log.io.reads == finding
    for _ in range(19):
        next(log)
    assert log.io.reads <= finding + 19 + 8


def test_a_page_reads_just_its_commits_eight_at_once() -> None:
    world = line(200)
    log = world.opened().log(limit=100)
    finding = log.io.reads
    assert len(list(log)) == 100
    assert log.io.reads == finding + 99
    assert log.io.hops <= finding + 3 + 99 // 8 + 1


def test_what_was_read_before_is_not_read_again() -> None:
    world = line(50)
    g = world.opened()
    list(g.log())
    again = g.log()
    assert len(list(again)) == 50
    assert again.io.reads == 1  # whether there is a newer head


def test_the_source_of_a_merge_is_found_among_many_that_came_with_it() -> None:
    world = World()
    world.g.create_branch("dev")
    for number in range(30):
        world.g.create_branch(f"f{number}")
        world.add(f"f{number}")
        world.merge(f"f{number}", "dev")
    world.add("dev")
    world.add()
    assert world.merge("dev", "main") == "merged"
    log = world.opened().log(limit=3)
    finding = log.io.reads
    assert list(log) == world.expected("main")[:3]
    assert log.io.reads <= finding + 4
    world.add("f7")
    for number in range(30, 40):
        world.g.create_branch(f"f{number}", "f7")
        world.add(f"f{number}")
        assert world.merge(f"f{number}", "dev") == "merged"
    assert world.merge("dev", "main") == "merged"
    log = world.opened().log(limit=3)
    assert list(log) == world.expected("main")[:3]
    assert log.io.reads <= finding + 6


def test_a_merge_takes_the_reads_of_its_two_parents() -> None:
    world = World()
    for name, commits in (("small", 1), ("large", 9)):
        world.g.create_branch(name)
        for _ in range(commits):
            world.add(name)
        world.add()
        assert world.merge(name, "main") == "merged"
    world.add("small")
    assert world.merge("small", "main") == "merged"
    log = world.opened().log(limit=2)
    finding = log.io.reads
    assert list(log) == world.expected("main")[:2]
    assert log.io.reads == finding + 2


def test_a_merge_and_a_fast_forward_of_the_graph_itself() -> None:
    with omnigraph.init(f"memory://log-{next(COUNTER)}", schema="node P { n: String @key }") as g:

        def add(branch: str, name: str) -> None:
            with g.branch(branch).transaction(message=name) as tx:
                tx.append("P", {"n": name})

        g.create_branch("dev")
        add("dev", "d1")
        add("main", "m1")
        assert g.merge("dev", message="merge").outcome == "merged"
        add("main", "m2")
        assert g.branch("dev").merge("main", message="forward").outcome == "fast_forward"
        add("dev", "d2")
        said = ["d2", "forward", "m2", "merge", "m1", "d1", None]
        assert [commit.message for commit in g.at("dev").log()] == said
        assert [commit.message for commit in g.log()] == said[2:]
        first = [commit.message for commit in g.at("dev").log(first_parent=True)]
        assert first == ["d2", "forward", "d1", None]


def test_commits_are_chosen_by_actor_kind_and_time() -> None:
    world = World()
    start = world.head("main").commit.created_at
    world.clock.seconds = 100
    for number in range(4):
        world.clock.seconds += 100
        world.add(actor="ann" if number % 2 else "bob", kind="write" if number else "schema")
    first, second, third, fourth = list(world.g.log())[3::-1]
    assert list(world.g.log(actor="ann")) == [fourth, second]
    assert list(world.g.log(actor="ann", limit=1)) == [fourth]
    assert list(world.g.log(kind="schema")) == [first]
    assert list(world.g.log(actor="ann", kind="schema")) == []

    def moment(commit: Commit) -> str:
        return datetime.fromtimestamp(commit.created_at / 1e6, UTC).isoformat()

    assert list(world.g.log(since=moment(second), until=moment(third))) == [third, second]
    assert next(world.g.log(until=moment(first))) == first
    day = datetime.fromtimestamp(start / 1e6, UTC).date()
    far = [f"{day.year - 1}-01-01", f"{day.year + 1}-01-01"]
    assert len(list(world.g.log(since=far[0], until=far[1]))) == 5
    assert list(world.g.log(since=far[1])) == list(world.g.log(until=far[0])) == []
    when = datetime.fromtimestamp(third.created_at / 1e6, UTC)
    assert list(world.g.log(since=when)) == [fourth, third]
    assert list(world.g.log(since=when.replace(tzinfo=None))) == [fourth, third]


def test_a_day_is_all_of_it_at_both_ends() -> None:
    world = World()
    today = datetime.fromtimestamp(world.head("main").commit.created_at / 1e6, UTC).date()
    assert len(list(world.g.log(since=str(today), until=str(today)))) == 1


def test_a_log_with_a_beginning_stops_reading_there() -> None:
    world = line(50)
    world.clock.seconds = 1000
    last = world.add()
    world.add()
    since = datetime.fromtimestamp(last.created_at / 1e6, UTC)
    log = world.opened().log(since=since)
    assert len(list(log)) == 2
    assert log.io.reads <= 2 + 2 + 2


def test_wrong_questions_are_refused_before_anything_is_read() -> None:
    world = World()
    wrong: Any
    for wrong in (-1, True, "3", 1.5):
        with pytest.raises(InvalidArgument, match=r"limit of (a log|log)"):
            world.g.log(limit=wrong)
    with pytest.raises(InvalidArgument, match="'yesterday' is not a time"):
        world.g.log(since="yesterday")
    wrong = 5
    with pytest.raises(InvalidArgument, match="until of log"):
        world.g.log(until=wrong)
    with pytest.raises(BranchNotFound, match=r"'mian'.*Did you mean 'main'"):
        world.g.at("mian").log()
    assert list(world.g.log(limit=0)) == []
    world.g.close()
    with pytest.raises(InvalidArgument, match="closed"):
        world.g.log()


def path_of(g: Graph, number: int, branch: str = "main") -> Path:
    directory = g._session.root.directory
    assert directory is not None
    return directory / version_key(branch, number)


def take(log: Log, count: int) -> list[Commit]:
    return list(itertools.islice(log, count))


def test_a_missing_version_is_told_when_the_log_comes_to_it_and_not_before() -> None:
    world = line(12)
    opened = world.opened()
    log = opened.log()
    path_of(world.g, 6).unlink()
    assert len(take(log, 6)) == 6
    with pytest.raises(Corrupt, match=r"Version 6 of the branch 'main' is missing"):
        next(log)


def test_history_that_cleanup_passed_and_that_no_archive_has_is_told_as_lost() -> None:
    world = line(12)
    world.g.create_branch("old", "main~8")
    head, session = world.head("main"), world.g._session
    world.put(version_after(session, head, kind="optimize", floor=7))
    for number in range(1, 7):
        path_of(world.g, number).unlink()
    log = world.opened().log()
    assert len(take(log, 7)) == 7
    with pytest.raises(Corrupt, match=r"Version 6 of .* is missing.*__history/main/"):
        next(log)
    old = world.opened().at("old").log()
    assert len(take(old, 1)) == 1
    with pytest.raises(Corrupt, match=r"Version 4 of .* is missing.*__history/main/"):
        next(old)


def test_a_log_stays_what_it_was_when_it_was_asked_for() -> None:
    world = line(3)
    log = world.g.log()
    world.add(message="later")
    assert [commit.message for commit in log] == [None] * 3


def test_the_drawing_shows_branches_and_tags_where_they_are() -> None:
    world = World()
    world.g.create_tag("v1")
    world.g.create_branch("dev")
    world.g.create_branch("gone")
    world.add("gone", message="forgotten")
    world.g.delete_branch("gone")
    world.clock.seconds = 1
    world.add("dev", actor="ann", message="first\nand more")
    world.clock.seconds = 2
    world.add()
    world.clock.seconds = 3
    world.merge("dev", "main")
    world.clock.seconds = 4
    world.g.create_branch("copy")
    lines = render_lanes(world.g.log(all=True).lanes())
    for commit in world.commits:
        lines = [text.replace(commit, "#") for text in lines]
    assert lines == [
        "● (main, copy) # merge",
        "├─╮",
        "● │ # write",
        "│ ● (dev) # write by ann first",
        "├─╯",
        "● (tag: v1) # init",
    ]
