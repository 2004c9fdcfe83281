"""Owns cases: questions to policies with the answers that they should give."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

import msgspec

from omnigraph.errors import InvalidArgument
from omnigraph.model.caller import Caller
from omnigraph.model.catalog import EdgeType
from omnigraph.model.permission import (
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
    Verdict,
    owner_of,
)
from omnigraph.model.row_rule import EveryRow, NoRow
from omnigraph.policy.cedar import CedarPolicies
from omnigraph.toml import parse_toml

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph

_ACTIONS: dict[type, tuple[str, ...]] = {
    BranchResource: get_args(BranchAction),
    GraphResource: get_args(GraphAction),
    TypeResource: get_args(TypeAction),
    QueryResource: get_args(QueryAction),
    ServerResource: get_args(ServerAction),
}


class PolicyCase(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Who asks, what for, and what the answer should be."""

    actor: str
    action: str
    resource: str = "branch:main"
    groups: tuple[str, ...] = ()
    protected: bool | None = None
    owner: str | None = None
    mutation: bool = False
    mode: str | None = None
    source: str | None = None
    allowed: bool | None = None
    shows: tuple[str, ...] | None = None

    @property
    def told(self) -> str:
        return f"{self.actor} {self.action} {self.resource}"

    @property
    def caller(self) -> Caller:
        return Caller(self.actor, frozenset(self.groups))


class CaseOutcome(msgspec.Struct, frozen=True):
    """A case, and what is wrong with the answer."""

    told: str
    problem: str = ""


class _CaseFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    case: tuple[PolicyCase, ...] = ()


def read_cases(text: str, name: str) -> tuple[PolicyCase, ...]:
    try:
        held = msgspec.convert(parse_toml(text, name), _CaseFile)
    except msgspec.ValidationError as error:
        raise InvalidArgument(f"{name} is no file of cases: {error}.") from None
    if not held.case:
        raise InvalidArgument(f"{name} has no [[case]].")
    return held.case


def try_case(case: PolicyCase, policies: CedarPolicies, graph: str, g: Graph) -> CaseOutcome:
    verdict, _ = explain_case(case, policies, graph, g)
    if case.allowed is not None and verdict.allowed != case.allowed:
        by = ", ".join(verdict.policies) or "no policy"
        said = "allowed" if verdict.allowed else "denied"
        return CaseOutcome(case.told, f"{said}, by {by}")
    if case.shows is not None:
        seen = _seen(case, policies, graph, g)
        if seen != sorted(case.shows):
            return CaseOutcome(case.told, f"shows {', '.join(seen) or 'nothing'}")
    return CaseOutcome(case.told)


def explain_case(
    case: PolicyCase, policies: CedarPolicies, graph: str, g: Graph
) -> tuple[Verdict, str | None]:
    """What is decided, and of `see` on a type which rows are seen."""
    resource = _resource(case, graph, g)
    if case.action not in _ACTIONS[type(resource)]:
        known = ", ".join(_ACTIONS[type(resource)])
        raise InvalidArgument(
            f"{case.action!r} is not asked of {case.resource}.", help=f"There are {known}."
        )
    context = {"mode": case.mode, "source": case.source}
    if case.action == "load" and case.mode is None:
        context["mode"] = "append"
    given = tuple((name, value) for name, value in context.items() if value is not None)
    action: Any = case.action
    if isinstance(resource, TypeResource) and action == "see":
        rule = policies.rows(case.caller, resource, g.snapshot().type(resource.name))
        verdict = policies.decide(Request(case.caller, action, resource))
        policies_of = verdict.policies
        rows = {EveryRow: "all", NoRow: "none"}.get(type(rule), "some")
        return Verdict(not isinstance(rule, NoRow), policies_of), rows
    return policies.decide(Request(case.caller, action, resource, given)), None


def _seen(case: PolicyCase, policies: CedarPolicies, graph: str, g: Graph) -> list[str]:
    """The ids that the policies show: other rights are not asked for here."""

    class OnlyRows:
        def decide(self, request: Request) -> Verdict:
            return Verdict(True)

        rows = staticmethod(policies.rows)

    name = case.resource.partition(":")[2]
    acting = g.acting(case.caller, OnlyRows(), name=graph)
    if acting.snapshot().catalog.find(name) is None:
        return []
    return sorted(acting.scan(name, columns=["id"]).read_all()["id"].to_pylist())


def _resource(case: PolicyCase, graph: str, g: Graph) -> Resource:
    kind, _, name = case.resource.partition(":")
    match kind, name:
        case "server", "":
            return ServerResource()
        case "graph", "":
            return GraphResource(graph)
        case "branch", str(branch) if branch:
            protected = case.protected
            if protected is None:
                protected = branch in g.protected_branches()
            return BranchResource(graph, branch, protected, owner_of(branch, case.owner))
        case "type", str(held) if held:
            found = g.snapshot().type(held)
            side: Any = "edge" if isinstance(found, EdgeType) else "node"
            return TypeResource(graph, found.name, side)
        case "query", str(query) if query:
            return QueryResource(graph, query, case.mutation)
    raise InvalidArgument(
        f"{case.resource!r} is no resource.",
        help="There are graph, server, branch:NAME, type:NAME and query:NAME.",
    )
