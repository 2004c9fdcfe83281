"""The faulty store fails as a real store can, where it is told to, and the same for a seed."""

from __future__ import annotations

import pytest

from omnigraph.errors import Unavailable
from omnigraph.store.objects import Absent, Ambiguous, ObjectStore
from tests.bench.faults import Call, Crashed, Fault, FaultyStore
from tests.bench.memory import DictStore

KEY = "__manifest/main/1.json"


def faulty(*faults: Fault) -> tuple[FaultyStore, DictStore]:
    inner = DictStore()
    return FaultyStore(inner, faults), inner


def test_without_faults_it_is_the_store_below() -> None:
    store: ObjectStore = FaultyStore(DictStore())
    assert store.put_if_absent("a/1", b"x")
    assert not store.put_if_absent("a/1", b"x")
    store.put("a/2", b"y")
    assert store.get("a/1") == b"x"
    assert store.list("a/") == ["a/1", "a/2"]
    assert store.list("a/", limit=1) == ["a/1"]
    store.delete("a/1")
    assert not store.exists("a/1")
    with pytest.raises(Absent):
        store.get("a/1")


def test_a_conditional_put_that_fails_before_its_effect_is_ambiguous() -> None:
    store, inner = faulty(Fault("fail_before", method="put_if_absent"))
    with pytest.raises(Ambiguous):
        store.put_if_absent(KEY, b"1")
    assert inner.objects == {}


def test_a_conditional_put_that_fails_after_its_effect_is_ambiguous_too() -> None:
    store, inner = faulty(Fault("fail_after", method="put_if_absent"))
    with pytest.raises(Ambiguous):
        store.put_if_absent(KEY, b"1")
    assert inner.objects == {KEY: b"1"}


def test_a_read_that_fails_is_unavailable() -> None:
    store, inner = faulty(Fault("fail_before", method="get"))
    inner.put(KEY, b"1")
    with pytest.raises(Unavailable):
        store.get(KEY)
    assert store.get(KEY) == b"1"


def test_taken_says_no_and_stores_nothing() -> None:
    store, inner = faulty(Fault("taken", method="put_if_absent"))
    assert store.put_if_absent(KEY, b"1") is False
    assert inner.objects == {}


def test_a_late_put_lands_after_the_given_number_of_later_requests() -> None:
    store, _ = faulty(Fault("land_late", method="put_if_absent", after_requests=2))
    with pytest.raises(Ambiguous):
        store.put_if_absent(KEY, b"1")
    assert [store.exists(KEY) for _ in range(4)] == [False, False, True, True]


def test_a_late_put_does_not_overwrite_who_came_first() -> None:
    store, inner = faulty(Fault("land_late", method="put_if_absent", after_requests=9))
    with pytest.raises(Ambiguous):
        store.put_if_absent(KEY, b"late")
    assert store.put_if_absent(KEY, b"first")
    store.settle()
    assert inner.objects == {KEY: b"first"}


@pytest.mark.parametrize(("kind", "left"), [("crash_before", {}), ("crash_after", {KEY: b"1"})])
def test_after_a_crash_nothing_of_the_process_runs(kind: str, left: dict[str, bytes]) -> None:
    store, inner = faulty(Fault(kind, method="put_if_absent"))  # type: ignore[arg-type]
    with pytest.raises(Crashed):
        store.put_if_absent(KEY, b"1")
    with pytest.raises(Crashed):
        store.get(KEY)
    assert inner.objects == left


def test_a_hang_is_bounded_and_then_an_error() -> None:
    slept: list[float] = []
    store = FaultyStore(
        DictStore(), [Fault("hang_after", method="put")], hang_seconds=7, sleep=slept.append
    )
    with pytest.raises(Unavailable):
        store.put(KEY, b"1")
    assert slept == [7]
    assert store.get(KEY) == b"1"


def test_a_fault_takes_the_nth_request_of_its_class() -> None:
    store, _ = faulty(Fault("fail_before", method="put", key_class="version", nth=2))
    store.put(KEY, b"")
    store.put("_graph.json", b"")
    with pytest.raises(Unavailable):
        store.put(KEY, b"")
    store.put(KEY, b"")
    assert [call.fault for call in store.calls] == [None, None, "fail_before", None]


def test_a_fault_that_no_store_can_show_is_refused() -> None:
    store, _ = faulty(Fault("taken", method="get"))
    with pytest.raises(ValueError, match="put_if_absent"):
        store.get(KEY)


def run(seed: int) -> list[Call]:
    store = FaultyStore(DictStore(), seed=seed, rate=0.3)
    for number in range(60):
        try:
            store.put_if_absent(f"k/{number}", b"")
            store.exists(f"k/{number}")
        except (Ambiguous, Unavailable):
            continue
    return store.calls


def test_a_seed_decides_everything() -> None:
    assert run(7) == run(7)
    assert run(7) != run(8)
    assert {call.fault for call in run(7)} >= {None, "fail_before", "fail_after", "taken"}
