"""Owns the commands on branches: create, list, delete and protect."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from omnigraph.cli.arguments import NO_FLAGS, Cli, CommitFlags, DryRun, Yes
from omnigraph.cli.colours import Paint, cut
from omnigraph.cli.config import is_served
from omnigraph.cli.value_text import count_text, one_line, time_text

if TYPE_CHECKING:
    from omnigraph.engine.graph import Graph
    from omnigraph.model.version import Commit

Name = Annotated[str, Parameter(help="the name of the branch")]


def create(
    name: Name,
    /,
    *,
    from_: Annotated[
        str, Parameter(name=["--from", "-f"], help="where it begins: a branch, tag or other ref")
    ] = "main",
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> None:
    """Start a branch at a ref. It takes one request, whatever the size of the graph.

    Examples:
        omnigraph branch create review
        omnigraph branch create fix --from main~3
    """
    with cli.writing(name) as g:
        commit = g.create_branch(name, from_, **flags.words(cli))
    row = {"branch": name, "from": from_, "commit": commit.id}
    cli.out.value(
        row,
        lambda paint: [
            f"Created {paint('green', name)} from {from_} at commit {paint('cyan', commit.id)}."
        ],
    )


def list_(*, cli: Cli) -> None:
    """List branches: where each is, who was there last, and which are protected.

    Examples:
        omnigraph branch list
        omnigraph branch list --format csv
    """
    from omnigraph.wire.rows import commit_row

    with cli.reading() as g:
        heads = _heads(g)
        rows = []
        for head in heads:
            told = commit_row(head.commit)
            rows.append(
                {
                    "branch": head.name,
                    "commit": head.commit.id,
                    "version": head.version,
                    "protected": head.protected,
                    "actor": told["actor"],
                    "message": told["message"],
                    "created_at": told["created_at"],
                }
            )

    def view(paint: Paint) -> Iterator[str]:
        longest = max(len(one_line(row["branch"])) for row in rows)
        width = cli.out.streams.width
        for row, head in zip(rows, heads, strict=True):
            name = one_line(row["branch"])
            mark = paint("yellow", " protected") if row["protected"] else ""
            about = ", ".join(
                one_line(part)
                for part in (time_text(head.commit.created_at), row["actor"], row["message"])
                if part
            )
            if width is not None:
                taken = longest + len(row["commit"]) + 4 + (10 if row["protected"] else 0)
                about = cut(about, width - taken)
            yield (
                f"{paint('green', name)}{' ' * (longest - len(name))}  "
                f"{paint('cyan', row['commit'])}{mark}  {paint('dim', about)}"
            )

    cli.out.rows(rows, view=view)


def delete(
    name: Name,
    /,
    *,
    flags: CommitFlags = NO_FLAGS,
    yes: Yes = False,
    dry_run: DryRun = False,
    cli: Cli,
) -> int:
    """Delete a branch. It asks when the branch has commits that main does not have.

    Examples:
        omnigraph branch delete review
        omnigraph branch delete review --yes --as ada
    """
    with cli.writing(name) as g:
        g.branch(name)
        ahead = _commits_not_in_main(g, name) if name != "main" else 0
        told = (
            f"{count_text(ahead, 'commit')} of {name} {'is' if ahead == 1 else 'are'} not in main."
        )
        row: dict[str, Any] = {"branch": name, "unmerged_commits": ahead, "deleted": not dry_run}
        if dry_run:
            shown = told if ahead else f"Everything in {name} is in main."
            cli.out.value(row, lambda _: [shown])
            return 0
        if ahead and not cli.out.confirm(told, yes=yes):
            cli.out.warn("Nothing was changed.")
            return 1
        g.delete_branch(name, **flags.words(cli))
    cli.done = "The branch is deleted."
    cli.out.value(row, lambda paint: [f"Deleted {paint('green', name)}."])
    return 0


def protect(
    name: Name,
    /,
    *,
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> None:
    """Close a branch to direct writes and to deletion. Merges into it go on.

    Examples:
        omnigraph protect main --as ada
    """
    with cli.writing(name) as g:
        g.protect(name, **flags.words(cli))
    row = {"branch": name, "protected": True}
    cli.out.value(row, lambda paint: [f"{paint('green', name)} takes merges alone now."])


def unprotect(
    name: Name,
    /,
    *,
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> None:
    """Open a branch to direct writes again.

    Examples:
        omnigraph unprotect main --as ada
    """
    with cli.writing(name) as g:
        g.unprotect(name, **flags.words(cli))
    row = {"branch": name, "protected": False}
    cli.out.value(row, lambda paint: [f"{paint('green', name)} takes direct writes again."])


@dataclass(frozen=True)
class _Head:
    name: str
    commit: Commit
    version: int
    protected: bool


def _heads(g: Graph) -> list[_Head]:
    if is_served(g.root):
        from omnigraph.client.remote_graph import branch_rows
        from omnigraph.client.told import commit_of

        told = branch_rows(g)
        return [_Head(r["name"], commit_of(r), r["version"], r["protected"]) for r in told]
    versions = [(name, g.at(name).graph_version) for name in g.branches()]
    return [_Head(name, one.commit, one.version, one.protected) for name, one in versions]


def _commits_not_in_main(g: Graph, name: str) -> int:
    """The branch's own commits that no merge has brought into main. Both heads tell."""
    if is_served(g.root):
        main = {commit.id for commit in g.log()}
        return sum(commit.id not in main for commit in g.at(name).log())
    from omnigraph.model.version import chain_key

    head = g.at(name).graph_version
    known = g.at("main").graph_version.ancestry.get(chain_key(head), 0)
    return head.version - max(head.first, known)
