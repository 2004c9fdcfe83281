"""Owns what each role may do. Roles count only where there are no policy files."""

from __future__ import annotations

from omnigraph.errors import InvalidArgument
from omnigraph.model.caller import Caller
from omnigraph.model.catalog import GraphType
from omnigraph.model.permission import (
    Action,
    BranchResource,
    GraphResource,
    QueryResource,
    Request,
    ServerResource,
    TypeResource,
    Verdict,
)
from omnigraph.model.row_rule import EVERY_ROW, NO_ROW, RowRule

ROLES = ("reader", "writer", "agent", "maintainer", "admin")
_READS = frozenset({"read", "query", "export"})
_WRITES = frozenset({"mutate", "load", "queries_edit", "branch_delete", "merge"})
"""To a branch that is open to whoever asks."""
_NAMES = frozenset({"branch_create", "tag"})
_MAINTAINS = _WRITES | _NAMES | {"schema_apply", "restore"}


class Roles:
    """An `Authorizer` that knows nothing but roles. A `reader` reads. A `writer` also writes to
    branches that are not protected, but overwrites nothing. An `agent` writes only to branches
    that it owns. A `maintainer` also changes schemas, merges into protected branches, restores,
    overwrites and maintains. An `admin` may do everything."""

    def decide(self, request: Request) -> Verdict:
        held = [role for role in ROLES if role in request.caller.roles]
        for role in held:
            if _allows(role, request):
                return Verdict(True, (f"role {role}",))
        return Verdict(False)

    def rows(self, caller: Caller, kind: TypeResource, type: GraphType) -> RowRule:
        return EVERY_ROW if caller.roles & {*ROLES} else NO_ROW


def check_role(role: str) -> str:
    if role not in ROLES:
        raise InvalidArgument(f"There is no role {role!r}.", help=f"There are {', '.join(ROLES)}.")
    return role


def _allows(role: str, request: Request) -> bool:
    action, resource = request.action, request.resource
    if role == "admin":
        return True
    match resource:
        case ServerResource():
            return False
        case GraphResource():
            return role == "maintainer" and action == "maintain"
        case TypeResource():
            return action == "see" or role != "reader"
        case QueryResource(mutation=mutation):
            return not mutation or role != "reader"
        case BranchResource():
            return action in _READS or _writes(role, action, resource, request)


def _writes(role: str, action: Action, branch: BranchResource, request: Request) -> bool:
    overwrites = dict(request.context).get("mode") == "overwrite"
    match role:
        case "writer":
            open_to = not branch.protected and (
                action != "branch_create" or _is_own_name(branch, request.caller)
            )
            return open_to and not overwrites and action in _WRITES | _NAMES
        case "agent":
            owned = branch.owner == request.caller.actor
            allowed = action in _WRITES | {"branch_create"}
            return owned and not branch.protected and not overwrites and allowed
        case "maintainer":
            return action in _MAINTAINS
    return False


def _is_own_name(branch: BranchResource, caller: Caller) -> bool:
    """A branch below `agent/<a>` belongs to a, so that nobody else begins it."""
    return branch.owner == caller.actor
