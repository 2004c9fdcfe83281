"""Large loads: sorted fragments, indexes in the same commit, bounded memory, new ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from ulid import ULID

from omnigraph import Graph
from omnigraph.engine.load import indexing, local, operation
from omnigraph.plan.load.engine_choice import Choice, LoadFacts, resolve_engine
from omnigraph.plan.load.new_ids import number_ids
from omnigraph.store.indexes import list_segments, page_rows
from tests.contract.graphs import rows
from tests.load.world import contents, new_graph, person, refused

COUNT = 3000


@pytest.fixture
def bulk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Everything is done as it is with many rows."""
    monkeypatch.setattr("omnigraph.engine.load.local_relations.FEW", 0)
    monkeypatch.setattr(indexing, "INDEXED_ROWS", 1)


def people(count: int, first: int = 0) -> pa.Table:
    numbers = np.random.default_rng(1).permutation(np.arange(first, first + count))
    return pa.table({"name": [f"p{n}" for n in numbers], "email": [f"e{n}" for n in numbers]})


def edges(count: int) -> pa.Table:
    drawn = np.random.default_rng(2).integers(0, COUNT, (count, 2))
    pairs = np.unique(drawn, axis=0)
    return pa.table({"from": [f"p{a}" for a, _ in pairs], "to": [f"p{b}" for _, b in pairs]})


def covered(g: Graph, kind: str) -> dict[str, set[int]]:
    snapshot = g.snapshot()
    table = snapshot.view(snapshot.type(kind)).table
    found: dict[str, set[int]] = {}
    for segment in list_segments(table):
        found.setdefault(segment.name, set()).update(segment.fragments & set(table.marks))
    return found


def fragments(g: Graph, kind: str) -> set[int]:
    snapshot = g.snapshot()
    return set(snapshot.view(snapshot.type(kind)).table.marks)


@pytest.mark.usefixtures("bulk")
def test_a_large_load_is_sorted_and_indexed_in_one_commit(tmp_path: Path) -> None:
    g = new_graph(tmp_path)
    before = g.snapshot().version
    g.load(people(COUNT), type="Person")
    g.load(edges(5000), type="Knows")
    assert g.snapshot().version == before + 2
    assert covered(g, "Person") == {"id_btree": fragments(g, "Person")}
    every = fragments(g, "Knows")
    assert covered(g, "Knows") == {"id_btree": every, "src_btree": every, "dst_btree": every}
    for kind, column in (("Person", "id"), ("Knows", "src")):
        values = g.snapshot().scan(kind, columns=[column]).read_all()[column].to_pylist()
        assert values == sorted(values)
    found = g.snapshot().scan("Person", filter=pc.field("id") == "p17").read_all()
    assert found["email"].to_pylist() == ["e17"]


@pytest.mark.usefixtures("bulk")
def test_generated_ids_grow_along_the_rows_that_were_sorted_by_their_source(tmp_path: Path) -> None:
    g = new_graph(tmp_path, "node P { n: I64 @key }\nedge Near: P -> P { way: String }")
    g.load([{"n": n} for n in range(50)], type="P")
    pairs = np.random.default_rng(3).integers(0, 50, (2000, 2))
    given = pa.table(
        {
            "from": pairs[:, 0],
            "to": pairs[:, 1],
            "way": [f"{a}-{b}" for a, b in pairs],
        }
    )
    g.load(given, type="Near")
    found = g.snapshot().scan("Near").read_all()
    ids, starts = found["id"].to_pylist(), found["src"].to_pylist()
    assert ids == sorted(set(ids))
    assert len(ids) == 2000
    assert starts == sorted(starts)
    ways = [f"{row['src']}-{row['dst']}" for row in found.to_pylist()]
    assert found["way"].to_pylist() == ways


@pytest.mark.parametrize(
    ("count", "page"), [(0, 256), (65_536, 256), (65_537, 512), (10**6, 1024), (10**8, 4096)]
)
def test_pages_of_an_index_grow_with_it(count: int, page: int) -> None:
    assert page_rows(count) == page


@pytest.mark.usefixtures("bulk")
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_joins_find_what_lookups_find(tmp_path: Path, mode: Any) -> None:
    g = new_graph(tmp_path)
    g.load(people(COUNT), type="Person")
    g.load(edges(3000), type="Knows")
    existing = [person("p5")]
    clash = [person("new", email="e5")]
    nowhere = [{"edge": "Knows", "from": "p1", "to": "nobody"}]
    if mode == "append":
        assert "exists already" in refused(g, existing).message
    if mode != "overwrite":
        assert "@unique" in refused(g, clash, mode=mode).message
        assert "there is no Person" in refused(g, nowhere, mode=mode).message
        notes = [{"type": "Note", "id": "n", "data": {"text": "t"}}]
        wrote = [{"edge": "Wrote", "from": "p1", "to": "n"}]
        g.load([*notes, *wrote, *wrote])
        assert "3 Wrote edges from Person" in refused(g, wrote, mode=mode).message
    if mode == "merge":
        result = g.load([person("p5", email="e6"), person("p6", email="e5")], mode="merge")
        assert result.counts["Person"].updated == 2
        assert [r["email"] for r in rows(g, "Person") if r["id"] in ("p5", "p6")] == ["e6", "e5"]
    if mode == "overwrite":
        assert "would be gone" in refused(g, [person("p1")], mode=mode).message
        g.load(people(COUNT).append_column("age", pa.array([1] * COUNT)), type="Person", mode=mode)
        assert {r["age"] for r in rows(g, "Person")} == {1}
        assert covered(g, "Person")["id_btree"] == fragments(g, "Person")


@pytest.mark.usefixtures("bulk")
def test_a_lost_race_leaves_the_segments_out_and_the_rows_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    g = new_graph(tmp_path)
    others: list[Any] = [lambda: g.load([person("other")])]

    def reach(point: str) -> None:
        if point == "staged" and others:
            others.pop()()

    monkeypatch.setattr(local, "reach", reach)
    monkeypatch.setattr(operation, "reach", reach)
    g.load(people(COUNT), type="Person")
    assert len(rows(g, "Person")) == COUNT + 1
    assert len(covered(g, "Person")["id_btree"]) == 1
    found = g.snapshot().scan("Person", filter=pc.field("id") == "p17").read_all()
    assert found["email"].to_pylist() == ["e17"]


@pytest.mark.usefixtures("bulk")
def test_a_load_that_needs_no_check_keeps_what_another_appended_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its version was made on an older one, so taking it would lose the other's rows."""
    g = new_graph(tmp_path)
    others: list[Any] = [lambda: g.load([{"type": "Note", "data": {"text": "other"}}])]

    def reach(point: str) -> None:
        if point == "staged" and others:
            others.pop()()

    monkeypatch.setattr(local, "reach", reach)
    monkeypatch.setattr(operation, "reach", reach)
    g.load(pa.table({"text": ["t"] * 200}), type="Note")
    assert len(rows(g, "Note")) == 201


def test_memory_is_bounded_by_the_setting_whatever_the_size(tmp_path: Path) -> None:
    """What the load holds goes to files: Arrow's own memory stays far below the input."""
    limit = 4 << 20
    g = new_graph(tmp_path, load_memory=limit)
    plenty = new_graph(tmp_path / "plenty")
    text = "x" * 500

    def batches() -> Any:
        for first in range(0, 60_000, 1000):
            ids = [f"p{n}" for n in range(first, first + 1000)]
            yield pa.record_batch({"name": ids, "city": [text] * 1000})

    def reader() -> pa.RecordBatchReader:
        schema = pa.schema([("name", pa.string()), ("city", pa.string())])
        return pa.RecordBatchReader.from_batches(schema, batches())

    peak = 0

    def watch(_: Any) -> None:
        nonlocal peak
        peak = max(peak, pa.total_allocated_bytes())

    before = pa.total_allocated_bytes()
    g.load(reader(), type="Person", progress=watch)
    bounded, peak = peak - before, 0
    before = pa.total_allocated_bytes()
    plenty.load(reader(), type="Person", progress=watch)
    assert bounded < 3 * limit
    assert bounded < (peak - before) / 2
    assert g.snapshot().count("Person") == 60_000


def test_a_spilled_load_equals_one_in_memory(tmp_path: Path) -> None:
    small, large = new_graph(tmp_path / "a", load_memory=1 << 16), new_graph(tmp_path / "b")
    for g in (small, large):
        g.load(people(COUNT), type="Person")
        g.load(edges(2000), type="Knows")
        g.load(people(COUNT, first=COUNT // 2), type="Person", mode="merge")
    assert contents(small) == contents(large)


def test_new_ids_are_ulids_that_follow_from_seed_and_position() -> None:
    seed = str(ULID())
    ids = number_ids(seed, 0, 5000).to_pylist()
    assert len(set(ids)) == 5000
    assert ids == sorted(ids)
    assert all(str(ULID.from_str(i)) == i and i[:10] == seed[:10] for i in ids)
    assert number_ids(seed, 1000, 10).to_pylist() == ids[1000:1010]
    assert not set(number_ids(str(ULID()), 0, 5000).to_pylist()) & set(ids)


CHOICES: list[tuple[str, LoadFacts, bool, Choice]] = [
    ("local", LoadFacts(rows=10**9), True, Choice("local", "asked for")),
    ("spark", LoadFacts(rows=1), True, Choice("spark", "asked for")),
    ("auto", LoadFacts(rows=5), True, Choice("local", "about 5 rows, not above 1,000")),
    ("auto", LoadFacts(rows=1000), True, Choice("local", "about 1,000 rows, not above 1,000")),
    ("auto", LoadFacts(rows=1001), True, Choice("spark", "about 1,001 rows, above 1,000")),
    ("auto", LoadFacts(), True, Choice("local", "of unknown size, not above 1,000")),
    ("auto", LoadFacts(spark_source=True), True, Choice("spark", "the source is Spark's")),
    ("auto", LoadFacts(rows=1, session=True), True, Choice("spark", "a Spark session is running")),
    (
        "auto",
        LoadFacts(rows=1, master="local[4]"),
        True,
        Choice("local", "about 1 rows, not above 1,000"),
    ),
    (
        "auto",
        LoadFacts(rows=1, master="yarn"),
        True,
        Choice("spark", "the Spark master yarn is configured"),
    ),
    (
        "auto",
        LoadFacts(rows=5000),
        False,
        Choice("local", "about 5,000 rows, above 1,000, but the spark engine is not installed"),
    ),
]


@pytest.mark.parametrize(("asked", "facts", "registered", "choice"), CHOICES)
def test_the_engine_follows_from_what_is_known(
    asked: str, facts: LoadFacts, registered: bool, choice: Choice
) -> None:
    assert resolve_engine(asked, facts, spark_rows=1000, registered=registered) == choice
