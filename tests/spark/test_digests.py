"""Values that come too often are found by digests, and where none does no value travels."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.errors import InvalidData
from omnigraph.spark.load import digests
from tests.load.world import knows, new_graph, person, write_lines
from tests.spark.twins import Twins

DIGESTS = st.lists(st.sampled_from([0, 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1]) | st.integers(0, 9))


@given(
    tasks=st.lists(DIGESTS, min_size=1, max_size=4), parts=st.integers(1, 7), most=st.integers(0, 4)
)
def test_equal_digests_of_all_tasks_meet(tasks: list[list[int]], parts: int, most: int) -> None:
    ordered = [np.sort(np.array(task, np.uint64)) for task in tasks]
    few = [digests.at_most(task, most + 1) for task in ordered]
    assert all(max(Counter(task.tolist()).values(), default=0) <= most + 1 for task in few)
    packed = [digests.pack(task, parts) for task in few]
    found = False
    for part in range(parts):
        told = [batch.column("digests")[part].as_py() for batch in packed]
        assert [batch.column("part")[part].as_py() for batch in packed] == [part] * len(tasks)
        held = np.concatenate([np.frombuffer(data, np.uint64) for data in told])
        found |= digests.exceed(held, most)
    counts = Counter(digest for task in tasks for digest in task)
    assert found == any(count > most for count in counts.values())


@pytest.fixture
def twins(tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch) -> Twins:
    """Every load is a large one, and its values are in several tasks."""
    monkeypatch.setattr("omnigraph.spark.load.state._BROADCAST_ROWS", 0)
    monkeypatch.setattr("omnigraph.spark.load.frames.TASK_ROWS", 4)
    monkeypatch.setattr("omnigraph.spark.load.digests.TASK_ROWS", 4)
    monkeypatch.setattr("omnigraph.spark.load.reading.plan_parts", small_parts)
    twins = Twins.make(tmp_path)
    base = [person("a", email="e"), person("b"), person("ü"), *map(note, "nmk")]
    edges = [knows("a", "b"), wrote("a", "n"), wrote("b", "n")]
    twins.load(write_lines(tmp_path / "base.jsonl", [*base, *edges]))
    return twins


TYPED = """
node P {
  name: String @key
  a: String?  b: String?  n: I64? @unique  f: F64? @unique  t: DateTime? @unique
  @unique(a, b)  @unique(b, n)
}
"""


def typed(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "P", "data": {"name": name, **data}}


@pytest.mark.slow
def test_values_of_every_kind_are_equal_where_they_are(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In what arrives and in the table, of which a row was deleted and a column got a new name."""
    monkeypatch.setattr("omnigraph.spark.load.state._BROADCAST_ROWS", 0)
    monkeypatch.setattr("omnigraph.spark.load.frames.TASK_ROWS", 2)
    monkeypatch.setattr("omnigraph.spark.load.digests.TASK_ROWS", 2)
    monkeypatch.setattr("omnigraph.spark.load.reading.plan_parts", small_parts)
    (tmp_path / "here").mkdir()
    (tmp_path / "there").mkdir()
    here, there = (new_graph(tmp_path / name, TYPED) for name in ("here", "there"))
    twins = Twins(here, there)
    base = [
        typed("one", a="x", b="y", n=1, f=0.5, t="2020-01-01T00:00:00Z"),
        typed("two", a='q"', b="z\\", n=2, f=-0.0),
        typed("gone", n=3, f=3.0),
        typed("left", a="only a"),
    ]
    twins.load(write_lines(tmp_path / "base.jsonl", base))
    renamed = TYPED.replace("a: String?", 'c: String? @rename_from("a")')
    renamed = renamed.replace("(a, b)", "(c, b)")
    for graph in (here, there):
        graph.mutate('delete P where name = "gone"')
        graph.apply_schema(renamed)
    fine = [typed("new", c="x", n=3, f=3.0), typed("free", b="y"), typed("c only", c="only a")]
    _, other = twins.load(write_lines(tmp_path / "fine.jsonl", fine))
    assert other.rows == 3
    bad = [
        typed("b1", n=1),
        typed("b2", f=0.0),
        typed("b3", t="2020-01-01T01:00:00+01:00"),
        typed("b4", c='q"', b="z\\"),
        typed("b5", n=7),
        typed("b6", n=7),
        typed("b7", f=1e300),
        typed("b8", f=1e300),
        typed("b9", c="k", b="l"),
        typed("b10", c="k", b="l"),
        typed("b11", c="kl", b=""),
    ]
    path = write_lines(tmp_path / "bad.jsonl", bad)
    _, other = twins.load(path, on_error="quarantine")
    assert sorted(reject.line for reject in other.rejected) == [1, 2, 3, 4, 6, 8, 10]


def small_parts(number: int, source: Any) -> Any:
    from omnigraph.spark.load.shape import plan_parts

    return plan_parts(number, source, range_bytes=200)


def note(id: str) -> dict[str, Any]:
    return {"type": "Note", "id": id, "data": {"text": "t"}}


def wrote(start: str, end: str) -> dict[str, Any]:
    return {"edge": "Wrote", "from": start, "to": end}


def test_a_load_that_repeats_nothing_joins_no_texts(
    twins: Twins, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unread(spark: Any, spool: Any, pieces: Any, wanted: Any, refused: Any) -> Any:
        columns = {"at": "long", "part": "long", **wanted.columns}
        failing = [f"cast(raise_error('read') as {columns[name]}) as {name}" for name in columns]
        return spark.range(1).selectExpr(*failing)

    monkeypatch.setattr("omnigraph.spark.load.state.piece_frame", unread)
    people = [person(f"p{i}", email=None if i % 3 else f"e{i}") for i in range(12)]
    edges = [*(knows(f"p{i}", "ü") for i in range(12)), wrote("a", "m"), wrote("p0", "n")]
    path = write_lines(tmp_path / "new.jsonl", [*people, *edges])
    _, other = twins.load(path)
    assert other.rows == 26


def test_all_that_comes_too_often_is_put_aside(twins: Twins, tmp_path: Path) -> None:
    people = [person(f"p{i}", email=f"e{i}") for i in range(9)]
    repeated = [person("p3"), person("ü"), person("x", email="e"), person("y", email="e8")]
    edges = [knows("b", "a"), knows("a", "ü"), knows("a", "b"), knows("b", "a")]
    written = [wrote("b", "m"), wrote("b", "k"), wrote("a", "k")]
    path = write_lines(tmp_path / "bad.jsonl", [*people, *repeated, *edges, *written])
    _, other = twins.load(path, on_error="quarantine")
    assert sorted(reject.line for reject in other.rejected) == [10, 11, 12, 13, 16, 17, 19]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("entries", "rule"),
    [
        ([person(f"p{i % 11}") for i in range(12)], "stands in bad.jsonl line 1 already"),
        ([*(person(f"p{i}") for i in range(9)), person("ü")], "exists already"),
        ([*(person(f"p{i}", email=f"e{i}") for i in range(9)), person("x", email="e")], "email"),
        ([*(person(f"p{i}", email=f"e{i % 8}") for i in range(9))], "email"),
        ([knows("b", "a"), knows("a", "ü"), knows("a", "b")], "exists already"),
        ([wrote("b", "m"), wrote("b", "k"), wrote("a", "k")], "3"),
    ],
)
def test_what_comes_too_often_is_refused(
    twins: Twins, tmp_path: Path, entries: list[Any], rule: str
) -> None:
    path = write_lines(tmp_path / "bad.jsonl", entries)
    with pytest.raises(InvalidData) as caught:
        twins.there.load(path, engine="spark")
    assert rule in str(caught.value)
    twins.refused(path)
    _, other = twins.load(path, on_error="quarantine")
    assert len(other.rejected) == 1


def test_rows_that_replace_others_do_not_count_twice(twins: Twins, tmp_path: Path) -> None:
    same = [
        person("a", email="e"),
        person("b", email="new"),
        person("ü", email="x"),
        knows("a", "b"),
    ]
    path = write_lines(tmp_path / "same.jsonl", same)
    _, other = twins.load(path, mode="merge")
    assert other.rejected == ()
    ids = twins.there.snapshot().scan("Wrote", columns=["id", "src", "dst"]).read_all().to_pylist()
    again = [wrote(row["src"], row["dst"]) | {"id": row["id"]} for row in ids]
    entries = [*again, wrote("a", "m"), wrote("b", "m"), wrote("b", "k")]
    result = twins.there.load(
        write_lines(tmp_path / "more.jsonl", entries),
        engine="spark",
        mode="merge",
        on_error="quarantine",
    )
    assert [(reject.rule, reject.line) for reject in result.rejected] == [("card", 5)]
