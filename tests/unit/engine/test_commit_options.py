"""The options of a commit: every write takes all of them, and keeps to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from omnigraph import CommitOptions, Graph
from omnigraph.errors import IdempotencyMismatch, InvalidArgument, PreconditionFailed
from omnigraph.model.options import CommitWords
from omnigraph.model.version import Commit, GraphVersion
from tests.unit.engine.faulty import new_graph, over

QUERY = 'query noted() { insert Note { text: "noted" } }'
ROWS = [{"type": "Note", "data": {"text": "loaded"}}]
Write = Callable[..., object]


def transact(g: Graph, **commit: Any) -> object:
    with g.transaction(**commit) as tx:
        tx.append("Note", {"text": "written"})
    return tx.commit_id


def widen(g: Graph, **commit: Any) -> object:
    name = "More" if commit.get("idempotency_key") != "other" else "Else"
    return g.apply_schema(START + f"node {name} {{ n: I64? }}\n", **commit)


START = new_graph().schema
WRITES: dict[str, Write] = {
    "transaction": transact,
    "run": lambda g, **commit: g.run(lambda tx: tx.append("Note", {"text": "run"}), **commit),
    "mutate": lambda g, **commit: g.mutate('insert Note { text: "mutated" }', **commit),
    "run_mutation": lambda g, **commit: g.run_mutation("noted", **commit),
    "store_queries": lambda g, **commit: g.store_queries(
        {"more": QUERY.replace("noted", "more", 1)}, **commit
    ),
    "load": lambda g, **commit: g.load(ROWS, engine="local", **commit),
    "algorithm": lambda g, **commit: g.algorithm("degrees", write_to="age", **commit),
    "apply_schema": widen,
    "merge": lambda g, **commit: g.merge("side", **commit),
    "restore": lambda g, **commit: g.restore("old", **commit),
    "revert": lambda g, **commit: g.revert("main", **commit),
    "optimize": lambda g, **commit: g.optimize(**commit),
    "protect": lambda g, **commit: g.protect("main", **commit),
    "unprotect": lambda g, **commit: g.unprotect("shut", **commit),
    "create_branch": lambda g, **commit: g.create_branch("new", **commit),
    "delete_branch": lambda g, **commit: g.delete_branch("side", **commit),
    "create_tag": lambda g, **commit: g.create_tag("new", **commit),
    "delete_tag": lambda g, **commit: g.delete_tag("old", **commit),
}
CHAINS = {
    "unprotect": "shut",
    "create_branch": "new",
    "delete_branch": "side",
    "create_tag": "new",
    "delete_tag": "old",
}
"""Where the commit is put, if not on main."""
LOOKED_AT = {**CHAINS, "create_branch": "main", "create_tag": "main"}
"""Of which name `if_commit` tells the commit."""


@pytest.fixture
def g() -> Graph:
    g = new_graph()
    with g.transaction() as tx:
        tx.append("Person", [{"name": "ann"}, {"name": "bob"}])
    g.store_queries({"noted": QUERY})
    g.create_tag("old")
    g.create_branch("side")
    g.create_branch("shut")
    g.protect("shut")
    with g.branch("side").transaction() as tx:
        tx.append("Note", {"text": "from side"})
    for number in range(3):
        with g.transaction() as tx:
            tx.append("Note", {"text": f"{number}"})
    return g


def end_of(g: Graph, name: str) -> GraphVersion:
    from omnigraph.telemetry import Ledger

    return over(g.root)._session.head(name, Ledger())


def said(end: GraphVersion) -> tuple[str | None, str | None]:
    """Who made the end of a chain, and why: of a branch that begins, who began it."""
    if end.created is not None and end.version == end.first:
        return end.created.actor, end.created.message
    commit: Commit = end.commit
    return commit.actor, commit.message


def test_every_write_is_in_the_table() -> None:
    import inspect

    takes = {
        name
        for name, method in inspect.getmembers(Graph, inspect.isfunction)
        if "commit" in inspect.signature(method).parameters
    }
    # Embedding and streams have the same tests elsewhere: `tests/embed`, `tests/spark`.
    assert (takes | {"algorithm"}) - {"embed", "stream_writer"} == WRITES.keys()
    assert set(CommitWords.__annotations__) == {
        "options",
        "actor",
        "message",
        "if_commit",
        "idempotency_key",
        "retry_for",
    }


@pytest.mark.parametrize("write", WRITES)
def test_who_and_why_are_in_the_commit(g: Graph, write: str) -> None:
    WRITES[write](g, actor="ann", message="because", retry_for=5)
    assert said(end_of(g, CHAINS.get(write, "main"))) == ("ann", "because")


@pytest.mark.parametrize("write", WRITES)
def test_all_options_can_be_given_as_one_value(g: Graph, write: str) -> None:
    WRITES[write](g, options=CommitOptions(actor="ada", message="why"), message="better")
    assert said(end_of(g, CHAINS.get(write, "main"))) == ("ada", "better")


def test_options_that_are_no_options_are_refused(g: Graph) -> None:
    wrong: Any = {"actor": "ada"}
    with pytest.raises(InvalidArgument, match="is a CommitOptions"):
        g.optimize(options=wrong)


@pytest.mark.parametrize("write", WRITES)
def test_a_write_is_done_only_where_the_commit_is_shown(g: Graph, write: str) -> None:
    name = LOOKED_AT.get(write, "main")
    actual = end_of(g, name).commit.id
    before = end_of(g, name).version
    with pytest.raises(PreconditionFailed) as error:
        WRITES[write](g, if_commit="01AAAAAAAAAAAAAAAAAAAAAAAA")
    assert error.value.details["expected"] == "01AAAAAAAAAAAAAAAAAAAAAAAA"
    assert error.value.details["actual"] == actual
    assert error.value.to_dict()["expected"] == "01AAAAAAAAAAAAAAAAAAAAAAAA"
    assert error.value.applied is False
    assert end_of(g, name).version == before
    WRITES[write](g, if_commit=actual)


@pytest.mark.parametrize("write", WRITES)
@pytest.mark.parametrize("same", [True, False])
def test_a_call_that_repeats_a_key_does_nothing_more(g: Graph, write: str, same: bool) -> None:
    chain = CHAINS.get(write, "main")
    first = WRITES[write](g, idempotency_key="k", actor="ann")
    landed = end_of(g, chain).version
    again = WRITES[write](g if same else over(g.root), idempotency_key="k", actor="ann")
    assert end_of(g, chain).version == landed
    if isinstance(first, Commit):
        assert again == first
    elif hasattr(first, "repeated"):
        assert not first.repeated
        assert again.repeated  # type: ignore[attr-defined]


@pytest.mark.parametrize("write", WRITES)
def test_a_key_belongs_to_one_call(g: Graph, write: str) -> None:
    if write in CHAINS:
        return  # another call is about another name, which has keys of its own
    WRITES[write](g, idempotency_key="k")
    other = "mutate" if write != "mutate" else "transaction"
    if write == "protect":
        other = "optimize"  # all else is refused because of the protection
    with pytest.raises(IdempotencyMismatch):
        WRITES[other](g, idempotency_key="k")


@pytest.mark.parametrize("write", WRITES)
def test_what_is_no_option_is_refused_and_nothing_is_done(g: Graph, write: str) -> None:
    chain = CHAINS.get(write, "main")
    before = [end_of(g, name).version for name in ("main", "side", "shut", "old")]
    for wrong in ({"into": "side"}, {"author": "x"}, {"retry_for": -1}, {"retry_for": "soon"}):
        with pytest.raises(InvalidArgument):
            WRITES[write](g, **wrong)
    assert [end_of(g, name).version for name in ("main", "side", "shut", "old")] == before
    assert chain


def test_a_merge_that_is_only_tried_looks_for_no_key(g: Graph) -> None:
    assert g.merge("side", idempotency_key="k").outcome == "merged"
    with g.branch("side").transaction() as tx:
        tx.append("Note", {"text": "more"})
    assert g.merge("side", idempotency_key="k").repeated
    assert g.merge("side", idempotency_key="k", dry_run=True).outcome == "merged"
    assert not g.merge("side", idempotency_key="l").repeated


def test_a_job_and_a_key_are_two_names_for_one_thing(g: Graph) -> None:
    with pytest.raises(InvalidArgument, match="not both"):
        g.load(ROWS, job="nightly", idempotency_key="k")
