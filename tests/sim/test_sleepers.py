"""Sleeping writers and idle handles while cleanup passes by: no pruned number is ever won.

Cleanup is done by hand: a version with a higher floor is put, then the versions below it go.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

import omnigraph
from omnigraph import runtime
from omnigraph.engine.graph import Graph
from omnigraph.errors import BranchExists, BranchNotFound
from omnigraph.model.version import GraphVersion
from omnigraph.runtime import SystemRuntime
from omnigraph.settings import Settings
from omnigraph.store.disk import DiskStore
from omnigraph.store.objects import Absent
from omnigraph.store.versions import Put, Versions, version_key
from tests.processes.history import check_linear

SCHEMA = "node Note { text: String }"
GRACE = 3600.0
LONG = GRACE / 4 + 1
SHORT = GRACE / 4 - 60


class Clock(SystemRuntime):
    """A clock that can be put forward; the two of a machine need not agree."""

    def __init__(self) -> None:
        super().__init__()
        self._wall = self._monotonic = 0.0

    def pass_time(self, seconds: float, *, wall: bool = True, monotonic: bool = True) -> None:
        self._wall += seconds if wall else 0.0
        self._monotonic += seconds if monotonic else 0.0

    def now(self) -> int:
        return super().now() + int(self._wall * 1e6)

    def monotonic(self) -> float:
        return super().monotonic() + self._monotonic


class World:
    """One graph, a sleeper with a clock of its own, and others who stay awake."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.clock = Clock()
        self._settings = Settings(grace=GRACE, queue=False, retry_for=2 * GRACE)
        self._objects = DiskStore(root, durability="full")
        self.versions = Versions(self._objects)
        with omnigraph.init(root, schema=SCHEMA) as g:
            for number in range(3):
                write(g, f"before {number}")

    def sleeper(self) -> Graph:
        """A handle that has just seen the head."""
        g = omnigraph.open(self.root, settings=self._settings, runtime=self.clock)
        g.snapshot()
        return g

    def others_write(self, branch: str = "main", count: int = 4) -> None:
        with omnigraph.open(self.root) as g:
            for number in range(count):
                write(g, f"other {number}", branch)

    def clean_up(self, branch: str = "main") -> GraphVersion:
        """Publishes a floor at the head, then removes all that is below, oldest first."""
        head = self.versions.read_head(branch)
        floor = head.version + 1
        new = msgspec.structs.replace(
            head,
            token=SystemRuntime().ulid(),
            version=floor,
            floor=floor,
            commit=msgspec.structs.replace(
                head.commit,
                id=runtime.ulid_after(head.commit.id, 0),
                parents=(head.commit.id,),
                created_at=head.commit.created_at + 1,
                kind="cleanup",
            ),
        )
        assert self.versions.put(new).put is Put.LANDED
        for number in range(1, floor):
            self._objects.delete(version_key(branch, number))
        return new

    def leave_ghost(self, after: GraphVersion) -> None:
        """What another sleeper leaves that died before it could remove its own."""
        ghost = msgspec.structs.replace(
            after, token=SystemRuntime().ulid(), version=after.version + 1
        )
        assert self.versions.put(ghost).put is Put.LANDED

    def there(self, branch: str, number: int) -> bool:
        return self._objects.exists(version_key(branch, number))

    def notes(self, branch: str = "main") -> list[str]:
        with omnigraph.open(self.root, mode="r") as g:
            found: list[str] = g.at(branch).scan("Note").read_all()["text"].to_pylist()
            return sorted(found)


def write(g: Graph, text: str, branch: str = "main") -> None:
    with g.branch(branch).transaction() as tx:
        tx.append("Note", [{"text": text}])


@pytest.fixture
def world(memory: Path) -> World:
    return World(memory / SystemRuntime().ulid())


@pytest.fixture
def before_put(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], None]], None]:
    """Does something once, between the bind of this thread's next write and its put."""

    def arrange(action: Callable[[], None]) -> None:
        waiting = [action]
        thread = threading.get_ident()

        def reached(point: str) -> None:
            if point == "before put" and waiting and threading.get_ident() == thread:
                waiting.pop()()

        monkeypatch.setattr(runtime, "on_reach", reached)

    return arrange


Arrange = Callable[[Callable[[], None]], None]


def check_nothing_lost(world: World) -> None:
    """What the sleeper wrote is in the branch that everybody reads, and the chain goes on."""
    expected = [*(f"before {n}" for n in range(3)), *(f"other {n}" for n in range(4)), "sleeper"]
    assert world.notes() == sorted(expected)
    with omnigraph.open(world.root) as g:
        write(g, "later")
        head = g.snapshot().graph_version
        for number in range(head.floor, head.version + 1):
            assert world.there("main", number)


def test_a_writer_that_slept_while_cleanup_passed_removes_its_ghost_and_rebases(
    world: World, before_put: Arrange
) -> None:
    with world.sleeper() as g:
        mine = g.snapshot().version + 1

        def sleep() -> None:
            world.others_write()
            world.clean_up()
            world.clock.pass_time(LONG)

        before_put(sleep)
        write(g, "sleeper")
        assert g.snapshot().version > mine + 1
    assert not world.there("main", mine)
    check_nothing_lost(world)


def test_a_writer_that_slept_does_not_build_on_the_ghost_of_another(
    world: World, before_put: Arrange
) -> None:
    with world.sleeper() as g:
        base = g.snapshot().graph_version

        def sleep() -> None:
            world.others_write()
            world.clean_up()
            world.leave_ghost(base)
            world.clock.pass_time(LONG)

        before_put(sleep)
        write(g, "sleeper")
    check_nothing_lost(world)


def test_a_writer_slept_even_if_another_thread_of_its_handle_has_seen_the_new_head(
    world: World, before_put: Arrange
) -> None:
    with world.sleeper() as g:
        mine = g.snapshot().version + 1

        def sleep() -> None:
            world.others_write()
            world.clean_up()
            world.clock.pass_time(LONG)
            g.snapshot()

        before_put(sleep)
        write(g, "sleeper")
    assert not world.there("main", mine)
    check_nothing_lost(world)


def test_a_writer_that_slept_and_lost_nothing_keeps_its_commit(
    world: World, before_put: Arrange
) -> None:
    with world.sleeper() as g:
        mine = g.snapshot().version + 1
        before_put(lambda: world.clock.pass_time(LONG))
        write(g, "sleeper")
        assert g.snapshot().version == mine
        check_linear(g)


def test_a_writer_that_did_not_sleep_pays_for_no_listing(world: World) -> None:
    with world.sleeper() as g:
        world.clock.pass_time(SHORT)
        with g.transaction() as tx:
            tx.append("Note", [{"text": "quick"}])
        assert tx.io.by_purpose["version"] == {"put": 1}
        world.clock.pass_time(LONG)
        with g.transaction() as tx:
            tx.append("Note", [{"text": "slow"}])
        assert tx.io.by_purpose["version"] == {"list": 1, "get": 1, "put": 1}


@pytest.mark.parametrize(
    ("wall", "monotonic"), [(True, True), (True, False), (False, True)], ids=["both", "wall", "up"]
)
def test_an_idle_handle_lists_and_does_not_probe(world: World, wall: bool, monotonic: bool) -> None:
    """The next number may have come and gone: its absence says nothing."""
    with world.sleeper() as g:
        world.others_write()
        new = world.clean_up()
        world.clock.pass_time(LONG, wall=wall, monotonic=monotonic)
        assert g.snapshot().version == new.version
        write(g, "sleeper")
    check_nothing_lost(world)


@pytest.fixture
def branched(world: World) -> World:
    with omnigraph.open(world.root) as g:
        g.create_branch("side")
    return world


def test_a_delete_of_a_branch_that_slept_is_not_lost_in_a_ghost(
    branched: World, before_put: Arrange
) -> None:
    with branched.sleeper() as g:
        g.at("side")
        mine = g.at("side").version + 1

        def sleep() -> None:
            branched.others_write("side")
            branched.clean_up("side")
            branched.clock.pass_time(LONG)

        before_put(sleep)
        g.delete_branch("side")
    assert not branched.there("side", mine)
    with omnigraph.open(branched.root) as g, pytest.raises(BranchNotFound):
        g.at("side")


def test_a_branch_made_again_by_a_sleeper_is_not_lost_in_a_ghost(
    branched: World, before_put: Arrange
) -> None:
    with branched.sleeper() as g:
        g.delete_branch("side")
        mine = g._session.head("side", g.snapshot().io).version + 1

        def sleep() -> None:
            with omnigraph.open(branched.root) as other:
                other.create_branch("side")
            branched.others_write("side")
            branched.clean_up("side")
            branched.clock.pass_time(LONG)

        before_put(sleep)
        with pytest.raises(BranchExists):
            g.create_branch("side")
    with pytest.raises(Absent):
        branched.versions.read("side", mine)
    assert "other 3" in branched.notes("side")
