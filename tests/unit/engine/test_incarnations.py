"""A name that was deleted and created again is another branch: nothing that was meant for the
one lands on the other, whenever that happens."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.engine.branch import Branch
from omnigraph.errors import BranchMoved, Conflict, OmnigraphError
from tests.unit.engine.faulty import new_graph, over
from tests.unit.engine.test_write_skew import at

WIDER = "node Later { name: String? }\n"
ROW = {"name": "meant for the old one"}


@pytest.fixture
def g() -> Graph:
    g = new_graph()
    g.create_branch("side")
    with g.branch("side").transaction() as tx:
        tx.append("Person", {"name": "C"})
    g.create_branch("other")
    with g.branch("other").transaction() as tx:
        tx.append("Person", {"name": "D"})
    return g


class AtEach:
    """Runs an action each time that the protocol reaches a point, but not from within itself."""

    def __init__(self, point: str, action: Callable[[], object]) -> None:
        self._point, self._action, self._busy = point, action, False

    def __enter__(self) -> None:
        omnigraph.runtime.on_reach = self._reached

    def __exit__(self, *_: object) -> None:
        omnigraph.runtime.on_reach = None

    def _reached(self, name: str) -> None:
        if name == self._point and not self._busy:
            self._busy = True
            try:
                self._action()
            finally:
                self._busy = False


def begun(side: Branch) -> Callable[[], object]:
    """A block whose first look at the branch comes after it was begun."""
    tx = side.transaction()

    def finish() -> None:
        tx.append("Person", ROW)
        tx.publish()

    return finish


def looked(side: Branch) -> Callable[[], object]:
    tx = side.transaction()
    tx.append("Note", {"text": "x"})
    return tx.publish


def keyed(side: Branch) -> Callable[[], object]:
    tx = side.transaction(idempotency_key="k")

    def finish() -> None:
        tx.append("Person", ROW)
        tx.publish()

    return finish


BEGUN: dict[str, Callable[[Branch], Callable[[], object]]] = {
    "a block that looks later": begun,
    "a block that has looked": looked,
    "a block with a key": keyed,
}


@pytest.mark.parametrize("begin", BEGUN)
@pytest.mark.parametrize("same_handle", [True, False])
def test_a_block_lands_on_the_branch_that_it_was_begun_for_or_nowhere(
    g: Graph, begin: str, same_handle: bool
) -> None:
    finish = BEGUN[begin](g.branch("side"))
    other = g if same_handle else over(g.root)
    other.delete_branch("side")
    made = other.create_branch("side").id
    with pytest.raises(BranchMoved, match="deleted, or deleted and created again") as error:
        finish()
    assert not error.value.retryable
    assert error.value.applied is False
    assert other.at("side").commit.id == made


WRITES: dict[str, Callable[[Branch], object]] = {
    "transaction": lambda side: side.run(lambda tx: tx.append("Person", ROW)),
    "keyed": lambda side: side.run(lambda tx: tx.append("Person", ROW), idempotency_key="k"),
    "mutate": lambda side: side.mutate("delete Person where true"),
    "load": lambda side: side.load([{"type": "Person", "data": ROW}], engine="local"),
    "apply_schema": lambda side: side.apply_schema(side.snapshot().schema + WIDER),
    "merge": lambda side: side.merge("other"),
    "restore": lambda side: side.restore("main"),
    "revert": lambda side: side.revert("side"),
    "protect": lambda side: over(side._session.root.uri).protect(side),
    "optimize": lambda side: side.optimize(),
    "delete": lambda side: over(side._session.root.uri).delete_branch(side),
}


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("remade", [True, False])
def test_a_write_that_loses_its_number_to_another_branch_of_the_name_is_told(
    g: Graph, write: str, remade: bool
) -> None:
    side, other = g.branch("side"), over(g.root)
    other.at("side")

    def replace() -> None:
        other.delete_branch("side")
        if remade:
            other.create_branch("side")
            with other.branch("side").transaction() as tx:
                tx.append("Person", {"name": "new work"})

    with at("before put", replace), pytest.raises(BranchMoved) as error:
        WRITES[write](side)
    assert error.value.applied is False
    fresh = over(g.root)
    assert ("side" in fresh.branches()) is remade
    if remade:
        (commit,) = fresh.branch("side").log(limit=1)
        assert commit.kind == "write"
        assert fresh.protected_branches() == []


NAMED: dict[str, Callable[[Graph], object]] = {
    "delete_branch": lambda g: g.delete_branch("side"),
    "protect": lambda g: g.protect("side"),
    "restore": lambda g: g.branch("side").restore("main"),
    "merge": lambda g: g.branch("side").merge("other"),
    "apply_schema": lambda g: g.branch("side").apply_schema(g.snapshot().schema + WIDER),
}


@pytest.mark.parametrize("write", NAMED)
def test_an_operation_by_name_goes_on_with_the_branch_that_it_found_first(
    g: Graph, write: str
) -> None:
    """Deleting what somebody else has just made is what nobody asked for."""
    other = over(g.root)

    def replace() -> None:
        other.delete_branch("side")
        other.create_branch("side")

    with at("before put", replace), pytest.raises(BranchMoved):
        NAMED[write](g)
    fresh = over(g.root)
    assert fresh.at("side").graph_version.incarnation == 2
    assert fresh.at("side").commit == fresh.at("main").commit


def test_what_is_merged_is_the_branch_that_was_named_at_the_start(g: Graph) -> None:
    other = over(g.root)

    def replace() -> None:
        with other.transaction() as tx:  # so that the merge is done again
            tx.append("Person", {"name": "E"})
        other.delete_branch("side")
        other.create_branch("side")
        with other.branch("side").transaction() as tx:
            tx.append("Person", {"name": "F"})

    # The target has moved, so what was seen of the source is enough.
    with at("before put", replace):
        merged = g.merge("side")
    assert merged.commit is not None
    assert sorted(over(g.root).snapshot().scan("Person").read_all()["id"].to_pylist()) == [
        "A",
        "B",
        "C",
        "E",
    ]


def test_a_tag_that_was_made_again_is_not_the_one_to_be_deleted(g: Graph) -> None:
    g.create_tag("v1", "side")
    other = over(g.root)

    def replace() -> None:
        other.delete_tag("v1")
        other.create_tag("v1", "main")

    with at("before put", replace), pytest.raises(BranchMoved, match="The tag 'v1'"):
        g.delete_tag("v1")
    assert over(g.root).tags()["v1"] == g.at("main").commit


def test_a_key_of_another_branch_of_the_name_is_not_answered_from(g: Graph) -> None:
    """Also where a new branch took over what its source knows: the batches of streams."""
    from omnigraph.engine.load.options import LoadOptions
    from omnigraph.engine.load.run import load

    def batch(h: Graph, branch: str) -> OmnigraphError | None:
        options = LoadOptions(type="Note", branch=branch, engine="local", stream=("s", 1))
        try:
            load(h._session, [{"text": "x"}], options)
        except OmnigraphError as error:
            return error
        return None

    assert batch(g, "main") is None
    other = over(g.root)

    def replace() -> None:
        other.delete_branch("side")
        other.create_branch("side")

    with at("before put", replace):
        assert isinstance(batch(g, "side"), BranchMoved)


def test_a_handle_sees_that_its_graph_was_closed(g: Graph) -> None:
    side = g.branch("side")
    g.close()
    with pytest.raises(omnigraph.errors.InvalidArgument, match="closed"):
        side.mutate("delete Person where true")


def test_another_branch_is_not_held(g: Graph) -> None:
    """A handle belongs to its own branch; what it merges from may be new."""
    side = g.branch("side")
    g.delete_branch("other")
    g.create_branch("other", "main")
    with g.branch("other").transaction() as tx:
        tx.append("Person", {"name": "D"})
    assert side.merge("other").outcome == "merged"


def test_a_load_that_made_a_branch_takes_back_no_other(g: Graph) -> None:
    other = over(g.root)
    broken = iter([True])

    def replace() -> None:
        if next(broken, False):
            other.delete_branch("new")
            other.create_branch("new")

    def meddle() -> None:
        """Between the making of the branch and the commit of the rows."""
        if "new" in other.branches():
            replace()

    with AtEach("before put", meddle), pytest.raises(Conflict):
        g.load(
            [{"type": "Person", "data": ROW}],
            new_branch="new",
            engine="local",
        )
    assert over(g.root).at("new").graph_version.incarnation == 2
