"""Owns `copy` and `delete`: the commands that copy or delete a whole graph."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli, DryRun, Yes
from omnigraph.cli.colours import Paint
from omnigraph.cli.progress import progress_bar
from omnigraph.cli.value_text import count_text, size_text


def copy(
    target: Annotated[str, Parameter(help="where to: a path or s3://bucket/prefix")],
    /,
    *,
    names: Annotated[
        tuple[str, ...],
        Parameter(name="--only", negative=(), help="only main and this branch or tag; repeat"),
    ] = (),
    cli: Cli,
) -> None:
    """Copy the graph to another place, with its branches, tags and history.

    Writers may go on meanwhile. An interrupted copy goes on when it is run again. To restore a
    backup, copy it back to an empty place.

    Examples:
        omnigraph copy /backup/people
        omnigraph --root s3://bucket/people copy people.graph --only review
    """
    from omnigraph.engine.upkeep.copying import copy as copy_graph

    cli.half_done = "The graph is as it was; run it again to copy the rest."
    with progress_bar(cli.out) as report:
        done = copy_graph(
            cli.require_stored("copied"),
            target,
            names=names or None,
            runtime=cli.watched_runtime(),
            progress=lambda files, total: report(files, total, "copying"),
        )
    cli.done = "The graph is copied."
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


def delete(
    root: Annotated[str, Parameter(help="the graph that goes: a path or s3://bucket/prefix")],
    /,
    *,
    yes: Yes = False,
    dry_run: DryRun = False,
    cli: Cli,
) -> int:
    """Delete the graph for good, with all its branches, tags and history.

    Only files of the graph go; others that lie there stay, and are named. It asks, and there is
    no way back: 'omnigraph copy' makes a backup first.

    Examples:
        omnigraph delete old.graph --dry-run
        omnigraph delete s3://bucket/people --yes
    """
    from omnigraph.engine.upkeep.graph_deletion import delete as delete_graph

    told = delete_graph(root, dry_run=True, runtime=cli.watched_runtime())
    files = f"{count_text(told.files, 'file')} ({size_text(told.bytes)})"
    if not dry_run:
        if not cli.out.confirm(f"{told.root} goes for good, {files}.", yes=yes):
            cli.out.warn("Nothing was changed.")
            return 1
        cli.half_done = "Part of the graph is gone; run it again to delete the rest."
        told = delete_graph(root, runtime=cli.watched_runtime())
        cli.done = "The graph is deleted."
    row = {
        "root": told.root,
        "files": told.files,
        "bytes": told.bytes,
        "left": list(told.left),
        "deleted": not dry_run,
    }

    def view(paint: Paint) -> Iterator[str]:
        done = "Would delete" if dry_run else "Deleted"
        yield f"{done} {paint('bold', told.root)}, {files}."
        if told.left:
            others = count_text(len(told.left), "file")
            yield f"{others} there {'is' if len(told.left) == 1 else 'are'} no part of it and stay."

    cli.out.value(row, view)
    return 0
