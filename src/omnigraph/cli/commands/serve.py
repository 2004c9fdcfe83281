"""Owns the command `serve`: graphs over HTTP."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli
from omnigraph.cli.config import NAME
from omnigraph.errors import EngineMissing

if TYPE_CHECKING:
    from omnigraph.server.config import ServerConfig

Root = Annotated[str, Parameter(help="graphs to serve, each as ROOT or NAME=ROOT")]


def serve(
    *roots: Root,
    config: Annotated[str | None, Parameter(help="a configuration, else omnigraph.toml")] = None,
    bind: Annotated[str | None, Parameter(help="HOST:PORT; 127.0.0.1:8470 if not given")] = None,
    workers: Annotated[int | None, Parameter(help="so many processes")] = None,
    cli: Cli,
) -> None:
    """Serve graphs over HTTP, until it is told to end.

    Without tokens it is only for this machine, and its user may do everything.

    Examples:
        omnigraph serve people.graph
        omnigraph serve people=s3://bucket/people --bind 127.0.0.1:9000 --workers 4
    """
    try:
        from omnigraph.server.config import read_config
        from omnigraph.server.running import WorkerProcesses, serve_here
    except ModuleNotFoundError as error:
        raise EngineMissing(
            f"The server needs {error.name}, which is not installed.",
            help="Install it: pip install 'omnigraph[server]'",
        ) from None
    named = list(roots)
    path = Path(config) if config is not None else _nearest()

    def read() -> ServerConfig:
        return read_config(path, cli.environment, named, bind=bind, workers=workers)

    found = read()
    if found.workers > 1:
        flags = [] if config is None else ["--config", config]
        WorkerProcesses(found, [*named, *flags]).run(cli.out.warn)
    else:
        serve_here(found, read, cli.out.warn)


def _nearest() -> Path | None:
    here = Path.cwd()
    for place in (here, *here.parents):
        if (place / NAME).is_file():
            return place / NAME
    return None
