"""The ledger tells the truth: it agrees with the wire request by request, with the metrics that
are exported, and with itself when several operations run at once."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph.telemetry import Ledger
from tests.cost.conftest import MakeWorld
from tests.cost.meter import Exported, booked, on_the_wire
from tests.cost.world import CORE, EVENT, RELAXED, World


def _init(world: World) -> Callable[[], object]:
    root = f"{world.root}-another"
    return lambda: omnigraph.init(root, schema="\n".join(CORE), runtime=world.runtime)


def _update(world: World) -> Callable[[], object]:
    where = pc.field("name") == "bulk7"
    return lambda: world.commit(lambda tx: tx.update("Person", set={"age": 7}, where=where))


def _delete_with_edges(world: World) -> Callable[[], object]:
    edges = [{"from": "solo0", "to": f"bulk{n}"} for n in (8, 9, 8)]
    world.commit(lambda tx: tx.append("Knows", edges))
    where = pc.field("name") == "bulk8"
    return lambda: world.commit(lambda tx: tx.delete("Person", where=where))


def _overwrite(world: World) -> Callable[[], object]:
    return lambda: world.commit(lambda tx: tx.overwrite("Event", [{"text": "all"}]))


def _read_back(world: World) -> Callable[[], object]:
    """A transaction that reads what is there and what it has just written."""

    def run() -> None:
        with world.graph.transaction() as tx:
            tx.upsert("Person", {"name": "solo0", "age": 3})
            assert tx.scan("Person", filter=pc.field("age") == 3).num_rows >= 1

    return run


def _compact(world: World) -> Callable[[], object]:
    return lambda: world.graph.optimize()


def _apply_schema(world: World) -> Callable[[], object]:
    """A column that is null, and a type that is new."""
    text = "\n".join(world.types).replace("text: String", "text: String  more: I64?")
    return lambda: world.graph.apply_schema(f"{text}\nnode Extra {{ name: String @key }}")


def _follow(world: World) -> Callable[[], object]:
    """A write after another process has written the same type."""
    with world.builder.transaction() as tx:
        tx.upsert("Person", {"name": "solo2", "age": 5})
    return lambda: world.commit(lambda tx: tx.upsert("Person", {"name": "solo2", "age": 6}))


def _scan_everything(world: World) -> Callable[[], object]:
    def run() -> None:
        snapshot = world.open().snapshot()
        for name in snapshot.types():
            snapshot.scan(name).read_all()

    return run


def _travel(world: World) -> Callable[[], object]:
    def run() -> None:
        graph = world.open()
        commits = list(graph.log(limit=5))
        graph.at("main~3").scan("Person").read_all()
        graph.at(commits[-1].id)
        graph.branches()

    return run


def _give_up(world: World) -> Callable[[], object]:
    """A refused row and a lost precondition leave nothing, but not for free."""

    def run() -> None:
        with pytest.raises(omnigraph.errors.InvalidData), world.graph.transaction() as tx:
            tx.append("Knows", {"from": "nobody", "to": "solo0"})
        late = world.graph.transaction(if_commit="01J0000000000000000000000A")
        with pytest.raises(omnigraph.errors.PreconditionFailed), late as tx:
            tx.append("Event", {"text": "late"})

    return run


@pytest.mark.s3
@pytest.mark.parametrize(
    "prepare",
    [
        _init,
        _update,
        _delete_with_edges,
        _overwrite,
        _read_back,
        _compact,
        _apply_schema,
        _follow,
        _scan_everything,
        _travel,
        _give_up,
    ],
    ids=lambda prepare: prepare.__name__.strip("_"),
)
def test_every_request_on_the_wire_is_on_the_ledger(
    make_s3_world: MakeWorld, prepare: Callable[[World], Callable[[], object]]
) -> None:
    world = make_s3_world()
    for _ in range(3):  # something to read, to compact and to go back to
        world.commit(lambda tx: tx.append("Event", {"text": "some"}))
    exported, seen = world.exchange(prepare(world))
    assert booked(exported) == on_the_wire(seen), f"wire: {seen}"


@pytest.mark.s3
def test_an_upload_in_parts_is_on_the_ledger(make_s3_world: MakeWorld) -> None:
    """Files above 5 MiB: Lance counts the parts, not the beginning and the end."""
    world = make_s3_world((EVENT,))
    rows = [{"text": os.urandom(600).hex()} for _ in range(12_000)]
    exported, seen = world.exchange(lambda: world.commit(lambda tx: tx.append("Event", rows)))
    assert seen.by_verb["POST"] == exported["post", "data"] == 2
    assert booked(exported) == on_the_wire(seen), f"wire: {seen}"


def test_metrics_say_what_the_ledger_says(make_world: MakeWorld, exported: Exported) -> None:
    world = make_world()
    requests, moved = exported.requests(), exported.bytes()
    written = world.commit(lambda tx: tx.upsert("Person", {"name": "solo0", "age": 1}))
    snapshot = world.graph.snapshot()
    snapshot.scan("Person").read_all()
    both = Ledger()
    both.join([written, snapshot.io])
    assert exported.requests() - requests == both.counts
    assert sum((exported.bytes() - moved).values()) == both.bytes


def test_results_carry_their_requests(make_world: MakeWorld) -> None:
    world = make_world()
    graph = world.open()
    snapshot = graph.snapshot()
    snapshot.scan("Person").read_all()
    with graph.transaction() as tx:
        tx.append("Event", {"text": "one"})
    for io in (graph.io, snapshot.io, tx.io):
        booked = [n for verbs in io.by_purpose.values() for n in verbs.values()]
        assert sum(booked) == io.reads + io.writes > 0
        assert 0 < io.hops <= io.reads + io.writes
        assert io.bytes > 0
    assert set(graph.io.by_purpose) == {"graph"}
    assert set(snapshot.io.by_purpose) == {"version", "schema", "table", "scan"}
    assert {"data", "table", "version"} <= set(tx.io.by_purpose)
    assert (graph.io.writes, snapshot.io.writes) == (0, 0)


def test_writes_at_the_same_time_have_each_its_own_ledger(make_world: MakeWorld) -> None:
    """Lance counts the requests of all tables together; a write must not be shown another's."""
    world = make_world((EVENT,))
    names = [f"branch{n}" for n in range(4)]
    for name in names:
        world.graph.create_branch(name)
        world.commit(lambda tx: tx.append("Event", {"text": "warm"}), branch=name)
    together = threading.Barrier(len(names))

    def write(name: str) -> list[dict[str, dict[str, int]]]:
        found = []
        for _ in range(5):
            together.wait()
            io = world.commit(lambda tx: tx.append("Event", {"text": name}), branch=name)
            found.append({p: v for p, v in io.by_purpose.items() if p != "wait"})
        return found

    with ThreadPoolExecutor(len(names)) as pool:
        found = [by_purpose for each in pool.map(write, names) for by_purpose in each]
    alone = {"data": {"put": 1}, "table": {"put": 2}, "version": {"put": 1}}
    assert found == [alone] * 20


def test_a_first_write_proves_the_store_once(make_world: MakeWorld) -> None:
    """On an object store the first write of a handle costs one put more, the second does not."""
    world = make_world((EVENT,))
    graph = omnigraph.open(world.root, settings=RELAXED, runtime=world.runtime)
    costs = []
    for n in range(2):
        with graph.transaction() as tx:
            tx.append("Event", {"text": f"{n}"})
        costs.append(tx.io.by_purpose.get("graph", {}))
    assert costs == [{} if world.proxy is None else {"put": 1}, {}]
