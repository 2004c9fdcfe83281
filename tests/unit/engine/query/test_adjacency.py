"""Adjacency of versions that were never built from scratch is what building them gives, and only
what is new is read for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pyarrow.compute as pc
import pytest

from omnigraph import Graph
from omnigraph.engine.cache import Cache
from omnigraph.engine.columns import Columns
from omnigraph.engine.query.adjacency import arrays as adjacency
from omnigraph.engine.query.adjacency import cache as adjacencies
from omnigraph.engine.query.adjacency.arrays import Adjacency, Way
from omnigraph.engine.query.adjacency.cache import Adjacencies
from omnigraph.engine.query.entities import Entities
from omnigraph.engine.query.rows import TypeRows
from omnigraph.store.tables import Table
from omnigraph.telemetry import Ledger
from tests.unit.engine.query.people import (
    crowd,
    fill,
    graph,
    pairs,
    reopened,
    scanned,
    within,
)

WAYS: tuple[Way, ...] = ("out", "in", "both")

Reads = list[tuple[tuple[str, ...], tuple[int, ...]]]
Triples = list[tuple[str, str, str]]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """What is read of files as whole columns: which columns, of which fragments."""
    found: Reads = []
    real = Table.read_physical

    def read(table: Table, columns: Any, fragments: Any, ledger: Ledger) -> Any:
        found.append((tuple(columns), tuple(fragments)))
        return real(table, columns, fragments, ledger)

    monkeypatch.setattr(Table, "read_physical", read)
    return found


@pytest.fixture
def derived(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each try to extend a relative's adjacency, whether it went."""
    found: list[bool] = []
    real = adjacency.derive

    def derive(*given: Any) -> Adjacency | None:
        made = real(*given)
        found.append(made is not None)
        return made

    monkeypatch.setattr(adjacencies, "derive", derive)
    return found


def held(g: Graph, ref: str = "main") -> tuple[Adjacency, TypeRows, TypeRows]:
    """The adjacency of Knows as the engine has it, the rows of Knows and of Person."""
    snapshot = g.at(ref)
    entities = Entities(snapshot.view, Columns.shared_by(g._session), snapshot.io)
    edge, node = (entities.rows(snapshot.type(name)) for name in ("Knows", "Person"))
    return Adjacencies.shared_by(g._session).of(edge, node, node, snapshot.io), edge, node


def triples(g: Graph, way: Way, ref: str = "main") -> Triples:
    """Each entry as (id, id of the edge, id at the other end)."""
    adjacency, edge, node = held(g, ref)
    neighbours = adjacency.way(way)
    names = Adjacencies.shared_by(g._session).vertices(node)
    edges = edge.take("id", neighbours.edges).to_pylist()
    here = names.ids(neighbours.keys >> 32).to_pylist()
    there = names.ids(neighbours.ends).to_pylist()
    return sorted(zip(here, edges, there, strict=True))


def expected(rows: Triples, way: Way) -> Triples:
    back = [(b, k, a) for a, k, b in rows]
    both = rows + [(b, k, a) for a, k, b in rows if a != b]
    return sorted({"out": rows, "in": back, "both": both}[way])


def check(g: Graph, ref: str = "main") -> None:
    rows = scanned(g, ref)
    for way in WAYS:
        assert triples(g, way, ref) == expected(rows, way)
    assert pairs(g, ref, kernel="adjacency") == rows


@pytest.fixture
def people() -> Iterator[Graph]:
    with graph() as g:
        fill(g, crowd(40, 120))
        yield g


def test_a_child_version_reads_only_its_new_files(
    people: Graph, reads: Reads, derived: list[bool]
) -> None:
    check(people)
    first = people.query("match { $p: Person  $p knows $q } return { count($q) as n }")
    assert len(first) == 1
    reads.clear()
    fill(people, {"Knows": [{"id": "new", "from": "p0", "to": "p1"}]})
    check(people)
    assert derived[-1]
    ends = [fragments for columns, fragments in reads if set(columns) == {"src", "dst"}]
    marks = people.snapshot().view(people.snapshot().type("Knows")).table.marks
    assert ends == [(max(marks),)]


def test_a_new_version_of_the_nodes_alone_reads_no_edges(people: Graph, reads: Reads) -> None:
    check(people)
    fill(people, {"Person": [{"name": "lonely"}]})
    reads.clear()
    check(people)
    assert not [columns for columns, _ in reads if "src" in columns]
    rows = people.query(
        'match { $p: Person {name: "lonely"}  optional { $p knows $q } } return { $q.name }'
    )
    assert rows.to_pylist() == [{"q.name": None}]


@pytest.mark.parametrize("seed", range(8))
def test_whatever_happens_to_a_table_its_adjacency_is_that_of_a_rebuild(
    seed: int, derived: list[bool]
) -> None:
    chance = Random(seed)
    with graph(cache_bytes=1 << 20) as g:
        fill(g, crowd(30, 150, seed))
        history = History(g, chance)
        for _ in range(14):
            history.step()
            if chance.random() < 0.7:
                check(g, chance.choice(history.refs))
        for ref in chance.sample(history.refs, min(6, len(history.refs))):
            check(g, ref)
        with reopened(g) as fresh:
            for way in WAYS:
                assert triples(fresh, way) == triples(g, way)
    assert sum(derived) >= 3


class History:
    """Random changes on main and a branch; `refs` are all that was ever visible."""

    def __init__(self, g: Graph, chance: Random) -> None:
        self.graph = g
        self.chance = chance
        self.branches = ["main"]
        self.refs = ["main"]
        self.number = 0

    def step(self) -> None:
        branch = self.chance.choice(self.branches)
        if len(self.branches) == 1 and self.chance.random() < 0.2:
            self.graph.create_branch("other")
            self.branches.append("other")
            return
        if self.chance.random() < 0.15:
            self.graph.branch(branch).optimize()
            return
        with self.graph.branch(branch).transaction() as tx:
            self.chance.choice(
                [self.insert, self.insert, self.delete, self.update, self.delete_node, self.thin]
            )(tx)
        if tx.commit_id is not None:
            self.refs.append(f"{branch}@{tx.commit_id}")

    def insert(self, tx: Any) -> None:
        self.number += 1
        name = f"new{self.number}"
        known = tx.scan("Person", columns=["id"])["id"].to_pylist()
        tx.append("Person", {"name": name})
        ends = [name, name, *self.chance.sample(known, 3)]
        tx.append(
            "Knows",
            [
                {"id": f"{name}-{n}", "from": self.chance.choice(ends), "to": end}
                for n, end in enumerate(ends)
            ],
        )

    def delete(self, tx: Any) -> None:
        ids = tx.scan("Knows", columns=["id"])["id"].to_pylist()
        tx.delete("Knows", where=pc.field("id").isin(self.chance.sample(ids, 2)))

    def update(self, tx: Any) -> None:
        ids = tx.scan("Knows", columns=["id"])["id"].to_pylist()
        chosen = self.chance.sample(ids, 2)
        tx.update("Knows", set={"since": 5}, where=pc.field("id").isin(chosen))

    def delete_node(self, tx: Any) -> None:
        ids = tx.scan("Person", columns=["id"])["id"].to_pylist()
        tx.delete("Person", where=pc.field("id") == self.chance.choice(ids))

    def thin(self, tx: Any) -> None:
        rows = tx.scan("Knows").to_pylist()
        tx.overwrite("Knows", self.chance.sample(rows, len(rows) - 5))


# Pending rows


def test_pending_rows_lie_over_the_adjacency_and_leave_it_alone(people: Graph) -> None:
    check(people)
    before = scanned(people)
    tx = people.transaction()  # never published
    tx.append("Person", {"name": "new"})
    tx.append("Knows", [{"id": "n1", "from": "new", "to": "p0"}])
    tx.append("Knows", [{"id": "n2", "from": "new", "to": "new"}])
    tx.delete("Knows", where=pc.field("id") == "k3")
    tx.update("Knows", set={"since": 99}, where=pc.field("id") == "k4")
    tx.delete("Person", where=pc.field("id") == "p7")
    rows = tx.scan("Knows").to_pylist()
    wanted = sorted((r["src"], r["id"], r["dst"]) for r in rows)
    assert ("new", "n2", "new") in wanted
    for kernel in ("adjacency", "indexed"):
        assert overlaid(tx, kernel) == wanted
        text = 'match { $a: Person {name: "new"}  $a <knows> $b } return { $b.@id as b }'
        found = within(tx, text, kernel=kernel).to_pylist()
        assert sorted(row["b"] for row in found) == ["new", "p0"]
    assert scanned(people) == before
    check(people)


def test_a_replaced_table_shows_only_what_replaces_it(people: Graph) -> None:
    check(people)
    with people.transaction() as tx:
        tx.delete("Knows", where=pc.field("id") == "k3")
        tx.overwrite("Knows", [{"id": "only", "from": "p1", "to": "p2"}])
        for kernel in ("adjacency", "indexed"):
            assert overlaid(tx, kernel) == [("p1", "only", "p2")]
    check(people)


def overlaid(tx: Any, kernel: str) -> Triples:
    text = "match { $a: Person  $a $k:knows $b } return { $a.@id as a, $k.@id as k, $b.@id as b }"
    rows = within(tx, text, kernel=kernel).to_pylist()
    return sorted((row["a"], row["k"], row["b"]) for row in rows)


# Bounds of the cache


def test_of_one_table_only_some_versions_are_kept(people: Graph) -> None:
    for n in range(6):
        fill(people, {"Knows": [{"id": f"more{n}", "from": "p0", "to": "p1"}]})
        check(people)
    session = people._session
    (key,) = (key for key in Cache.shared_by(session).bookings() if key[0] == "adjacency")
    assert len(Cache.shared_by(session).get(key)) == 3


def test_adjacency_of_many_tables_stays_within_the_budget() -> None:
    budget = 30_000
    kinds = [f"E{n}" for n in range(5)]
    schema = "node Person { name: String @key }\n" + "\n".join(
        f"edge {kind}: Person -> Person" for kind in kinds
    )
    with graph(schema, cache_bytes=budget) as g:
        ends = crowd(20, 400)["Knows"]
        edges = [{"from": row["from"], "to": row["to"]} for row in ends]
        fill(g, {"Person": [{"name": f"p{n}"} for n in range(20)]} | dict.fromkeys(kinds, edges))
        held: set[str] = set()
        for kind in (*kinds, *kinds):
            text = f"match {{ $a: Person  $a $e:{kind} $b }} return {{ count($b) as n }}"
            assert g.query(text, kernel="adjacency").one() == {"n": 400}
            booked = Cache.shared_by(g._session).bookings()
            assert sum(booked.values()) == Cache.shared_by(g._session).booked <= budget
            held = {key[1] for key in booked if key[0] == "adjacency"}
        assert 0 < len(held) < len(kinds)


def test_without_any_cache_answers_are_the_same(people: Graph) -> None:
    with reopened(people, cache_bytes=1) as g:
        for kernel in ("auto", "adjacency", "indexed"):
            assert pairs(g, kernel=kernel) == scanned(g)


# Beside the table


@pytest.fixture
def written(people: Graph, monkeypatch: pytest.MonkeyPatch) -> Graph:
    """A graph whose edges are worth an artefact, with one."""
    monkeypatch.setattr(adjacencies, "_WORTH_WRITING", 10)
    write(people)
    return people


def write(g: Graph) -> None:
    _, edge, node = held(g)
    Adjacencies.shared_by(g._session).write_artefact(edge, node, node, Ledger())


def key_of(g: Graph) -> str:
    _, edge, _ = held(g)
    return f"{edge.view.table.location}/_adjacency"


def ends_read(reads: Reads) -> list[tuple[int, ...]]:
    return [fragments for columns, fragments in reads if "src" in columns]


def test_an_artefact_is_loaded_instead_of_the_ends(written: Graph, reads: Reads) -> None:
    with reopened(written) as g:
        reads.clear()
        check(g)
        assert ends_read(reads) == []


def test_an_artefact_is_fewer_bytes_than_the_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids as long as those that users have."""
    text = "match { $a: Person  $a knows $b } return { count($b) as n }"
    with graph() as g:
        names = [f"urn:example:person:{Random(n).getrandbits(96):024x}" for n in range(3000)]
        chance = Random(1)
        edges = [{"from": chance.choice(names), "to": chance.choice(names)} for _ in range(20_000)]
        fill(g, {"Person": [{"name": name} for name in names], "Knows": edges})

        def cold() -> tuple[int, Any]:
            with reopened(g) as fresh:
                result = fresh.query(text, kernel="adjacency")
                answer = result.one()
                return result.io.read_bytes, answer

        without, wanted = cold()
        monkeypatch.setattr(adjacencies, "_WORTH_WRITING", 10)
        write(g)
        with_it, found = cold()
        assert found == wanted
        assert with_it < 0.7 * without


def test_optimize_writes_the_artefact_of_tables_that_are_worth_it(
    people: Graph, monkeypatch: pytest.MonkeyPatch, reads: Reads
) -> None:
    session, key = people._session, key_of(people)
    people.optimize()
    assert not session.metered(Ledger()).exists(key)
    monkeypatch.setattr(adjacencies, "_WORTH_WRITING", 10)
    people.optimize()
    assert session.metered(Ledger()).exists(key)
    with reopened(people) as g:
        reads.clear()
        check(g)
        assert ends_read(reads) == []


def test_of_a_newer_version_only_what_is_not_in_the_artefact_is_read(
    written: Graph, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(written, {"Knows": [{"id": "late", "from": "p0", "to": "p1"}]})
    written.create_branch("other")
    with reopened(written) as g:
        reads.clear()
        check(g, "other")
        (fragments,) = ends_read(reads)
        assert len(fragments) == 1
        check(g)


def test_an_artefact_of_one_branch_says_nothing_of_the_files_of_another(
    people: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both branches number their next fragment alike, and hold as many rows in it."""
    monkeypatch.setattr(adjacencies, "_WORTH_WRITING", 10)
    people.create_branch("other")
    fill(people, {"Knows": [{"id": "new", "from": "p0", "to": "p1"}]})
    fill(people, {"Knows": [{"id": "new", "from": "p2", "to": "p3"}]}, branch="other")
    write(people)
    with reopened(people) as g:
        check(g, "other")
        check(g)


def test_an_artefact_of_files_that_are_gone_is_not_believed(written: Graph) -> None:
    """Compaction has moved every row: positions of the old files say nothing of the new."""
    fill(written, {"Knows": [{"id": f"late{n}", "from": "p1", "to": "p2"} for n in range(30)]})
    with written.transaction() as tx:
        tx.delete("Knows", where=pc.field("since") < 40)
    written.optimize()
    with reopened(written) as g:
        check(g)


def flipped(place: float) -> Callable[[bytes], bytes]:
    def flip(data: bytes) -> bytes:
        where = min(int(len(data) * place), len(data) - 1)
        return data[:where] + bytes([data[where] ^ 0x10]) + data[where + 1 :]

    return flip


def other_format(data: bytes) -> bytes:
    """A right digest over a body that says it is of another format."""
    import msgspec
    import xxhash

    body = msgspec.msgpack.decode(data[8:])
    body["format"] += 1
    encoded = msgspec.msgpack.encode(body)
    return xxhash.xxh3_64_digest(encoded) + encoded


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "empty": lambda data: b"",
    "short": lambda data: data[:5],
    "truncated": lambda data: data[: len(data) // 2],
    "text": lambda data: b"not an artefact at all",
    "longer": lambda data: data + b"\0",
    "format": other_format,
    **{f"flipped at {n}%": flipped(n / 100) for n in (0, 10, 30, 50, 70, 90, 100)},
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE.keys())
def test_a_damaged_artefact_is_as_if_there_were_none(
    written: Graph, damage: Callable[[bytes], bytes], reads: Reads
) -> None:
    session = written._session
    data = session.metered(Ledger()).get(key_of(written))
    session.metered(Ledger()).put(key_of(written), damage(data))
    with reopened(written) as g:
        reads.clear()
        check(g)
        assert ends_read(reads)
