"""No public method of a handle that acts for somebody reads or writes without asking."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import omnigraph
from omnigraph import Branch, Graph, Snapshot, Transaction
from omnigraph.errors import Denied, EngineMissing, NotFound, QueryNotFound
from omnigraph.model.permission import Request, Verdict
from tests.policy.handles import ASKS_NOTHING, EVE, QUERY, SCHEMA, STORED, TABLES, Switch, public


@pytest.fixture(scope="module")
def plain() -> Iterator[Graph]:
    with omnigraph.init("memory://every-method", schema=SCHEMA) as g:
        with g.transaction() as tx:
            tx.append("Person", [{"name": "Ada", "note": "x", "photo": b"1"}, {"name": "Bob"}])
            tx.append("Team", {"name": "Blue"})
            tx.append("Knows", {"src": "Ada", "dst": "Bob"})
        g.store_queries(STORED)
        for name in ("other", "doomed"):
            g.create_branch(name)
        g.create_tag("t1")
        yield g


@pytest.mark.parametrize("kind", TABLES, ids=lambda kind: kind.__name__)
def test_every_public_method_is_in_the_table(kind: type) -> None:
    told = TABLES[kind].keys() | ASKS_NOTHING
    assert public(kind) - told == set()
    assert TABLES[kind].keys() - public(kind) == set()


def handle(kind: type, g: Graph) -> Any:
    if kind is Graph:
        return g
    if kind is Snapshot:
        return g.at("main")
    return g.branch("main") if kind is Branch else g.transaction()


CASES = [(kind, name) for kind, table in TABLES.items() for name in table]


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda one: getattr(one, "__name__", one))
def test_who_may_do_nothing_gets_nothing(plain: Graph, kind: type, name: str) -> None:
    switch = Switch()
    held = handle(kind, plain.acting(EVE, switch))
    before, switch.allows, switch.asked = plain.log().__next__().id, False, []
    try:
        found = TABLES[kind][name](held)
    except (Denied, NotFound):
        pass
    else:
        assert found in ([], {}), f"{name} gave {found!r}"
    assert switch.asked, f"{name} asked nothing"
    assert next(plain.log()).id == before


@pytest.mark.parametrize(("kind", "name"), CASES, ids=lambda one: getattr(one, "__name__", one))
def test_who_may_do_everything_does_it(kind: type, name: str) -> None:
    """So that the refusals above are refusals, and no mistakes of the calls."""
    with omnigraph.init(f"memory://every-{kind.__name__}-{name}", schema=SCHEMA) as g:
        with g.transaction() as tx:
            tx.append("Person", [{"name": "Ada", "note": "x", "photo": b"1"}])
        g.store_queries(STORED)
        for branch in ("other", "doomed"):
            g.create_branch(branch)
        g.create_tag("t1")
        switch = Switch()
        try:
            TABLES[kind][name](handle(kind, g.acting(EVE, switch)))
        except EngineMissing:
            assert name in ("spark", "stream_writer")
        assert switch.asked


def test_a_transaction_is_a_write_of_its_branch(plain: Graph) -> None:
    switch = Switch(allows=False)
    with pytest.raises(NotFound):
        plain.acting(EVE, switch).transaction()
    assert isinstance(plain.acting(EVE, Switch()).transaction(), Transaction)


def test_a_stored_query_that_may_not_be_run_is_not_there(plain: Graph) -> None:
    """Who may invoke alone needs no right to ask freely."""

    class Invokes(Switch):
        def decide(self, request: Request) -> Verdict:
            allowed = request.action in ("read", "see") or (
                request.action == "invoke" and str(request.resource) == "query 'names'"
            )
            return Verdict(allowed)

    g = plain.acting(EVE, Invokes())
    assert list(g.queries()) == ["names"]
    assert g.run_query("names").to_pylist() != []
    with pytest.raises(Denied):
        g.query("match { $p: Person } return { $p.name }")
    plain.store_queries({"other": QUERY})
    with pytest.raises(QueryNotFound):
        g.run_query("other")
    with pytest.raises(Denied):
        g.run_mutation("zoe")
    with pytest.raises(Denied):
        g.store_queries({"x": QUERY})
    assert [change.name for change in plain.diff("main~1").queries] == ["other"]
    assert list(g.diff("main~1").queries) == []
    plain.store_queries({}, remove=["other"])
