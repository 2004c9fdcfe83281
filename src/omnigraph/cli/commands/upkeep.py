"""Owns the commands that look after stored data: verify, cleanup and upgrade."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import Cli, DryRun, Yes
from omnigraph.cli.colours import Paint
from omnigraph.cli.value_text import count_text, size_text

if TYPE_CHECKING:
    from omnigraph.engine.upkeep.cleanup_report import Cleaned
    from omnigraph.engine.upkeep.upgrade import FormatReport
    from omnigraph.engine.upkeep.verify_report import Verification


def verify(
    *,
    deep: Annotated[
        bool, Parameter(negative=(), help="also read every row and every byte")
    ] = False,
    cli: Cli,
) -> int:
    """Look at every version and file of the graph, and tell what is damaged.

    It repairs nothing. With --deep also rows, rules and checksums; a checksum is compared with
    that of when the file was written, or first looked at. The exit code is 1 if anything is wrong.

    Examples:
        omnigraph verify
        omnigraph verify --deep --json
    """
    with cli.writing() if deep else cli.reading() as g:
        report = g.verify(deep=deep)
    cli.out.value(report.to_dict(), lambda paint: _findings(report, paint))
    return 0 if report.ok else 1


def _findings(report: Verification, paint: Paint) -> Iterator[str]:
    for finding in report.errors:
        yield f"{paint('red', finding.kind)}  {finding.message}"
    for finding in report.findings:
        if finding.kind == "intent":
            yield paint("yellow", finding.message)
    spare = [finding for finding in report.findings if finding.kind == "unreferenced"]
    if spare and report.ok:  # otherwise a file that seems left over may still be needed
        yield f"{count_text(len(spare), 'file')} that no version needs; cleanup takes them."
    seen = report.looked_at
    what = [count_text(seen["versions"], "version"), count_text(seen["tables"], "table version")]
    what.append(count_text(seen["files"], "file"))
    if report.deep:
        what.append(count_text(seen["rows"], "row"))
    verdict = "all sound" if report.ok else paint("red", f"{len(report.errors)} wrong")
    yield f"Looked at {', '.join(what)}: {verdict}."


def cleanup(
    *,
    keep: Annotated[int, Parameter(help="commits that stay on every branch")] = 10,
    older_than: Annotated[str, Parameter(help="younger commits stay too: 7d, 12h, 30m")] = "7d",
    grace: Annotated[
        str | None, Parameter(help="nothing younger is touched; else OMNIGRAPH_GRACE, 1 hour")
    ] = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    cli: Cli,
) -> int:
    """Delete versions that are old, and every file that nothing needs any more.

    Branches, tags, and work under way keep what they need. The commits stay in the log; what
    they held can no longer be read. It shows what will go and asks; --json lists every file.

    Examples:
        omnigraph cleanup --dry-run
        omnigraph cleanup --keep 100 --older-than 30d --yes
    """
    if dry_run:
        with cli.writing() as g:
            told = g.cleanup(keep=keep, older_than=older_than, grace=grace, dry_run=True)
        cli.out.value(told.to_dict(), lambda paint: _cleaned(told, paint))
        return 0
    with cli.writing() as g:
        if not yes:
            plan = g.cleanup(keep=keep, older_than=older_than, grace=grace, dry_run=True)
            if plan.removed and not cli.out.confirm(_question(plan), yes=yes):
                cli.out.warn("Nothing was changed.")
                return 1
        cli.half_done = "What stays can be read; run it again to delete the rest."
        done = g.cleanup(keep=keep, older_than=older_than, grace=grace)
    cli.done = "The cleanup is done."
    cli.out.value(done.to_dict(), lambda paint: _cleaned(done, paint))
    return 0


def _question(plan: Cleaned) -> str:
    return f"Cleanup deletes {count_text(plan.files, 'file')} ({size_text(plan.bytes)}) for good."


def _cleaned(done: Cleaned, paint: Paint) -> Iterator[str]:
    verb = "Would delete" if done.dry_run else "Deleted"
    for reason, (files, size) in done.by_reason().items():
        yield f"{verb} {count_text(files, 'file')} ({size_text(size)}): {reason}."
    for branch, floor in sorted(done.floors.items()):
        yield f"{paint('bold', branch)} can be read from version {floor} on."
    for text in done.spared:
        yield paint("yellow", text)
    if not done.removed:
        yield "There is nothing to clean."


def upgrade(
    *,
    check: Annotated[bool, Parameter(negative=(), help="only tell, change nothing")] = False,
    cli: Cli,
) -> int:
    """Bring the graph to the format of this program, so that older ones refuse to write to it.

    Opening a graph for writing does the same. With --check the exit code is 1 if there is
    something to do.

    Examples:
        omnigraph upgrade --check
        omnigraph upgrade
    """
    with cli.reading() as g:
        before = g.format()
    if not check and not before.current:
        with cli.writing() as g:
            after = g.format()
        cli.done = "The graph is upgraded."
        cli.out.value(after.to_dict(), lambda _: _upgraded(before, after))
        return 0
    cli.out.value(before.to_dict(), lambda _: _upgraded(before, before))
    return 0 if before.current else 1


def _upgraded(before: FormatReport, after: FormatReport) -> Iterator[str]:
    if before.current:
        yield f"The graph has format {before.stamp}, which is the newest."
    elif after.current:
        yield f"Upgraded the graph from format {before.stamp} to {after.stamp}."
    else:
        yield f"The graph has format {before.stamp}; an upgrade brings it to {before.program}."
