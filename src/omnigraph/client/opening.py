"""Owns opening a graph wherever it is: behind an address, or in storage."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, overload

import msgspec

from omnigraph.arguments import checked
from omnigraph.client.address import Address, is_address, read_address, read_server
from omnigraph.client.connection import Connection, key_of_id
from omnigraph.client.credentials import find_token
from omnigraph.client.remote_graph import MAIN, RemoteGraph
from omnigraph.client.served_graph import ServedGraph
from omnigraph.client.understanding import understanding
from omnigraph.client.writing import RemoteWrite, send
from omnigraph.engine.access import Mode
from omnigraph.engine.graph import Graph
from omnigraph.engine.opening import init as init_here
from omnigraph.engine.opening import open as open_here
from omnigraph.engine.permissions import Authorizer
from omnigraph.engine.write.migration import schema_text
from omnigraph.errors import Denied, InvalidArgument, NotFound, NotRemote
from omnigraph.model.caller import Caller
from omnigraph.model.options import NO_OPTIONS
from omnigraph.runtime import SYSTEM, Runtime
from omnigraph.settings import Settings

_LAST = 8
"""A command makes the key of its write after all other ids."""


@overload
def open(  # noqa: A001
    root: str | os.PathLike[str],
    *,
    mode: Mode = "rw",
    actor: str | Caller | None = None,
    policy: Authorizer | None = None,
    settings: Settings | None = None,
    runtime: Runtime = SYSTEM,
) -> Graph: ...


@overload
def open(  # noqa: A001
    root: str | os.PathLike[str],
    *,
    token: str,
    mode: Mode = "rw",
    settings: Settings | None = None,
    runtime: Runtime = SYSTEM,
) -> RemoteGraph: ...


@checked
def open(  # noqa: A001
    root: str | os.PathLike[str],
    *,
    mode: Mode = "rw",
    actor: str | Caller | None = None,
    policy: Authorizer | None = None,
    settings: Settings | None = None,
    runtime: Runtime = SYSTEM,
    token: str | None = None,
) -> Any:
    """Opens a graph for reading and writing ("rw") or for reading alone ("r"), in storage or on a
    server: `https://host/graphs/name` gives a handle with the same methods, whose `token` is the
    one given here, else OMNIGRAPH_TOKEN, else that of `omnigraph login`. In storage, commits carry
    the `actor` if their writer gives no other. With a `policy` it is asked before everything that
    the actor reads and writes; without an actor the graph is then closed. Whoever holds the
    credentials of the store can leave the policy out.

    >>> with omnigraph.open(g.root, mode="r") as reader:
    ...     reader.count("Person")
    3
    >>> omnigraph.open(g.root, actor="eve").mutate('insert Person { name: "Dan" }').commit.actor
    'eve'
    """
    if not is_address(root):
        if token is not None:
            raise InvalidArgument("A token is for a graph on a server, and this is storage.")
        return open_here(
            root, mode=mode, actor=actor, policy=policy, settings=settings, runtime=runtime
        )
    if actor is not None or policy is not None:
        raise NotRemote(
            "On a server the token says who acts, and the server has the policy.",
            help="Leave actor and policy out.",
        )
    if mode not in ("rw", "r"):
        raise InvalidArgument(f"The mode {mode!r} is neither 'rw' nor 'r'.")
    return open_remote(os.fspath(root), mode=mode, settings=settings, runtime=runtime, token=token)


def open_remote(
    root: str,
    *,
    mode: Mode = "rw",
    settings: Settings | None = None,
    runtime: Runtime = SYSTEM,
    token: str | None = None,
) -> RemoteGraph:
    """A graph on a server. It is asked for at once, so a wrong address or token is told now."""
    served = _served(root, settings, runtime, token, mode)
    try:
        served.schema_at(MAIN)
    except Denied:
        pass  # there is a graph, and the caller sees other branches of it
    except BaseException:
        served.close()
        raise
    return RemoteGraph(MAIN, served)


def find_keyed(root: str, branch: str, ids: Sequence[str]) -> str | None:
    """The commit of a write whose answer was not waited for. Its key begins with one of these
    ids."""
    served = _served(root, None, SYSTEM, None, "r")
    for one in ids[: -_LAST - 1 : -1]:
        query = {"branch": branch, "key": key_of_id(one)}
        try:
            with understanding():
                return msgspec.convert(served.get("/keys", query)["commit"], str)
        except NotFound:
            continue
    return None


class _Holder(msgspec.Struct):
    actor: str | None
    roles: list[str]


def who_is(server: str, token: str | None) -> dict[str, Any]:
    """Who a server takes the holder of a token for."""
    told = _asked(server, token, "/whoami")
    with understanding():
        msgspec.convert(told, _Holder)
    return told


def what_runs(server: str, token: str | None) -> dict[str, Any]:
    """What one process of a server does now. Each call may reach another one."""
    return _asked(server, token, "/activity")


def _asked(server: str, token: str | None, path: str) -> dict[str, Any]:
    settings = Settings.from_environment()
    address = read_server(server, allow_http=settings.allow_http)
    found = find_token(address.origin, token)
    connection = Connection(address, found, SYSTEM, retry_for=settings.retry_for)
    told = connection.repeat(lambda: connection.once("GET", f"{address.path}{path}"))
    connection.close()
    return told.object


def _served(
    root: str, settings: Settings | None, runtime: Runtime, token: str | None, mode: Mode
) -> ServedGraph:
    settings = settings or Settings.from_environment()
    address: Address = read_address(root, allow_http=settings.allow_http)
    found = find_token(address.origin, token)
    connection = Connection(address, found, runtime, retry_for=settings.retry_for)
    return ServedGraph(connection, writable=mode == "rw")


@checked
def init(
    root: str | os.PathLike[str],
    *,
    schema: str | os.PathLike[str],
    actor: str | None = None,
    settings: Settings | None = None,
    runtime: Runtime = SYSTEM,
    token: str | None = None,
) -> Graph:
    """Creates a graph with a schema, given as text or as the path of a `.pg` file. At an address
    the server makes it, if its configuration allows that.

    When two callers create a graph at once, the one that puts the first graph version wins. Nothing
    refers to what the loser or a crash leaves behind.

    >>> with omnigraph.init("memory://notes", schema="node Note { text: String }") as notes:
    ...     notes.types()
    ['Note']
    """
    if not is_address(root):
        if token is not None:
            raise InvalidArgument("A token is for a graph on a server, and this is storage.")
        return init_here(root, schema=schema, actor=actor, settings=settings, runtime=runtime)
    if actor is not None:
        raise NotRemote("On a server the token says who acts.", help="Leave the actor out.")
    served = _served(os.fspath(root), settings, runtime, token, "rw")
    address = served.connection.address
    body = msgspec.json.encode({"name": address.graph, "schema": schema_text(schema)})
    send(served, RemoteWrite("POST", "", MAIN, body, to_server="/graphs"), NO_OPTIONS)
    graph: Any = RemoteGraph(MAIN, served)
    return graph  # type: ignore[no-any-return]
