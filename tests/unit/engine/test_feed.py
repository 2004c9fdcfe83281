"""The change feed against the contents that it tells of: replayed, resumed and followed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

import omnigraph
from omnigraph import Graph
from omnigraph.engine.history.feed import Feed, FeedBlock
from omnigraph.errors import (
    BranchMoved,
    BranchNotFound,
    CursorMismatch,
    HistoryGap,
    InvalidArgument,
    InvalidCursor,
    RefNotFound,
    TypeNotFound,
)
from omnigraph.model.changes import Op
from omnigraph.settings import Settings
from omnigraph.store.versions import version_key
from omnigraph.telemetry import Ledger
from tests.bench.chains import put as extend_by
from tests.bench.chains import version_after
from tests.unit.engine.clock import Clock

SCHEMA = """
node Person { name: String @key age: I32? }
node Note { text: String }
edge Knows: Person -> Person
"""
COUNTER = itertools.count()
RELAXED = Settings(durability="relaxed")


def new_graph(clock: Clock | None = None) -> Graph:
    root = f"memory://feed-{next(COUNTER)}"
    if clock is not None:
        return omnigraph.init(root, schema=SCHEMA, settings=RELAXED, runtime=clock)
    return omnigraph.init(root, schema=SCHEMA, settings=RELAXED)


@pytest.fixture
def g() -> Graph:
    return new_graph()


def put(g: Graph, name: str, age: int | None = None, branch: str = "main") -> str:
    with g.branch(branch).transaction(actor=f"who {name}") as tx:
        tx.upsert("Person", {"name": name, "age": age})
    assert tx.commit_id is not None
    return tx.commit_id


def shown(blocks: Iterator[FeedBlock]) -> list[tuple[str, list[tuple[str, str]]]]:
    return [(b.commit.id, [(str(c.op), c.id) for c in b.changes]) for b in blocks]


def contents(g: Graph, branch: str) -> dict[str, Any]:
    rows = g.at(branch).scan("Person").read_all().to_pylist()
    return {row["id"]: row for row in rows}


def replay(blocks: Iterator[FeedBlock], onto: dict[str, Any]) -> dict[str, Any]:
    state = dict(onto)
    for block in blocks:
        for change in block.changes:
            assert (change.op is Op.INSERT) == (change.id not in state)
            if change.before is not None:
                assert state[change.id] == change.before
            if change.after is None:
                del state[change.id]
            else:
                state[change.id] = change.after
    return state


def test_each_commit_is_one_block_with_its_cause_oldest_first(g: Graph) -> None:
    first = put(g, "ann", 1)
    second = put(g, "bob")
    third = put(g, "ann", 2)
    init, *blocks = g.changes()
    assert (init.commit.kind, list(init.changes)) == ("init", [])
    assert [step.code for step in init.schema.steps] == ["OG-SC-101"] * 3
    assert [b.commit.id for b in blocks] == [first, second, third]
    assert [b.commit.actor for b in blocks] == ["who ann", "who bob", "who ann"]
    assert [b.commit for b in blocks] == [*g.log(limit=3)][::-1]
    (change,) = blocks[2].changes
    assert (change.op, change.id, change.changed) == (Op.UPDATE, "ann", ("age",))
    assert all(not b.schema.steps for b in blocks)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["put", "put", "put", "delete", "compact", "fork", "merge", "forward"]),
        st.sampled_from(["main", "dev"]),
        st.sampled_from(["ann", "bob", "cy"]),
        st.integers(0, 2),
    ),
    max_size=9,
)


def run(g: Graph, steps: list[tuple[str, str, str, int]]) -> Iterator[None]:
    for step, branch, name, age in steps:
        other = "dev" if branch == "main" else "main"
        match step:
            case "fork":
                g.delete_branch("dev")
                g.create_branch("dev")
            case "merge" | "forward":
                g.branch(branch).merge(other, strategy="theirs")
            case "put":
                put(g, name, age, branch)
            case "delete":
                with g.branch(branch).transaction() as tx:
                    tx.delete("Person", where=pc.field("name") == name)
            case "compact":
                g.branch(branch).optimize()
        yield


@given(STEPS)
def test_blocks_replayed_from_any_cursor_give_the_branch(
    steps: list[tuple[str, str, str, int]],
) -> None:
    g = new_graph()
    g.create_branch("dev")
    seen = [(block.cursor, contents(g, "main")) for block in g.changes()]
    for _ in run(g, steps):
        now = contents(g, "main")
        for cursor, then in seen:
            assert replay(g.changes(cursor), then) == now
        whole = list(g.changes())
        assert replay(iter(whole), {}) == now
        if whole[-1].cursor != seen[-1][0]:
            seen.append((whole[-1].cursor, now))
    assert replay(g.branch("dev").changes(), {}) == contents(g, "dev")


@given(STEPS)
def test_a_cursor_goes_on_with_exactly_the_blocks_that_follow(
    steps: list[tuple[str, str, str, int]],
) -> None:
    g = new_graph()
    g.create_branch("dev")
    for _ in run(g, steps):
        pass
    for branch in ("main", "dev"):
        whole = list(g.branch(branch).changes())
        told = [(b.commit.id, b.cursor) for b in whole]
        assert len({b.commit.id for b in whole}) == len(whole)
        log = [commit.id for commit in g.at(branch).log(first_parent=True)]
        assert [b.commit.id for b in whole] == log[::-1]
        for position, block in enumerate(whole):
            for since in (block.cursor, block.commit.id):
                rest = [(b.commit.id, b.cursor) for b in g.branch(branch).changes(since)]
                assert rest == told[position + 1 :]


def test_a_limit_gives_so_many_blocks_and_the_last_cursor_the_rest(g: Graph) -> None:
    for name in "abcd":
        put(g, name)
    whole = shown(g.changes())
    first = list(g.changes(limit=2))
    assert shown(iter(first)) + shown(g.changes(first[-1].cursor)) == whole
    assert list(g.changes(limit=0)) == []
    with pytest.raises(InvalidArgument, match="below zero"):
        g.changes(limit=-1)


def test_a_branch_begins_where_its_origin_does(g: Graph) -> None:
    put(g, "ann")
    g.create_branch("dev", ref="main")
    put(g, "bob")
    put(g, "cy", branch="dev")
    told = [change.id for block in g.branch("dev").changes() for change in block.changes]
    assert told == ["ann", "cy"]
    after_fork = g.branch("dev").changes("main~1")
    assert [c.id for block in after_fork for c in block.changes] == ["cy"]


def test_a_merge_is_one_block_with_what_it_brought_to_the_branch(g: Graph) -> None:
    g.create_branch("dev")
    put(g, "ann")
    put(g, "bob", branch="dev")
    put(g, "cy", branch="dev")
    merged = g.merge("dev")
    *_, block = g.changes()
    assert merged.commit is not None
    assert block.commit.id == merged.commit.id
    assert len(block.commit.parents) == 2
    assert {c.id for c in block.changes} == {"bob", "cy"}


def test_a_fast_forward_to_a_past_of_its_own_is_one_block_for_who_had_seen_the_old(
    g: Graph,
) -> None:
    g.create_branch("dev")
    put(g, "ann", 1)
    *_, seen = g.changes()
    put(g, "bob", branch="dev")
    g.branch("dev").merge("main")
    assert g.merge("dev").outcome == "fast_forward"
    (block,) = g.changes(seen.cursor)
    assert [c.id for c in block.changes] == ["bob"]
    assert list(g.changes(block.cursor)) == []


def test_what_no_reader_can_see_is_an_empty_block_that_read_nothing(g: Graph) -> None:
    for name in "abc":
        put(g, name)
    g.optimize()
    g.protect("main")
    compacted, protected = g.changes("main~1")  # steps are what a reader can see
    assert (compacted.commit.kind, protected.commit.kind) == ("optimize", "protect")
    for block in (compacted, protected):
        assert list(block.changes) == []
        assert block.changes.io.reads == 0


def test_filters_leave_empty_blocks_and_follow_a_type_through_its_renaming(g: Graph) -> None:
    put(g, "ann")
    with g.transaction() as tx:
        tx.append("Note", {"text": "x"})
    g.apply_schema(SCHEMA.replace("node Note {", 'node Page @rename_from("Note") {'))
    with g.transaction() as tx:
        tx.append("Page", {"text": "y"})
        tx.append("Knows", {"from": "ann", "to": "ann"})
    blocks = list(g.changes(types=["Page"]))
    assert [[c.type for c in b.changes] for b in blocks] == [[], [], ["Note"], [], ["Page"]]
    assert [len(b.schema.steps) for b in blocks] == [3, 0, 0, 1, 0]
    assert [len(list(b.changes)) for b in g.changes(kinds=["edge"])] == [0, 0, 0, 0, 1]
    assert [len(list(b.changes)) for b in g.changes(ops=["delete"])] == [0] * 5
    with pytest.raises(TypeNotFound):
        g.changes(types=["Note"])
    with pytest.raises(InvalidArgument):
        g.changes(ops=["upsert"])


def test_a_cursor_fits_only_the_feed_that_gave_it(g: Graph) -> None:
    put(g, "ann")
    g.create_branch("dev")
    (block,) = g.branch("dev").changes("main~1")
    cursor = block.cursor

    def differs(graph: Graph, branch: str, **options: Any) -> str:
        with pytest.raises(CursorMismatch) as error:
            graph.branch(branch).changes(cursor, **options)
        return error.value.differs

    assert differs(new_graph(), branch="main") == "graph"
    assert differs(g, branch="main") == "branch"
    assert differs(g, branch="dev", types=["Note"]) == "filter"
    assert differs(g, branch="dev", ops=["insert"]) == "filter"
    assert list(g.branch("dev").changes(cursor, kinds=["edge", "node"])) == []
    g.delete_branch("dev")
    with pytest.raises(BranchNotFound):
        g.branch("dev").changes(cursor)
    g.create_branch("dev")
    assert differs(g, branch="dev") == "incarnation"


@pytest.mark.parametrize("end", ["", "AAAA", "%%%", "e30"])
def test_a_damaged_cursor_is_told_as_such(g: Graph, end: str) -> None:
    put(g, "ann")
    *_, block = g.changes()
    with pytest.raises(InvalidCursor):
        g.changes(block.cursor[:19] + end)
    with pytest.raises(InvalidCursor):
        g.changes(block.cursor[:-3])


def test_what_is_not_in_the_history_is_no_place_to_begin(g: Graph) -> None:
    g.create_branch("dev")
    put(g, "ann")
    elsewhere = put(g, "bob", branch="dev")
    for since in ("dev", elsewhere, f"dev@{elsewhere}"):
        with pytest.raises(RefNotFound):
            g.changes(since)
    with pytest.raises(BranchNotFound):
        g.branch("nowhere").changes("beginning")
    with pytest.raises(InvalidArgument):
        g.changes(7)  # type: ignore[arg-type]
    g.merge("dev")
    with pytest.raises(RefNotFound, match=r"not in the history|no commit"):
        g.changes(elsewhere)


def raise_floor(g: Graph, floor: int, *, remove: bool) -> None:
    """What cleanup will do: publish a floor, then remove what lies below."""
    session, ledger = g._session, Ledger()
    head = session.live_head("main", ledger)
    extend_by(session, version_after(session, head, kind="cleanup", floor=floor))
    if remove:
        for number in range(1, floor):
            session.objects.delete(version_key("main", number))


@pytest.mark.parametrize("remove", [True, False])
def test_a_gap_in_the_history_is_told_and_what_is_left_goes_on(remove: bool) -> None:
    g = new_graph()
    for name in "abcd":
        put(g, name)
    blocks = list(g.changes())
    g.create_branch("dev")
    raise_floor(g, 3, remove=remove)
    with omnigraph.open(g.root, settings=RELAXED) as fresh:
        for since in ("beginning", blocks[0].cursor, blocks[1].cursor):
            with pytest.raises(HistoryGap) as error:
                list(fresh.changes(since))
            assert (error.value.code, error.value.http_status) == ("history_gap", 410)
        rest = list(fresh.changes(blocks[2].cursor))
        assert [b.commit.id for b in rest[:2]] == [b.commit.id for b in blocks[3:]]
        if remove:
            with pytest.raises(HistoryGap):
                list(fresh.branch("dev").changes())


def test_following_waits_for_commits_and_ends_when_it_is_closed() -> None:
    class Busy(Clock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            slept.append(seconds)
            if len(slept) % 3 == 0:
                put(g, f"p{len(slept)}")

    slept: list[float] = []
    g = new_graph(Busy())
    put(g, "ann")
    feed = g.changes("main", follow=True, poll=0.25)
    told = [[change.id for change in next(feed).changes] for _ in range(2)]
    assert told == [["p3"], ["p6"]]
    assert set(slept) == {0.25}
    feed.close()
    assert len(slept) == 6
    assert len(list(g.changes(limit=3, follow=True))) == 3


def test_following_ends_with_the_graph_and_fails_with_the_branch() -> None:
    class Acting(Clock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            for act in acts:
                act()

    acts: list[Any] = []
    g = new_graph(Acting())
    g.create_branch("dev")
    acts[:] = [lambda: g.delete_branch("dev"), lambda: g.create_branch("dev")]
    with pytest.raises(BranchMoved):
        list(g.branch("dev").changes("dev", follow=True))
    acts[:] = [lambda: g.delete_branch("dev")]
    with pytest.raises(BranchMoved):
        list(g.branch("dev").changes("dev", follow=True))
    acts[:] = [g.close]
    assert list(g.changes("main", follow=True)) == []


def test_a_block_costs_its_version_and_what_it_changed() -> None:
    g = new_graph()
    for n in range(12):
        put(g, f"p{n}")
    with omnigraph.open(g.root, settings=RELAXED) as fresh:
        *_, old = fresh.changes(limit=3)
        head = fresh._session.head("main", Ledger())
        ledger = Ledger()
        session = fresh._session
        session._versions.clear()
        feed = Feed(session, "main", types=None, kinds=None, ops=None, ledger=ledger)
        blocks = feed.blocks(
            feed.place_of(old.cursor), limit=2, follow=False, poll=1.0, stopped=lambda: False
        )
        assert len(list(blocks)) == 2
        assert head.version == 13
        assert ledger.by_purpose["version"] == {"get": 4}  # the head's probe, 3, 4 and 5
