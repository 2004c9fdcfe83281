"""Owns the commands about one's own token on a server: login, logout, whoami."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli
from omnigraph.cli.config import is_served
from omnigraph.cli.invocation import Invocation
from omnigraph.errors import InvalidArgument

Server = Annotated[
    str | None, Parameter(help="the server, or a graph on it; else --root, OMNIGRAPH_ROOT")
]


def login(server: Server = None, /, *, cli: Cli) -> None:
    """Keep your token for a server, in a file that only you can read.

    The token is asked for, or read from stdin. It is tried first. From then on every command
    with a root on that server uses it; OMNIGRAPH_TOKEN wins over it.

    Examples:
        omnigraph login https://graphs.example.com
        omnigraph token create ada --role writer | omnigraph login https://graphs.example.com
    """
    from omnigraph.client.address import read_origin
    from omnigraph.client.credentials import CredentialsFile
    from omnigraph.client.opening import who_is
    from omnigraph.settings import Settings

    where = _server(server, cli)
    origin = read_origin(where, allow_http=Settings.from_environment(cli.environment).allow_http)
    token = _read_token(cli, origin)
    actor = who_is(where, token)["actor"]
    kept = CredentialsFile(cli.environment)
    kept.keep(origin, token)
    cli.done = "The token is kept."
    row = {"server": origin, "actor": actor, "file": str(kept.path)}
    cli.out.value(row, lambda paint: [f"You are {paint('bold', str(actor))} at {origin}."])


def logout(server: Server = None, /, *, cli: Cli) -> int:
    """Forget the token for a server. The token itself stays valid: 'token revoke' ends it.

    Examples:
        omnigraph logout https://graphs.example.com
    """
    from omnigraph.client.address import read_origin
    from omnigraph.client.credentials import CredentialsFile

    origin = read_origin(_server(server, cli), allow_http=True)
    had = CredentialsFile(cli.environment).forget(origin)
    told = f"Forgot the token for {origin}." if had else f"No token was kept for {origin}."
    cli.out.value({"server": origin, "forgotten": had}, lambda _: [told])
    return 0


def whoami(server: Server = None, /, *, cli: Cli) -> None:
    """Show who a server takes you for.

    Examples:
        omnigraph whoami https://graphs.example.com
        omnigraph whoami --json
    """
    from omnigraph.client.opening import who_is

    told = who_is(_server(server, cli), None)
    roles = ", ".join(told["roles"]) or "no role"
    cli.out.value(told, lambda paint: [f"{paint('bold', str(told['actor']))} ({roles})"])


def _server(given: str | None, cli: Invocation) -> str:
    where = cli.root if given is None else given
    if not is_served(where):
        raise InvalidArgument(
            f"{where} is no server.", help="Give its address: https://graphs.example.com."
        )
    return where


def _read_token(cli: Invocation, origin: str) -> str:
    stdin = cli.out.streams.stdin
    if stdin.isatty():
        from getpass import getpass

        text = getpass(f"Token for {origin}: ")
    else:
        text = stdin.readline()
    if not text.strip():
        raise InvalidArgument("No token was given.", help="It begins with ogt_.")
    return text.strip()
