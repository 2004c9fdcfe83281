"""Writers of different machines, who share no lock: the line of tickets keeps them fair.

The machines are processes with the lock of the machine switched off, on a store that is far away.
"""

from __future__ import annotations

import uuid
from typing import Any

import pytest

import omnigraph
from omnigraph.settings import Settings
from omnigraph.store.objects import ObjectStore
from omnigraph.store.queue import Ticket, Tickets
from tests.bench.memory import DictStore
from tests.bench.processes import results_of, run_together
from tests.bench.proxy import Proxy
from tests.processes.history import asked_for, check_linear, rows
from tests.processes.workload import SCHEMA

WRITE_FOR = "tests.processes.workload:write_for"
LATENCY = 0.01
FAIR = 5.0
"""How many commits a writer may have for each one of another."""


class Clock:
    """A clock that only sleeping moves; `asleep` is called in each sleep."""

    def __init__(self) -> None:
        self.time = 1_000_000.0
        self.asleep: list[Any] = []

    def now(self) -> int:
        return int(self.time * 1e6)

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds
        if self.asleep:
            self.asleep.pop(0)()

    def random(self) -> float:
        return 0.5

    def ulid(self) -> str:
        return uuid.uuid4().hex


@pytest.mark.s3
def test_two_writers_far_from_their_store_have_each_their_share(
    proxied_root: str, proxy: Proxy
) -> None:
    """A loser's rebase takes longer than a winner's cycle: without tickets who wins goes on
    winning, 30 commits against 1."""
    proxy.shape(latency=LATENCY)
    commits = race(proxied_root, writers=2, seconds=5, tickets=True)
    print(f"commits of each writer: {commits}")
    assert max(commits) <= FAIR * min(commits)


@pytest.mark.s3
@pytest.mark.slow
@pytest.mark.parametrize(("writers", "unfair"), [(2, 1.5), (8, FAIR)])
def test_with_tickets_no_writer_starves_and_without_them_one_does(
    writers: int, unfair: float, proxied_root: str, proxy: Proxy
) -> None:
    """Since no write looks at the head first (decision 50), the second of two loses less: 70
    commits against 171 without tickets."""
    proxy.shape(latency=LATENCY)
    with_tickets = race(f"{proxied_root}/with", writers, seconds=30, tickets=True)
    without = race(f"{proxied_root}/without", writers, seconds=30, tickets=False)
    print(f"commits of each writer: with tickets {with_tickets}, without {without}")
    assert max(with_tickets) <= FAIR * min(with_tickets)
    assert max(without) > unfair * min(without)


def race(root: str, writers: int, seconds: int, *, tickets: bool) -> list[int]:
    omnigraph.init(root, schema=SCHEMA).close()
    orders = [
        {"root": root, "seconds": seconds, "writer": writer, "tickets": tickets}
        for writer in range(writers)
    ]
    told = results_of(run_together(WRITE_FOR, orders, within=seconds + 300))
    with omnigraph.open(root, mode="r", settings=Settings(queue=False)) as g:
        commits = sum(each["commits"] for each in told)
        assert asked_for(check_linear(g)) == {"init": 1, "write": commits}
        expected = [(w, n) for w, each in enumerate(told) for n in range(each["commits"])]
        assert rows(g, "Event", "writer", "number") == expected
    return sorted(each["commits"] for each in told)


def test_losers_are_let_through_in_the_order_in_which_they_came() -> None:
    store: ObjectStore = DictStore()
    clock = Clock()
    first, second = Tickets(clock), Tickets(clock)
    mine, waited = first.stand_in_line(store, "main", None, clock.time + 60)
    assert not waited
    clock.time += 1
    clock.asleep = [lambda: None, lambda: first.leave_line(store, "main", mine)]
    theirs, waited = second.stand_in_line(store, "main", None, clock.time + 60)
    assert waited
    assert clock.asleep == []
    again, waited = first.stand_in_line(store, "main", mine, clock.time + 60)
    assert not waited  # who has lost once more keeps the place
    assert again.place == mine.place < theirs.place


def test_a_ticket_whose_owner_died_expires_and_one_whose_owner_waits_does_not() -> None:
    store: ObjectStore = DictStore()
    clock = Clock()
    dead, alive, late = Tickets(clock), Tickets(clock), Tickets(clock)
    dead.stand_in_line(store, "main", None, clock.time + 60)
    clock.time += 0.5
    started = clock.time
    ticket, waited = alive.stand_in_line(store, "main", None, clock.time + 60)
    assert waited
    assert 4 < clock.time - started < 6
    assert ticket.heard > ticket.since  # shown again, because it had waited for long
    assert [key.rsplit("/")[-1] for key in store.list("__wait/main/")] == [ticket.name]
    late.stand_in_line(store, "main", None, clock.time + 1)
    assert len(store.list("__wait/main/")) == 2


def test_a_writer_on_a_streak_lets_the_line_go_first() -> None:
    store: ObjectStore = DictStore()
    clock = Clock()
    greedy, loser = Tickets(clock), Tickets(clock)
    for _ in range(3):
        assert not greedy.give_way(store, "main", clock.time + 60)
        greedy.landed("main", contended=False)
        clock.time += 0.2
    ticket, _ = loser.stand_in_line(store, "main", None, clock.time + 60)
    clock.asleep = [lambda: loser.leave_line(store, "main", ticket)]
    assert greedy.give_way(store, "main", clock.time + 60)
    assert clock.asleep == []


def test_a_writer_that_lost_a_race_looks_for_the_line_before_its_next_commit() -> None:
    store: ObjectStore = DictStore()
    clock = Clock()
    lucky, loser = Tickets(clock), Tickets(clock)
    loser.stand_in_line(store, "main", None, clock.time + 60)
    lucky.landed("main", contended=False)
    assert not lucky.give_way(store, "main", clock.time + 60)
    lucky.landed("main", contended=True)
    assert lucky.give_way(store, "main", clock.time + 1)


def test_a_foreign_name_in_the_line_is_left_alone_and_stops_nobody() -> None:
    store: ObjectStore = DictStore()
    clock = Clock()
    store.put("__wait/main/rubbish", b"")
    far = Ticket(0, 0, "x")
    store.put(f"__wait/main/{far.name}", b"")
    ticket, waited = Tickets(clock).stand_in_line(store, "main", None, clock.time + 60)
    assert not waited
    assert store.list("__wait/main/") == [f"__wait/main/{ticket.name}", "__wait/main/rubbish"]
