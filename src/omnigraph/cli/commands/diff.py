"""Owns the command `diff`: the changes that lead from one ref to another."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli, Kinds, Limit, Ops, Types

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.engine.history.diff import Diff

_READ = 200
"""How many changed entities a person may want to read, one by one."""


def diff(
    old: Annotated[str, Parameter(help="the ref to start from")],
    new: Annotated[str, Parameter(help="the ref to arrive at")] = "main",
    /,
    *,
    types: Types = (),
    kind: Kinds = None,
    ops: Ops = (),
    summary: Annotated[bool, Parameter(negative=(), help="counts by type alone")] = False,
    limit: Annotated[
        int | None,
        Parameter(name=["--limit", "-n"], help="the largest number of entities of each type"),
    ] = None,
    cli: Cli,
) -> None:
    """Show what leads from one ref to another: entities that came, went and changed.

    It reads only what differs, however large the graph is. On a terminal a large difference is
    shown by its counts, by type and property, with some examples.

    Examples:
        omnigraph diff main review
        omnigraph diff main~5 --type Person --op update
        omnigraph diff v1 main --format jsonl
    """
    with cli.reading() as g:
        found = g.at(new).diff(
            old,
            types=types or None,
            kinds=[kind] if kind else None,
            ops=ops or None,
        )
        show_diff(found, cli, summary=summary, limit=limit)


def show_diff(found: Diff, cli: Invocation, *, summary: bool, limit: Limit) -> None:
    from omnigraph.cli.views.changes import (
        change_lines,
        many_change_lines,
        query_change_lines,
        query_counts,
        summary_lines,
    )
    from omnigraph.plan.migrate import step_text
    from omnigraph.wire.rows import change_row, query_change_row

    steps = [step_text(step) for step in found.schema.steps]
    queries = () if found.types is not None else found.queries
    if summary:
        counts = found.summary() | query_counts(queries)
        rows = [{"type": name, **dict(ops)} for name, ops in counts.items()]
        columns = ("type", "insert", "update", "delete")
        cli.out.rows(rows, columns=columns, view=lambda paint: summary_lines(counts, paint))
        empty = not rows
    elif cli.out.is_table:
        paint, width = cli.out.paint, cli.out.streams.width
        for step in steps:
            cli.out.line(f"{paint('magenta', 'schema')} {step}")
        told = list(query_change_lines(queries, paint))
        cli.out.lines(told)
        steps += told
        empty = True
        changes = iter(found)
        near = list(islice(changes, _READ))
        if limit is None and width is not None and (beyond := next(changes, None)) is not None:
            shown = many_change_lines(chain(near, [beyond], changes), paint, width)
        else:
            shown = change_lines(chain(near, changes), paint, width, limit=limit)
        for line in shown:
            if empty and steps:
                cli.out.line()
            empty = False
            cli.out.line(line)
    else:
        empty = False
        rows_of = (query_change_row(one) for one in queries)
        cli.out.rows(chain((change_row(change) for change in found), rows_of))
    if empty and not steps:
        cli.out.note("No difference.")
