"""Owns the command `review`: what was done on a branch, commit by commit, and what becomes of
it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import NO_FLAGS, Cli, CommitFlags, Yes
from omnigraph.cli.colours import Paint
from omnigraph.cli.value_text import count_text
from omnigraph.errors import InvalidArgument, TagNotFound

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.engine.merge.run import Merge
    from omnigraph.engine.protocols import GraphLike
    from omnigraph.model.changes import Change
    from omnigraph.model.version import Commit

MARK = "reviewed/"
"""Before the name of a branch: the tag of the commit up to which somebody has looked."""
_KNOWN = 1_000
"""How far back the other branch is looked through. What comes before is older than the branch."""
_SHOWN = 20


@dataclass(frozen=True)
class Reviewed:
    """Commits of a branch that the other one does not have, oldest first, each with its first
    changes and how many more there are."""

    preview: Merge
    seen: str | None
    steps: list[tuple[Commit, list[Change], int]]


def review(
    branch: Annotated[str, Parameter(help="such as agent/eve")],
    /,
    *,
    into: Annotated[str, Parameter(help="the branch that it is compared with")] = "main",
    since_review: Annotated[
        bool, Parameter(negative=(), help="only what is new since it was marked as seen")
    ] = False,
    seen: Annotated[bool, Parameter(negative=(), help="mark all of it as seen")] = False,
    merge: Annotated[bool, Parameter(negative=(), help="merge it")] = False,
    discard: Annotated[bool, Parameter(negative=(), help="delete the branch unmerged")] = False,
    strategy: Annotated[
        tuple[str, ...], Parameter(negative=(), help="who wins in a merge, as for 'merge'; repeat")
    ] = (),
    resolve: Annotated[
        str | None, Parameter(help="a file of rows that settle single entities, as for 'merge'")
    ] = None,
    flags: CommitFlags = NO_FLAGS,
    yes: Yes = False,
    cli: Cli,
) -> int:
    """Show what was done on a branch: each commit with who, why and what; and what a merge would
    do. Then merge it, settle its conflicts, or discard it.

    What has been merged is not shown again. With --seen the tag reviewed/BRANCH moves to the head,
    and --since-review shows what came after it.

    Examples:
        omnigraph review agent/eve
        omnigraph review agent/eve --since-review --seen
        omnigraph review agent/eve --merge --as ada -m "looks right"
        omnigraph review agent/eve --discard --yes
    """
    from omnigraph.cli.commands.merge import merge as merge_into

    if merge and discard:
        raise InvalidArgument("A branch is merged or discarded, not both.")
    if (strategy or resolve) and not merge:
        raise InvalidArgument("--strategy and --resolve are for --merge.")
    if merge:
        return merge_into(
            branch, into=into, strategy=strategy, resolve=resolve, flags=flags, cli=cli
        )
    if discard:
        return _discard(branch, into, flags, cli, yes=yes)
    with cli.writing(branch) if seen else cli.reading() as g:
        found = look(g, branch, into, since_review=since_review)
        _show(found, branch, into, cli)
        if seen:
            _mark(g, branch, flags, cli)
    return 0


def look(g: GraphLike, branch: str, into: str, *, since_review: bool) -> Reviewed:
    at = g.at(branch)
    preview = g.branch(into).merge(branch, dry_run=True)
    if preview.outcome == "fast_forward":  # which compares nothing by itself
        preview = replace(preview, changes=at.diff(into).summary())
    tagged = g.tags().get(MARK + branch)
    last = None if tagged is None else tagged.id
    known = {into_commit.id for into_commit in g.at(into).log(limit=_KNOWN)}
    if since_review and last is not None:
        known.add(last)
    steps = []
    for commit in at.log(first_parent=True):
        if commit.id in known:
            break
        changes = iter(g.at(commit.id).diff(commit.parents[0]) if commit.parents else ())
        shown = list(islice(changes, _SHOWN))
        steps.append((commit, shown, sum(1 for _ in changes)))
    return Reviewed(preview, last, steps[::-1])


def _show(found: Reviewed, branch: str, into: str, cli: Invocation) -> None:
    from omnigraph.wire.rows import change_row, commit_row, merge_row

    steps = [
        commit_row(commit) | {"changes": [change_row(one) for one in changes], "more": more}
        for commit, changes, more in found.steps
    ]
    preview = merge_row(found.preview, branch, into, dry_run=True)
    row = {"branch": branch, "into": into, "seen": found.seen, "commits": steps, "merge": preview}
    cli.out.value(row, lambda paint: _lines(found, branch, into, cli, paint), listed=steps)


def _lines(found: Reviewed, branch: str, into: str, cli: Invocation, paint: Paint) -> Iterator[str]:
    from omnigraph.cli.views.changes import change_lines, summary_lines
    from omnigraph.cli.views.commits import log_lines
    from omnigraph.cli.views.conflicts import conflict_lines

    width = cli.out.streams.width
    for commit, changes, more in found.steps:
        yield from log_lines([commit], {}, paint, width, oneline=False)
        yield from (f"  {line}" for line in change_lines(changes, paint, width))
        if more:
            yield paint("dim", f"    … {count_text(more, 'more change')}")
        yield ""
    preview = found.preview
    if not found.steps:
        yield f"There is nothing new on {paint('green', branch)}."
    if preview.outcome == "already_up_to_date":
        yield f"{paint('green', into)} has everything that it has."
        return
    if preview.conflicts:
        yield paint("bold", f"{count_text(len(preview.conflicts), 'conflict')} with {into}:")
        yield from conflict_lines(preview.conflicts, paint, width, ours=into, theirs=branch)
        yield ""
        yield "Settle it: --merge with --strategy ours or theirs, or with --resolve FILE."
        return
    yield f"Merged into {paint('green', into)} it would bring:"
    yield from (f"  {line}" for line in summary_lines(preview.changes, paint))


def _mark(g: GraphLike, branch: str, flags: CommitFlags, cli: Invocation) -> None:
    words = flags.words(cli)
    with contextlib.suppress(TagNotFound):
        g.delete_tag(MARK + branch, actor=words["actor"])
    g.create_tag(MARK + branch, branch, **words)
    cli.out.note(f"Marked as seen up to {g.at(branch).commit.id}.")


def _discard(branch: str, into: str, flags: CommitFlags, cli: Invocation, *, yes: bool) -> int:
    words = flags.words(cli)
    with cli.writing() as g:
        new = len(look(g, branch, into, since_review=False).steps)
        question = f"This deletes {branch} with {count_text(new, 'commit')} that nobody merged."
        if not cli.out.confirm(question, yes=yes):
            return 1
        g.delete_branch(branch, **words)
        if MARK + branch in g.tags():
            g.delete_tag(MARK + branch, actor=words["actor"])
    row = {"branch": branch, "discarded": True, "commits": new}
    cli.out.value(row, lambda paint: [f"Discarded {paint('green', branch)}."])
    return 0
