"""All caches of an open graph together stay within one budget, and what they book is what they
hold."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph import Graph
from omnigraph.engine.cache import ENTRY, Cache
from omnigraph.engine.key_index import KeyIndex
from omnigraph.engine.query.adjacency.arrays import Adjacency
from omnigraph.engine.query.adjacency.vertices import Vertices
from omnigraph.engine.query.workspace import Workspaces
from omnigraph.store.tables import Table
from tests.unit.engine.query.people import fill, graph, pairs, scanned

LIMIT = 20 * ENTRY
KEYS = st.integers(0, 6)
SIZES = st.integers(0, LIMIT + ENTRY)
ACTS = st.lists(st.tuples(st.sampled_from(("keep", "get", "grow")), KEYS, SIZES), max_size=40)


@given(ACTS)
def test_no_more_than_the_limit_is_booked_and_the_oldest_goes_first(
    acts: list[tuple[str, int, int]],
) -> None:
    cache, told = Cache(LIMIT), [0]
    cache.listen(lambda: told.append(cache.evictions))
    naive: dict[int, int] = {}
    evictions = 0
    for act, key, size in acts:
        value = key
        if act == "get":
            assert cache.get((key,)) == (key if key in naive else None)
            if key in naive:
                naive[key] = naive.pop(key)
        elif act == "keep" or (key in naive and naive[key] != size + ENTRY):
            naive.pop(key, None)
            fits = size + ENTRY <= LIMIT
            if fits:
                naive[key] = size + ENTRY
            before = len(naive)
            while sum(naive.values()) > LIMIT:
                del naive[next(iter(naive))]
            evictions += not fits or len(naive) < before
            if act == "keep":
                assert cache.keep((key,), value, size) == fits
            else:
                cache.rebook((key,), value, size)
        assert cache.bookings() == {(key,): size for key, size in naive.items()}
        assert cache.booked == sum(naive.values()) <= LIMIT
        assert told[-1] == cache.evictions == evictions


def test_what_grew_after_it_was_let_go_is_not_booked_again() -> None:
    cache = Cache(LIMIT)
    one, other = object(), object()
    cache.keep(("a",), one, 10)
    cache.keep(("a",), other, 20)
    cache.rebook(("a",), one, 30)
    assert cache.get(("a",)) is other
    assert cache.booked == 20 + ENTRY


# A whole graph

BUDGET = 400_000
NODES, EDGES = ("A", "B", "C"), ("X", "Y", "Z")
SCHEMA = "\n".join(
    [
        *(f"node {name} {{ name: String @key  n: I64?  s: String? @unique }}" for name in NODES),
        *(
            f"edge {name}: {a} -> {b} {{ w: I64? }}"
            for name, a, b in zip(EDGES, NODES, "BCA", strict=True)
        ),
    ]
)


@pytest.fixture
def many() -> Iterator[Graph]:
    with graph(SCHEMA, cache_bytes=BUDGET) as g:
        nodes = {
            kind: [{"name": f"{kind}{n}", "n": n, "s": f"s{n}"} for n in range(600)]
            for kind in NODES
        }
        chance = Random(1)
        edges = {
            kind: [
                {"from": f"{a}{chance.randrange(600)}", "to": f"{b}{chance.randrange(600)}", "w": n}
                for n in range(1500)
            ]
            for kind, a, b in zip(EDGES, NODES, "BCA", strict=True)
        }
        fill(g, nodes | edges)
        yield g


def measured(value: Any) -> int:
    """Bytes of all arrays in what is kept, each once."""
    arrays: dict[int, int] = {}

    def add(one: Any) -> None:
        match one:
            case np.ndarray() | pa.Array():
                arrays[id(one)] = int(one.nbytes)
            case dict():
                for part in one.values():
                    add(part)
            case KeyIndex():
                for run in one.runs:
                    for part in (run.hashes, run.places, run.texts):
                        add(part)
                add(one.dead)
            case Adjacency():
                for part in one.arrays():
                    add(part)
            case Vertices():
                arrays[id(one)] = one.nbytes
            case _:
                raise AssertionError(f"{type(one)} is kept, and nobody counts it")

    add(value)
    return sum(arrays.values())


def check(g: Graph) -> set[str]:
    """Everything that is held is booked; gives which caches have something."""
    cache = Cache.shared_by(g._session)
    booked = cache.bookings()
    assert sum(booked.values()) == cache.booked <= BUDGET
    for key, size in booked.items():
        bare = size - ENTRY
        # The places of fragments are booked by their number.
        assert measured(cache.get(key)) <= bare <= measured(cache.get(key)) + 10_000, key
    return {key[0] for key in booked}


def test_whatever_is_asked_the_caches_book_what_they_hold_and_stay_within_the_budget(
    many: Graph,
) -> None:
    chance = Random(2)
    many.create_branch("other")
    seen: set[str] = set()
    for step in range(60):
        ref = chance.choice(["main", "other"])
        kind, edge = chance.choice(NODES), chance.choice(EDGES)
        match step % 6:
            case 0:
                fill(many, {kind: [{"name": f"new{step}", "n": step}]}, branch=ref)
            case 1:
                many.at(ref).entity(kind, f"{kind}{chance.randrange(600)}")
            case 2:
                text = f"match {{ $p: {kind}  $p.n > 300 }} return {{ $p.s, $p.n }}"
                many.at(ref).query(text).to_pylist()
            case 3:
                text = f"match {{ $a: {NODES[EDGES.index(edge)]}  $a {edge} $b }} return {{ $b.s }}"
                many.at(ref).query(text, kernel="adjacency").to_pylist()
            case 4:
                end = "BCA"[EDGES.index(edge)]
                text = f'match {{ $b: {end} {{name: "{end}7"}}  $a {edge} $b }} return {{ $a.n }}'
                many.at(ref).query(text, kernel="adjacency").to_pylist()
            case _:
                many.at(ref).query(
                    f'match {{ $p: {kind} {{s: "s{step}"}} }} return {{ $p.name }}'
                ).to_pylist()
        seen |= check(many)
    assert seen == {"keys", "columns", "adjacency", "vertices"}
    assert Cache.shared_by(many._session).evictions


def test_what_had_to_go_is_not_held_by_what_queries_leave_for_the_next() -> None:
    with graph() as g:
        fill(g, {"Person": [{"name": "a"}, {"name": "b"}], "Knows": [{"from": "a", "to": "b"}]})
        session = g._session
        assert pairs(g, kernel="adjacency") == scanned(g)
        assert Workspaces.shared_by(session)._free
        Cache.shared_by(session).keep(("too large",), None, Cache.shared_by(session).limit)
        assert not Workspaces.shared_by(session)._free
        asked = g.query("match { $p: Person } return { $p.name }").batches()
        next(asked)
        Cache.shared_by(session).keep(("too large",), None, Cache.shared_by(session).limit)
        list(asked)
        assert not Workspaces.shared_by(session)._free


def test_ids_that_are_numbered_anew_meet_nothing_of_the_old_numbers() -> None:
    """The numbers go, what was built on them stays: as if they had not been asked for longest."""
    with graph() as g:
        people = [{"name": name} for name in "abcd"]
        fill(g, {"Person": people, "Knows": [{"from": "a", "to": "b"}, {"from": "d", "to": "c"}]})
        before = pairs(g, kernel="adjacency")
        cache = Cache.shared_by(g._session)
        (key,) = (key for key in cache.bookings() if key[0] == "vertices")
        renumbered = Vertices()
        renumbered.encode(pa.array(["d", "c", "b", "a"]))
        cache.keep(key, renumbered, renumbered.nbytes)
        Workspaces.shared_by(g._session).clear()
        assert pairs(g, kernel="adjacency") == before


def test_a_query_goes_on_with_the_numbers_that_it_began_with(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Whatever it reads, all that was kept is let go before it reads on."""
    real = Table.read_physical

    def read(table: Table, *given: Any) -> Any:
        cache = Cache.shared_by(g._session)
        cache.keep(("everything",), None, cache.limit - ENTRY)
        return real(table, *given)

    monkeypatch.setattr(Table, "read_physical", read)
    with graph() as g:
        people = [{"name": name} for name in "abcd"]
        for start in range(2):
            fill(g, {"Person": people[start * 2 : start * 2 + 2]})
        fill(g, {"Knows": [{"from": "c", "to": "b"}, {"from": "d", "to": "a"}]})
        assert pairs(g, kernel="adjacency") == scanned(g)
        assert Cache.shared_by(g._session).evictions > 1
