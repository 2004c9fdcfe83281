"""Who may do what: every role and every action in one table, and the same by policies."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest

import omnigraph
from omnigraph import Graph
from omnigraph.errors import (
    BranchNotFound,
    Denied,
    GraphNotFound,
    InvalidArgument,
    InvalidPolicy,
    OmnigraphError,
    Unauthenticated,
)
from omnigraph.model.caller import Caller
from omnigraph.model.permission import (
    Action,
    AuditEvent,
    BranchAction,
    BranchResource,
    GraphAction,
    GraphResource,
    QueryAction,
    QueryResource,
    Request,
    Resource,
    ServerAction,
    ServerResource,
    TypeAction,
    TypeResource,
)
from omnigraph.policy.audit import AuditLog
from omnigraph.policy.cedar import CedarPolicies
from omnigraph.policy.roles import ROLES, Roles

OPEN = BranchResource("g", "open")
OWN = BranchResource("g", "agent/ada/x", owner="ada")
SHUT = BranchResource("g", "main", protected=True)
OTHERS = BranchResource("g", "agent/bob", owner="bob")
PERSON = TypeResource("g", "Person", "node")
READING = QueryResource("g", "q", mutation=False)
WRITING = QueryResource("g", "w", mutation=True)
TABLE = """
                     reader writer agent maintainer admin
read open              x      x     x        x       x
query open             x      x     x        x       x
export shut            x      x     x        x       x
mutate open            .      x     .        x       x
mutate own             .      x     x        x       x
mutate shut            .      .     .        x       x
load open              .      x     .        x       x
load own               .      x     x        x       x
load:overwrite open    .      .     .        x       x
load:overwrite own     .      .     .        x       x
schema_apply open      .      .     .        x       x
schema_apply own       .      .     .        x       x
queries_edit open      .      x     .        x       x
queries_edit own       .      x     x        x       x
branch_create own      .      x     x        x       x
branch_create others   .      .     .        x       x
branch_delete open     .      x     .        x       x
branch_delete own      .      x     x        x       x
branch_delete shut     .      .     .        x       x
merge open             .      x     .        x       x
merge own              .      x     x        x       x
merge shut             .      .     .        x       x
tag open               .      x     .        x       x
tag own                .      x     .        x       x
restore open           .      .     .        x       x
protect open           .      .     .        .       x
maintain graph         .      .     .        x       x
cleanup graph          .      .     .        .       x
see person             x      x     x        x       x
write person           .      x     x        x       x
invoke reading         x      x     x        x       x
invoke writing         .      x     x        x       x
graph_create server    .      .     .        .       x
graph_delete server    .      .     .        .       x
admin server           .      .     .        .       x
"""
PLACES: dict[str, Resource] = {
    "open": OPEN,
    "own": OWN,
    "shut": SHUT,
    "others": OTHERS,
    "graph": GraphResource("g"),
    "person": PERSON,
    "reading": READING,
    "writing": WRITING,
    "server": ServerResource(),
}
LINES = [line.split() for line in TABLE.strip().splitlines()]


@pytest.mark.parametrize("line", LINES[1:], ids=lambda line: " ".join(line[:2]))
def test_a_role_may_do_what_the_table_says(line: list[str]) -> None:
    assert LINES[0] == list(ROLES)
    told, place, *marks = line
    action, _, mode = told.partition(":")
    named: Any = action
    for role, mark in zip(ROLES, marks, strict=True):
        caller = Caller("ada", roles=frozenset({role}))
        context = (("mode", mode),) if mode else ()
        verdict = Roles().decide(Request(caller, named, PLACES[place], context))
        assert verdict.allowed == (mark == "x"), role
    for nothing in (Caller("ada"), Caller("ada", groups=frozenset(ROLES))):
        assert not Roles().decide(Request(nothing, named, PLACES[place])).allowed


def test_the_table_has_every_action() -> None:
    known: set[Any] = set()
    for kind in (BranchAction, GraphAction, TypeAction, QueryAction, ServerAction):
        known |= set(get_args(kind))
    assert {line[0].partition(":")[0] for line in LINES[1:]} == known


# The same through a graph

SCHEMA = "node Person { name: String @key age: I32? }\nnode Team { name: String @key }"


@pytest.fixture
def g(tmp_path: Path) -> Any:
    with omnigraph.init(tmp_path / "papers.graph", schema=SCHEMA) as graph:
        graph.mutate('insert Person { name: "Ada", age: 40 } insert Person { name: "Bob" }')
        graph.create_branch("secret")
        yield graph


def cedar(g: Graph, *texts: str, **groups: list[str]) -> CedarPolicies:
    given = {f"{number}.cedar": text for number, text in enumerate(texts)}
    return CedarPolicies(given, groups=groups, graphs={"papers": g.snapshot().catalog})


def may(call: Callable[[], object]) -> bool:
    try:
        call()
    except (Denied, BranchNotFound):
        return False
    return True


def test_nothing_is_allowed_that_no_policy_permits(g: Graph) -> None:
    eve = g.acting(Caller("eve", roles=frozenset({"admin"})), cedar(g, "// nothing"))
    assert not may(lambda: eve.count("Person"))
    assert eve.branches() == []


def test_what_is_forbidden_is_so_whoever_permits_it(g: Graph) -> None:
    policy = cedar(
        g,
        '@id("all") permit(principal, action, resource);',
        '@id("not-main") forbid(principal in Group::"bots", action in '
        '[Action::"mutate", Action::"load"], resource) when { resource.name == "main" };',
        bots=["bot"],
    )
    assert g.acting(Caller("ada"), policy).mutate('insert Team { name: "A" }').nodes == 1
    with pytest.raises(Denied) as error:
        g.acting(Caller("bot"), policy).mutate('insert Team { name: "B" }')
    assert (error.value.action, error.value.policies) == ("mutate", ("not-main",))
    own = g.acting(Caller("bot"), policy)
    own.create_branch("agent/bot")
    assert own.branch("agent/bot").mutate('insert Team { name: "B" }').nodes == 1


def test_a_branch_that_may_not_be_read_is_not_there(g: Graph) -> None:
    policy = cedar(
        g,
        "permit(principal, action, resource);"
        'forbid(principal, action, resource == Branch::"papers/secret");',
    )
    eve = g.acting(Caller("eve"), policy)
    assert eve.branches() == ["main"]
    for call in (
        lambda: eve.at("secret"),
        lambda: eve.branch("secret"),
        lambda: eve.diff("secret"),
        lambda: eve.create_branch("x", "secret"),
        lambda: eve.merge("secret"),
        lambda: eve.delete_branch("secret"),
        lambda: eve.restore("secret"),
    ):
        hidden = pytest.raises(BranchNotFound)
        with hidden as told:
            call()
        assert str(told.value) == "There is no branch 'secret'."
    with pytest.raises(BranchNotFound) as absent:
        eve.at("secrex")
    assert str(absent.value) == "There is no branch 'secrex'."


def test_owners_and_protection_are_known_to_policies(g: Graph) -> None:
    policy = cedar(
        g,
        'permit(principal, action in [Action::"read", Action::"query", Action::"see", '
        'Action::"write", Action::"branch_create"], resource);',
        'permit(principal, action in [Action::"mutate", Action::"branch_delete"], resource) '
        "when { resource has owner && resource.owner == principal && !resource.protected };",
        'permit(principal, action == Action::"merge", resource) '
        'when { resource.protected && context.source like "agent/*" };',
        'permit(principal, action == Action::"load", resource) when { context.mode == "merge" };',
    )
    ada, bob = (g.acting(Caller(name), policy) for name in ("ada", "bob"))
    ada.create_branch("mine")
    assert may(lambda: ada.branch("mine").mutate('insert Team { name: "A" }'))
    assert not may(lambda: bob.branch("mine").mutate('insert Team { name: "B" }'))
    bob.create_branch("agent/ada/gift")
    assert may(lambda: ada.branch("agent/ada/gift").mutate('insert Team { name: "C" }'))
    assert not may(lambda: ada.merge("agent/ada/gift"))
    g.protect("main")
    assert may(lambda: ada.merge("agent/ada/gift"))
    assert not may(lambda: ada.merge("mine"))
    rows = [{"name": "Z"}]
    bobs = bob.branch("mine")
    assert may(lambda: bobs.load(rows, type="Team", mode="merge"))
    assert not may(lambda: bobs.load(rows, type="Team", mode="overwrite"))


def test_types_are_asked_and_hidden_ones_leave_the_schema(g: Graph) -> None:
    policy = cedar(
        g,
        "permit(principal, action, resource) unless { resource is Type };"
        'permit(principal, action == Action::"see", resource in Type::"papers/Team");',
    )
    eve = g.acting(Caller("eve"), policy)
    assert eve.types() == ["Person", "Team"]  # its rows are all permitted by the first
    hidden = cedar(
        g,
        "permit(principal, action, resource);",
        'forbid(principal, action == Action::"see", resource in Type::"papers/Person");'
        'forbid(principal, action == Action::"write", resource == Type::"papers/Team");',
    )
    eve = g.acting(Caller("eve"), hidden)
    assert eve.types() == ["Team"]
    assert "Person" not in eve.schema
    with pytest.raises(OmnigraphError) as unknown:
        eve.query("match { $p: Person } return { $p.name }")
    assert unknown.value.code == "invalid_query"
    with pytest.raises(Denied):
        eve.mutate('insert Team { name: "A" }')
    with pytest.raises(Denied):
        eve.load([{"name": "A"}], type="Team")


def test_a_caller_of_other_graphs_finds_none(g: Graph) -> None:
    with pytest.raises(GraphNotFound):
        g.acting(Caller("ada", roles=frozenset({"admin"}), graphs=frozenset({"other"})), Roles())


def test_opening_gives_the_same_decisions(g: Graph) -> None:
    with pytest.raises(Unauthenticated):
        omnigraph.open(g.root, policy=Roles())
    reader = Caller("ada", roles=frozenset({"reader"}))
    with omnigraph.open(g.root, actor=reader, policy=Roles()) as held:
        assert held.count("Person") == 2
        with pytest.raises(Denied):
            held.mutate("delete Person where true")
        with pytest.raises(InvalidArgument):
            held.acting(Caller("eve"))
    with omnigraph.open(g.root, actor="ada") as plain:
        assert plain.mutate('insert Team { name: "A" }').commit.actor == "ada"  # type: ignore[union-attr]


def test_the_actor_of_a_commit_is_the_caller_and_nobody_else(g: Graph) -> None:
    ada = g.acting(Caller("ada", roles=frozenset({"writer"})), Roles())
    with pytest.raises(Denied, match="'bob'"):
        ada.mutate('insert Team { name: "A" }', actor="bob")
    assert ada.mutate('insert Team { name: "A" }', actor="ada", idempotency_key="k").commit
    assert ada.mutate('insert Team { name: "A" }', idempotency_key="k").repeated
    bob = g.acting(Caller("bob", roles=frozenset({"writer"})), Roles())
    assert not bob.mutate('insert Team { name: "B" }', idempotency_key="k").repeated


def test_each_write_and_each_denial_is_a_line_of_the_audit(g: Graph, tmp_path: Path) -> None:
    log = AuditLog(tmp_path / "audit.jsonl")
    caller = Caller("ada", roles=frozenset({"writer"}), token="t0")
    ada = g.acting(caller, Roles(), audit=log)
    ada.count("Person")
    done = ada.mutate('insert Team { name: "A" }')
    assert not may(lambda: ada.restore("main~1"))
    ada.create_branch("x")
    log.close()
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    told = [(one["event"], one["action"], one["resource"], one["commit"]) for one in lines]
    assert done.commit is not None
    assert told == [
        ("write", "mutate", "branch 'main'", done.commit.id),
        ("denied", "restore", "branch 'main'", None),
        ("write", "branch_create", "branch 'x'", g.branch("x").commit.id),
    ]
    assert {(one["actor"], one["token"], one["graph"]) for one in lines} == {
        ("ada", "t0", "papers")
    }
    assert (tmp_path / "audit.jsonl").stat().st_mode & 0o077 == 0


def test_an_actor_with_odd_letters_is_the_one_that_is_meant(g: Graph) -> None:
    for name in ('o"k', "back\\slash", "é ü", "{x}", "a::b"):
        text = 'permit(principal, action, resource) when { principal.name == "NAME" };'
        plain = name.replace("\\", "\\\\").replace('"', '\\"')
        policy = cedar(g, text.replace("NAME", plain))
        assert g.acting(Caller(name), policy).count("Person") == 2
        assert not may(lambda: g.acting(Caller("other"), policy).count("Person"))  # noqa: B023


WRONG = {
    "no policy": "permit(principal, action",
    "an unknown action": 'permit(principal, action == Action::"fly", resource);',
    "an unknown type": "permit(principal, action, resource is papers::Persom);",
    "an unknown attribute": "permit(principal, action, resource) when { resource.king };",
    "a template": "permit(principal == ?principal, action, resource);",
}


@pytest.mark.parametrize("name", WRONG)
def test_policies_that_are_wrong_are_refused(g: Graph, name: str) -> None:
    with pytest.raises(InvalidPolicy):
        cedar(g, WRONG[name])


def test_decisions_are_kept_by_all_that_they_rest_on(g: Graph) -> None:
    policy = cedar(g, 'permit(principal in Group::"staff", action == Action::"read", resource);')
    asked: list[tuple[Action, frozenset[str], bool]] = [
        ("read", frozenset({"staff"}), True),
        ("read", frozenset(), False),
        ("query", frozenset({"staff"}), False),
        ("read", frozenset({"staff"}), True),
    ]
    for action, groups, allowed in asked:
        request = Request(Caller("ada", groups), action, OPEN)
        assert policy.decide(request).allowed is allowed
        assert policy.decide(request) is policy.decide(request)


def test_an_event_says_what_it_is() -> None:
    event = AuditEvent("denied", "ada", None, "g", "read", "branch 'x'", None, ("p",))
    assert event.to_dict()["policies"] == ["p"]
