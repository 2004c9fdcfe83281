"""Threads that write to one branch at the same time: their commits are made ready together, and
each is one of its own. What does not fit goes alone."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.write import attempt, chain, group, recent, together
from omnigraph.engine.write.group import Groups
from omnigraph.engine.write.published import Published
from omnigraph.errors import InvalidData, OmnigraphError, OutcomeUnknown, PreconditionFailed
from omnigraph.runtime import SYSTEM
from omnigraph.settings import Settings
from omnigraph.store.queue import _LOCKS, LocalQueue
from tests.bench.aging import at_point

SCHEMA = """
node Person { name: String @key  email: String? @unique  n: I64? }
node Event { text: String? }
edge Knows: Person -> Person
edge Lives: Person -> Person @card(0..1)
"""
Call = Callable[[], Any]
PLAN = SimpleNamespace(branch="main")


def settings(**given: Any) -> Settings:
    return Settings(durability="relaxed", folding="off", **given)


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    g = omnigraph.init(tmp_path / "graph", schema=SCHEMA, settings=settings())
    for name in ("Ada", "Bob", "Cyd"):
        g.mutate(f'insert Person {{ name: "{name}" }}')
    return g


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many commits each group was made of."""
    found: list[int] = []
    make_ready = together.make_ready

    def counted(end: Any, proposals: Sequence[Any]) -> Any:
        found.append(len(proposals))
        return make_ready(end, proposals)

    monkeypatch.setattr(group, "make_ready", counted)
    return found


def at_once(g: Graph, *calls: Call) -> list[Any]:
    """What each call returned or raised. They are all ready on one head before the first of them
    can put."""
    results: list[Any] = [None] * len(calls)
    threads = []

    def run(place: int, call: Call) -> None:
        try:
            results[place] = call()
        except (OmnigraphError, KeyboardInterrupt) as error:
            results[place] = error

    with held_back(g):
        for place, call in enumerate(calls):
            thread = threading.Thread(target=run, args=(place, call))
            thread.start()
            threads.append(thread)
            wait_until(partial(is_ready, g, place))
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    assert not Groups.shared_by(g._session)._waiting
    return results


@contextmanager
def held_back(g: Graph) -> Iterator[None]:
    with LocalQueue(Path(g.root) / "__wait").turn("main", 1):
        yield


def is_ready(g: Graph, place: int) -> bool:
    """Whether all up to this one wait: for their turn, or for whoever is at work."""
    line = Groups.shared_by(g._session)._waiting.get("main", ())
    for_their_turn = len(_LOCKS._held) - 1  # one is held here
    return for_their_turn + len(line) > place


def wait_until(true: Callable[[], bool]) -> None:
    for _ in range(20_000):
        if true():
            SYSTEM.sleep(0.01)
            return
        SYSTEM.sleep(0.001)
    raise AssertionError("it never came")


def insert(g: Graph, name: str, **options: Any) -> Call:
    return lambda: g.mutate(f'insert Person {{ name: "{name}" }}', **options)


def append(g: Graph, **row: Any) -> Call:
    def write() -> str | None:
        with g.transaction() as tx:
            tx.append("Person", row)
        return tx.commit_id

    return write


def refused(done: Sequence[object]) -> int:
    return sum(isinstance(one, InvalidData) for one in done)


def edge(g: Graph, kind: str, start: str, end: str) -> Call:
    return lambda: g.mutate(f'insert {kind} {{ from: "{start}", to: "{end}" }}')


def names(g: Graph) -> list[str]:
    return sorted(g.scan("Person", columns=["name"]).read_all()["name"].to_pylist())


def check(g: Graph) -> None:
    assert g.verify(deep=True).ok
    assert omnigraph.open(g.root, settings=settings()).count("Person") == g.count("Person")


def test_each_is_a_commit_of_its_own_in_the_order_in_which_they_came(
    g: Graph, sizes: list[int]
) -> None:
    calls = [insert(g, f"p{number}") for number in range(6)]
    done = at_once(g, *calls, edge(g, "Knows", "Ada", "Bob"))
    assert sizes == [6]
    commits = [one.commit_id for one in done]
    assert [one.id for one in list(g.log())[:7]] == commits[::-1]
    parents = [one.commit.parents for one in done]
    assert parents[1:] == [(commit,) for commit in commits[:-1]]
    for place, commit in enumerate(commits[:6]):
        assert g.at(commit).count("Person") == 4 + place
        assert g.at(commit).count("Knows") == 0
    assert all(one.nodes + one.edges == 1 and one.commit.statistics for one in done)
    assert all(one.io.writes == 4 for one in done)
    for number in range(6):
        found = g.entity("Person", f"p{number}")
        assert found is not None
        assert g.mutate(f'update Person set {{ n: 1 }} where name = "p{number}"').nodes == 1
    check(g)


def test_transactions_of_several_types_go_together(g: Graph, sizes: list[int]) -> None:
    def write(number: int) -> str | None:
        with g.transaction() as tx:
            tx.append("Event", [{"text": f"{number}"}, {"text": "more"}])
            tx.upsert("Person", {"name": f"t{number}", "email": f"{number}@x"})
            tx.append("Knows", {"from": f"t{number}", "to": "Ada"})
        return tx.commit_id

    done = at_once(g, *[lambda number=number: write(number) for number in range(4)])
    assert sizes == [3]
    assert len(set(done)) == 4
    assert (g.count("Event"), g.count("Knows"), g.count("Person")) == (8, 4, 7)
    check(g)


def test_of_two_with_one_key_the_second_is_refused(g: Graph, sizes: list[int]) -> None:
    same = append(g, name="same")
    done = at_once(g, insert(g, "a"), insert(g, "b"), same, same)
    assert sizes == [2]
    assert isinstance(done[3], InvalidData)
    assert names(g) == ["Ada", "Bob", "Cyd", "a", "b", "same"]
    check(g)


def test_of_two_with_one_unique_value_one_is_refused(g: Graph) -> None:
    """Neither fits beside the other, so both go alone."""
    taken = [append(g, name=name, email="x@y") for name in "bc"]
    assert refused(at_once(g, insert(g, "a"), *taken)) == 1
    assert len(names(g)) == 5


def test_edges_are_counted_over_the_group(g: Graph) -> None:
    done = at_once(
        g, insert(g, "a"), edge(g, "Lives", "Ada", "Bob"), edge(g, "Lives", "Ada", "Cyd")
    )
    assert refused(done) == 1
    assert g.count("Lives") == 1


def test_an_edge_does_not_land_after_its_end_is_gone(g: Graph) -> None:
    done = at_once(
        g,
        lambda: g.mutate('delete Person where name = "Ada"'),
        edge(g, "Knows", "Ada", "Bob"),
        edge(g, "Knows", "Cyd", "Bob"),
    )
    assert isinstance(done[1], InvalidData)
    assert g.count("Knows") == 1
    check(g)


def test_a_call_that_is_made_twice_is_done_once(g: Graph, sizes: list[int]) -> None:
    call = insert(g, "once", idempotency_key="k")
    done = at_once(g, insert(g, "a"), insert(g, "b"), call, call)
    assert sizes == [2]
    assert done[2].commit_id == done[3].commit_id
    assert [one.repeated for one in done] == [False, False, False, True]


def test_a_condition_holds_for_nobody_behind_another_commit(g: Graph) -> None:
    head = g.snapshot().commit.id
    done = at_once(g, insert(g, "a"), insert(g, "b"), insert(g, "c", if_commit=head))
    assert isinstance(done[2], PreconditionFailed)
    assert names(g) == ["Ada", "Bob", "Cyd", "a", "b"]


def test_who_changes_rows_goes_alone(g: Graph, sizes: list[int]) -> None:
    def more() -> Any:
        return g.mutate('update Person set { n: coalesce(n, 0) + 1 } where name = "Ada"')

    at_once(g, more, more, insert(g, "a"), more, insert(g, "b"))
    assert sizes in ([2], [])
    found = g.entity("Person", "Ada")
    assert found is not None
    assert found["n"] == 3
    assert names(g) == ["Ada", "Bob", "Cyd", "a", "b"]


def test_another_process_may_be_faster_than_a_group(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = omnigraph.open(g.root, settings=settings(queue=False))
    make_ready = together.make_ready

    def overtaken(end: Any, proposals: Sequence[Any]) -> Any:
        ready = make_ready(end, proposals)
        other.mutate('insert Person { name: "theirs" }')
        return ready

    monkeypatch.setattr(group, "make_ready", overtaken)
    done = at_once(g, *[insert(g, f"p{number}") for number in range(4)])
    assert len({one.commit_id for one in done}) == 4
    assert names(g) == ["Ada", "Bob", "Cyd", "p0", "p1", "p2", "p3", "theirs"]
    check(g)


def test_a_process_that_is_killed_with_a_group_made_ready_leaves_nothing_of_it(g: Graph) -> None:
    """Nothing of the group is visible before its first put, so stopping there is harmless."""

    def stop() -> None:
        raise KeyboardInterrupt

    with at_point("group made ready", stop) as reached:
        done = at_once(g, *[insert(g, f"p{number}") for number in range(4)])
    assert reached
    assert isinstance(done[1], KeyboardInterrupt)
    assert names(g) == ["Ada", "Bob", "Cyd", "p0", "p2", "p3"]
    check(g)


def test_an_unknown_outcome_is_told_to_the_one_whose_it_is(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    put_version = chain.put_version
    lost: list[str] = []

    def lose(session: Any, version: Any, ledger: Any, **options: Any) -> Any:
        result = put_version(session, version, ledger, **options)
        if len(lost) == 0:
            lost.append(version.commit.id)
            raise OutcomeUnknown("The answer is lost.", commit=version.commit.id)
        return result

    monkeypatch.setattr(group, "put_version", lose)
    done = at_once(g, *[insert(g, f"p{number}") for number in range(4)])
    assert isinstance(done[1], OutcomeUnknown)
    assert done[1].details["commit"] == lost[0]
    assert [one.commit_id is not None for one in (done[0], done[2], done[3])] == [True] * 3
    assert names(g) == ["Ada", "Bob", "Cyd", "p0", "p1", "p2", "p3"]


@pytest.mark.parametrize("puts", [0, 1])
def test_followers_land_when_their_leader_is_stopped(
    g: Graph, monkeypatch: pytest.MonkeyPatch, puts: int
) -> None:
    put, count = group._put, [0]

    def stop(member: Any, ready: Any) -> bool:
        if count[0] == puts:
            raise KeyboardInterrupt
        count[0] += 1
        return put(member, ready)

    monkeypatch.setattr(group, "_put", stop)
    done = at_once(g, *[insert(g, f"p{number}") for number in range(4)])
    assert isinstance(done[1], KeyboardInterrupt)
    assert names(g)[-2:] == ["p2", "p3"]
    assert len(names(g)) == 6 + puts


def test_a_write_within_a_write_waits_for_nobody() -> None:
    groups, proposal = Groups(), cast(Any, SimpleNamespace(work=SimpleNamespace(plan=PLAN)))
    done: list[str] = []

    def outside() -> Published:
        groups.publish(proposal, inside, patience=1e6)
        done.append("outside")
        return Published(None, "outside")

    def inside() -> Published:
        done.append("inside")
        return Published(None, "inside")

    assert groups.publish(proposal, outside, patience=1e6).commit == "outside"
    assert done == ["inside", "outside"]
    assert not groups._at_work


def test_a_thread_that_is_stopped_while_it_waits_leaves_nobody_without_a_leader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    groups, proposal = Groups(), cast(Any, None)
    assert groups._is_first("main")
    first, second, third = [groups._join("main", proposal) for _ in range(3)]
    assert first is not None
    assert second is not None
    assert third is not None

    def stop(_: float | None = None) -> bool:
        raise KeyboardInterrupt

    for member in (first, second):
        monkeypatch.setattr(member.told, "wait", stop)
    with pytest.raises(KeyboardInterrupt):
        groups._was_told("main", second, 1.0)  # while it is in the line
    groups._pass_on("main")
    with pytest.raises(KeyboardInterrupt):
        groups._was_told("main", first, 1.0)  # when it has just been told to lead
    assert third.told.is_set()
    groups._pass_on("main")
    assert not groups._waiting


def test_a_commit_runs_its_statements_once_beside_others_that_add_other_rows(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    again: list[object] = []
    monkeypatch.setattr(attempt.Write, "replan", lambda self, head: again.append(head))
    calls = [insert(g, f"p{number}") for number in range(5)]
    at_once(g, *calls, edge(g, "Knows", "Ada", "Bob"), edge(g, "Lives", "Bob", "Cyd"))
    assert not again
    assert (g.count("Person"), g.count("Knows"), g.count("Lives")) == (8, 1, 1)


def test_a_group_can_be_switched_off(tmp_path: Path, sizes: list[int]) -> None:
    with omnigraph.init(
        tmp_path / "graph", schema=SCHEMA, settings=settings(group_commit=False)
    ) as g:
        threads = [threading.Thread(target=insert(g, f"p{number}")) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(names(g)) == 6
    assert sizes == []


def test_what_was_looked_up_is_compared_with_every_commit_in_between(
    g: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A mutant: nothing is compared. Then one key is given twice."""
    monkeypatch.setattr(recent, "untouched", lambda *_: True)
    same = append(g, name="same")
    assert refused(at_once(g, insert(g, "a"), same, same)) == 0
    assert names(g).count("same") == 2
