"""Owns the command `mcp`: a graph for a model, over the standard streams."""

from __future__ import annotations

from typing import Annotated, Literal

from cyclopts import Parameter

from omnigraph.cli.arguments import Actor, Cli
from omnigraph.errors import EngineMissing, InvalidArgument
from omnigraph.runtime import SYSTEM

Role = Annotated[
    Literal["reader", "agent", "writer", "maintainer", "admin"],
    Parameter(help="what it may do; an agent writes only to branches of its own"),
]


def mcp(
    *,
    actor: Actor = None,
    role: Role = "agent",
    merge: Annotated[
        bool, Parameter(negative=(), help="also offer a tool that merges, if the role may")
    ] = False,
    cli: Cli,
) -> None:
    """Give a model tools for the graph, by the Model Context Protocol on stdin and stdout.

    This is what a client starts, such as an editor or an assistant. What the model writes goes to
    the branch agent/ACTOR; 'omnigraph review agent/ACTOR' shows it and merges it. A graph on a
    server is reached with the token that is known for it, and the server says what it may.

    Examples:
        omnigraph mcp --root people.graph --as claude
        omnigraph mcp --root s3://bucket/people --as helper --role reader
    """
    try:
        from omnigraph.mcp.stdio import LocalDesk, talk
    except ModuleNotFoundError as error:
        raise EngineMissing(
            f"This needs {error.name}, which is not installed.",
            help="Install it: pip install 'omnigraph[mcp]'",
        ) from None
    from omnigraph.cli.config import is_served

    root = cli.root
    if is_served(root):
        from omnigraph.client.opening import open as open_served
        from omnigraph.client.opening import who_is

        cli.actor(actor)  # a server knows by itself who writes
        server, _, name = root.rstrip("/").rpartition("/graphs/")
        who = str(who_is(server, None)["actor"])
        with open_served(root) as served:
            talk(LocalDesk(served, name, who, merges=merge))
        return
    from omnigraph.engine.opening import open
    from omnigraph.engine.permissions import graph_name
    from omnigraph.model.caller import Caller
    from omnigraph.policy.roles import Roles

    found = cli.actor(actor)
    if found is None:
        raise InvalidArgument(
            "Who writes?", help="Say --as NAME: what it writes goes to the branch agent/NAME."
        )
    caller = Caller(found, roles=frozenset({role}))
    with open(root, actor=caller, policy=Roles(), runtime=cli.runtime or SYSTEM) as graph:
        talk(LocalDesk(graph, graph_name(root), found, merges=merge))
