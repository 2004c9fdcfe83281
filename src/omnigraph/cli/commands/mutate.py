"""Owns the command `mutate`: statements that change the graph, as one commit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from omnigraph.cli.arguments import NO_FLAGS, Cli, CommitFlags, Embed, OnBranch
from omnigraph.cli.colours import Paint
from omnigraph.cli.commands.query import (
    File,
    Inline,
    Param,
    Params,
    QueryName,
    placed,
    read_query,
)
from omnigraph.cli.parameters import read_parameters
from omnigraph.cli.value_text import count_text
from omnigraph.cli.views.changes import count_lines
from omnigraph.wire.values import plain

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.engine.mutation.result import MutationResult


def mutate(
    file: File = None,
    name: QueryName = None,
    /,
    *,
    execute: Inline = None,
    params: Params = None,
    param: Param = (),
    branch: OnBranch = "main",
    embed: Embed = False,
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> None:
    """Change the graph: insert, update and delete, all statements as one commit.

    Later statements see earlier ones. If nothing matches, nothing happens and there is no commit.

    Examples:
        omnigraph mutate -e 'insert Person { name: "Ada", age: 36 }' --as ada
        omnigraph mutate queries.gq rename --param old=Ada --param new=Lovelace -m "her name"
    """
    text = read_query(file, execute, cli)
    values = read_parameters(params, param)
    with cli.writing(branch) as g, placed(text, file, values, cli):
        done = g.branch(branch).mutate(
            text,
            name,
            values,
            embed=embed,
            **flags.words(cli),
        )
    show_mutation(done, cli)


def show_mutation(done: MutationResult, cli: Invocation) -> None:
    row = {
        "branch": done.branch,
        "query": done.query,
        "nodes": done.nodes,
        "edges": done.edges,
        "types": {name: plain(counts) for name, counts in done.counts.items()},
        "commit": done.commit_id,
        "repeated": done.repeated,
        "embedded": done.embedded,
    }
    cli.out.value(row, lambda paint: _lines(done, paint))


def _lines(done: MutationResult, paint: Paint) -> Iterator[str]:
    if not done.repeated:
        yield from count_lines(done.counts, paint)
    if done.repeated:
        yield f"It was done before, in commit {paint('cyan', str(done.commit_id))}."
    elif done.commit_id is None:
        yield "Nothing matched; no commit was made."
    else:
        yield f"Changed {done.branch} in commit {paint('cyan', done.commit_id)}."
    if done.embedded:
        yield f"{count_text(done.embedded, 'text')} embedded in it."
