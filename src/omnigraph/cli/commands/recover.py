"""Owns the commands about long operations that died: list, resume, discard."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli

Id = Annotated[str, Parameter(help="as `recover list` shows it")]


def list_(*, cli: Cli) -> None:
    """List operations that are under way, and those that died.

    Examples:
        omnigraph recover list
    """
    with cli.reading() as g:
        found = g.recovery.list()
    rows = [
        {
            "id": one.id,
            "kind": one.kind,
            "actor": one.actor,
            "branch": one.branch,
            "state": one.problem or ("dead" if one.dead else "under way"),
            "resumable": one.resumable,
            "silent_for": round(one.silent_for),
        }
        for one in found
    ]
    if rows or not cli.out.is_table:
        cli.out.rows(rows)
    else:
        cli.out.line("Nothing is under way.")


def resume(id: Id, /, *, cli: Cli) -> None:
    """Publish what an operation had staged before it died.

    If it had landed already, nothing is published again.

    Examples:
        omnigraph recover resume 01J0000000000000000000000
    """
    with cli.writing() as g:
        commit = g.recovery.resume(id)
    cli.out.value(
        {"id": id, "commit": commit.id},
        lambda paint: [f"Resumed {id} in commit {paint('cyan', commit.id)}."],
    )


def discard(id: Id, /, *, cli: Cli) -> None:
    """Give up what an operation had staged; cleanup takes it.

    Examples:
        omnigraph recover discard 01J0000000000000000000000
    """
    with cli.writing() as g:
        commit = g.recovery.discard(id)
    row = {"id": id, "commit": None if commit is None else commit.id}
    cli.out.value(row, lambda _: [f"Discarded {id}."])
