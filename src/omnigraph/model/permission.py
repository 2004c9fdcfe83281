"""Owns what can be asked of whoever decides: actions, resources, requests, decisions, and what is
told of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from omnigraph.model.caller import Caller

BranchAction = Literal[
    "read",
    "query",
    "export",
    "mutate",
    "load",
    "schema_apply",
    "queries_edit",
    "branch_create",
    "branch_delete",
    "merge",
    "tag",
    "restore",
    "protect",
]
GraphAction = Literal["maintain", "cleanup"]
AskedAction = Literal[BranchAction, GraphAction]
"""What a caller can ask about beforehand."""
TypeAction = Literal["see", "write"]
QueryAction = Literal["invoke"]
ServerAction = Literal["graph_create", "graph_delete", "admin"]
Action: TypeAlias = BranchAction | GraphAction | TypeAction | QueryAction | ServerAction


@dataclass(frozen=True)
class ServerResource:
    """The server itself."""

    def __str__(self) -> str:
        return "server"


@dataclass(frozen=True)
class GraphResource:
    graph: str

    def __str__(self) -> str:
        return f"graph {self.graph!r}"


@dataclass(frozen=True)
class BranchResource:
    """`owner` is who created the branch; `agent/<a>` and what is below it is always a's."""

    graph: str
    name: str
    protected: bool = False
    owner: str | None = None

    def __str__(self) -> str:
        return f"branch {self.name!r}"


@dataclass(frozen=True)
class TypeResource:
    graph: str
    name: str
    kind: Literal["node", "edge"]

    def __str__(self) -> str:
        return f"type {self.name!r}"


@dataclass(frozen=True)
class QueryResource:
    """A stored query."""

    graph: str
    name: str
    mutation: bool

    def __str__(self) -> str:
        return f"query {self.name!r}"


Resource: TypeAlias = ServerResource | GraphResource | BranchResource | TypeResource | QueryResource


@dataclass(frozen=True)
class Request:
    """Whether somebody may do something. `context` has the mode of a load and the source of a
    merge."""

    caller: Caller
    action: Action
    resource: Resource
    context: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class Verdict:
    """`policies` names those that decided; nobody has to have forbidden what nobody permits."""

    allowed: bool
    policies: tuple[str, ...] = ()


@dataclass(frozen=True)
class AuditEvent:
    """A commit that was made, or something that was denied."""

    event: Literal["write", "denied"]
    actor: str
    token: str | None
    graph: str
    action: str
    resource: str
    commit: str | None = None
    policies: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        held = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return held | {"policies": list(self.policies)}


def owner_of(branch: str, creator: str | None) -> str | None:
    """Whose branch it is, whoever created it."""
    first, *rest = branch.split("/")
    return rest[0] if first == "agent" and rest else creator
