"""A write rests on the head that its handle last saw, without a look; the put proves it. What is
refused there, or comes to nothing, may be due to that head being old, and is looked at again."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.write import turns
from omnigraph.errors import BranchNotFound, InvalidData, InvalidQuery, PreconditionFailed
from omnigraph.settings import Settings
from omnigraph.store.queue import LocalQueue, Turn
from omnigraph.telemetry import Ledger, LedgerEntry

SCHEMA = """
node Person { name: String @key  n: I64? }
edge Knows: Person -> Person
"""
SETTINGS = Settings(durability="relaxed", folding="off")


@pytest.fixture
def g(tmp_path: Path) -> Graph:
    g = omnigraph.init(tmp_path / "graph", schema=SCHEMA, settings=SETTINGS)
    g.mutate('insert Person { name: "Ada", n: 1 }')
    return g


@pytest.fixture
def other(g: Graph) -> Graph:
    """Another process, which knows nothing of this one."""
    return omnigraph.open(g.root, settings=SETTINGS)


def age(g: Graph, name: str) -> object:
    found = g.entity("Person", name)
    assert found is not None
    return found["n"]


def names(g: Graph) -> list[str]:
    return sorted(g.scan("Person", columns=["name"]).read_all()["name"].to_pylist())


def test_nobody_looks_at_the_head_before_a_write(g: Graph) -> None:
    g.mutate('insert Person { name: "Zoe" }')  # which reads the keys that there are
    with g.transaction() as tx:
        tx.upsert("Person", {"name": "Bob"})
    assert (tx.io.reads, tx.io.writes) == (0, 4)
    found = g.mutate('insert Person { name: "Cyd" }', idempotency_key="once")
    assert (found.io.reads, found.io.writes) == (0, 4)


def test_what_rests_on_an_old_head_runs_again_on_the_new_one(g: Graph, other: Graph) -> None:
    other.mutate('update Person set { n: 41 } where name = "Ada"')
    g.mutate('update Person set { n: n + 1 } where name = "Ada"')
    assert age(g, "Ada") == 42


def test_a_refusal_on_an_old_head_is_looked_at_again(g: Graph, other: Graph) -> None:
    other.mutate('insert Person { name: "Bob" }')
    g.mutate('insert Knows { from: "Ada", to: "Bob" }')
    other.mutate('insert Person { name: "Cyd" }')
    other.mutate('insert Person { name: "Dan" }')
    g = omnigraph.open(g.root, settings=SETTINGS)  # which has seen none of what follows
    other.mutate('delete Person where name = "Dan"')
    g.mutate('insert Person { name: "Dan", n: 2 }')
    assert g.count("Knows") == 1
    other.mutate('insert Person { name: "Eve" }')
    with g.transaction() as tx:
        tx.append("Knows", {"from": "Cyd", "to": "Eve"})
    assert g.count("Knows") == 2
    with pytest.raises(InvalidData):
        g.mutate('insert Knows { from: "Ada", to: "Nobody" }')


def test_a_type_that_another_process_made_is_found(g: Graph, other: Graph) -> None:
    other.apply_schema(SCHEMA + "node Place { name: String @key }\n")
    g.mutate('insert Place { name: "Rome" }')
    assert g.count("Place") == 1
    with pytest.raises(InvalidQuery):
        g.mutate('insert Nowhere { name: "Rome" }')


def test_nothing_to_do_on_an_old_head_is_looked_at_again(g: Graph, other: Graph) -> None:
    other.mutate('insert Person { name: "Bob", n: 7 }')
    done = g.mutate('update Person set { n: 8 } where name = "Bob"')
    assert done.nodes == 1
    assert done.commit_id is not None
    assert age(g, "Bob") == 8
    other.mutate('insert Person { name: "Cyd" }')
    assert g.mutate('delete Person where name = "Cyd"').nodes == 1
    assert names(g) == ["Ada", "Bob"]


def test_a_call_that_another_process_made_is_known(g: Graph, other: Graph) -> None:
    text = 'insert Person { name: "Bob", n: 7 }'
    first = other.mutate(text, idempotency_key="once")
    again = g.mutate(text, idempotency_key="once")
    assert again.repeated
    assert again.commit_id == first.commit_id
    assert again.counts == first.counts


def test_a_call_that_is_refused_here_was_made_there(g: Graph, other: Graph) -> None:
    """On the old head an end is missing; on the new one the whole call is there."""
    other.mutate('insert Person { name: "Bob" }')
    text = 'insert Knows { from: "Ada", to: "Bob" }'
    first = other.mutate(text, idempotency_key="once")
    again = g.mutate(text, idempotency_key="once")
    assert again.repeated
    assert again.commit_id == first.commit_id
    assert g.count("Knows") == 1


def test_a_branch_that_was_made_anew_meanwhile_is_the_one_that_is_meant(
    g: Graph, other: Graph
) -> None:
    g.create_branch("side")
    g.branch("side").mutate('insert Person { name: "Old" }')
    other.delete_branch("side")
    other.create_branch("side")
    g.branch("side").mutate('insert Person { name: "New" }')
    assert other.branch("side").count("Person") == 2
    other.delete_branch("side")
    with pytest.raises(BranchNotFound):
        g.branch("side").mutate('insert Person { name: "Newer" }')


def test_a_condition_is_asked_of_the_newest_head(g: Graph, other: Graph) -> None:
    theirs = other.mutate('insert Person { name: "Bob" }').commit_id
    g.mutate('insert Person { name: "Cyd" }', if_commit=theirs)
    with pytest.raises(PreconditionFailed):
        g.mutate('insert Person { name: "Dan" }', if_commit=theirs)
    assert names(g) == ["Ada", "Bob", "Cyd"]


def test_who_has_company_looks_first_and_stages_once(g: Graph, other: Graph) -> None:
    """A lost put costs more than a look, so after one the next writes look, until nobody else has
    written."""
    other.mutate('insert Person { name: "a" }')
    lost = g.mutate('insert Person { name: "b" }')
    assert lost.io.writes > 4
    other.mutate('insert Person { name: "c" }')
    looked = g.mutate('insert Person { name: "d" }')
    assert looked.io.writes == 4
    assert looked.io.reads > 0
    g.mutate('insert Person { name: "e" }')
    alone = g.mutate('insert Person { name: "f" }')
    assert (alone.io.reads, alone.io.writes) == (0, 4)


def test_a_waiter_is_handed_the_head_and_reads_none_of_what_came_meanwhile(
    g: Graph, other: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight versions came while it waited; it reads the tables of the last one and no version."""
    got: list[Ledger] = []
    waiting = threading.Event()
    turn = LocalQueue.turn

    def late(self: LocalQueue, branch: str, patience: float) -> object:
        waiting.set()
        return turn(self, branch, patience)

    queue = LocalQueue(Path(g.root) / "__wait")
    with queue.turn("main", 1) as held:
        monkeypatch.setattr(LocalQueue, "turn", late)
        writer = threading.Thread(
            target=lambda: got.append(g.mutate('insert Person { name: "z" }').io)
        )
        writer.start()
        waiting.wait(5)
        monkeypatch.setattr(LocalQueue, "turn", turn)
        alone = omnigraph.open(
            g.root, settings=Settings(durability="relaxed", folding="off", queue=False)
        )
        for number in range(8):
            alone.mutate(f'insert Person {{ name: "n{number}" }}')
        turns.hand_on(other._session, Turn(True, held._descriptor), alone.snapshot().graph_version)
    writer.join()
    (io,) = got
    assert io.counts[LedgerEntry("get", "version")] == 0
    assert io.counts[LedgerEntry("put", "version")] == 1
    assert len(names(g)) == 10


@pytest.mark.parametrize("left", [b"", b"nonsense", b"\0" * 8 + b"{}", b"\xff" * 40])
def test_what_cannot_be_read_was_not_handed_on(g: Graph, left: bytes) -> None:
    class Left(Turn):
        def left(self) -> bytes:
            return left

    assert turns.handed_on(g._session, Left(True), "main") is None


def test_a_head_of_another_graph_or_of_long_ago_was_not_handed_on(g: Graph, tmp_path: Path) -> None:
    stranger = omnigraph.init(tmp_path / "stranger", schema=SCHEMA, settings=SETTINGS)
    for number in range(3):
        stranger.mutate(f'insert Person {{ name: "{number}" }}')
    version = stranger.snapshot().graph_version
    left: list[bytes] = []

    class Kept(Turn):
        def left(self) -> bytes:
            return left[-1]

        def leave(self, data: bytes) -> None:
            left.append(data)

    turn = Kept(True)
    turns.hand_on(stranger._session, turn, version)
    assert turns.handed_on(g._session, turn, "main") is None
    turns.hand_on(g._session, turn, g.snapshot().graph_version)
    assert turns.handed_on(g._session, turn, "main") is not None
    left.append((g._session.runtime.now() - 6_000_000).to_bytes(8) + left[-1][8:])
    assert turns.handed_on(g._session, turn, "main") is None
