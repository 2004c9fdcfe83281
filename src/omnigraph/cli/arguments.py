"""Owns the parameters that many commands share: their names and their help texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from omnigraph.cli.invocation import Invocation

if TYPE_CHECKING:
    from cyclopts.argument import Argument

    from omnigraph.model.options import CommitWords

Cli = Annotated[Invocation, Parameter(parse=False)]
Actor = Annotated[
    str | None,
    Parameter(name="--as", help="who does it; else OMNIGRAPH_ACTOR, or actor in omnigraph.toml"),
]
OnBranch = Annotated[str, Parameter(name=["--branch", "-b"], help="the branch to write to")]
OfBranch = Annotated[str, Parameter(name=["--branch", "-b"], help="the branch to look at")]
AtRef = Annotated[
    str,
    Parameter(
        name=["--ref", "--branch", "-b"], help="main, main~2, main@COMMIT, main*TIME or a tag"
    ),
]
Limit = Annotated[
    int | None, Parameter(name=["--limit", "-n"], help="the largest number of results")
]
Yes = Annotated[bool, Parameter(name=["--yes", "-y"], negative=(), help="do not ask")]
DryRun = Annotated[bool, Parameter(negative=(), help="show what would happen, change nothing")]
Embed = Annotated[
    bool, Parameter(negative=(), help="embed the texts whose vector is missing, as `embed` does")
]
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


@Parameter(name="*")
@dataclass(frozen=True)
class CommitFlags:
    """The options of every command that writes."""

    actor: Actor = None
    message: Annotated[
        str | None, Parameter(name=["--message", "-m"], help="what the commit says about itself")
    ] = None
    if_commit: Annotated[
        str | None, Parameter(help="only if the branch is at this commit; else exit code 4")
    ] = None
    key: Annotated[
        str | None,
        Parameter(
            name="--idempotency-key", help="doing it again with the same key does nothing more"
        ),
    ] = None

    def words(self, cli: Invocation) -> CommitWords:
        """The options of a write, in the form that the engine takes."""
        return {
            "actor": cli.actor(self.actor),
            "message": self.message,
            "if_commit": self.if_commit,
            "idempotency_key": self.key,
        }


NO_FLAGS = CommitFlags()


def is_shown(argument: Argument) -> bool:
    """Whether a user can pass it: a group of flags is not an argument itself."""
    return argument.parse and argument.names != ("*",)
