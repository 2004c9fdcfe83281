"""Owns the command `changes`: what happened on a branch, from a given point on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli, Kinds, Limit, OfBranch, Ops, Types

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.engine.history.feed import FeedBlock


def changes(
    after: Annotated[
        str, Parameter(help="a cursor, a commit or another ref; what comes after it is told")
    ] = "beginning",
    /,
    *,
    branch: OfBranch = "main",
    types: Types = (),
    kind: Kinds = None,
    ops: Ops = (),
    limit: Limit = None,
    follow: Annotated[
        bool, Parameter(name=["--follow", "-f"], negative=(), help="wait for more, until Ctrl-C")
    ] = False,
    poll: Annotated[float, Parameter(help="seconds between two looks")] = 1.0,
    cli: Cli,
) -> None:
    """Tell what happened on a branch, one block for each commit, oldest first.

    With --format jsonl every line is one commit with its changes and a cursor; give the last
    cursor to go on from there, after a crash too.

    Examples:
        omnigraph changes main~3
        omnigraph changes --type Person --format jsonl
        omnigraph changes --follow
    """
    with cli.reading() as g:
        blocks = g.branch(branch).changes(
            after,
            limit=limit,
            types=types or None,
            kinds=[kind] if kind else None,
            ops=ops or None,
            follow=follow,
            poll=poll,
        )
        if not cli.out.is_table:
            cli.out.rows(_block_rows(blocks, cli))
            return
        for number, block in enumerate(blocks):
            if number:
                cli.out.line()
            _print_block(block, cli)
            cli.out.flush()


def _block_rows(blocks: Any, cli: Invocation) -> Any:
    """Rows as they come; each is out before the next one is waited for."""
    from omnigraph.wire.rows import block_row

    for block in blocks:
        yield block_row(block)
        cli.out.flush()


def _print_block(block: FeedBlock, cli: Invocation) -> None:
    from omnigraph.cli.views.changes import change_lines
    from omnigraph.cli.views.commits import log_lines
    from omnigraph.plan.migrate import step_text

    out = cli.out
    out.lines(log_lines([block.commit], {}, out.paint, out.streams.width, oneline=False))
    for step in block.schema.steps:
        out.line(f"  {out.paint('magenta', 'schema')} {step_text(step)}")
    width = None if out.streams.width is None else out.streams.width - 2
    out.lines(f"  {line}" for line in change_lines(block.changes, out.paint, width))
