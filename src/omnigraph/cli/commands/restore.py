"""Owns `restore` and `revert`, the commands that undo."""

from __future__ import annotations

from typing import Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import NO_FLAGS, Cli, CommitFlags, DryRun, OnBranch, Yes
from omnigraph.cli.value_text import count_text


def restore(
    ref: Annotated[str, Parameter(help="what the branch shall be again")],
    /,
    *,
    branch: OnBranch = "main",
    flags: CommitFlags = NO_FLAGS,
    yes: Yes = False,
    dry_run: DryRun = False,
    cli: Cli,
) -> int:
    """Make a branch what it was at a ref, data and schema, as a new commit.

    Nothing is lost: what was there before stays in history. It shows what will change and asks.

    Examples:
        omnigraph restore main~2 --dry-run
        omnigraph restore v1 --yes --as ada
    """
    from omnigraph.cli.commands.diff import show_diff
    from omnigraph.cli.views.changes import summary_text

    with cli.writing(branch) as g:
        found = g.at(ref).diff(branch)
        if dry_run:
            show_diff(found, cli, summary=True, limit=None)
            return 0
        counts = found.summary()
        steps = len(found.schema.steps)
        if counts or steps:
            schema = f", {count_text(steps, 'change')} to the schema" if steps else ""
            told = f"{summary_text(counts)}{schema}" if counts else schema.removeprefix(", ")
            question = f"Restoring {branch} to {ref} changes what it holds: {told}."
            if not cli.out.confirm(question, yes=yes):
                cli.out.warn("Nothing was changed.")
                return 1
        before = g.at(branch).commit.id
        commit = g.branch(branch).restore(ref, **flags.words(cli))
    row = {"branch": branch, "ref": ref, "commit": commit.id, "restored": commit.id != before}
    if commit.id == before:
        cli.out.value(row, lambda _: [f"{branch} is what it was at {ref}; no commit was made."])
        return 0
    cli.out.value(
        row,
        lambda paint: [f"Restored {branch} to {ref} in commit {paint('cyan', commit.id)}."],
    )
    return 0


def revert(
    commit: Annotated[str, Parameter(help="the commit whose changes are taken back")],
    /,
    *,
    branch: OnBranch = "main",
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> None:
    """Undo what one commit did to entities, as a new commit; later commits stay.

    What a later commit changed again is shown as a conflict, and nothing is done.

    Examples:
        omnigraph revert main~1 --as ada
    """
    from omnigraph.runtime import is_ulid

    with cli.writing(branch) as g:
        before = g.at(branch).commit.id
        undone = commit if is_ulid(commit) else g.at(commit).commit.id
        made = g.branch(branch).revert(commit, **flags.words(cli))
    row = {"branch": branch, "reverted": undone, "commit": made.id, "changed": made.id != before}
    if made.id == before:
        cli.out.value(row, lambda _: ["Nothing is left to undo; no commit was made."])
        return
    on = "" if branch == "main" else f" on {branch}"
    cli.out.value(row, lambda paint: [f"Reverted {undone}{on} in commit {paint('cyan', made.id)}."])
