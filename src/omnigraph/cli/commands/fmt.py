"""Owns `fmt` and `lint`: the commands that format and check `.pg` and `.gq` files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from omnigraph.cli.arguments import AtRef, Cli
from omnigraph.cli.paths import STDIN, unwritable
from omnigraph.cli.value_text import count_text
from omnigraph.errors import InvalidArgument

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.lang.diagnostics import Diagnostic
    from omnigraph.model.catalog import Catalog

Files = Annotated[str, Parameter(help="files, or - for stdin")]
Check = Annotated[
    bool, Parameter(negative=(), help="change nothing; exit 1 if a file would change")
]
_WRONG = 6


def fmt(*files: Files, check: Check = False, cli: Cli) -> int:
    """Bring .gq and .pg files into the one style, in place.

    White space and commas move, comments stay. A file that cannot be read as a query or a schema
    is left as it is. With - it reads stdin (as .gq) and prints the result.

    Examples:
        omnigraph fmt queries.gq people.pg
        omnigraph fmt --check queries.gq
    """
    return _format(files, None, check, cli)


def fmt_schema(*files: Files, check: Check = False, cli: Cli) -> int:
    """Bring .pg files into the one style, in place.

    Examples:
        omnigraph schema fmt people.pg
        omnigraph schema fmt - < people.pg
    """
    return _format(files, ".pg", check, cli)


def lint(
    *files: Files,
    ref: AtRef = "main",
    schema: Annotated[
        str | None, Parameter(help="check queries against this .pg file, not the graph")
    ] = None,
    cli: Cli,
) -> int:
    """Check .gq files against the schema of the graph, or of a file, and .pg files by themselves.

    The exit code is 6 if there are errors; warnings alone are 0. With --json it also tells for
    each query its parameters, its result columns, and the types it reads and writes.

    Examples:
        omnigraph lint queries.gq
        omnigraph lint queries.gq --schema people.pg --json
    """
    return _lint(files, None, ref, schema, cli)


def lint_schema(*files: Files, cli: Cli) -> int:
    """Check .pg files: errors, and what is allowed but probably not meant.

    Examples:
        omnigraph schema lint people.pg
    """
    return _lint(files, ".pg", "main", None, cli)


def _format(files: Sequence[str], suffix: str | None, check: bool, cli: Invocation) -> int:
    from omnigraph.lang.gq.format import format_queries
    from omnigraph.lang.pg.format import format_schema

    changed, code = 0, 0
    for path in _given(files):
        text = cli.read_text(path)
        is_schema = _suffix(path, suffix) == ".pg"
        formatted = format_schema(text) if is_schema else format_queries(text)
        if formatted.text is None:
            report_diagnostics(formatted.diagnostics, text, path, cli)
            code = _WRONG
            continue
        if path == STDIN and not check:
            cli.out.raw(formatted.text)
        elif formatted.text != text:
            changed += 1
            cli.out.line(f"{'would change' if check else 'changed'} {path}")
            if not check:
                _write(path, formatted.text)
    if not changed and not code and list(files) != [STDIN]:
        cli.out.note("Nothing to change.")
    return code or (1 if check and changed else 0)


def _lint(
    files: Sequence[str], suffix: str | None, ref: str, schema: str | None, cli: Invocation
) -> int:
    found: list[dict[str, Any]] = []
    catalog: Catalog | None = None
    errors = warnings = 0
    for path in _given(files):
        text = cli.read_text(path)
        queries: list[Any] = []
        if _suffix(path, suffix) == ".pg":
            diagnostics = _check_schema(text)
        else:
            catalog = catalog or _catalog(ref, schema, cli)
            queries, diagnostics = _check_queries(text, catalog)
        wrong = sum(d.severity == "error" for d in diagnostics)
        errors, warnings = errors + wrong, warnings + len(diagnostics) - wrong
        found.append(_file_row(path, text, queries, diagnostics))
        if cli.out.is_table:
            report_diagnostics(diagnostics, text, path, cli, as_result=True)
    if not cli.out.is_table:
        cli.out.rows(found)
    counts = f"{count_text(errors, 'error')}, {count_text(warnings, 'warning')}"
    cli.out.note(f"{count_text(len(files), 'file')}: {counts}.")
    return _WRONG if errors else 0


def _check_schema(text: str) -> tuple[Diagnostic, ...]:
    from omnigraph.lang.pg import compile_schema, parse_schema
    from omnigraph.lang.pg.lint import lint_schema

    return compile_schema(text).diagnostics or lint_schema(parse_schema(text).tree)


def _check_queries(text: str, catalog: Catalog) -> tuple[list[Any], tuple[Diagnostic, ...]]:
    from omnigraph.lang.diagnostics import sort_diagnostics
    from omnigraph.lang.gq import compile_file, parse_queries
    from omnigraph.lang.gq.lint import lint_file

    errors = compile_file(text, catalog).diagnostics
    linted = lint_file(parse_queries(text).file, catalog)
    return list(linted.queries), sort_diagnostics((*errors, *linted.diagnostics))


def _catalog(ref: str, schema: str | None, cli: Invocation) -> Catalog:
    if schema is None:
        with cli.reading() as g:
            return g.at(ref).catalog
    from omnigraph.engine.write.migration import read_schema
    from omnigraph.plan.migrate import apply_steps, plan_migration

    declared = read_schema(cli.read_text(schema), schema)
    return apply_steps(None, plan_migration(None, declared).steps)


def _file_row(
    path: str, text: str, queries: list[Any], diagnostics: tuple[Diagnostic, ...]
) -> dict[str, Any]:
    from omnigraph.lang.diagnostics import Source
    from omnigraph.wire.values import plain

    source = Source(text, path)
    return {
        "file": path,
        "queries": [plain(query) for query in queries],
        "diagnostics": [plain(source.locate(d)) for d in diagnostics],
    }


def report_diagnostics(
    diagnostics: Sequence[Diagnostic],
    text: str,
    path: str,
    cli: Invocation,
    *,
    as_result: bool = False,
) -> None:
    from omnigraph.lang.diagnostics import render_all

    write = cli.out.line if as_result else cli.out.warn
    paint = cli.out.paint if as_result else cli.out.note_paint
    for diagnostic in diagnostics:
        shown = render_all([diagnostic], text, path, columns=cli.out.source_columns())
        first, _, rest = shown.partition("\n")
        style = "wrong" if diagnostic.severity == "error" else "yellow"
        label, _, message = first.partition(":")
        write(f"{paint(style, label)}:{paint('bold', message)}\n{rest}")
        write("")


def _given(files: Sequence[str]) -> Sequence[str]:
    if not files:
        raise InvalidArgument("Which files? None was given.")
    return files


def _suffix(path: str, forced: str | None) -> str:
    found = forced or (".gq" if path == STDIN else Path(path).suffix)
    if found not in (".gq", ".pg"):
        raise InvalidArgument(
            f"{path} is neither a .gq nor a .pg file.", help="The end of the name tells which."
        )
    return found


def _write(path: str, text: str) -> None:
    try:
        Path(path).write_text(text, encoding="utf-8")
    except OSError as error:
        raise unwritable(path, error) from None
