"""Owns the commands on long operations that died: list, resume, discard."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli
from omnigraph.cli.colours import Paint
from omnigraph.cli.value_text import duration_text

if TYPE_CHECKING:
    from omnigraph.engine.upkeep.recovery import IntentReport

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
    cli.out.rows(rows, view=lambda paint: _operations(found, paint))


def _operations(found: Sequence[IntentReport], paint: Paint) -> Iterator[str]:
    for one in found:
        yield paint("cyan", one.id)
        if one.problem:
            yield paint("yellow", f"  cannot be read, and is left alone: {one.problem}")
            continue
        by = f" by {one.actor}" if one.actor else ""
        on = f" on {one.branch}" if one.branch else ""
        state = paint("red", "dead") if one.dead else "under way"
        heard = f"last heard of {duration_text(one.silent_for)} ago"
        choice = "; it can be resumed" if one.dead and one.resumable else ""
        yield f"  {one.kind}{by}{on}: {state}, {heard}{choice}"
    if not found:
        yield "Nothing is under way."


def resume(id: Id, /, *, cli: Cli) -> None:
    """Publish what an operation had staged before it died.

    If it had landed already, nothing is published again.

    Examples:
        omnigraph recover resume 01J0000000000000000000000
    """
    with cli.writing() as g:
        commit = g.recovery.resume(id)
    cli.done = f"It is done, in commit {commit.id}."
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
    cli.done = "The operation is discarded."
    row = {"id": id, "commit": None if commit is None else commit.id}
    cli.out.value(row, lambda _: [f"Discarded {id}."])
