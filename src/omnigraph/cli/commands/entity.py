"""Owns the commands on a single entity: its current state and its history."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import AtRef, Cli, Limit, OfBranch
from omnigraph.cli.colours import Paint
from omnigraph.cli.value_text import literal_text
from omnigraph.errors import NotFound

TypeName = Annotated[str, Parameter(help="its type, such as Person")]
Id = Annotated[str, Parameter(help="its id: the key, or the id it was given")]


def entity(type: TypeName, id: Id, /, *, ref: AtRef = "main", cli: Cli) -> None:
    """Show one entity with all its properties, now or at any ref.

    Examples:
        omnigraph entity Person Ada
        omnigraph entity Person Ada --ref main~3
    """
    with cli.reading() as g:
        found = g.at(ref).entity(type, id)
    if found is None:
        raise NotFound(
            f"There is no {type} {id!r} at {ref}.",
            help=f"'omnigraph history {type} {id}' shows whether there was one.",
        )

    def view(paint: Paint) -> Iterator[str]:
        longest = max(len(name) for name in found)
        for name, value in found.items():
            shown = literal_text(value)
            yield f"{paint('bold', name.ljust(longest))}  " + (
                paint("dim", shown) if value is None else shown
            )

    cli.out.value(found, view)


def blame(type: TypeName, id: Id, /, *, ref: AtRef = "main", cli: Cli) -> None:
    """Show which commit last set each property of an entity: who, when and why.

    What a merge brought is followed to the branch where it was written.

    Examples:
        omnigraph blame Person Ada
        omnigraph blame Person Ada --ref agent/eve --json
    """
    from omnigraph.cli.views.commits import blame_lines
    from omnigraph.wire.rows import origin_row

    with cli.reading() as g:
        found = g.at(ref).blame(type, id)
    if not found:
        raise NotFound(
            f"There is no {type} {id!r} at {ref}.",
            help=f"'omnigraph history {type} {id}' shows whether there was one.",
        )
    cli.out.rows([origin_row(one) for one in found], view=lambda paint: blame_lines(found, paint))


def history(
    type: TypeName, id: Id, /, *, branch: OfBranch = "main", limit: Limit = None, cli: Cli
) -> None:
    """Show the commits that changed one entity, newest first, and what each did to it.

    Examples:
        omnigraph history Person Ada
        omnigraph history Person Ada -n 1 --json
    """
    from omnigraph.cli.views.changes import change_lines
    from omnigraph.cli.views.commits import log_lines
    from omnigraph.wire.rows import change_row, commit_row

    with cli.reading() as g:
        moments = g.at(branch).history(type, id, limit=limit)
        out = cli.out
        if not out.is_table:
            out.rows({**commit_row(m.commit), "change": change_row(m.change)} for m in moments)
            return
        empty = True
        for moment in moments:
            empty = False
            width = out.streams.width
            out.lines(log_lines([moment.commit], {}, out.paint, width, oneline=False))
            # The first line names the type, which is the same for all.
            out.lines(list(change_lines([moment.change], out.paint, width))[1:])
        if empty:
            raise NotFound(f"There was never a {type} {id!r} on {branch}.")
