"""Idempotency keys: the same call is the same commit, whatever it is held in, whatever the branch
has come to, and however many others follow."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.upkeep.optimize import optimize
from omnigraph.engine.write import known_keys
from omnigraph.engine.write.known_keys import KnownKeys
from omnigraph.errors import (
    IdempotencyMismatch,
    InvalidArgument,
    OmnigraphError,
    PreconditionFailed,
    Reclaimed,
)
from omnigraph.model import keys as model
from omnigraph.plan.optimize import Limits
from omnigraph.settings import Settings
from tests.bench.aging import HOUR, PassingTime

SCHEMA = """
node Person { name: String @key  n: I64?  s: String?  f: F64?  v: Vector(2000)?  l: [I64]? }
node Note { text: String? }
edge Knows: Person -> Person
"""
SETTINGS = Settings(durability="relaxed", folding="off", queue=False)
NAMES = pa.array(["a", "b", "c"])
SOME = pa.array([True, False, True])


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "graph"


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> PassingTime:
    return PassingTime(monkeypatch)


@pytest.fixture
def g(place: Path, clock: PassingTime) -> Graph:
    return omnigraph.init(place, schema=SCHEMA, settings=SETTINGS, runtime=clock)


def another(g: Graph) -> Graph:
    return omnigraph.open(g.root, settings=SETTINGS, runtime=g._session.runtime)


def call(
    g: Graph,
    unit: Callable[[Any], object],
    key: str = "k",
    *,
    branch: str = "main",
    **options: Any,
) -> bool:
    """Whether it was only repeated."""
    at = g if branch == "main" else g.branch(branch)
    with at.transaction(idempotency_key=key, **options) as tx:
        unit(tx)
    return tx.repeated


# Values


EQUAL: dict[str, Sequence[Any]] = {
    "nulls with anything under them": [
        pa.table({"name": NAMES, "n": pc.if_else(SOME, pa.array([1, n, 3]), None)}) for n in (2, 7)
    ],
    "texts with anything under nulls": [
        pa.table({"name": NAMES, "s": pa.array(["p", None, "r"])}),
        pa.table({"name": NAMES, "s": pc.if_else(SOME, pa.array(["p", "q", "r"]), None)}),
    ],
    "parts of larger tables": [
        pa.table({"name": NAMES, "n": [1, 2, 3]}),
        pa.table({"name": ["z", "a", "b", "c"], "n": [None, 1, 2, 3]}).slice(1),
        pa.concat_tables(
            [pa.table({"name": ["a"], "n": [1]}), pa.table({"name": ["b", "c"], "n": [2, 3]})]
        ),
    ],
    "every kind of holder": [
        [{"name": "a", "n": 1, "f": 0.5}, {"name": "b", "n": 2, "f": 1.5}],
        [{"f": np.float64(0.5), "n": np.int32(1), "name": "a"}, {"name": "b", "n": 2, "f": 1.5}],
        pa.table({"name": ["a", "b"], "n": [1, 2], "f": [0.5, 1.5]}),
        pa.table(
            {
                "name": pa.array(["a", "b"], pa.large_string()),
                "n": pa.array([1, 2], pa.int8()),
                "f": pa.array([0.5, 1.5], pa.float32()),
            }
        ),
        pa.table({"name": pa.array(["a", "b"]).dictionary_encode(), "n": [1, 2], "f": [0.5, 1.5]}),
        pd.DataFrame({"name": ["a", "b"], "n": [1, 2], "f": [0.5, 1.5]}),
        pl.DataFrame({"name": ["a", "b"], "n": [1, 2], "f": [0.5, 1.5]}),
    ],
    "numbers that are none": [
        [{"name": "a", "f": float("nan")}],
        [{"name": "a", "f": np.float32("nan")}],
        pa.table({"name": ["a"], "f": [float("nan")]}),
    ],
    "vectors": [
        [{"name": "a", "v": np.arange(2000, dtype=np.float32)}],
        [{"name": "a", "v": list(map(float, range(2000)))}],
        [{"name": "a", "v": np.arange(2000, dtype=np.float64)}],
    ],
}


@pytest.mark.parametrize("case", EQUAL)
@pytest.mark.parametrize("statement", ["append", "upsert", "overwrite"])
def test_equal_rows_are_the_same_call(g: Graph, case: str, statement: str) -> None:
    first, *others = EQUAL[case]

    def giving(rows: Any) -> Callable[[Any], object]:
        return lambda tx: getattr(tx, statement)("Person", rows)

    assert not call(g, giving(first))
    for rows in others:
        assert call(g, giving(rows))
    assert g.snapshot().version == 2


def changed(values: Any) -> Any:
    """Somewhere in the middle, which a short text of it leaves out."""
    other = values.copy()
    other[len(other) // 2] = -1
    return other


LONG: dict[str, Any] = {
    "l": list(range(3000)),
    "v": np.arange(2000, dtype=np.float32),
}


@pytest.mark.parametrize("name", LONG)
def test_long_values_are_looked_at_to_the_end(g: Graph, name: str) -> None:
    call(g, lambda tx: tx.append("Person", {"name": "a"}), "first")
    given = LONG[name]
    where = pc.field("name") == "a"
    assert not call(g, lambda tx: tx.update("Person", set={name: given}, where=where))
    assert call(g, lambda tx: tx.update("Person", set={name: given.copy()}, where=where))
    assert call(g, lambda tx: tx.update("Person", set={name: list(given)}, where=where))
    assert call(g, lambda tx: tx.update("node:Person", set={name: given}, where=where))
    with pytest.raises(IdempotencyMismatch):
        call(g, lambda tx: tx.update("Person", set={name: changed(given)}, where=where))
    long = pc.field("n").isin(range(3000))
    call(g, lambda tx: (tx.append("Note", {}), tx.delete("Person", where=long)), "where")
    other = pc.field("n").isin(changed(list(range(3000))))
    with pytest.raises(IdempotencyMismatch):
        call(g, lambda tx: (tx.append("Note", {}), tx.delete("Person", where=other)), "where")


def test_parameters_of_a_mutation_are_compared_by_value(g: Graph) -> None:
    kinds = "$l: [I64], $v: Vector(2000), $s: String"
    sets = "name: $s, l: $l, v: $v"
    text = f"query q({kinds}) {{ insert Person {{ {sets} }} }}"
    given: dict[str, Any] = {
        "l": list(range(3000)),
        "v": np.arange(2000, dtype=np.float32),
        "s": "a",
    }
    assert not g.mutate(text, params=given, idempotency_key="k").repeated
    same = {"s": np.str_("a"), "v": given["v"].tolist(), "l": np.arange(3000)}
    assert g.mutate(text, "q", params=same, idempotency_key="k").repeated
    for name in ("l", "v"):
        with pytest.raises(IdempotencyMismatch):
            g.mutate(text, params=given | {name: changed(given[name])}, idempotency_key="k")


def test_ids_that_were_made_up_are_not_part_of_the_call(g: Graph) -> None:
    given = [{"id": "mine", "text": "x"}, {"text": "y"}]
    assert not call(g, lambda tx: tx.append("Note", given))
    assert call(g, lambda tx: tx.append("Note", given))
    with pytest.raises(IdempotencyMismatch):
        call(g, lambda tx: tx.append("Note", [{"text": "x"}, {"text": "y"}]))
    with pytest.raises(IdempotencyMismatch):
        call(g, lambda tx: tx.append("Note", [given[0] | {"id": "other"}, given[1]]))


# A known key is answered first


def cleaned(g: Graph, place: Path, clock: PassingTime) -> None:
    for number in range(3):
        with g.transaction() as tx:
            tx.append("Note", {"text": str(number)})
    clock.wait(place, 2 * HOUR)
    assert g.cleanup(keep=1, older_than=0).removed


BLOCKS: dict[str, Callable[[Any], object]] = {
    "append": lambda tx: tx.append("Person", {"name": "x"}),
    "upsert": lambda tx: tx.upsert("Person", [{"name": "a", "n": 5}]),
    "overwrite": lambda tx: tx.overwrite("Person", [{"name": "x"}, {"name": "y"}]),
    "update": lambda tx: tx.update("Person", set={"n": pc.field("n") + 1}, where=None),
    "delete": lambda tx: tx.delete("Person", where=None),
    "a decision": lambda tx: [
        tx.update("Person", set={"s": "b"}, where=pc.field("name") == "nobody")
        or tx.append("Note", {"text": "there was nobody"}),
        tx.delete("Person", where=pc.field("name") == "a"),
    ],
}


@pytest.mark.parametrize("block", BLOCKS)
@pytest.mark.parametrize("clean", [True, False])
def test_a_call_is_told_what_it_was_told(
    g: Graph, place: Path, clock: PassingTime, block: str, clean: bool
) -> None:
    call(g, lambda tx: tx.append("Person", [{"name": n, "n": 1} for n in "abc"]), "before")
    told: list[object] = []
    unit = BLOCKS[block]
    assert not call(g, lambda tx: told.append(unit(tx)))
    rows = sorted(map(str, g.snapshot().scan("Person").read_all().to_pylist()))
    if clean:
        cleaned(g, place, clock)
    for handle in (g, another(g)):
        assert call(handle, lambda tx: told.append(unit(tx)))
    assert told[1] == told[2] == told[0]
    assert sorted(map(str, g.snapshot().scan("Person").read_all().to_pylist())) == rows


def test_a_mutation_is_told_what_it_was_told(g: Graph, place: Path, clock: PassingTime) -> None:
    text = """query q($n: I64) {
      insert Person { name: "x", n: $n }
      update Person set { n: n + 1 } where true
      update Person set { n: n + 1 } where true
      delete Person where name = "a"
    }"""
    call(g, lambda tx: tx.append("Person", [{"name": n, "n": 1} for n in "abc"]), "before")
    first = g.mutate(text, params={"n": 1}, idempotency_key="k")
    cleaned(g, place, clock)
    again = another(g).mutate(text, params={"n": 1}, idempotency_key="k")
    assert again.repeated
    assert again.commit_id == first.commit_id
    assert again.counts == first.counts
    assert (again.nodes, again.query) == (first.nodes, "q")


def test_what_a_repeated_block_reads_is_what_it_read(
    g: Graph, place: Path, clock: PassingTime
) -> None:
    def unit(tx: Any) -> None:
        tx.append("Person", {"name": f"p{tx.count('Person')}"})
        assert tx.count("Person") == 1

    assert not call(g, unit)
    assert call(g, unit)
    cleaned(g, place, clock)
    with pytest.raises(Reclaimed, match="The call was made before, as commit"):
        call(another(g), unit)
    assert g.snapshot().count("Person") == 1


def test_a_known_key_answers_whatever_the_branch_has_come_to(g: Graph) -> None:
    head = g.snapshot().commit.id
    unit = BLOCKS["append"]
    text = 'query q() { insert Person { name: "m" } }'
    assert not call(g, unit, if_commit=head)
    assert not g.mutate(text, idempotency_key="m").repeated
    with pytest.raises(PreconditionFailed):
        call(g, unit, "another", if_commit=head)
    g.apply_schema("node Note { text: String? }\n", allow_data_loss=True)
    g.protect("main")
    for handle in (g, another(g)):
        assert call(handle, unit, if_commit=head)
        assert handle.mutate(text, idempotency_key="m").repeated


def test_a_call_that_could_not_have_been_made_is_another_one(g: Graph) -> None:
    call(g, BLOCKS["append"])
    g.mutate('query q() { insert Note { text: "x" } }', idempotency_key="m")
    wrong: dict[str, Callable[[Any], object]] = {
        "a type that there is not": lambda tx: tx.append("Nobody", {"name": "x"}),
        "a property that there is not": lambda tx: tx.append("Person", {"name": "x", "z": 1}),
        "a value that does not fit": lambda tx: tx.append("Person", {"name": "x", "n": "no"}),
        "an update of what there is not": lambda tx: tx.update("Nobody", set={"n": 1}, where=None),
        "nothing at all": lambda tx: None,
    }
    for unit in wrong.values():
        with pytest.raises(IdempotencyMismatch, match="did something else"):
            call(g, unit)
    for text in ("query q() { insert", "query q() { insert Nobody { n: 1 } }", "match"):
        with pytest.raises(IdempotencyMismatch, match="did something else"):
            g.mutate(text, idempotency_key="m")


def test_a_known_job_answers_before_its_source_is_looked_at(
    g: Graph, tmp_path: Path, place: Path, clock: PassingTime
) -> None:
    path = tmp_path / "people.jsonl"
    path.write_text('{"type": "Person", "data": {"name": "x"}}\n')
    head = g.snapshot().commit.id
    given: dict[str, Any] = {"job": "nightly", "engine": "local", "if_commit": head}
    first = g.load(path, **given)
    made = g.load(path, job="made", new_branch="made", ref="main~1", engine="local")
    path.unlink()
    cleaned(g, place, clock)
    g.protect("main")
    for handle in (g, another(g)):
        again = handle.load(path, **given)
        assert (again.repeated, again.commit) == (True, first.commit)
        other = handle.load(path, job="made", new_branch="made", ref="main~1", engine="local")
        assert (other.repeated, other.commit) == (True, made.commit)
    with pytest.raises(OmnigraphError):
        g.load(path, job="another", engine="local")
    with pytest.raises(IdempotencyMismatch):
        g.load(path, job="nightly", mode="merge", engine="local")


def test_if_commit_of_a_load_holds_over_what_nobody_can_see(g: Graph) -> None:
    for number in range(3):
        call(g, lambda tx: tx.append("Note", {"text": "x"}), str(number))
    head = g.snapshot().commit.id
    assert g.optimize().commit is not None
    rows = [{"type": "Note", "data": {"text": "y"}}]
    assert g.load(rows, if_commit=head, engine="local").commit is not None


def test_a_branch_has_keys_of_its_own(g: Graph) -> None:
    """What was done on one branch was not done on another, forked before or after."""
    assert not call(g, BLOCKS["append"])
    g.create_branch("side")
    assert len(g.at("side").graph_version.keys) == 0
    unit = BLOCKS["delete"]
    assert not call(g, unit, branch="side")
    assert call(g, unit, branch="side")
    assert call(g, BLOCKS["append"])


# How long


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> int:
    """So many keys are in a version."""
    monkeypatch.setattr(model, "RECENT", 4)
    return 4


def note(text: str) -> Callable[[Any], object]:
    return lambda tx: tx.append("Note", {"id": text, "text": text})


def fill(g: Graph, count: int, prefix: str = "n") -> None:
    for number in range(count):
        assert not call(g, note(f"{prefix}{number}"), f"{prefix}{number}")


class Reads:
    """How many versions behind the head a handle asks the store for."""

    def __init__(self, g: Graph) -> None:
        self.count, session = 0, g._session
        fetch = session._fetch

        def counted(*arguments: Any) -> Any:
            self.count += 1
            return fetch(*arguments)

        session._fetch = counted  # type: ignore[method-assign,assignment]


def test_a_key_is_known_for_ten_minutes_however_many_follow(
    g: Graph, place: Path, clock: PassingTime, few: int
) -> None:
    fill(g, 30)
    assert len(g.snapshot().graph_version.keys) == few
    clock.wait(place, model.KEPT - 5)
    for handle in (g, another(g)):
        for number in (0, 1, 15, 25, 29):
            assert call(handle, note(f"n{number}"), f"n{number}")
    assert g.snapshot().count("Note") == 30


def test_it_is_known_after_cleanup_and_after_folding(
    g: Graph, place: Path, clock: PassingTime, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("omnigraph.engine.write.known_keys.KEPT", 5 * HOUR)
    fill(g, 40)
    clock.wait(place, 2 * HOUR)
    assert optimize(g._session, "main", None, limits=Limits(versions=16)).folded
    assert all(call(another(g), note(f"n{n}"), f"n{n}") for n in range(0, 40, 7))
    g.cleanup(keep=1, older_than=0)
    assert all(call(another(g), note(f"n{n}"), f"n{n}") for n in range(0, 40, 7))
    assert g.verify(deep=True).ok


def test_a_handle_reads_for_the_commits_of_others_once_and_for_its_own_never(
    g: Graph, few: int
) -> None:
    own = Reads(g)
    fill(g, 40)
    assert own.count == 0
    other = another(g)
    reads = Reads(other)
    assert not call(other, note("other"), "other")
    assert reads.count == 40 // few - 1  # all of the last ten minutes, once
    fill(g, 3, "more")
    reads.count = own.count = 0
    assert not call(other, note("again"), "again")
    assert reads.count == 0
    fill(g, 5 * few, "many")
    assert own.count == 0
    reads.count = 0
    assert not call(other, note("once more"), "once more")
    assert 4 <= reads.count <= 5


def test_a_branch_that_is_written_to_slowly_costs_nothing(
    g: Graph, place: Path, clock: PassingTime, few: int
) -> None:
    fill(g, few)
    clock.wait(place, model.KEPT + 10)
    fill(g, few - 2, "later")
    other = another(g)
    reads = Reads(other)
    assert not call(other, note("new"), "new")
    clock.wait(place, model.KEPT + 10)
    assert not call(other, note("newer"), "newer")
    assert reads.count == 0
    assert call(other, note("later1"), "later1")  # still in the version


def test_clocks_that_are_ahead_make_no_key_older(
    g: Graph, place: Path, clock: PassingTime, few: int
) -> None:
    fill(g, 3 * few)
    fast = PassingTime.__new__(PassingTime)
    fast.__dict__.update(clock.__dict__)
    fast.ahead = clock.ahead + 2 * HOUR
    ahead = omnigraph.open(g.root, settings=SETTINGS, runtime=fast)
    assert call(ahead, note("n0"), "n0")  # who asks
    fill(ahead, 1, "fast")
    assert call(another(g), note("n0"), "n0")  # who wrote


def test_what_a_handle_remembers_is_bounded_and_the_rest_is_read_again(
    g: Graph, few: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(known_keys, "REMEMBERED", 10)
    monkeypatch.setattr(known_keys, "CHAINS", 1)
    fill(g, 40)
    other = another(g)
    for number in (0, 20, 39, 5, 0):
        assert call(other, note(f"n{number}"), f"n{number}")
    chain = next(iter(KnownKeys.shared_by(other._session)._chains.values()))
    assert len(chain._used) <= 10
    g.create_branch("side")
    for number in range(10):
        assert not call(other, note(f"s{number}"), f"s{number}", branch="side")
    assert len(KnownKeys.shared_by(other._session)._chains) == 1
    assert call(other, note("s0"), "s0", branch="side")


def test_a_key_that_is_no_text_is_told() -> None:
    g = omnigraph.init("memory://idempotency", schema=SCHEMA, settings=SETTINGS)
    with pytest.raises(InvalidArgument, match="idempotency_key of transaction"):
        g.transaction(idempotency_key=5)  # type: ignore[arg-type]
