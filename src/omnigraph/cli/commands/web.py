"""Owns the command `web`: a graph in the browser."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote, urlsplit

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli
from omnigraph.cli.config import is_served
from omnigraph.errors import EngineMissing, InvalidArgument

LOOPBACK = "127.0.0.1"
Root = Annotated[str | None, Parameter(help="the graph; else --root, OMNIGRAPH_ROOT")]
Port = Annotated[int, Parameter(help="a port of this machine; a free one if not given")]
Browser = Annotated[bool, Parameter(name="--browser", help="open a browser, or only say where")]


def web(root: Root = None, /, *, port: Port = 0, browser: Browser = True, cli: Cli) -> None:
    """Look at a graph in the browser, until Ctrl-C.

    It serves the graph to this machine alone. A graph on a server has its page there already: then
    this opens it.

    Examples:
        omnigraph web people.graph
        omnigraph web s3://bucket/people --port 8080 --no-browser
    """
    shown = cli.root if root is None else root
    if not 0 <= port <= 65535:
        raise InvalidArgument(f"port is a number up to 65535, not {port}.")
    if is_served(shown):
        address = page_of(shown)
        cli.out.warn(f"The graph is at {address}")
        if browser:
            open_browser(address)
        return
    from omnigraph.engine.opening import open as open_graph

    try:
        from omnigraph.server.config import ServerConfig, read_config
        from omnigraph.server.running import serve_here
    except ModuleNotFoundError as error:
        raise EngineMissing(
            f"The page needs {error.name}, which is not installed.",
            help="Install it: pip install 'omnigraph[server]'",
        ) from None

    with open_graph(shown, mode="r"):
        pass  # what is wrong with it is said by the command, not by a server

    def read() -> ServerConfig:
        return read_config(None, {}, [shown], bind=f"{LOOPBACK}:{port}", workers=1)

    serve_here(read(), read, cli.out.warn, ready=open_browser if browser else None)


def page_of(address: str) -> str:
    """Where the page of a served graph is: `https://host/graphs/people` has it at `/#/g/people`."""
    parts = urlsplit(address)
    before, _, name = parts.path.rstrip("/").rpartition("/graphs/")
    return f"{parts.scheme}://{parts.netloc}{before}/#/g/{quote(name, safe='')}"


def open_browser(address: str) -> None:
    import webbrowser

    webbrowser.open(address)
