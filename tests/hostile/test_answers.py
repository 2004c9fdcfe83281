"""A server that lies to the client: an answer, or an error of ours, and never another exception, a
loop without an end, or a write that is told as not done."""

from __future__ import annotations

import itertools
import json
import random
import struct
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow as pa
import pytest

import omnigraph
from omnigraph.client import connection
from omnigraph.client.opening import who_is
from omnigraph.client.remote_graph import RemoteGraph, branch_rows
from omnigraph.errors import BadAnswer, OmnigraphError
from omnigraph.settings import Settings
from tests.client.served import Served, serving
from tests.hostile.liar import (
    ALL,
    Liar,
    Lie,
    Told,
    bomb,
    lie_of_bytes,
    lie_of_headers,
    lie_of_json,
    lying,
)

SCHEMA = """
node Person { name: String @key  age: I32?  photo: Blob?  text: String? @search }
edge Knows: Person -> Person { since: I32? }
"""
PEOPLE = "query people($age: I32?) { match { $p: Person { age: $age } } return { $p.name } }"
ADD = "query add($n: String) { insert Person { name: $n, age: 7 } }"
ASKED = "match { $p: Person } return { $p.name, $p.age }"


def unique() -> str:
    return f"n{uuid.uuid4().hex}"


def _transact(g: RemoteGraph) -> Any:
    with g.transaction() as tx:
        tx.append("Person", [{"name": unique(), "age": 1}])
        tx.update("Person", set={"age": 3}, where='name = "b"')
        return tx.count("Person"), tx.scan("Person"), [*tx.query(ASKED)]


def _branch(g: RemoteGraph) -> Any:
    name = unique()
    g.create_branch(name)
    side = g.branch(name)
    side.mutate(f'insert Person {{ name: "{name}" }}')
    g.merge(name, dry_run=True)
    done = g.merge(name)
    g.create_tag(name)
    g.delete_tag(name)
    g.delete_branch(name)
    return done


def _refused(g: RemoteGraph) -> Any:
    for call in (
        lambda: g.mutate('insert Person { name: "a" }'),
        lambda: [*g.query("match { $p: Nobody } return { $p }")],
        lambda: g.at("nowhere"),
        lambda: g.load([{"type": "Person", "data": {"name": "a", "age": "x"}}]),
    ):
        try:
            call()
        except OmnigraphError as error:
            str(error), error.to_dict()


def _differ(g: RemoteGraph) -> Any:
    found = g.at("main").diff("main~2")
    return found.summary(), [*found], found.schema.steps


def _protect(g: RemoteGraph) -> None:
    g.protect("side")
    g.unprotect("side")


READS: dict[str, Callable[[RemoteGraph], Any]] = {
    "query": lambda g: [*g.query(ASKED)],
    "commit of a query": lambda g: g.query(ASKED).commit,
    "network": lambda g: g.query("match { $p: Person } return { $p }").to_networkx(),
    "run_query": lambda g: [*g.run_query("people", {"age": 1})],
    "queries": lambda g: {name: (one.text, one.parameters) for name, one in g.queries().items()},
    "explain": lambda g: g.explain(ASKED),
    "search": lambda g: [*g.search("word")],
    "indexes": lambda g: [str(one) for one in g.indexes()],
    "scan": lambda g: g.scan("Person", filter="age = 1").read_all(),
    "count": lambda g: g.count("Person"),
    "entity": lambda g: g.entity("Person", "a"),
    "blob": lambda g: (blob := g.blob("Person", "a", "photo")) and (blob.read(), blob.read(2, 3)),
    "export": lambda g: g.export(to=_Sink()),
    "algorithm": lambda g: g.algorithm("pagerank").to_arrow(),
    "diff": _differ,
    "log": lambda g: [str(one) for one in g.log(limit=40)],
    "lanes": lambda g: g.log(limit=40).lanes(),
    "history": lambda g: [one.commit.id for one in g.history("Person", "a")],
    "blame": lambda g: [one.value for one in g.blame("Person", "a")],
    "schema": lambda g: (g.schema, g.types(), g.commit.created_at),
    "describe": lambda g: g.describe(),
    "check": lambda g: g.check("match { $p: Persn } return { $p }").diagnostics,
    "plan_schema": lambda g: g.plan_schema(SCHEMA + "node More { x: I32 }").steps,
    "manifest": lambda g: g.manifest(),
    "changes": lambda g: [(one.commit.id, [*one.changes]) for one in g.changes(limit=30)],
    "follow": lambda g: [*g.changes(follow=True, limit=2)],
    "may": lambda g: g.may("mutate"),
    "branches": lambda g: (g.branches(), g.protected_branches(), g.tags()),
    "heads of branches": lambda g: [
        (one["name"].upper(), one["version"] + 1) for one in branch_rows(g)
    ],
    "who is it": lambda g: ", ".join(who_is(g.root.rpartition("/graphs/")[0], None)["roles"]),
    "format": lambda g: g.format(),
    "jobs": lambda g: [one.to_dict() for one in g.jobs.list()],
    "recovery": lambda g: g.recovery.list(),
    "refusals": _refused,
}
WRITES: dict[str, Callable[[RemoteGraph], Any]] = {
    "mutate": lambda g: g.mutate(ADD, "add", {"n": unique()}),
    "run_mutation": lambda g: g.run_mutation("add", {"n": unique()}),
    "store_queries": lambda g: g.store_queries({"people": PEOPLE, "add": ADD}),
    "transaction": _transact,
    "run": lambda g: g.run(lambda tx: tx.append("Person", [{"name": unique()}])),
    "load": lambda g: g.load([{"type": "Person", "data": {"name": unique()}}]),
    "load with rejects": lambda g: g.load(
        [{"type": "Person", "data": {"name": unique(), "age": "x"}}], on_error="quarantine"
    ),
    "branches and merges": _branch,
    "protect": _protect,
    "restore": lambda g: g.branch("side").restore("main~1"),
    "revert": lambda g: g.revert(g.mutate(ADD, "add", {"n": unique()}).commit_id or ""),
    "apply_schema": lambda g: g.apply_schema(SCHEMA),
    "optimize": lambda g: g.optimize(),
    "cleanup": lambda g: g.cleanup(keep=1000),
    "verify": lambda g: g.verify().findings,
}
CALLS = READS | WRITES
FEW = 8


class _Sink:
    def __init__(self) -> None:
        self.size = 0

    def write(self, data: bytes) -> int:
        self.size += len(data)
        return len(data)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("server")) as found:
        yield found


@pytest.fixture(scope="module")
def liar(server: Served) -> Iterator[Liar]:
    with lying(server.url) as made:
        yield made


@pytest.fixture(scope="module")
def address(liar: Liar, server: Served) -> str:
    root = server.new_root()
    with omnigraph.init(root, schema=SCHEMA) as g:
        with g.transaction(message="two") as tx:
            tx.append("Person", [{"name": "a", "age": 1, "photo": b"picture", "text": "a word"}])
            tx.append("Person", [{"name": "b"}])
            tx.append("Knows", [{"from": "a", "to": "b", "since": 3}])
        g.mutate('update Person set { age: 2 } where name = "a"')
        g.create_branch("side")
        g.branch("side").mutate('insert Person { name: "s" }')
    with omnigraph.open(server.storage_of(root)) as near:
        near.store_queries({"people": PEOPLE, "add": ADD})
    return liar.url + root.removeprefix(server.url)


def attack(liar: Liar, address: str, name: str, count: int, seed: int) -> None:
    """One lie for each try, at any of the answers that a call needs."""
    draw = random.Random(f"{name} {seed}")
    settings = Settings(retry_for=0.3)
    for number in range(count):
        liar.draw, liar.lie = random.Random(f"{name} {seed} {number}"), draw.choice(ALL)
        liar.at, liar.said = draw.choice((1, 1, 2, 2, 3, 4, 6)), ""
        try:
            with omnigraph.open(address, settings=settings) as g:
                assert isinstance(g, RemoteGraph)
                CALLS[name](g)
        except OmnigraphError as error:
            told = (name, number, liar.said)
            assert "Traceback" not in str(error), told
            assert len(str(error)) < 20_000, told
        except Exception as error:
            raise AssertionError((name, number, liar.lie.__name__, liar.said)) from error


@pytest.mark.parametrize("name", CALLS)
def test_whatever_a_server_says_is_an_answer_or_an_error_of_ours(
    liar: Liar, address: str, name: str
) -> None:
    attack(liar, address, name, FEW, 17)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "seed"), [*itertools.product(CALLS, range(4))])
def test_many_lies_are_answers_or_errors_of_ours(
    liar: Liar, address: str, name: str, seed: int
) -> None:
    attack(liar, address, name, 60, seed)


def add_by_transaction(g: RemoteGraph, name: str) -> None:
    with g.transaction() as tx:
        tx.append("Person", [{"name": name}])


ADDING: dict[str, Callable[[RemoteGraph, str], Any]] = {
    "mutate": lambda g, name: g.mutate(ADD, "add", {"n": name}),
    "transaction": add_by_transaction,
    "load": lambda g, name: g.load([{"type": "Person", "data": {"name": name}}]),
}


@pytest.mark.parametrize("how", ADDING)
@pytest.mark.parametrize("lie", [lie_of_json, lie_of_bytes, lie_of_headers])
def test_a_write_that_landed_is_never_told_as_not_done(
    liar: Liar, address: str, server: Served, how: str, lie: Lie
) -> None:
    liar.about, told = "idempotency-key", set[str]()
    try:
        with omnigraph.open(server.storage_of(address)) as near:
            for number in range(12):
                liar.draw, liar.lie, liar.at = random.Random(f"{how} {number}"), lie, 1
                name = unique()
                try:
                    with omnigraph.open(address, settings=Settings(retry_for=0.3)) as g:
                        ADDING[how](g, name)  # type: ignore[arg-type]
                except OmnigraphError as error:
                    told.add(error.code)
                    assert error.applied is None, (number, error, liar.said)
                found = near.query(f'match {{ $p: Person {{ name: "{name}" }} }} return {{ $p }}')
                assert len([*found]) == 1, (number, liar.said)
    finally:
        liar.about = ""
    assert told <= {"outcome_unknown"}


def answering(liar: Liar, lie: Lie, at: int = 1) -> None:
    liar.lie, liar.at = lie, at


def test_bytes_of_a_blob_are_those_that_were_asked_for(liar: Liar, address: str) -> None:
    """A server, or what stands before it, may give the whole where a part was asked for."""
    with omnigraph.open(address) as g:
        blob = g.blob("Person", "a", "photo")
        assert blob is not None
        assert blob.read(1, 3) == b"ict"
        others: tuple[Lie, ...] = (
            lambda told, _: Told(200, told.headers, b"picture"),
            lambda told, _: Told(206, told.headers | {"content-range": "bytes 0-6/7"}, b"picture"),
            lambda told, _: Told(206, told.headers, b"ic"),
            lambda told, _: Told(206, told.headers, b"icture"),
        )
        for other in others:
            answering(liar, other)
            with pytest.raises(BadAnswer, match="bytes of the blob"):
                blob.read(1, 3)


def test_an_answer_that_unpacks_without_end_is_not_held(
    liar: Liar, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "_MOST", 1 << 20)

    def bombed(told: Told, _: random.Random) -> Told:
        return Told(200, told.headers | {"content-encoding": "gzip"}, bomb(64 << 20))

    with omnigraph.open(address) as g:
        answering(liar, bombed)
        with pytest.raises(BadAnswer, match="more than"):
            g.describe()


def test_a_list_that_goes_round_in_a_circle_is_left(liar: Liar, address: str) -> None:
    pages: list[dict[str, Any]] = []

    def same(told: Told, _: random.Random) -> Told:
        liar.at = 1
        pages.append(json.loads(told.body))
        page = pages[0] | {"cursor": "p1.again"}
        return Told(200, told.headers, json.dumps(page).encode())

    with omnigraph.open(address) as g:
        answering(liar, same)
        with pytest.raises(BadAnswer, match="goes on where it was"):
            list(g.log())
    liar.at = 1 << 60


def test_rows_with_unsound_columns_are_no_rows(liar: Liar, address: str) -> None:
    """Offsets that lead out of their buffers would end the process that looks at them."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, pa.schema({"n": pa.string()})) as writer:
        writer.write_batch(pa.record_batch({"n": pa.array(["ab", "c"])}))
    data = sink.getvalue().to_pybytes()
    offsets = struct.pack("<iii", 0, 2, 3)
    assert data.count(offsets) == 1
    data = data.replace(offsets, struct.pack("<iii", 0, 1 << 30, 3))
    with omnigraph.open(address, settings=Settings(retry_for=0.2)) as g:
        answering(liar, _again(liar, data))
        with pytest.raises(OmnigraphError, match="unsound"):
            list(g.query(ASKED))
    liar.at = 1 << 60


def _again(liar: Liar, data: bytes) -> Lie:
    def lie(told: Told, _: random.Random) -> Told:
        liar.at = 1
        return Told(200, told.headers, data)

    return lie
