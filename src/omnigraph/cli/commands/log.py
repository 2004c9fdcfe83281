"""Owns the commands `log` and `show`: the list of commits, and what one commit did."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli
from omnigraph.cli.colours import Paint
from omnigraph.cli.value_text import count_text, one_line, time_text

if TYPE_CHECKING:
    from omnigraph.engine.history.log import LogWords
    from omnigraph.model.version import Commit

_SHOWN = 20
_COLUMNS = (
    "commit",
    "created_at",
    "kind",
    "actor",
    "message",
    "labels",
    "parents",
    "statistics",
)


def log(
    ref: Annotated[str, Parameter(help="where to begin")] = "main",
    /,
    *,
    graph: Annotated[
        bool, Parameter(name=["--graph", "-g"], negative=(), help="draw branches and merges")
    ] = False,
    oneline: Annotated[bool, Parameter(negative=(), help="one line for each commit")] = False,
    limit: Annotated[
        int | None, Parameter(name=["--limit", "-n"], help="the largest number of commits")
    ] = None,
    actor: Annotated[str | None, Parameter(help="only commits of this actor")] = None,
    kind: Annotated[
        str | None, Parameter(help="only commits of this kind, such as merge or schema")
    ] = None,
    since: Annotated[str | None, Parameter(help="only at or after this time")] = None,
    until: Annotated[str | None, Parameter(help="only at or before this time")] = None,
    first_parent: Annotated[
        bool, Parameter(negative=(), help="pass over what was merged in")
    ] = False,
    maintenance: Annotated[
        bool, Parameter(negative=(), help="show commits that change nothing a reader can see, too")
    ] = False,
    all_: Annotated[
        bool, Parameter(name=["--all", "-a"], negative=(), help="begin at every branch")
    ] = False,
    cli: Cli,
) -> None:
    """Show commits, newest first, with the branches and tags that are at them. Times are UTC.

    Commits of maintenance are left out, as `main~2` leaves them out when it counts; their number
    is told at the end. With --maintenance or --kind they are shown.

    Examples:
        omnigraph log --graph --all
        omnigraph log review -n 5 --oneline
        omnigraph log --actor ada --since 2026-01-01 --format jsonl
    """
    from omnigraph.cli.views.commits import Seen, graph_lines, log_lines
    from omnigraph.engine.history.log import require_limit
    from omnigraph.wire.rows import commit_row

    require_limit(limit)
    with cli.reading() as g:
        shown: LogWords = {
            "actor": actor,
            "kind": kind,
            "since": since,
            "until": until,
            "first_parent": first_parent,
        }
        of_main = all_ or ref == "main"
        found = g.log(all=all_, **shown) if of_main else g.at(ref).log(**shown)
        seen = Seen(found, found.labels(), limit, all_kinds=maintenance or kind is not None)
        if not cli.out.is_table:
            rows = (commit_row(commit, labels) for commit, labels in seen)
            cli.out.rows(rows, columns=_COLUMNS)
            return
        paint, width = cli.out.paint, cli.out.streams.width
        if graph:
            commits, labelled = seen.connected()
            unicode = cli.out.unicode
            lines = graph_lines(commits, labelled, paint, width, oneline=oneline, unicode=unicode)
            cli.out.lines(lines)
        else:
            for commit, labels in seen:  # printed as it is read, so `| head` need not wait
                told = {commit.id: labels}
                cli.out.lines(log_lines([commit], told, paint, width, oneline=oneline))
        if seen.hidden:
            told_of = f"{count_text(seen.hidden, 'commit')} of maintenance not shown"
            cli.out.note(cli.out.note_paint("dim", f"{told_of} (--maintenance)"))


def show(
    ref: Annotated[str, Parameter(help="a commit, branch, tag or other ref")] = "main",
    /,
    *,
    summary: Annotated[bool, Parameter(negative=(), help="counts by type alone")] = False,
    limit: Annotated[
        int | None,
        Parameter(name=["--limit", "-n"], help="the largest number of entities of each type"),
    ] = None,
    cli: Cli,
) -> None:
    """Show one commit, and what it changed against its first parent.

    Examples:
        omnigraph show
        omnigraph show main~2 --summary
        omnigraph show main~1 --json
    """
    from omnigraph.cli.commands.diff import show_diff
    from omnigraph.wire.rows import change_row, commit_row

    with cli.reading() as g:
        snapshot = g.at(ref)
        commit = snapshot.commit
        labels = g.at(commit.id).log(limit=1).labels().get(commit.id, ())
        found = g.at(commit.id).diff(commit.parents[0]) if commit.parents else None
        if not cli.out.is_table:
            row = commit_row(commit, labels)
            if found is not None and summary:
                row["changes"] = found.summary()
            elif found is not None:
                row["changes"] = [change_row(change) for change in found]
            cli.out.value(row, lambda _: ())
            return
        cli.out.lines(_head(commit, labels, cli.out.paint))
        if found is not None:
            cli.out.line()
            show_diff(found, cli, summary=summary, limit=_SHOWN if limit is None else limit)


def _head(commit: Commit, labels: tuple[str, ...], paint: Paint) -> Iterator[str]:
    from omnigraph.cli.views.commits import label_text

    yield f"{paint('bold', 'commit')} {paint('cyan', commit.id)}{label_text(labels, paint)}"
    for parent in commit.parents:
        yield f"{paint('bold', 'parent')} {paint('cyan', parent)}"
    about = (
        ("actor", commit.actor and one_line(commit.actor)),
        ("time", f"{time_text(commit.created_at)} UTC"),
        ("kind", commit.kind),
    )
    for name, value in about:
        if value:
            yield f"{paint('bold', name.ljust(6))} {value}"
    if commit.message:
        yield ""
        yield from (f"    {one_line(line)}" for line in commit.message.strip().splitlines())
