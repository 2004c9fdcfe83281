"""Adjacency arrays against plain lists of pairs."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.engine.query.adjacency.neighbours import Neighbours

COUNT = 7
PAIRS = st.lists(st.tuples(st.integers(0, COUNT - 1), st.integers(0, COUNT - 1)), max_size=30)

Pairs = list[tuple[int, int]]
Entry = tuple[int, int, int]


def arrays(pairs: Pairs, first: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    here = np.array([a for a, _ in pairs], np.int32)
    there = np.array([b for _, b in pairs], np.int32)
    return here, there, np.arange(first, first + len(pairs), dtype=np.int64)


def built(pairs: Pairs, count: int = COUNT) -> Neighbours:
    return Neighbours.build(*arrays(pairs), count)


def entries(held: Neighbours) -> list[Entry]:
    """(vertex, other end, edge) in the order of the arrays."""
    return [
        (vertex, int(held.ends[place]), int(held.edges[place]))
        for vertex in range(held.count)
        for place in range(int(held.starts[vertex]), int(held.starts[vertex + 1]))
    ]


def naive(pairs: Pairs) -> list[Entry]:
    return sorted((a, b, edge) for edge, (a, b) in enumerate(pairs))


def check_form(held: Neighbours) -> None:
    assert held.starts[0] == 0
    assert held.starts[-1] == len(held.ends) == len(held.edges)
    ends = [(vertex, end) for vertex, end, _ in entries(held)]
    assert ends == sorted(ends)


@given(PAIRS)
def test_every_pair_is_an_entry_of_its_vertex(pairs: Pairs) -> None:
    held = built(pairs)
    check_form(held)
    assert sorted(entries(held)) == naive(pairs)


@given(PAIRS)
def test_distinct_keeps_one_of_parallel_edges(pairs: Pairs) -> None:
    held = built(pairs).distinct
    check_form(held)
    found = [(vertex, end) for vertex, end, _ in entries(held)]
    assert found == sorted(set(pairs))
    assert all(pairs[edge] == (vertex, end) for vertex, end, edge in entries(held))


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), unique=True))
def test_distinct_of_distinct_pairs_is_the_same_object(pairs: Pairs) -> None:
    held = built(pairs)
    assert held.distinct is held


@given(PAIRS, st.lists(st.integers(0, COUNT + 3), max_size=12))
def test_expanding_gives_each_entry_of_each_vertex_also_of_unknown_ones(
    pairs: Pairs, vertices: list[int]
) -> None:
    held = built(pairs)
    rows, places = held.expand(np.array(vertices, np.int64))
    found = [
        (row, int(held.ends[place]), int(held.edges[place]))
        for row, place in zip(rows.tolist(), places.tolist(), strict=True)
    ]
    wanted = [
        (row, b, edge)
        for row, vertex in enumerate(vertices)
        for a, b, edge in naive(pairs)
        if a == vertex
    ]
    assert sorted(found) == sorted(wanted)
    _, counts = held.bounds(np.array(vertices, np.int64))
    assert counts.tolist() == [sum(a == vertex for a, _ in pairs) for vertex in vertices]


@given(PAIRS, PAIRS)
def test_between_finds_the_edges_from_one_vertex_to_another(pairs: Pairs, asked: Pairs) -> None:
    held = built(pairs)
    asked = [*asked, (COUNT + 2, 0), (0, COUNT + 2)]
    here, there, _ = arrays(asked)
    low, counts = held.between(here, there)
    for (a, b), start, count in zip(asked, low.tolist(), counts.tolist(), strict=True):
        edges = {int(edge) for edge in held.edges[start : start + count]}
        assert edges == {edge for edge, pair in enumerate(pairs) if pair == (a, b)}


@given(PAIRS, PAIRS, st.sets(st.integers(0, 29)), st.integers(0, 4))
def test_taking_away_and_adding_is_building_anew(
    pairs: Pairs, more: Pairs, drawn: set[int], new_vertices: int
) -> None:
    gone = np.array(sorted(n for n in drawn if n < len(pairs)), np.int64)
    count = COUNT + new_vertices
    more = [*more, *[(COUNT + n, COUNT + n) for n in range(new_vertices)]]
    here, there, edges = arrays(more, first=len(pairs))
    trimmed = built(pairs).without(gone, len(pairs) + len(more))
    check_form(trimmed)
    changed = trimmed.adding(here, there, edges, count)
    check_form(changed)
    everything = naive([*pairs, *more])
    assert sorted(entries(changed)) == [e for e in everything if e[2] not in set(gone.tolist())]
    assert changed.count >= (count if more else COUNT)


@given(PAIRS)
def test_what_was_asked_before_does_not_leak_into_a_changed_one(pairs: Pairs) -> None:
    held = built(pairs)
    assert held.distinct.count == COUNT  # cached on the old one
    assert len(held.keys) == len(pairs)
    changed = held.adding(*arrays([(0, 0)], first=len(pairs)), COUNT)
    assert sorted(entries(changed)) == naive([*pairs, (0, 0)])
    assert len(changed.keys) == len(pairs) + 1
    assert {(a, b) for a, b, _ in entries(changed.distinct)} == {*pairs, (0, 0)}


def test_its_size_counts_what_was_worked_out_of_it() -> None:
    held = built([(0, 1), (0, 1), (1, 2)])
    before = size(held)
    assert held.distinct is not held
    assert size(held) == before + size(held.distinct) + held.keys.nbytes


def test_whoever_asked_is_told_when_more_is_held() -> None:
    told: list[int] = []
    here, there, edges = arrays([(0, 1), (0, 1), (1, 2)], first=0)
    held = Neighbours.build(here, there, edges, COUNT, lambda: told.append(size(held)))
    before = size(held)
    held.distinct  # noqa: B018
    assert told[0] == before + held.keys.nbytes
    assert told[1] == size(held) == told[0] + size(held.distinct)
    held.distinct  # noqa: B018
    assert len(told) == 2


def size(held: Neighbours) -> int:
    return sum(array.nbytes for array in held.arrays())
