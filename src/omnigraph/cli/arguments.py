"""Owns the parameters that many commands share: their names and what help says about them."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from omnigraph.cli.invocation import Invocation

Cli = Annotated[Invocation, Parameter(parse=False)]
Actor = Annotated[
    str | None,
    Parameter(name="--as", help="who does it; else OMNIGRAPH_ACTOR, or actor in omnigraph.toml"),
]
Message = Annotated[
    str | None, Parameter(name=["--message", "-m"], help="what the commit says about itself")
]
IfCommit = Annotated[
    str | None, Parameter(help="only if the branch is at this commit; else exit code 4")
]
Key = Annotated[
    str | None,
    Parameter(name="--idempotency-key", help="doing it again with the same key does nothing more"),
]
OnBranch = Annotated[str, Parameter(name=["--branch", "-b"], help="the branch to write to")]
OfBranch = Annotated[str, Parameter(name=["--branch", "-b"], help="the branch to look at")]
AtRef = Annotated[
    str,
    Parameter(
        name=["--ref", "--branch", "-b"], help="main, main~2, main@COMMIT, main*TIME or a tag"
    ),
]
Limit = Annotated[int | None, Parameter(name=["--limit", "-n"], help="at most so many")]
Yes = Annotated[bool, Parameter(name=["--yes", "-y"], negative=(), help="do not ask")]
DryRun = Annotated[bool, Parameter(negative=(), help="show what would happen, change nothing")]
Types = Annotated[
    tuple[str, ...], Parameter(name=["--type", "-t"], negative=(), help="only this type; repeat")
]
Kinds = Annotated[
    Literal["node", "edge"] | None, Parameter(name="--kind", help="only nodes or only edges")
]
Ops = Annotated[
    tuple[Literal["insert", "update", "delete"], ...],
    Parameter(name="--op", negative=(), help="only insert, update or delete; repeat"),
]
