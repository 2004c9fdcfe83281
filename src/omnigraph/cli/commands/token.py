"""Owns the commands about tokens: create, list, revoke."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli
from omnigraph.cli.colours import Paint

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.policy.tokens import TokenRow

TokenPath = Annotated[
    str | None,
    Parameter(name="--tokens", help="the file; else OMNIGRAPH_SERVER_TOKENS, or tokens.json"),
]
Roles = Annotated[
    tuple[str, ...],
    Parameter(
        name="--role", negative=(), help="reader, writer, agent, maintainer or admin; repeat"
    ),
]
Groups = Annotated[
    tuple[str, ...], Parameter(name="--group", negative=(), help="for policies; repeat")
]
Graphs = Annotated[
    tuple[str, ...], Parameter(name="--graph", negative=(), help="only this graph; repeat")
]
_VARIABLE = "OMNIGRAPH_SERVER_TOKENS"


def create(
    actor: Annotated[str, Parameter(help="who will be known by it")],
    /,
    *,
    role: Roles = (),
    group: Groups = (),
    graph: Graphs = (),
    expires: Annotated[str | None, Parameter(help="how long it counts: 90d, 12h")] = None,
    tokens: TokenPath = None,
    cli: Cli,
) -> None:
    """Make a token for an actor and print it, once. The file keeps only its hash.

    An actor may have several tokens. To change one, create another, put it to use, and revoke the
    old one.

    Examples:
        omnigraph token create ada --role writer
        omnigraph token create bot --role agent --graph papers --expires 90d
    """
    from omnigraph.plan.retention import read_duration
    from omnigraph.policy.tokens import create_token
    from omnigraph.runtime import SYSTEM

    lasts = None if expires is None else read_duration(expires, "expires") / 1e6
    made = create_token(
        _path(tokens, cli),
        actor,
        roles=role,
        groups=group,
        graphs=graph or None,
        lasts=lasts,
        runtime=cli.runtime or SYSTEM,
    )
    cli.done = f"The token {made.row.id} is made."
    row = {"id": made.row.id, "actor": actor, "token": made.text, "expires": _end(made.row)}
    cli.out.value(row, lambda _: [made.text])


def list_(*, tokens: TokenPath = None, cli: Cli) -> None:
    """List tokens: whose they are, what they allow, until when. None is shown.

    Examples:
        omnigraph token list
    """
    from omnigraph.policy.tokens import read_tokens

    rows = read_tokens(_path(tokens, cli))
    shown = [
        {
            "id": row.id,
            "actor": row.actor,
            "roles": list(row.roles),
            "groups": list(row.groups),
            "graphs": None if row.graphs is None else list(row.graphs),
            "expires": _end(row),
        }
        for row in rows
    ]
    cli.out.rows(shown, view=lambda paint: _lines(rows, paint))


def revoke(
    id: Annotated[str, Parameter(help="as `token list` shows it")],
    /,
    *,
    tokens: TokenPath = None,
    cli: Cli,
) -> None:
    """Take a token out of the file. A server forgets it when it reads the file again.

    Examples:
        omnigraph token revoke k3v9x0q2m5ab
    """
    from omnigraph.policy.tokens import revoke_token

    row = revoke_token(_path(tokens, cli), id)
    cli.done = f"The token {row.id} is revoked."
    cli.out.value(
        {"id": row.id, "actor": row.actor},
        lambda paint: [f"Revoked {paint('cyan', row.id)} of {row.actor}."],
    )


def _lines(rows: Sequence[TokenRow], paint: Paint) -> Iterator[str]:
    for row in rows:
        held = ", ".join([*row.roles, *(f"group {name}" for name in row.groups)])
        where = "" if row.graphs is None else f" on {', '.join(row.graphs)}"
        end = "" if row.expires is None else f", until {_end(row)}"
        yield f"{paint('cyan', row.id)}  {row.actor}: {held}{where}{end}"
    if not rows:
        yield "There is no token."


def _end(row: TokenRow) -> str | None:
    from omnigraph.policy.tokens import when_over

    end = when_over(row)
    return None if end is None else f"{end:%Y-%m-%d %H:%M:%S}"


def _path(given: str | None, cli: Invocation) -> str:
    return given or cli.environment.get(_VARIABLE) or "tokens.json"
