"""Owns the command `export`: the contents of the graph as files that `load` reads."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from omnigraph.cli.arguments import AtRef, Cli, Types, Yes
from omnigraph.cli.colours import Paint
from omnigraph.cli.engines import Conf, Engine, Master, here_or_spark, started
from omnigraph.cli.paths import STDIN, unwritable
from omnigraph.cli.value_text import count_text
from omnigraph.errors import AlreadyExists, InvalidArgument
from omnigraph.wire.values import json_text

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.engine.export import ExportResult
    from omnigraph.engine.snapshot import Snapshot

Exported = Literal["jsonl", "csv", "parquet", "arrow"]
_SUFFIXES: dict[str, Exported] = {
    ".jsonl": "jsonl",
    ".csv": "csv",
    ".parquet": "parquet",
    ".arrow": "arrow",
}


def export(
    to: Annotated[
        str | None, Parameter(help="a file, or a directory with a file for each type")
    ] = None,
    /,
    *,
    ref: AtRef = "main",
    types: Types = (),
    engine: Engine = "auto",
    master: Master = None,
    conf: Conf = (),
    yes: Yes = False,
    cli: Cli,
) -> None:
    """Write what is in the graph at a ref, so that load gives an equal graph.

    --format is jsonl (all types in one file), csv, parquet or arrow (one type in a file); the end
    of the file name tells it too. Without a path it goes to stdout. A file is written whole or
    not at all. On Spark it goes to a directory, and a large type into several files.

    Examples:
        omnigraph export people.jsonl
        omnigraph export backup/ --format parquet --ref v1
        omnigraph export --type Person --format csv
        omnigraph export backup/ --format parquet --engine spark
    """
    form = _format(to, cli)
    with cli.reading() as g, started(cli.out, engine, master, conf) as chosen:
        place = here_or_spark(chosen)
        if to is None or to == STDIN:
            stream = cli.out.streams.stdout
            if form in ("parquet", "arrow") and stream.isatty():
                raise InvalidArgument(f"{form} is not for a terminal.", help="Name a file.")
            done = g.at(ref).export(types=types or None, format=form, to=stream, engine=place)
            cli.out.note(f"{count_text(sum(done.counts.values()), 'row')} of {ref}.")
            return
        try:
            done = _whole(g.at(ref), to, yes, cli, types=types or None, format=form, engine=place)
        except OSError as error:
            raise unwritable(to, error) from None
    row = {
        "commit": done.commit,
        "format": done.format,
        "types": done.counts,
        "files": [str(path) for path in done.files],
    }

    def view(paint: Paint) -> Iterator[str]:
        longest = max((len(name) for name in done.counts), default=0)
        for name, count in done.counts.items():
            yield f"{name.ljust(longest)}  {count:,}"
        if len(done.files) == 1:
            yield f"Exported {ref} to {paint('bold', str(done.files[0]))}."
        else:
            files = count_text(len(done.files), "file")
            yield f"Exported {ref} to {paint('bold', to)}, {files}."

    if cli.options.json:
        cli.out.line(json_text(row))
    else:
        cli.out.lines(view(cli.out.paint))


def _whole(at: Snapshot, to: str, yes: bool, cli: Invocation, **asked: Any) -> ExportResult:
    """Never overwrites a file of the user unasked."""
    try:
        return at.export(to=to, overwrite=yes, **asked)
    except AlreadyExists as taken:
        if not cli.out.confirm(f"{taken.message}", yes=yes):
            raise
    return at.export(to=to, overwrite=True, **asked)


def _format(to: str | None, cli: Invocation) -> Exported:
    """The option, else the ending of the name, else JSON Lines. An unknown ending is an error,
    because it may mean another format."""
    given = cli.options.format
    if given in ("table", "json"):
        raise InvalidArgument(
            f"{given} is not a format that load reads.", help="Use jsonl, csv, parquet or arrow."
        )
    if given is not None:
        return given  # type: ignore[return-value]
    suffixes = [] if to is None else Path(to).suffixes
    known = next((_SUFFIXES[s] for s in suffixes if s in _SUFFIXES), None)
    if known is None and suffixes and not str(to).endswith("/") and not Path(str(to)).is_dir():
        raise InvalidArgument(
            f"The end of {to} does not tell a format.",
            help="Say --format jsonl, csv, parquet or arrow, or end the name in one of them.",
        )
    return known or "jsonl"
