"""Two writes at once, in every order of their stages: what was checked is true in the result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import product
from typing import Any

import pyarrow.compute as pc
import pytest

from omnigraph import Graph, runtime
from omnigraph.engine.write.transaction import Transaction
from omnigraph.errors import BranchMoved, Conflict, InvalidData, OmnigraphError
from tests.unit.engine.clock import Clock
from tests.unit.engine.faulty import SETTINGS, new_graph, over

Statement = Callable[[Any], object]
POINTS = ("begun", "stated", "staged", "tables committed", "before put")


@contextmanager
def at(point: str, action: Callable[[], object]) -> Iterator[None]:
    """Runs an action once, when the protocol reaches a point."""
    waiting = [action]

    def reached(name: str) -> None:
        if name == point and waiting:
            waiting.pop()()

    runtime.on_reach = reached
    try:
        yield
    finally:
        runtime.on_reach = None


def write(g: Graph, statement: Statement) -> None:
    with g.transaction() as tx:
        statement(tx)


def outcome(action: Callable[[], object]) -> OmnigraphError | None:
    try:
        action()
    except OmnigraphError as error:
        return error
    return None


def interleaved(
    g: Graph, first: Statement, second: Statement, point: str, *, same_handle: bool
) -> tuple[OmnigraphError | None, OmnigraphError | None]:
    """`second` happens, whole, while `first` stands at a point."""
    other = g if same_handle else over(g.root)
    other.snapshot()
    results: list[OmnigraphError | None] = []

    def meddle() -> None:
        results.append(outcome(lambda: write(other, second)))

    def whole() -> None:
        tx = g.transaction()
        if point == "begun":
            tx._write.working(reading=True)
            meddle()
        first(tx)
        if point == "stated":
            meddle()
        with at(point, meddle):
            tx.publish()

    mine = outcome(whole)
    assert len(results) == 1
    assert mine is None or mine.applied is False
    return mine, results[0]


def names(g: Graph) -> set[str]:
    return set(g.snapshot().scan("Person").read_all()["name"].to_pylist())


def edges(g: Graph, type: str = "Knows") -> set[tuple[str, str]]:
    found = g.snapshot().scan(type).read_all()
    return set(zip(found["src"].to_pylist(), found["dst"].to_pylist(), strict=True))


def assert_no_orphan(g: Graph) -> None:
    nodes = names(g)
    for kind in ("Knows", "Likes"):
        assert all(src in nodes and dst in nodes for src, dst in edges(g, kind))


def assert_linear(g: Graph) -> None:
    log = list(g.log())
    assert [c.parents for c in log] == [*((c.id,) for c in log[1:]), ()]


WAYS = list(product(POINTS, (True, False)))


def with_x() -> Graph:
    g = new_graph()
    write(g, lambda tx: tx.append("Person", {"name": "X"}))
    return g


def insert_edge(tx: Any) -> None:
    tx.append("Knows", {"src": "A", "dst": "X"})


def insert_plain_edge(tx: Any) -> None:
    """Of a type without any other rule that would look at the nodes."""
    tx.append("Likes", {"src": "A", "dst": "X"})


def overwrite_without_x(tx: Any) -> None:
    tx.overwrite("Person", [{"name": "A"}, {"name": "B"}])


def delete_x(tx: Any) -> None:
    tx.delete("Person", where=pc.field("name") == "X")


@pytest.mark.parametrize(("point", "same"), WAYS)
@pytest.mark.parametrize("edge_first", [True, False])
@pytest.mark.parametrize("edge", [insert_edge, insert_plain_edge])
def test_an_overwrite_and_an_edge_never_make_an_orphan(
    point: str, same: bool, edge_first: bool, edge: Statement
) -> None:
    g = with_x()
    one, two = (edge, overwrite_without_x) if edge_first else (overwrite_without_x, edge)
    mine, theirs = interleaved(g, one, two, point, same_handle=same)
    assert theirs is None
    assert isinstance(mine, InvalidData)
    assert mine.violations[0].rule == ("endpoint" if edge_first else "orphan")
    assert_no_orphan(g)
    assert ("X" in names(g)) != edge_first


@pytest.mark.parametrize(("point", "same"), WAYS)
@pytest.mark.parametrize("edge", [insert_edge, insert_plain_edge])
def test_an_edge_to_a_node_that_is_deleted_meanwhile_is_refused(
    point: str, same: bool, edge: Statement
) -> None:
    g = with_x()
    mine, theirs = interleaved(g, edge, delete_x, point, same_handle=same)
    assert theirs is None
    assert isinstance(mine, InvalidData)
    assert_no_orphan(g)


@pytest.mark.parametrize(("point", "same"), WAYS)
@pytest.mark.parametrize("edge", [insert_edge, insert_plain_edge])
def test_a_deleted_node_takes_edges_along_that_came_meanwhile(
    point: str, same: bool, edge: Statement
) -> None:
    g = with_x()
    assert interleaved(g, delete_x, edge, point, same_handle=same) == (None, None)
    assert edges(g, "Likes") == set()
    assert names(g) == {"A", "B"}
    assert edges(g) == {("A", "B")}
    assert_linear(g)


@pytest.mark.parametrize(("point", "same"), WAYS)
@pytest.mark.parametrize("statement", ["append", "upsert"])
def test_of_two_inserts_of_one_unique_value_one_wins(
    point: str, same: bool, statement: str
) -> None:
    g = new_graph()

    def take(name: str) -> Statement:
        return lambda tx: getattr(tx, statement)("Person", {"name": name, "email": "one@x"})

    mine, theirs = interleaved(g, take("M"), take("T"), point, same_handle=same)
    assert theirs is None
    assert isinstance(mine, InvalidData)
    assert mine.violations[0].rule == "unique"
    assert names(g) == {"A", "B", "T"}


@pytest.mark.parametrize(("point", "same"), WAYS)
def test_of_two_inserts_of_one_key_one_wins(point: str, same: bool) -> None:
    g = new_graph()

    def insert(age: int) -> Statement:
        return lambda tx: tx.append("Person", {"name": "N", "age": age})

    mine, theirs = interleaved(g, insert(1), insert(2), point, same_handle=same)
    assert theirs is None
    assert isinstance(mine, InvalidData)
    assert mine.violations[0].rule == "key"
    assert sorted(names(g)) == ["A", "B", "N"]
    assert g.snapshot().count("Person") == 3


@pytest.mark.parametrize(("point", "same"), WAYS)
def test_of_two_edges_against_one_maximum_one_wins(point: str, same: bool) -> None:
    g = with_x()  # A knows B already; two are allowed
    add_self: Statement = lambda tx: tx.append("Knows", {"src": "A", "dst": "A"})  # noqa: E731
    mine, theirs = interleaved(g, insert_edge, add_self, point, same_handle=same)
    assert theirs is None
    assert isinstance(mine, InvalidData)
    assert mine.violations[0].rule == "card"
    assert edges(g) == {("A", "B"), ("A", "A")}


@pytest.mark.parametrize(("point", "same"), WAYS)
def test_two_upserts_of_one_key_both_land_and_the_last_wins(point: str, same: bool) -> None:
    g = new_graph()

    def put(**values: Any) -> Statement:
        return lambda tx: tx.upsert("Person", {"name": "N", **values})

    ways = interleaved(g, put(age=1), put(age=2, email="t"), point, same_handle=same)
    assert ways == (None, None)
    (row,) = [r for r in g.snapshot().scan("Person").read_all().to_pylist() if r["id"] == "N"]
    assert (row["age"], row["email"]) == (1, "t")
    assert g.snapshot().count("Person") == 3
    assert_linear(g)


@pytest.mark.parametrize(("point", "same"), WAYS)
def test_an_overwrite_of_what_was_written_meanwhile_is_a_conflict(point: str, same: bool) -> None:
    g = new_graph()
    mine, theirs = interleaved(
        g,
        lambda tx: tx.overwrite("Person", [{"name": "A"}, {"name": "B"}, {"name": "C"}]),
        lambda tx: tx.append("Person", {"name": "T"}),
        point,
        same_handle=same,
    )
    assert theirs is None
    assert isinstance(mine, Conflict)
    assert mine.mismatch.table_key == "node:Person"
    assert (mine.mismatch.expected, mine.mismatch.actual) == (2, 3)
    assert "T" in names(g)


@pytest.mark.parametrize(("point", "same"), WAYS)
def test_compaction_under_any_write_changes_nothing(point: str, same: bool) -> None:
    statements: list[Statement] = [
        lambda tx: tx.append("Person", {"name": "N"}),
        lambda tx: tx.upsert("Person", {"name": "A", "age": 5}),
        lambda tx: tx.update("Person", set={"age": 7}, where=pc.field("name") == "P1"),
        lambda tx: tx.delete("Person", where=pc.field("name") == "P2"),
        lambda tx: tx.overwrite("Person", [{"name": "A"}, {"name": "B"}]),
    ]
    for statement in statements:
        results = []
        for meddled in (True, False):
            g = new_graph()
            for number in range(3):
                write(g, lambda tx, n=number: tx.append("Person", {"name": f"P{n}"}))  # type: ignore[misc]
            other = g if same else over(g.root)
            tx = g.transaction()
            if point == "begun" and meddled:
                tx._write.working(reading=True)
                other.optimize()
            statement(tx)
            if point == "stated" and meddled:
                other.optimize()
            with at(point if meddled else "", other.optimize):
                tx.publish()
            found = g.snapshot().scan("Person").read_all().to_pylist()
            results.append(sorted(map(str, found)))
        assert results[0] == results[1]


@pytest.mark.parametrize(("point", "same"), WAYS)
def test_what_was_scanned_and_changed_is_a_conflict_at_every_point(point: str, same: bool) -> None:
    g = new_graph()

    def copy(tx: Transaction) -> None:
        oldest = max(row["age"] or 0 for row in tx.scan("Person").to_pylist())
        tx.append("Note", {"id": "copy", "text": str(oldest)})

    if point == "begun":  # then nothing was scanned yet: the block reads a pinned base
        return
    mine, theirs = interleaved(
        g, copy, lambda tx: tx.update("Person", set={"age": 9}, where=None), point, same_handle=same
    )
    assert theirs is None
    assert isinstance(mine, Conflict)
    assert mine.retryable
    assert g.snapshot().count("Note") == 0
    g.run(copy)
    assert g.snapshot().scan("Note").read_all()["text"].to_pylist() == ["9"]


def test_a_write_that_slept_does_not_forget_what_it_read() -> None:
    """Staged files that grew old are staged again, but only if everything else still holds."""
    g = new_graph()
    clock = Clock()
    sleeper = over(g.root, runtime=clock)
    tx = sleeper.transaction()
    tx.scan("Person")
    tx.append("Note", {"text": "x"})

    def sleep_and_meddle() -> None:
        write(g, lambda other: other.update("Person", set={"age": 9}, where=None))
        clock.skip(SETTINGS.grace)

    with at("staged", sleep_and_meddle), pytest.raises(Conflict, match="read in the transaction"):
        tx.publish()


def test_a_write_that_slept_does_not_go_on_with_another_branch() -> None:
    g = new_graph()
    g.create_branch("side")
    clock = Clock()
    tx = over(g.root, runtime=clock).branch("side").transaction()
    tx.append("Note", {"text": "x"})

    def sleep_and_meddle() -> None:
        g.delete_branch("side")
        clock.skip(SETTINGS.grace)

    with at("staged", sleep_and_meddle), pytest.raises(BranchMoved):
        tx.publish()
    assert g.branches() == ["main"]


def test_a_write_that_slept_stages_its_rows_again() -> None:
    g = new_graph()
    clock = Clock()
    tx = over(g.root, runtime=clock).transaction()
    tx.append("Note", {"text": "x"})
    staged: list[str] = []

    def sleep() -> None:
        clock.skip(SETTINGS.grace)

    def reached(name: str) -> None:
        if name == "staged":
            staged.append(name)
            if len(staged) == 1:
                sleep()

    runtime.on_reach = reached
    try:
        tx.publish()
    finally:
        runtime.on_reach = None
    assert staged == ["staged", "staged"]
    assert g.snapshot().count("Note") == 1
