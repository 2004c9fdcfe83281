"""Owns the commands on tags, the permanent names of commits."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import NO_FLAGS, Cli, CommitFlags
from omnigraph.cli.colours import Paint
from omnigraph.cli.value_text import one_line, time_text

Name = Annotated[str, Parameter(help="the name of the tag")]


def create(
    name: Name,
    ref: Annotated[str, Parameter(help="the commit that gets the name")] = "main",
    /,
    *,
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> None:
    """Give a commit a name that stays. A tag can be read like a branch, and never written to.

    Examples:
        omnigraph tag create v1
        omnigraph tag create before-import main~2
    """
    with cli.writing(name) as g:
        commit = g.create_tag(name, ref, **flags.words(cli))
    cli.done = "The tag is created."
    row = {"tag": name, "commit": commit.id}
    cli.out.value(
        row,
        lambda paint: [f"Tagged commit {paint('cyan', commit.id)} as {paint('yellow', name)}."],
    )


def list_(*, cli: Cli) -> None:
    """List tags and the commits they name.

    Examples:
        omnigraph tag list
    """
    from omnigraph.wire.rows import commit_row

    with cli.reading() as g:
        tags = g.tags()
    rows = [{"tag": name, **commit_row(commit)} for name, commit in tags.items()]

    def view(paint: Paint) -> Iterator[str]:
        longest = max((len(one_line(name)) for name in tags), default=0)
        for name, commit in tags.items():
            shown = one_line(name)
            about = ", ".join(
                one_line(part)
                for part in (time_text(commit.created_at), commit.actor, commit.message)
                if part
            )
            yield (
                f"{paint('yellow', shown)}{' ' * (longest - len(shown))}  "
                f"{paint('cyan', commit.id)}  {paint('dim', about)}"
            )

    cli.out.rows(rows, view=view)
    if not rows:
        cli.out.note("There are no tags.")


def delete(
    name: Name,
    /,
    *,
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> None:
    """Delete a tag. The commit stays.

    Examples:
        omnigraph tag delete v1
    """
    with cli.writing(name) as g:
        g.delete_tag(name, **flags.words(cli))
    cli.done = "The tag is deleted."
    cli.out.value(
        {"tag": name, "deleted": True}, lambda paint: [f"Deleted the tag {paint('yellow', name)}."]
    )
