"""Numbers of ids: given once, kept for ever, found again in either way of looking."""

from __future__ import annotations

import threading

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.engine.query.adjacency import vertices as vertices_module
from omnigraph.engine.query.adjacency.vertices import Vertices

IDS = st.lists(st.text(max_size=3) | st.sampled_from(["a", "b", "ä"]), max_size=8)


def check(batches: list[list[str]]) -> None:
    vertices = Vertices()
    known: dict[str, int] = {}
    for ids in batches:
        found = vertices.encode(pa.array(ids, pa.string()))
        assert found.dtype == np.int32
        for id_, number in zip(ids, found.tolist(), strict=True):
            assert known.setdefault(id_, number) == number
        assert sorted(known.values()) == list(range(vertices.count))
    numbers = np.array(list(known.values()), np.int64)
    assert vertices.ids(numbers).to_pylist() == list(known)


@given(st.lists(IDS, max_size=14))
def test_an_id_keeps_its_number(batches: list[list[str]]) -> None:
    check(batches)


@given(st.lists(IDS, max_size=14))
def test_few_ids_among_many_are_found_by_hash(batches: list[list[str]]) -> None:
    """As in a large graph: the hashes come in runs, which are merged now and then."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vertices_module, "_LARGE", 3)
        patch.setattr(vertices_module, "_RUNS", 2)
        check(batches)


def test_threads_that_meet_new_ids_together_agree() -> None:
    vertices = Vertices()
    ids = pa.array([f"id{n}" for n in range(500)])
    found: list[list[int]] = []

    def encode(turn: int) -> None:
        shuffled = ids.take(pa.array(np.random.default_rng(turn).permutation(500)))
        for start in range(0, 500, 50):
            vertices.encode(shuffled.slice(start, 50))
        found.append(vertices.encode(ids).tolist())

    threads = [threading.Thread(target=encode, args=(turn,)) for turn in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert vertices.count == 500
    assert len({tuple(numbers) for numbers in found}) == 1
