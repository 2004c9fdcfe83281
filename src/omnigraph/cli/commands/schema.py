"""Owns the commands that show, plan and change the schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from omnigraph.cli.arguments import (
    NO_FLAGS,
    AtRef,
    Cli,
    CommitFlags,
    DryRun,
    OfBranch,
    OnBranch,
    Types,
    Yes,
)
from omnigraph.cli.colours import Paint

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.plan.migrate import MigrationPlan

SchemaFile = Annotated[str, Parameter(help="a .pg file, or - for stdin")]


def show(
    type: Annotated[str | None, Parameter(help="print this type alone")] = None,
    /,
    *,
    ref: AtRef = "main",
    cli: Cli,
) -> None:
    """Print the schema that a ref has, as it was applied, or one type of it.

    Examples:
        omnigraph schema show
        omnigraph schema show Person --ref main~3
    """
    from omnigraph.lang.pg.print import print_schema
    from omnigraph.model.catalog import EdgeType, declared
    from omnigraph.model.schema import Schema

    with cli.reading() as g:
        snapshot = g.at(ref)
        text = snapshot.schema
        if type is not None:
            kind = snapshot.type(type)
            whole = declared(snapshot.catalog)
            is_edge = isinstance(kind, EdgeType)
            shared = () if isinstance(kind, EdgeType) else kind.implements
            text = print_schema(
                Schema(
                    interfaces=tuple(i for i in whole.interfaces if i.name in shared),
                    nodes=tuple(n for n in whole.nodes if not is_edge and n.name == kind.name),
                    edges=tuple(e for e in whole.edges if is_edge and e.name == kind.name),
                )
            )
        row = {"ref": ref, "commit": snapshot.commit.id, "schema": text}
    cli.out.text(row, text)


def describe(
    *,
    types: Types = (),
    characters: Annotated[int, Parameter(help="the largest number of characters")] = 8_000,
    ref: AtRef = "main",
    cli: Cli,
) -> None:
    """Print the schema in few characters, as a model needs it: types with their properties,
    descriptions, counts and some values. What does not fit is left out, examples first.

    Examples:
        omnigraph schema describe
        omnigraph schema describe --type Person --characters 2000
    """
    with cli.reading() as g:
        snapshot = g.at(ref)
        text = snapshot.describe(types=types or None, characters=characters)
        row = {"ref": ref, "commit": snapshot.commit.id, "text": text}
    cli.out.value(row, lambda _: text.splitlines())


def plan(file: SchemaFile, /, *, branch: OfBranch = "main", cli: Cli) -> int:
    """Show what applying a schema would do, step by step, and change nothing.

    Steps are safe, validated (existing data is checked first) or destructive. The exit code is 6
    if something in it cannot be done at all, or would break a stored query.

    Examples:
        omnigraph schema plan people.pg
        omnigraph schema plan people.pg --branch review --json
    """
    text = _read(file, cli)
    with cli.reading() as g:
        steps = g.at(branch).plan_schema(text)
    _show_plan(steps, cli)
    return 0 if steps.can_be_applied else 6


def apply_(
    file: SchemaFile,
    /,
    *,
    branch: OnBranch = "main",
    flags: CommitFlags = NO_FLAGS,
    allow_data_loss: Annotated[
        bool, Parameter(negative=(), help="older versions go too, if something is dropped")
    ] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    cli: Cli,
) -> int:
    """Make a schema the accepted one, as one commit on one branch.

    It asks before anything is hidden: a dropped type or property stays readable in history,
    unless --allow-data-loss says that the next cleanup takes all older versions of the branch.
    Data that breaks a new rule is listed, and nothing is changed.

    Examples:
        omnigraph schema apply people.pg --as ada -m "add emails"
        omnigraph schema apply people.pg --dry-run
    """
    from omnigraph.plan.migrate import Tier

    text = _read(file, cli)
    with cli.writing(branch) as g:
        steps = g.at(branch).plan_schema(text)
        if dry_run:
            _show_plan(steps, cli)
            return 0 if steps.can_be_applied else 6
        for line in _plan_lines(steps, cli.out.note_paint) if steps.steps or steps.notes else ():
            cli.out.note(line)
        lost = len(steps.of_tier(Tier.DESTRUCTIVE))
        if lost and steps.can_be_applied:
            verb = "delete" if allow_data_loss else "hide"
            question = f"{lost} of these steps {verb}{'s' if lost == 1 else ''} data."
            if allow_data_loss:
                question += f" Cleanup will take every older version of {branch}."
            if not cli.out.confirm(question, yes=yes):
                cli.out.warn("Nothing was changed.")
                return 1
        done = g.branch(branch).apply_schema(
            text,
            allow_data_loss=allow_data_loss,
            **flags.words(cli),
        )
    commit = None if done.commit is None else done.commit.id
    row = {"applied": done.applied, "commit": commit, "branch": branch}

    def view(paint: Paint) -> Iterator[str]:
        if commit is None:
            yield "The schema is that already; no commit was made."
        else:
            yield f"Applied to {branch} in commit {paint('cyan', commit)}."
        if allow_data_loss and lost:
            yield f"Cleanup takes the older versions of {branch} once the grace period is over."

    cli.out.value(row, view)
    return 0


def _read(file: str, cli: Invocation) -> str:
    """An error in a schema is shown with its place in this file."""
    from omnigraph.engine.write.migration import read_schema

    text = cli.read_text(file)
    read_schema(text, file, columns=cli.out.source_columns())
    return f"{text}\n"


def _show_plan(steps: MigrationPlan, cli: Invocation) -> None:
    from omnigraph.wire.rows import plan_row

    cli.out.value(plan_row(steps), lambda paint: _plan_lines(steps, paint))


def _plan_lines(steps: MigrationPlan, paint: Paint) -> Iterator[str]:
    from omnigraph.cli.views.plans import plan_lines

    return plan_lines(steps, paint)
