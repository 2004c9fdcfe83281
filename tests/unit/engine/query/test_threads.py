"""Many threads ask one handle, at several versions, while another commits."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from random import Random

import pyarrow.compute as pc
import pytest

from omnigraph import Graph
from tests.unit.engine.query.people import crowd, fill, graph, pairs, scanned

PER_PERSON = "match { $p: Person  $p $k:knows $q } return { $p.name, count($k) as n }"


@pytest.fixture
def people() -> Iterator[Graph]:
    with graph(cache_bytes=1 << 18) as g:  # small enough for things to be dropped
        fill(g, crowd(60, 300))
        yield g


def test_readers_of_any_version_are_right_while_somebody_writes(people: Graph) -> None:
    refs = [f"main@{people.snapshot().commit.id}"]
    wrong: list[object] = []
    over = threading.Event()

    def read(seed: int) -> None:
        chance = Random(seed)
        try:
            while not over.is_set():
                ref = chance.choice(refs)
                kernel = chance.choice(["auto", "adjacency", "indexed"])
                found = pairs(people, ref, kernel=kernel)
                if found != scanned(people, ref):
                    wrong.append((ref, kernel))
                counts = people.at(ref).query(PER_PERSON).to_pylist()
                if sum(row["n"] for row in counts) != len(found):
                    wrong.append((ref, "counts"))
        except BaseException as error:
            wrong.append(error)
            raise

    readers = [threading.Thread(target=read, args=(seed,)) for seed in range(3)]
    for reader in readers:
        reader.start()
    try:
        for n in range(12):
            with people.transaction() as tx:
                tx.append("Person", {"name": f"new{n}"})
                tx.append("Knows", [{"id": f"n{n}", "from": f"new{n}", "to": f"p{n}"}])
                tx.delete("Knows", where=pc.field("id") == f"k{n}")
            refs.append(f"main@{tx.commit_id}")
            if n % 5 == 4:
                people.optimize()
    finally:
        over.set()
        for reader in readers:
            reader.join()
    assert wrong == []
