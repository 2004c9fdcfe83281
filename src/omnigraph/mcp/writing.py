"""Owns the tools that write. What names no branch goes to the actor's own one, for a review."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec

from omnigraph.engine.protocols import GraphLike
from omnigraph.mcp.desk import Seat, require_own
from omnigraph.mcp.reading import Params, Text
from omnigraph.mcp.tool import Arguments, Key, Message, OwnBranch, Tool
from omnigraph.wire.rows import merge_row
from omnigraph.wire.values import plain


class Written(msgspec.Struct, frozen=True, kw_only=True):
    """`commit` is null if nothing had to be changed. `repeated`: an earlier call with the same key
    had done it."""

    branch: str
    commit: str | None
    counts: dict[str, Any]
    repeated: bool
    note: str


def written(branch: str, made: bool, commit: str | None, counts: Any, repeated: bool) -> Written:
    begun = f"The branch {branch} was made from main. " if made else ""
    seen = (
        "It is on main."
        if branch == "main"
        else f'It is on {branch}: read it with ref "{branch}". It comes to main by a review.'
    )
    return Written(
        branch=branch,
        commit=commit,
        counts={name: plain(one) for name, one in counts.items()},
        repeated=repeated,
        note=begun + seen,
    )


class MutateArguments(Arguments, frozen=True, kw_only=True):
    query: Text
    message: Message
    name: str | None = None
    params: Params = None
    branch: OwnBranch = None
    idempotency_key: Key = None


def mutate(g: GraphLike, asked: MutateArguments, seat: Seat) -> Written:
    branch, made = place(g, asked.branch, seat)
    done = g.branch(branch).mutate(
        asked.query,
        asked.name,
        asked.params,
        message=asked.message,
        idempotency_key=asked.idempotency_key,
    )
    return written(branch, made, done.commit_id, done.counts, done.repeated)


def place(g: GraphLike, branch: str | None, seat: Seat) -> tuple[str, bool]:
    return require_own(g, seat) if branch is None or branch == seat.own else (branch, False)


class LoadArguments(Arguments, frozen=True, kw_only=True):
    type: Annotated[str, msgspec.Meta(description="a node type or an edge type")]
    rows: Annotated[
        list[dict[str, Any]],
        msgspec.Meta(description="entities as objects; edges have from and to, the ids of ends"),
    ]
    message: Message
    mode: Annotated[
        Literal["append", "merge"],
        msgspec.Meta(description="append refuses ids that are there, merge changes them"),
    ] = "merge"
    branch: OwnBranch = None
    idempotency_key: Key = None


def load(g: GraphLike, asked: LoadArguments, seat: Seat) -> Written:
    branch, made = place(g, asked.branch, seat)
    done = g.branch(branch).load(
        asked.rows,
        type=asked.type,
        mode=asked.mode,
        engine="local",
        message=asked.message,
        idempotency_key=asked.idempotency_key,
    )
    commit = None if done.commit is None else done.commit.id
    return written(branch, made, commit, done.counts, done.repeated)


class BranchArguments(Arguments, frozen=True, kw_only=True):
    name: Annotated[str, msgspec.Meta(description="such as agent/<you>/idea")]
    ref: Annotated[str, msgspec.Meta(description="where it begins")] = "main"


class Begun(msgspec.Struct, frozen=True):
    branch: str
    commit: str


def branch_create(g: GraphLike, asked: BranchArguments, seat: Seat) -> Begun:
    return Begun(asked.name, g.create_branch(asked.name, asked.ref).id)


class MergeArguments(Arguments, frozen=True, kw_only=True):
    source: str
    message: Message
    into: str = "main"
    strategy: Annotated[
        Literal["ours", "theirs"] | None,
        msgspec.Meta(description="who wins where both changed the same; left out: nobody"),
    ] = None


class MergeDone(msgspec.Struct, frozen=True):
    merge: dict[str, Any]


def merge(g: GraphLike, asked: MergeArguments, seat: Seat) -> MergeDone:
    done = g.branch(asked.into).merge(asked.source, strategy=asked.strategy, message=asked.message)
    return MergeDone(plain(merge_row(done, asked.source, asked.into, dry_run=False)))


TOOLS = (
    Tool("mutate", "Insert, update and delete as one commit, such as: insert Person { name: "
         '"Zoe" } insert Knows { from: "Zoe", to: "Ada" } update Person set { age: 37 } where '
         'name = "Ada".',
         MutateArguments, Written, mutate, done="write", needs="mutate"),
    Tool("load", "Bring in many entities of one type as one commit.",
         LoadArguments, Written, load, done="write", needs="load"),
    Tool("branch_create", "Start a branch.",
         BranchArguments, Begun, branch_create, done="write", needs="branch_create"),
)  # fmt: skip
MERGE = Tool(
    "merge",
    "Bring the changes of one branch into another for good.",
    MergeArguments,
    MergeDone,
    merge,
    done="write",
    needs="merge",
    destructive=True,
)
