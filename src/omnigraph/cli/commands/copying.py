"""Owns the command that copies a graph to another place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli
from omnigraph.cli.paint import Paint
from omnigraph.cli.progress import progress_bar
from omnigraph.cli.texts import count_text, size_text


def copy(
    target: Annotated[str, Parameter(help="where to: a path or s3://bucket/prefix")],
    /,
    *,
    refs: Annotated[
        tuple[str, ...],
        Parameter(name="--ref", negative=(), help="only main and this branch or tag; repeat"),
    ] = (),
    cli: Cli,
) -> None:
    """Copy the graph to another place, with its branches, tags and history.

    Writers may go on meanwhile. An interrupted copy goes on when it is run again. To restore a
    backup, copy it back to an empty place.

    Examples:
        omnigraph copy /backup/people
        omnigraph --root s3://bucket/people copy people.graph --ref review
    """
    from omnigraph.engine.upkeep.copying import copy as copy_graph

    cli.half_done = "The graph is as it was; run it again to copy the rest."
    with progress_bar(cli.out) as report:
        done = copy_graph(
            cli.root,
            target,
            refs=refs or None,
            runtime=cli.watched_runtime(),
            progress=lambda files, total: report(files, total, "copying"),
        )
    row = {
        "target": target,
        "branches": list(done.branches),
        "tags": list(done.tags),
        "versions": done.versions,
        "files": done.files,
        "bytes": done.bytes,
        "skipped": done.skipped,
    }

    def view(paint: Paint) -> Iterator[str]:
        what = [
            count_text(len(done.branches), "branch", "branches"),
            count_text(len(done.tags), "tag"),
            count_text(done.versions, "version"),
        ]
        files = f"{count_text(done.files, 'file')} ({size_text(done.bytes)})"
        yield f"Copied {', '.join(what)} in {files} to {paint('bold', target)}."
        if done.skipped:
            yield f"{count_text(done.skipped, 'file')} had been copied before."

    cli.out.value(row, view)
