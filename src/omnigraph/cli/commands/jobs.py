"""Owns the commands on jobs: list, show, cancel."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from omnigraph.cli.arguments import Actor, Cli
from omnigraph.cli.colours import Paint
from omnigraph.cli.value_text import one_line, time_text
from omnigraph.wire.values import plain

if TYPE_CHECKING:
    from omnigraph.engine.upkeep.jobs import GraphJob

JobId = Annotated[str, Parameter(help="the id of the job")]


def list_(*, cli: Cli) -> None:
    """List the jobs of the graph, wherever they run, oldest first.

    One that has been silent for a minute is lost. Those that ended long ago go at a cleanup.

    Examples:
        omnigraph jobs list
        omnigraph jobs list --json
    """
    with cli.reading() as g:
        found = g.jobs.list()
    cli.out.rows([_row(one) for one in found], view=lambda paint: _lines(found, paint))
    if not found:
        cli.out.note("There are no jobs.")


def show(id: JobId, /, *, cli: Cli) -> None:
    """Show one job: what it was asked, how far it is, and what came of it.

    Examples:
        omnigraph jobs show 01M7JGQ6QC0X247AYXK9H7M2MN
    """
    with cli.reading() as g:
        job = g.jobs.get(id)
    cli.out.value(_row(job), lambda paint: _lines([job], paint))


def cancel(id: JobId, /, *, actor: Actor = None, cli: Cli) -> None:
    """Ask a job to stop, wherever it runs. What it has committed stays.

    Examples:
        omnigraph jobs cancel 01M7JGQ6QC0X247AYXK9H7M2MN
    """
    with cli.writing() as g:
        job = g.jobs.cancel(id, actor=cli.actor(actor))
    said = "It is cancelled." if job.ended else "It was asked to stop."
    cli.out.value(_row(job), lambda _: [said])


def _row(job: GraphJob) -> dict[str, Any]:
    row: dict[str, Any] = plain(job.to_dict())
    return row


def _lines(jobs: list[GraphJob], paint: Paint) -> Iterator[str]:
    for job in jobs:
        parts = [job.kind, job.state]
        if job.total:
            parts.append(f"{job.done} of {job.total}")
        parts += [one_line(text) for text in (job.doing, job.actor) if text]
        if job.cancelling and not job.ended:
            parts.append("asked to stop")
        parts.append(time_text(job.created_at))
        yield f"{paint('cyan', job.id)}  {', '.join(parts)}"
        if job.problem:
            yield f"    {paint('wrong', one_line(str(job.problem.get('error', ''))))}"
