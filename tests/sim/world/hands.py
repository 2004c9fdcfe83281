"""Owns how a step gets hold of what it acts on: the graph, a branch of it, one held for long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

from omnigraph.engine.branch import Branch
from omnigraph.engine.graph import Graph
from tests.sim.world.model import Refused, State, Unsure

if TYPE_CHECKING:
    from tests.sim.world.world import World

BRANCHES = ("main", "x", "y")
TAGS = ("t", "u")


READS = {
    *("algorithm", "blob", "count", "diff", "entity", "explain", "export", "history", "indexes"),
    *("blame", "check", "describe", "schema_graph"),
    *("log", "manifest", "plan_schema", "prepare", "queries", "query", "run_query", "scan"),
    *("search", "types"),
}
"""What a snapshot can do too."""
BY_NAME = {"protect": "protect", "unprotect": "unprotect", "delete": "delete_branch"}
"""What the graph does to a branch."""


@dataclass
class Hand:
    """Calls a method on one branch, whichever object has it: the graph for main, a handle, for
    reads a snapshot."""

    graph: Graph
    branch: str
    held: Branch | None

    def call(self, method: str, *given: Any, **named: Any) -> Any:
        if method in BY_NAME:
            branch = self.branch if self.held is None else self.held
            return getattr(self.graph, BY_NAME[method])(branch, *given, **named)
        at: Any = self.held
        if at is None and method in READS and "write_to" not in named:
            at = self.graph.at(self.branch)
        elif at is None:
            at = self.graph if self.branch == "main" else self.graph.branch(self.branch)
        return getattr(at, method)(*given, **named)


@dataclass
class HeldBranch:
    """A branch handle of an earlier step."""

    branch: Branch
    incarnation: int


def take(world: World, g: Graph, args: Mapping[str, Any]) -> Hand:
    branch = args["branch"]
    match args.get("via", "graph"):
        case "branch":
            return Hand(g, branch, g.branch(branch))
        case "held":
            return Hand(g, branch, world.held[branch].branch)
    return Hand(g, branch, None)


def is_stale(world: World, branch: str) -> bool:
    """Whether the handle that is held is of an earlier branch of this name."""
    held, line = world.held.get(branch), world.past.lines.get(branch)
    return held is not None and line is not None and held.incarnation != line.incarnation


def draw_place(world: World, chance: Random, *, writing: bool = True) -> dict[str, Any]:
    """A branch, mostly one that is there, and how it is reached."""
    there = [one for one in BRANCHES if one in world.past.lines]
    stale = [one for one in there if is_stale(world, one)]
    if stale and chance.random() < 0.3:
        return {"branch": chance.choice(stale), "via": "held"}
    branch = chance.choice(there if chance.random() < 0.97 else BRANCHES)
    via = chance.choices(("graph", "branch", "held"), (6, 2, 2))[0]
    if via == "held" and branch not in world.held:
        via = "branch"
    return {"branch": branch, "via": via}


def foresee_place(world: World, args: Mapping[str, Any], *, writing: bool = True) -> None:
    """Whether the branch can be reached, and written to."""
    branch = args["branch"]
    line = world.past.lines.get(branch)
    if args.get("via") == "held":
        if branch not in world.held:
            raise Unsure("no handle is held")
        if line is None or line.incarnation != world.held[branch].incarnation:
            raise Refused("the branch is another", "branch_moved")
    if line is None and branch in world.past.tags and not writing:
        raise Unsure("a tag, where that is as good")
    if line is None:
        raise Refused("there is no such branch", "branch_not_found", "ref_not_found")
    if writing and line.protected:
        raise Refused("the branch is protected", "protected_branch")


def state_of(world: World, branch: str) -> State:
    return world.past.head(branch).state
