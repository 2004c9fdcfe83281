"""Owns the command `optimize`, which keeps a graph in shape."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from omnigraph.cli.arguments import NO_FLAGS, Cli, CommitFlags, DryRun, OnBranch, Types
from omnigraph.cli.colours import Paint
from omnigraph.cli.engines import Conf, Engine, Master, here_or_spark, started
from omnigraph.cli.progress import progress_bar
from omnigraph.cli.value_text import count_text, size_text

if TYPE_CHECKING:
    from omnigraph.engine.upkeep.optimize_report import Optimized, Progress, TypeReport

_GAVE_WAY = 7
_WIDTH = 80


def optimize(
    *,
    branch: OnBranch = "main",
    types: Types = (),
    dry_run: DryRun = False,
    engine: Engine = "auto",
    master: Master = None,
    conf: Conf = (),
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> int:
    """Rewrite small fragments into large ones and build missing indexes, as one commit.

    Old versions, a thousand at a time, move into the history, where they take little room; all of
    them can be read as before.
    No reader can see a difference, and no writer has to wait. The exit code is 7 if writers were
    faster all the time; nothing is lost then, and it can be run again.

    Examples:
        omnigraph optimize
        omnigraph optimize --type Person --dry-run
    """

    with progress_bar(cli.out) as report:

        def tell(progress: Progress) -> None:
            report(progress.done, progress.total, f"{progress.doing} {progress.type}")

        opened = cli.reading() if dry_run else cli.writing(branch)
        with opened as g, started(cli.out, engine, master, conf) as chosen:
            done = g.branch(branch).optimize(
                types=types or None,
                dry_run=dry_run,
                progress=tell,
                engine=here_or_spark(chosen),
                **flags.words(cli),
            )
    cli.out.value(_row(done, branch), lambda paint: _lines(done, branch, paint))
    return _GAVE_WAY if done.gave_way else 0


def _row(done: Optimized, branch: str) -> dict[str, Any]:
    return {
        "branch": branch,
        "commit": None if done.commit is None else done.commit.id,
        "dry_run": done.dry_run,
        "gave_way": done.gave_way,
        "folded": done.folded,
        "types": {name: report for name, report in done.types.items() if _is_told(report)},
    }


def _lines(done: Optimized, branch: str, paint: Paint) -> Iterator[str]:
    told = {name: report for name, report in done.types.items() if _is_told(report)}
    for name, report in told.items():
        if not report.changed:
            continue
        yield f"{paint('bold', name.split(':', 1)[-1])}  {', '.join(_done(report))}"
        yield from _listed("indexed", report.indexed)
        yield from _listed("dropped", report.dropped)
        yield from (f"  {paint('yellow', 'waits')} {reason}" for reason in report.pending)
    if done.folded:
        goes = "would go" if done.dry_run else "went"
        yield f"{done.folded:,} old versions {goes} from the chain to the history."
    if done.gave_way:
        yield "Writers were faster all the time; run it again when it is quieter."
    elif done.commit is not None:
        yield f"Optimized {branch} in commit {paint('cyan', done.commit.id)}."
    elif not done.folded and not any(report.changed for report in told.values()):
        yield "There is nothing to do."


def _is_told(report: TypeReport) -> bool:
    return report.changed or bool(report.pending)


def _done(report: TypeReport) -> Iterator[str]:
    before, after = report.fragments
    size = f" ({size_text(report.rewritten_bytes)})" if report.rewritten_bytes else ""
    moved = report.rewritten or before != after
    yield f"{before} → {after} fragments{size}" if moved else count_text(after, "fragment")
    if report.segments[0] != report.segments[1]:
        yield f"{report.segments[0]} → {report.segments[1]} index segments"


def _listed(what: str, names: Sequence[str]) -> list[str]:
    """One below the other where they do not fit on one line."""
    indent = f"  {what} "
    return wrap(
        ", ".join(names),
        _WIDTH,
        initial_indent=indent,
        subsequent_indent=" " * len(indent),
        break_long_words=False,
        break_on_hyphens=False,
    )
