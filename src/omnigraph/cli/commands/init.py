"""Owns `init` and `version`: the command that creates a graph, and the program's version."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import Actor, Cli
from omnigraph.cli.colours import Paint
from omnigraph.cli.value_text import count_text
from omnigraph.errors import InvalidArgument


def init(
    root: str | None = None,
    /,
    *,
    schema: Annotated[str, Parameter(help="the .pg file that describes the types")],
    actor: Actor = None,
    cli: Cli,
) -> None:
    """Create a graph from a schema.

    The root is a path or s3://bucket/prefix; it may be given here, by --root or by
    OMNIGRAPH_ROOT. Nothing is there before the command ends, and two that create the same graph
    at once are told apart: one of them fails.

    Examples:
        omnigraph init people.graph --schema people.pg
        omnigraph init s3://bucket/people --schema people.pg --as ada
    """
    from omnigraph.cli.config import require_root
    from omnigraph.client.opening import init as create
    from omnigraph.engine.write.migration import read_schema

    if root is not None and cli.options.root is not None and root != cli.options.root:
        raise InvalidArgument(f"Two roots were given: {root} and {cli.options.root}.")
    where = require_root(cli.options.root if root is None else root, cli.config)
    text = cli.read_text(schema)
    read_schema(text, schema, columns=cli.out.source_columns())
    with create(
        where, schema=f"{text}\n", actor=cli.actor(actor, where), runtime=cli.watched_runtime()
    ) as g:
        snapshot = g.snapshot()
        nodes, edges = len(snapshot.catalog.nodes), len(snapshot.catalog.edges)
        made = {
            "root": g.root,
            "commit": snapshot.commit.id,
            "node_types": nodes,
            "edge_types": edges,
        }

    cli.done = f"The graph is created, in commit {made['commit']}."

    def view(paint: Paint) -> Iterator[str]:
        types = f"{count_text(nodes, 'node type')} and {count_text(edges, 'edge type')}"
        yield f"Created {paint('bold', where)} with {types}."

    cli.out.value(made, view)


def version(*, cli: Cli) -> None:
    """Print the version of the program and of what it is built on.

    Examples:
        omnigraph version
        omnigraph version --json
    """
    import platform
    from importlib.metadata import version as installed

    import omnigraph
    from omnigraph.model.version import FORMAT

    found = {
        "omnigraph": omnigraph.__version__,
        "format": FORMAT,
        "python": platform.python_version(),
        "pylance": installed("pylance"),
        "pyarrow": installed("pyarrow"),
    }

    def view(paint: Paint) -> Iterator[str]:
        yield f"omnigraph {found['omnigraph']}"
        yield paint(
            "dim",
            f"graph format {found['format']}, Python {found['python']}, "
            f"pylance {found['pylance']}, pyarrow {found['pyarrow']}",
        )

    cli.out.value(found, view)
