"""Every request of a write fails before its effect, after it, late, or for good: a write is never
applied twice, never reported as failed when it landed, and its error tells the truth."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec
import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine import opening
from omnigraph.errors import (
    GraphExists,
    GraphNotFound,
    NotApplied,
    OmnigraphError,
    OutcomeUnknown,
    PermissionDenied,
    Unavailable,
)
from omnigraph.store.objects import Unsettled
from omnigraph.store.roots import parse_root
from omnigraph.store.versions import Put, Versions
from tests.bench.faults import Fault, FaultyStore
from tests.unit.engine.clock import Clock
from tests.unit.engine.faulty import SCHEMA, SETTINGS, faulty_over, fresh_root, new_graph, over

Write = Callable[[Graph], object]
WIDE = SCHEMA.replace("age: I64?", "age: I64?  nick: String?")


def transaction(change: Callable[[Any], object]) -> Write:
    def run(g: Graph) -> None:
        with g.transaction(actor="writer") as tx:
            change(tx)

    return run


def everything(tx: Any) -> None:
    tx.append("Note", {"id": "n", "text": "x"})
    tx.upsert("Person", [{"name": "A", "age": 2}, {"name": "C"}])
    tx.append("Knows", {"src": "C", "dst": "A"})


WRITES: dict[str, Write] = {
    "blind append": transaction(lambda tx: tx.append("Note", {"text": "x"})),
    "upsert": transaction(lambda tx: tx.upsert("Person", {"name": "A", "age": 2})),
    "delete with cascade": transaction(lambda tx: tx.delete("Person", where=None)),
    "many tables": transaction(everything),
    "schema": lambda g: g.apply_schema(WIDE, actor="writer"),
    "compaction": lambda g: g.optimize(),
    "new branch": lambda g: g.create_branch("side"),
    "deleted branch": lambda g: g.delete_branch("old", actor="writer"),
}
SINGLE: list[Fault] = [
    Fault("fail_before"),
    Fault("fail_after"),
    Fault("hang_before"),
    Fault("hang_after"),
    Fault("taken", method="put_if_absent"),
    Fault("land_late", method="put_if_absent", after_requests=1),
    Fault("land_late", method="put_if_absent", after_requests=4),
]
LASTING = [
    replace(fault, times=times)
    for fault in (
        Fault("fail_before"),
        Fault("fail_after"),
        Fault("taken", method="put_if_absent"),
        Fault("land_late", method="put_if_absent", after_requests=99),
    )
    for times in (2, 3, None)
]


@lru_cache(maxsize=1)
def template() -> Graph:
    g = new_graph()
    for number in range(3):
        with g.transaction() as tx:
            tx.append("Person", {"name": f"P{number}", "email": f"p{number}"})
    g.create_branch("old")
    return g


def prepared() -> Graph:
    """A copy of the same graph: everything in it is a plain file."""
    root = parse_root(fresh_root()).uri
    shutil.copytree(template().root, root)
    return omnigraph.open(root, settings=SETTINGS)


def state(root: str) -> Any:
    """Everything that a reader can see, ids that were made up left out."""
    with omnigraph.open(root, settings=SETTINGS) as g:
        seen = {}
        for branch in g.branches():
            snapshot = g.at(branch)
            tables = {}
            for name in snapshot.types():
                found = snapshot.scan(name).read_all()
                if name == "Note":
                    found = found.drop_columns(["id"])
                tables[name] = sorted(map(str, found.to_pylist()))
            kinds = [commit.kind for commit in g.at(branch).log()]
            seen[branch] = (tables, snapshot.schema, kinds)
        return seen


def requests_of(write: Write) -> int:
    g, store = faulty_over(prepared().root)
    write(g)
    return len(store.calls)


def judge(root: str, write: Write, faults: list[Fault], before: Any, after: Any) -> str:
    g, store = faulty_over(root, faults)
    error: OmnigraphError | None = None
    try:
        write(g)
    except OmnigraphError as raised:
        error = raised
    store.settle()
    told = "landed" if error is None else {False: "not", None: "unknown"}[error.applied]
    seen = state(root)
    context = (faults, told, error, [call for call in store.calls if call.fault])
    assert seen in (before, after), ("something between", context)
    if told == "landed":
        assert seen == after, ("it said landed, and it did not", context)
    if told == "not":
        assert seen == before, ("it said not applied, and it landed", context)
    if isinstance(error, OutcomeUnknown) and "old" in before.keys() & after.keys():
        with omnigraph.open(root, settings=SETTINGS) as reader:
            logged = {commit.id for commit in reader.log()}
        assert (error.commit in logged) == (seen == after or "side" in after), context
    return told


@pytest.mark.parametrize("name", WRITES)
def test_the_error_of_a_write_tells_the_truth(name: str) -> None:
    write = WRITES[name]
    untouched = prepared()
    before = state(untouched.root)
    count = requests_of(write)
    write(untouched)
    after = state(untouched.root)
    assert before != after
    outcomes = []
    for nth in range(1, count + 1):
        for fault in (*SINGLE, *LASTING):
            root = prepared().root
            outcomes.append(judge(root, write, [replace(fault, nth=nth)], before, after))
    assert set(outcomes) >= {"landed", "unknown"}


@pytest.mark.parametrize("name", ["blind append", "upsert", "many tables"])
def test_a_write_whose_answer_was_lost_once_lands_once(name: str) -> None:
    """One lost answer of the put is nothing that a caller ever hears of."""
    for fault in SINGLE:
        root = prepared().root
        g, store = faulty_over(root, [replace(fault, method="put_if_absent", key_class="version")])
        WRITES[name](g)
        store.settle()
        assert [c.fault for c in store.calls if c.fault] == [fault.kind]
        assert [c.kind for c in g.log(limit=2, actor="writer")] == ["write"]


@pytest.mark.slow
def test_any_mix_of_faults_leaves_the_truth() -> None:
    for name, write in WRITES.items():
        untouched = prepared()
        before = state(untouched.root)
        write(untouched)
        after = state(untouched.root)
        for seed in range(150):
            root = prepared().root
            place = parse_root(root).objects(SETTINGS)
            store = FaultyStore(place, seed=seed, rate=0.4, sleep=lambda seconds: None)
            applied: bool | None = True
            try:
                write(over(root, store))
            except OmnigraphError as error:
                applied = error.applied
            store.settle()
            seen = state(root)
            assert seen in (before, after), (name, seed)
            assert applied is None or seen == (after if applied else before), (name, seed)


# Hazard 10, case by case, at the door where it is decided.


def outcome(*faults: Fault) -> tuple[Put, FaultyStore, Any]:
    g = new_graph()
    store = FaultyStore(parse_root(g.root).objects(SETTINGS), faults, sleep=lambda seconds: None)
    head = g.snapshot().graph_version
    version = msgspec.structs.replace(head, token="mine", version=head.version + 1)
    return Versions(store, Clock()).put(version).put, store, version


def test_taken_and_then_absent_is_tried_again() -> None:
    put, store, version = outcome(Fault("taken", method="put_if_absent"))
    assert put is Put.LANDED
    assert Versions(store).read("main", version.version).token == "mine"


def test_a_lost_answer_is_answered_by_reading_back() -> None:
    put, store, _ = outcome(Fault("fail_after", method="put_if_absent"))
    assert put is Put.LANDED
    assert [call.method for call in store.calls] == ["put_if_absent", "get"]


def test_after_an_ambiguous_put_the_same_bytes_go_to_the_same_key() -> None:
    put, store, _ = outcome(Fault("land_late", method="put_if_absent", after_requests=2))
    assert put is Put.LANDED
    keys = {call.key for call in store.calls}
    assert len(keys) == 1


def test_a_store_that_is_busy_for_seconds_is_waited_for() -> None:
    """Who asks again at once, again and again, has used up all tries before a store that is asked
    too much has caught its breath."""
    waited: list[float] = []

    class Busy(Clock):
        def sleep(self, seconds: float) -> None:
            waited.append(seconds)

    g = new_graph()
    busy = Fault("fail_before", method="put_if_absent", times=7)
    store = FaultyStore(parse_root(g.root).objects(SETTINGS), [busy])
    head = g.snapshot().graph_version
    version = msgspec.structs.replace(head, token="mine", version=head.version + 1)
    assert Versions(store, Busy()).put(version).put is Put.LANDED
    assert waited == sorted(waited)
    assert sum(waited) > 2


def test_a_put_that_may_still_land_is_unknown_when_reading_fails() -> None:
    put, _, _ = outcome(
        Fault("land_late", method="put_if_absent", after_requests=999, times=None),
        Fault("fail_before", method="get", times=None),
    )
    assert put is Put.UNKNOWN


def test_a_put_that_may_still_land_is_unknown_when_a_later_one_is_refused() -> None:
    class Expired(FaultyStore):
        def put_if_absent(self, key: str, data: bytes, **options: Any) -> bool:
            if any(call.method == "put_if_absent" for call in self.calls):
                raise PermissionDenied("the token has expired")
            return super().put_if_absent(key, data, **options)

    g = new_graph()
    late = Fault("land_late", method="put_if_absent", after_requests=1)
    store = Expired(parse_root(g.root).objects(SETTINGS), [late])
    with pytest.raises(OutcomeUnknown) as error, over(g.root, store).transaction() as tx:
        tx.append("Note", {"text": "x"})
    store.settle()
    assert error.value.commit == g.snapshot().commit.id


def test_a_put_that_was_refused_and_cannot_be_read_is_not_applied() -> None:
    g = new_graph()
    faulty, _ = faulty_over(
        g.root,
        [
            Fault("taken", method="put_if_absent"),
            Fault("fail_before", method="get", key_class="version", nth=2, times=None),
        ],
    )
    faulty.snapshot()
    with pytest.raises(Unavailable) as error, faulty.transaction() as tx:
        tx.append("Note", {"text": "x"})
    assert error.value.applied is False
    assert g.snapshot().version == 2


def test_only_a_foreign_version_proves_that_ours_lost() -> None:
    """Ours is late, another comes first: the write goes on behind it."""
    g = new_graph()
    late = Fault("land_late", method="put_if_absent", key_class="version", after_requests=1)
    faulty, store = faulty_over(g.root, [late])
    inner = store.inner
    real_get = inner.get

    def get(key: str) -> bytes:
        if "__manifest" in key and not other:
            other.append(key)
            with g.transaction() as tx:
                tx.append("Note", {"id": "other"})
        return real_get(key)

    faulty.snapshot()
    other: list[str] = []
    inner.get = get  # type: ignore[method-assign]
    with faulty.transaction() as tx:
        tx.append("Note", {"id": "mine"})
    store.settle()
    assert sorted(g.snapshot().scan("Note").read_all()["id"].to_pylist()) == ["mine", "other"]
    assert [c.kind for c in g.log()] == ["write", "write", "write", "init"]


def test_what_a_disk_linked_and_did_not_sync_is_not_settled(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from omnigraph.store import disk

    store = disk.DiskStore(tmp_path, durability="full")
    store.put_if_absent("d/first", b"")
    real = disk._sync

    def sync(path: Any) -> None:
        if path.is_dir():
            raise OSError(5, "Input/output error", str(path))
        real(path)

    monkeypatch.setattr(disk, "_sync", sync)
    with pytest.raises(Unsettled, match="Input/output error") as told:
        store.put_if_absent("d/second", b"x")
    assert told.value.applied is None
    assert store.get("d/second") == b"x"


def test_a_commit_that_landed_while_the_machine_slept_is_never_reported_as_failed() -> None:
    """After a slow put the floor is looked up; when that fails nobody can tell."""

    g = new_graph()
    clock = Clock()
    store = FaultyStore(parse_root(g.root).objects(SETTINGS), [Fault("fail_before", method="list")])
    faulty = over(g.root, store, runtime=clock)
    store.faults, store._armed = (), []
    faulty.snapshot()
    store._armed = FaultyStore(store.inner, [Fault("fail_before", method="list")])._armed
    real = store.inner.put_if_absent

    def slow(key: str, data: bytes, **options: Any) -> bool:
        clock.skip(SETTINGS.grace)
        return real(key, data, **options)

    store.inner.put_if_absent = slow  # type: ignore[method-assign]
    with pytest.raises(OutcomeUnknown) as error, faulty.transaction() as tx:
        tx.append("Note", {"text": "x"})
    assert error.value.commit == g.snapshot().commit.id


# Creating a graph


def creation(faults: list[Fault], monkeypatch: pytest.MonkeyPatch) -> tuple[Any, str]:
    root = fresh_root()
    original = opening._session

    def session(*given: Any) -> Any:
        made = original(*given)
        made.objects = FaultyStore(made.objects, faults, sleep=lambda seconds: None)
        made.runtime = Clock()
        return made

    with monkeypatch.context() as patch:
        patch.setattr(opening, "_session", session)
        try:
            omnigraph.init(root, schema=SCHEMA, settings=SETTINGS)
        except OmnigraphError as error:
            return error, root
    return None, root


@pytest.mark.parametrize("fault", [*SINGLE, *LASTING], ids=str)
def test_creating_a_graph_tells_the_truth(fault: Fault, monkeypatch: pytest.MonkeyPatch) -> None:
    for nth in range(1, 12):
        error, root = creation([replace(fault, nth=nth)], monkeypatch)
        try:
            with omnigraph.open(root, settings=SETTINGS) as g:
                assert g.snapshot().version == 1
                there = True
        except GraphNotFound:
            there = False
        if error is None:
            assert there, nth
        elif error.applied is False:
            assert not there or isinstance(error, GraphExists), (nth, error)
            assert not isinstance(error, GraphExists), (nth, "nobody else was there")
        if not there:
            with omnigraph.init(root, schema=SCHEMA, settings=SETTINGS) as again:
                assert again.snapshot().version == 1


def test_a_store_that_cannot_be_written_is_not_called_missing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lost = Fault("fail_before", method="put_if_absent", key_class="wait", times=None)
    error, _ = creation([lost], monkeypatch)
    assert isinstance(error, NotApplied)
