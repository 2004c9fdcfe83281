"""Owns the commands that ask questions: `query`, `check` and `explain`."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from omnigraph.cli.arguments import AtRef, Cli
from omnigraph.cli.colours import Paint
from omnigraph.cli.engines import Conf, Engine, Master, here_or_spark, started
from omnigraph.cli.parameters import read_parameters
from omnigraph.cli.value_text import count_text, shown_text
from omnigraph.errors import InvalidArgument, InvalidQuery
from omnigraph.wire.values import plain

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.cli.invocation import Invocation
    from omnigraph.engine.query.result import Result

File = Annotated[str | None, Parameter(help="a .gq file, or - for stdin")]
QueryName = Annotated[str | None, Parameter(help="which query of the file")]
Inline = Annotated[
    str | None,
    Parameter(name=["--execute", "-e"], help="the query itself, with or without a header"),
]
Params = Annotated[str | None, Parameter(help="parameters as a JSON object")]
Param = Annotated[
    tuple[str, ...], Parameter(name=["--param", "-p"], negative=(), help="name=value; repeat")
]
Shown = Annotated[
    int | None, Parameter(name=["--limit", "-n"], help="how many rows to show at most")
]
Timeout = Annotated[float | None, Parameter(help="give up after this many seconds")]
MemoryLimit = Annotated[str | None, Parameter(help="give up above this size, such as 500MB")]
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "KIB": 2**10, "MIB": 2**20}
_UNITS["GIB"] = 2**30


def query(
    file: File = None,
    name: QueryName = None,
    /,
    *,
    execute: Inline = None,
    params: Params = None,
    param: Param = (),
    ref: AtRef = "main",
    limit: Shown = None,
    timeout: Timeout = None,
    memory_limit: MemoryLimit = None,
    engine: Engine = "auto",
    master: Master = None,
    conf: Conf = (),
    cli: Cli,
) -> None:
    """Ask the graph a question, at any ref, and print the rows.

    A file may hold many queries; the name says which. With -e the text is on the line, and needs
    no header unless it has parameters. A terminal shows a screenful and says how many rows there
    are more, unless --limit says how many to show.

    Examples:
        omnigraph query queries.gq friends --param name=Ada
        omnigraph query -e 'match { $p: Person } return { $p.name } limit 5'
        omnigraph query queries.gq friends --params '{"name": "Ada"}' --ref main~3 --format csv
        omnigraph query report.gq --engine spark --master spark://host:7077
    """
    text = read_query(file, execute, cli)
    values = read_parameters(params, param)
    most = read_size(memory_limit)
    with (
        cli.reading() as g,
        started(cli.out, engine, master, conf) as chosen,
        placed(text, file, values, cli),
    ):
        began = time.monotonic()
        found = g.at(ref).query(
            text,
            name,
            values,
            timeout=timeout,
            memory_limit=most,
            engine=here_or_spark(chosen),
        )
        count = show_result(found, cli, limit)
        if count is not None:
            took = f"{count_text(count, 'row')} in {time.monotonic() - began:.3f} s"
            cli.out.note(cli.out.note_paint("dim", took))


def explain(
    file: File = None,
    name: QueryName = None,
    /,
    *,
    execute: Inline = None,
    params: Params = None,
    param: Param = (),
    ref: AtRef = "main",
    analyze: Annotated[
        bool, Parameter(negative=(), help="run it, and tell what each step did")
    ] = False,
    engine: Engine = "auto",
    master: Master = None,
    conf: Conf = (),
    cli: Cli,
) -> None:
    """Show how a query is answered, step by step.

    With --analyze the query is run, and each step tells what it did. With --engine spark the plan
    of Spark is shown.

    Examples:
        omnigraph explain -e 'match { $p: Person } return { $p.name }'
        omnigraph explain queries.gq friends --param name=Ada --analyze
    """
    text = read_query(file, execute, cli)
    values = read_parameters(params, param)
    with (
        cli.reading() as g,
        started(cli.out, engine, master, conf) as chosen,
        placed(text, file, values, cli),
    ):
        shown = g.at(ref).explain(text, name, values, engine=here_or_spark(chosen), analyze=analyze)
    width = cli.out.streams.width
    cli.out.value({"plan": shown}, lambda _: _fitting(shown_text(shown), width))


def check(
    file: File = None,
    /,
    *,
    execute: Inline = None,
    ref: AtRef = "main",
    cli: Cli,
) -> int:
    """Show every mistake in a text of queries, and what was probably meant. Nothing runs.

    The exit code is 6 if there is a mistake.

    Examples:
        omnigraph check -e 'match { $p: Persn } retrun { $p.name }'
        omnigraph check queries.gq --json
    """
    from omnigraph.lang.diagnostics import Diagnostic, render_all

    text = read_query(file, execute, cli)
    with cli.reading() as g:
        found = g.at(ref).check(text)

    def view(paint: Paint) -> Iterator[str]:
        if not found.diagnostics:
            yield "Nothing is wrong."
        shown = [
            Diagnostic(
                code=one.code,
                message=one.message,
                span=one.span,
                severity=one.severity,
                expected=one.expected,
                suggestion=one.suggestion,
            )
            for one in found.diagnostics
        ]
        columns = cli.out.source_columns()
        yield from render_all(shown, text, file or "-e", columns=columns).splitlines()
        if found.corrected is not None:
            yield ""
            yield paint("bold", "Probably meant:")
            yield from found.corrected.splitlines()

    cli.out.value(plain(found), view)
    return 0 if found.ok else InvalidQuery.exit_code


def _fitting(lines: list[str], width: int | None) -> Iterator[str]:
    """What a step did stands below the step if it does not fit beside it."""
    for line in lines:
        step, told, did = line.partition("  (")
        if width is None or len(line) <= width or not told:
            yield line
        else:
            yield step
            yield f"{' ' * (len(step) - len(step.lstrip()) + 4)}({did}"


def show_result(found: Result, cli: Invocation, limit: int | None = None) -> int | None:
    """Prints rows as they come, in the format asked for, and for a person also how many there
    were. On a terminal at most `limit` rows, or a screenful; elsewhere all, or `limit`."""
    if limit is not None and limit < 0:
        raise InvalidArgument(f"--limit {limit} is below zero.")
    match cli.out.shape:
        case "table":
            most = cli.out.a_screen() if limit is None else limit
            return cli.out.table(_shortest(found), columns=found.schema.names, most=most)
        case "arrow":
            import pyarrow as pa

            batches = found.batches() if limit is None else _first(found.batches(), limit)
            reader = pa.RecordBatchReader.from_batches(found.schema, batches)
            cli.out.arrow(reader)
        case _:
            cli.out.rows(islice(found, limit), columns=found.schema.names)
    return None


def _shortest(found: Result) -> Iterable[dict[str, Any]]:
    """F32 values with no more digits than tell them from their neighbours. In Python they are F64,
    which would show 0.1 as 0.10000000149011612."""
    import numpy as np

    names = [field.name for field in found.schema if str(field.type) == "float"]
    if not names:
        return found
    return (
        row | {name: float(str(np.float32(row[name]))) for name in names if row[name] is not None}
        for row in found
    )


def _first(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if rows <= 0:
            return
        yield batch.slice(0, rows)
        rows -= batch.num_rows


@contextlib.contextmanager
def placed(
    text: str, file: str | None, given: Mapping[str, Any], cli: Invocation
) -> Iterator[None]:
    """Errors are shown with their place in the file that the user named. A parameter in `given`
    that the query does not declare gets a hint on how to declare it."""
    try:
        yield
    except InvalidQuery as error:
        from omnigraph.lang.diagnostics import render_all

        first = error.message.splitlines()[0]
        columns = cli.out.source_columns()
        shown = render_all(error.diagnostics, text, file or "-e", columns=columns)
        unbound = {text[d.span.start : d.span.end] for d in error.diagnostics if d.code == "T6"}
        wanted = [name for name in given if f"${name}" in unbound]
        hint = f"Declare it: query name(${wanted[0]}: String) {{ … }}." if wanted else None
        raise InvalidQuery(f"{first}\n{shown}", diagnostics=error.diagnostics, help=hint) from None


def read_query(file: str | None, inline: str | None, cli: Invocation) -> str:
    if (file is None) == (inline is None):
        raise InvalidArgument(
            "Which query? Give a file, or the text with -e."
            if file is None
            else "Give a file or -e, not both."
        )
    return inline if inline is not None else cli.read_text(file or "")


def read_size(text: str | None) -> int | None:
    if text is None:
        return None
    digits = text.rstrip("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ")
    unit = _UNITS.get(text[len(digits) :].strip().upper())
    try:
        if unit is None:
            raise ValueError
        return int(float(digits) * unit)
    except ValueError:
        raise InvalidArgument(
            f"{text!r} is not a size.", help="Write 500MB, 2GB or a number of bytes."
        ) from None
