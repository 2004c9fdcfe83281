"""Owns asking: every read and write of a handle that acts for somebody asks here whether it may be
done. Who decides is behind the protocol `Authorizer`; the engine itself decides nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cached_property
from typing import Protocol, cast

import msgspec

from omnigraph.errors import (
    BranchNotFound,
    Denied,
    GraphNotFound,
    InvalidArgument,
    NotFound,
    TypeNotFound,
)
from omnigraph.model.caller import Caller, check_actor
from omnigraph.model.catalog import Catalog, EdgeType, GraphType
from omnigraph.model.options import CommitOptions
from omnigraph.model.permission import (
    Action,
    AuditEvent,
    BranchAction,
    BranchResource,
    GraphAction,
    GraphResource,
    QueryResource,
    Request,
    Resource,
    ServerResource,
    TypeResource,
    Verdict,
    owner_of,
)
from omnigraph.model.row_rule import EVERY_ROW, NO_ROW, EveryRow, NoRow, RowRule, all_of
from omnigraph.model.version import UNSEEN, Commit, GraphVersion

_READS: tuple[BranchAction, ...] = ("read", "query", "export")
"""Who may do none of these does not know that a branch is there."""
_OF_THE_BRANCH = UNSEEN | {"init", "merge", "restore", "schema"}
"""Kinds of commits that the right to the branch allows, whichever types they touch."""


class Authorizer(Protocol):
    """Who decides."""

    def decide(self, request: Request) -> Verdict: ...

    def rows(self, caller: Caller, kind: TypeResource, type: GraphType) -> RowRule:
        """Which rows of a type the caller may see."""
        ...


class Permissions:
    """What may be done through one handle. Without an authorizer: everything, in the name of
    `actor` if the writer gives no other."""

    def __init__(
        self,
        caller: Caller | None = None,
        authorizer: Authorizer | None = None,
        graph: str = "",
        tell: Callable[[AuditEvent], None] | None = None,
    ) -> None:
        self.caller = caller
        self.graph = graph
        self._authorizer = authorizer
        self._tell = tell
        if caller is not None and authorizer is not None and not _reaches(caller, graph):
            raise GraphNotFound(f"There is no graph {graph!r}.", help="")

    @property
    def restricted(self) -> bool:
        return self._authorizer is not None

    # Asking

    def ask(self, action: Action, resource: Resource, **context: str) -> Verdict:
        if self._authorizer is None or self.caller is None:
            return Verdict(True)
        asked = Request(self.caller, action, resource, tuple(sorted(context.items())))
        return self._authorizer.decide(asked)

    def require(self, action: Action, resource: Resource, **context: str) -> None:
        verdict = self.ask(action, resource, **context)
        if not verdict.allowed:
            raise self.denied(action, resource, verdict)

    def denied(self, action: str, resource: Resource, verdict: Verdict) -> Denied:
        """The error, which the audit hears of."""
        assert self.caller is not None
        self._audit("denied", action, resource, policies=verdict.policies)
        return Denied(
            f"{self.caller.actor!r} may not {action.replace('_', ' ')}: {resource}.",
            action=action,
            resource=str(resource),
            policies=list(verdict.policies),
        )

    def require_server(self, action: Action) -> None:
        self.require(action, ServerResource())

    def require_graph(self, action: GraphAction) -> None:
        self.require(action, GraphResource(self.graph))

    # Branches

    def branch(self, version: GraphVersion) -> BranchResource:
        created = None if version.created is None else version.created.actor
        owner = owner_of(version.branch, created)
        return BranchResource(self.graph, version.branch, version.protected, owner)

    def new_branch(self, name: str) -> BranchResource:
        creator = None if self.caller is None else self.caller.actor
        return BranchResource(self.graph, name, owner=owner_of(name, creator))

    def shows_branch(self, branch: BranchResource) -> bool:
        return any(self.ask(action, branch).allowed for action in _READS)

    def require_branch(self, action: BranchAction, branch: BranchResource, **context: str) -> None:
        """A branch that the caller may not read is not there."""
        if not self.restricted:
            return
        verdict = self.ask(action, branch, **context)
        if verdict.allowed:
            return
        error = self.denied(action, branch, verdict)
        if action != "branch_create" and not self.shows_branch(branch):
            raise hidden_branch(branch.name)
        raise error

    # Types

    def type_of(self, kind: GraphType) -> TypeResource:
        side = "edge" if isinstance(kind, EdgeType) else "node"
        return TypeResource(self.graph, kind.name, side)  # type: ignore[arg-type]

    def require_query(self, name: str, mutation: bool) -> None:
        """To run a stored query. One that the caller may not run is not there."""
        query = QueryResource(self.graph, name, mutation)
        verdict = self.ask("invoke", query)
        if not verdict.allowed:
            self.denied("invoke", query, verdict)
            raise NotFound(f"There is no stored query {name!r}.")

    def shows_query(self, name: str, mutation: bool) -> bool:
        return self.ask("invoke", QueryResource(self.graph, name, mutation)).allowed

    def rows(self, kind: GraphType, name: str | None = None) -> RowRule:
        if self._authorizer is None or self.caller is None:
            return EVERY_ROW
        asked = self.type_of(kind) if name is None else replace(self.type_of(kind), name=name)
        return self._authorizer.rows(self.caller, asked, kind)

    def sight(self, catalog: Catalog, newest: Catalog | None = None) -> Sight:
        """With the `newest` schema a type is also asked for under the name that it has there."""
        later = {} if newest is None else {kind.id: kind.name for kind in newest.types}
        rules = {}
        for kind in catalog.types:
            rule, name = self.rows(kind), later.get(kind.id, kind.name)
            if name != kind.name:
                rule = all_of((rule, self.rows(kind, name)))
            rules[kind.table_key] = rule
        return Sight(catalog, rules)

    def require_whole(self, catalog: Catalog, action: BranchAction, branch: BranchResource) -> None:
        """What is done to all rows at once is not for who may not see all of them."""
        if self.restricted and not self.sight(catalog).whole:
            raise self.denied(action, branch, Verdict(False, ("rows or types are hidden",)))

    def require_write(self, catalog: Catalog, kind: GraphType, *, deletes: bool = False) -> None:
        """A type that is hidden is not there; one whose rows are hidden in part is not written.
        A node takes its edges with it."""
        if not self.restricted:
            return
        sight = self.sight(catalog)
        if sight.visible.by_key.get(kind.table_key) is None:
            raise TypeNotFound(f"There is no type {kind.name!r}.", help="")
        written = [kind]
        if deletes and not isinstance(kind, EdgeType):
            written += [e for e in catalog.edges if kind.name in (e.source, e.target)]
        for one in written:
            resource = self.type_of(one)
            verdict = self.ask("write", resource)
            if verdict.allowed and not sight.sees_all(one):
                verdict = Verdict(False, ("some rows are hidden",))
            if not verdict.allowed:
                hidden = one.table_key not in sight.visible.by_key
                told = replace(resource, name=kind.name) if hidden else resource
                raise self.denied("write", told, verdict)

    def require_tables(self, catalog: Catalog, kind: str, tables: frozenset[str]) -> None:
        """The last door before a commit: each type that it writes."""
        if not self.restricted or kind in _OF_THE_BRANCH:
            return
        for key in sorted(tables):
            if (held := catalog.by_key.get(key)) is not None:
                self.require_write(catalog, held)

    # Writing

    def sign(self, options: CommitOptions) -> CommitOptions:
        """The actor comes from the credential alone. Another's keys are not known to anybody."""
        if self.caller is None:
            return options
        actor = self.caller.actor
        if not self.restricted:
            return options if options.actor is not None else replace(options, actor=actor)
        if options.actor not in (None, actor):
            raise Denied(
                f"{actor!r} may not write as {options.actor!r}.",
                help="Leave the actor out: it comes from the credential.",
                action="act_as",
                resource=f"actor {options.actor!r}",
                policies=[],
            )
        key = options.idempotency_key
        own = None if key is None else f"{actor}/{key}"
        return replace(options, actor=actor, idempotency_key=own)

    def wrote(self, version: GraphVersion, kind: str) -> None:
        if self.caller is not None:
            self._audit("write", kind, self.branch(version), commit=version.commit.id)

    def _audit(
        self,
        event: str,
        action: str,
        resource: Resource,
        *,
        commit: str | None = None,
        policies: tuple[str, ...] = (),
    ) -> None:
        if self._tell is None or self.caller is None:
            return
        self._tell(
            AuditEvent(
                event,  # type: ignore[arg-type]
                self.caller.actor,
                self.caller.token,
                self.graph,
                action,
                str(resource),
                commit,
                policies,
            )
        )


class Sight:
    """What somebody may see of the types of one schema."""

    def __init__(self, catalog: Catalog, rules: dict[str, RowRule]) -> None:
        self.catalog = catalog
        self.rules = rules

    @cached_property
    def visible(self) -> Catalog:
        """The schema without the types that are hidden, and the edges to and from them."""
        shown = {key for key, rule in self.rules.items() if not isinstance(rule, NoRow)}
        nodes = tuple(node for node in self.catalog.nodes if node.table_key in shown)
        names = {node.name for node in nodes}
        edges = tuple(
            edge
            for edge in self.catalog.edges
            if edge.table_key in shown and edge.source in names and edge.target in names
        )
        if len(nodes) + len(edges) == len(self.catalog.types):
            return self.catalog
        used = {name for node in nodes for name in node.implements}
        interfaces = tuple(one for one in self.catalog.interfaces if one.name in used)
        return msgspec.structs.replace(
            self.catalog, nodes=nodes, edges=edges, interfaces=interfaces
        )

    @cached_property
    def whole(self) -> bool:
        return all(isinstance(rule, EveryRow) for rule in self.rules.values())

    @cached_property
    def mark(self) -> frozenset[tuple[str, RowRule]] | None:
        """The same for all who see the same."""
        return None if self.whole else frozenset(self.rules.items())

    def rule(self, kind: GraphType) -> RowRule:
        return self.rules.get(kind.table_key, NO_ROW)

    def sees_all(self, kind: GraphType) -> bool:
        """Whether no row of a type is hidden: an edge is visible if both of its ends are."""
        if not isinstance(self.rule(kind), EveryRow):
            return False
        if not isinstance(kind, EdgeType):
            return True
        ends = (self.rules.get(f"node:{name}", NO_ROW) for name in (kind.source, kind.target))
        return all(isinstance(rule, EveryRow) for rule in ends)

    def shown(self, commit: Commit) -> Commit:
        """A commit without the counts of what is hidden."""
        if self.whole or not commit.statistics:
            return commit
        kinds = self.catalog.by_key
        kept = {
            key: numbers
            for key, numbers in commit.statistics.items()
            if key in kinds and self.sees_all(kinds[key])
        }
        return msgspec.structs.replace(commit, statistics=kept)


UNRESTRICTED = Permissions()


def in_the_name_of(actor: str) -> Permissions:
    """Everything is allowed; commits carry this actor if their writer gives no other."""
    return Permissions(Caller(check_actor(actor)))


def hidden_branch(name: str) -> BranchNotFound:
    return BranchNotFound(f"There is no branch {name!r}.", help="")


def graph_name(root: str) -> str:
    """What a graph is called where nothing else names it: the end of its root."""
    end = root.rstrip("/").rsplit("/", 1)[-1]
    return end.removesuffix(".graph").lower()


def require_caller(caller: object) -> Caller:
    if not isinstance(caller, Caller):
        raise InvalidArgument(f"A graph acts for a Caller, not for {type(caller).__name__}.")
    return caller


def require_authorizer(policy: object) -> Authorizer | None:
    """A protocol has no class to look for, so the calls that it needs are looked for."""
    if policy is None or all(callable(getattr(policy, name, None)) for name in ("decide", "rows")):
        return cast("Authorizer | None", policy)
    raise InvalidArgument(f"policy is an Authorizer or None, not {type(policy).__name__}.")


def _reaches(caller: Caller, graph: str) -> bool:
    return caller.graphs is None or graph in caller.graphs
