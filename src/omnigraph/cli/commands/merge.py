"""Owns the command `merge`: what it would do, what it did, and what prevents it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from omnigraph.cli.arguments import NO_FLAGS, Cli, CommitFlags, DryRun
from omnigraph.cli.colours import Paint
from omnigraph.cli.value_text import count_text
from omnigraph.errors import InvalidArgument, InvalidData, MergeFailed

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.engine.merge.run import Merge

_CONFLICT = 4
Resolved = dict[tuple[str, str], Mapping[str, Any] | None]


def merge(
    source: Annotated[str, Parameter(help="the branch whose changes are brought in")],
    /,
    *,
    into: Annotated[str, Parameter(help="the branch that takes them")] = "main",
    strategy: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            help="who wins where both changed the same: ours (the target), theirs, or "
            "Type=theirs, Type.property=ours; repeat",
        ),
    ] = (),
    resolve: Annotated[
        str | None,
        Parameter(help="a file of rows that settle single entities, one JSON object a line"),
    ] = None,
    flags: CommitFlags = NO_FLAGS,
    dry_run: DryRun = False,
    cli: Cli,
) -> int:
    """Bring the changes of one branch into another, as one commit with two parents.

    Changes to different properties of one entity go together; where both sides changed the same
    to different values nothing is done, every conflict is shown, and the exit code is 4.

    A line of --resolve is {"type": "Person", "id": "Ada", "data": {"age": 37}}, with null as data
    for an entity that shall go.

    Examples:
        omnigraph merge review --dry-run
        omnigraph merge review --strategy theirs --as ada
        omnigraph merge review --strategy Person.age=ours --strategy Knows=theirs
    """
    chosen = _read_strategy(strategy)
    resolved = None if resolve is None else _read_resolved(cli.read_text(resolve), resolve)
    try:
        with cli.reading() if dry_run else cli.writing(into) as g:
            done = g.branch(into).merge(
                source,
                strategy=chosen,
                resolve=resolved,
                dry_run=dry_run,
                **flags.words(cli),
            )
            if dry_run and done.outcome == "fast_forward":  # which compares nothing by itself
                done = replace(done, changes=g.at(source).diff(into).summary())
    except MergeFailed as error:
        if cli.options.json:
            raise
        _show_conflicts(error.conflicts, source, into, cli, as_result=False)
        return _CONFLICT
    from omnigraph.wire.rows import merge_row

    row = merge_row(done, source, into, dry_run=dry_run)
    if dry_run and done.conflicts:
        if cli.out.is_table:
            _show_conflicts(done.conflicts, source, into, cli, as_result=True)
        else:
            cli.out.value(row, lambda _: ())
        return _CONFLICT
    cli.out.value(row, lambda paint: _lines(done, source, into, dry_run, paint))
    return 0


def _lines(done: Merge, source: str, into: str, dry_run: bool, paint: Paint) -> Iterator[str]:
    names = f"{paint('green', source)} into {paint('green', into)}"
    commit = "" if done.commit is None else paint("cyan", done.commit.id)
    match done.outcome:
        case "already_up_to_date":
            yield f"{paint('green', into)} has everything that {paint('green', source)} has."
            return
        case "fast_forward":
            forward = f"{paint('green', into)} forward to {paint('green', source)}"
            alone = "(no commits of its own)"
            if not dry_run:
                yield f"Brought {forward} in commit {commit} {alone}."
            else:
                yield f"Would bring {forward} {alone}:"
                yield from _changes(done, source, into, paint)
            return
        case "merged":
            yield f"Would merge {names}:" if dry_run else f"Merged {names} in commit {commit}:"
    yield from _changes(done, source, into, paint)


def _changes(done: Merge, source: str, into: str, paint: Paint) -> Iterator[str]:
    from omnigraph.cli.views.changes import summary_lines

    yield from (f"  {line}" for line in summary_lines(done.changes, paint))
    for key in done.adopted:
        name = key.split(":", 1)[-1]
        if name not in done.changes:
            yield f"  {name}  {paint('dim', f'as in {source}: {into} has not changed it')}"
    if done.queries:
        yield f"  {paint('magenta', 'queries')} {', '.join(done.queries)}"
    if not done.changes and not done.adopted:
        yield paint("dim", "  no entity changes")


def _show_conflicts(
    conflicts: Sequence[Any], source: str, into: str, cli: Invocation, *, as_result: bool
) -> None:
    from omnigraph.cli.views.conflicts import conflict_lines, way_out

    out = cli.out
    write, paint = (out.line, out.paint) if as_result else (out.warn, out.note_paint)
    counted = count_text(len(conflicts), "conflict")
    happened = "would stop" if as_result else "stopped"
    write(f"{paint('wrong', counted)} {happened} the merge of {source} into {into}.")
    for line in conflict_lines(conflicts, paint, out.streams.width, ours=into, theirs=source):
        write(line)
    for line in way_out(conflicts, source, into, paint, out.streams.width):
        write(line)
    if not as_result:
        write("\nNothing was changed.")


def _read_strategy(given: tuple[str, ...]) -> str | dict[str, str] | None:
    if not given:
        return None
    places: dict[str, str] = {}
    for text in given:
        place, equals, side = text.rpartition("=")
        if side not in ("ours", "theirs") or (equals and not place):
            raise InvalidArgument(
                f"The strategy {text!r} is not known.",
                help="Write ours, theirs, Type=theirs or Type.property=ours.",
            )
        places[place or "*"] = side
    return places


def _read_resolved(text: str, path: str) -> Resolved:
    """Rows by type and id. Every unreadable line is reported with its number."""
    found: Resolved = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InvalidData(f"{path}:{number} is not JSON: {error}.") from None
        name = row.get("type") or row.get("edge") if isinstance(row, dict) else None
        entity = row.get("id") if isinstance(row, dict) else None
        data = row.get("data") if isinstance(row, dict) else None
        if not isinstance(name, str) or not isinstance(entity, str) or "data" not in row:
            raise InvalidData(
                f'{path}:{number} is not {{"type": …, "id": …, "data": {{…}} or null}}.'
            )
        if data is not None and not isinstance(data, dict):
            raise InvalidData(f"{path}:{number}: data is an object of properties, or null.")
        found[name, entity] = data
    return found
