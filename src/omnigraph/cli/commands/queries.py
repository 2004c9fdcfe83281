"""Owns the commands on stored queries: list, show, set, remove, run."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from omnigraph.cli.arguments import NO_FLAGS, AtRef, Cli, CommitFlags, Embed, OnBranch
from omnigraph.cli.colours import Paint
from omnigraph.cli.commands.mutate import show_mutation
from omnigraph.cli.commands.query import (
    MemoryLimit,
    Param,
    Params,
    Timeout,
    read_size,
    show_result,
)
from omnigraph.cli.parameters import read_parameters
from omnigraph.cli.value_text import count_text, one_line
from omnigraph.errors import InvalidArgument, InvalidQuery, QueryNotFound
from omnigraph.wire.values import plain

if TYPE_CHECKING:
    from omnigraph.cli.invocation import Invocation
    from omnigraph.engine.write.queries import QueriesStored
    from omnigraph.lang.gq.stored import StoredQuery

Name = Annotated[str, Parameter(help="the name of the query")]


def list_(*, ref: AtRef = "main", cli: Cli) -> None:
    """List the stored queries: what each takes and gives.

    Examples:
        omnigraph queries list
        omnigraph queries list --ref main~3 --json
    """
    with cli.reading() as g:
        found = g.at(ref).queries()
    cli.out.rows([_row(one) for one in found.values()], view=lambda paint: _listed(found, paint))
    if not found:
        cli.out.note("There are no stored queries.")


def show(name: Name, /, *, ref: AtRef = "main", cli: Cli) -> None:
    """Print the text of a stored query.

    Examples:
        omnigraph queries show friends
        omnigraph queries show friends --json
    """
    from omnigraph.engine.stored_queries import find_stored

    with cli.reading() as g:
        found = g.at(ref).queries()
    text = find_stored({one.name: one.text for one in found.values()}, name)
    cli.out.text(_row(found[name]), text)


def set_(
    files: Annotated[tuple[str, ...], Parameter(help=".gq files, or - for stdin")] = (),
    /,
    *,
    name: Annotated[
        str | None, Parameter(help="the name of a query that stands alone, without a header")
    ] = None,
    execute: Annotated[
        str | None, Parameter(name=["--execute", "-e"], help="the query itself")
    ] = None,
    branch: OnBranch = "main",
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> None:
    """Store every query of some files under its name, as one commit.

    Stored queries are part of the graph: they branch, merge by name, and older commits have those
    of their time. Each is checked against the schema; as long as it is stored, no schema is
    accepted under which it would not run.

    Examples:
        omnigraph queries set queries.gq --as ada
        omnigraph queries set --name names -e 'match { $p: Person } return { $p.name }'
    """
    if bool(files) == (execute is not None):
        raise InvalidArgument("Which queries? Give files, or one text with -e.")
    texts = [("-e", execute)] if execute is not None else [(f, cli.read_text(f)) for f in files]
    wanted: dict[str, str] = {}
    for path, text in texts:
        for found, one in _read(text, path, cli):
            if (called := found or name) is None:
                raise InvalidArgument(
                    f"A query in {path} has no name.", help="Give it a header, or say --name NAME."
                )
            if called in wanted:
                raise InvalidArgument(f"There are two queries called {called!r}.")
            wanted[called] = one
    with cli.writing(branch) as g:
        done = g.branch(branch).store_queries(wanted, **flags.words(cli))
    _told(done, cli)


def remove(
    names: Annotated[tuple[str, ...], Parameter(help="the names of the queries")],
    /,
    *,
    branch: OnBranch = "main",
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> None:
    """Remove stored queries, as one commit. Older commits keep them.

    Examples:
        omnigraph queries remove friends
    """
    with cli.writing(branch) as g:
        done = g.branch(branch).store_queries({}, remove=names, **flags.words(cli))
    _told(done, cli)


def run(
    name: Name,
    /,
    *,
    params: Params = None,
    param: Param = (),
    ref: AtRef = "main",
    timeout: Timeout = None,
    memory_limit: MemoryLimit = None,
    embed: Embed = False,
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> None:
    """Run a stored query by its name: a read at any ref, a mutation on a branch.

    Examples:
        omnigraph queries run friends --param name=Ada
        omnigraph queries run birthday --param name=Ada --branch review --as bob
    """
    values = read_parameters(params, param)
    with cli.reading() as g:
        snapshot = g.at(ref)
        stored = snapshot.queries().get(name)
        if stored is None or not stored.mutation:
            began = time.monotonic()
            found = snapshot.run_query(
                name, values, timeout=timeout, memory_limit=read_size(memory_limit)
            )
            count = show_result(found, cli)
            if count is not None:
                took = f"{count_text(count, 'row')} in {time.monotonic() - began:.3f} s"
                cli.out.note(cli.out.note_paint("dim", took))
            return
    with cli.writing(ref) as g:
        done = g.branch(ref).run_mutation(name, values, embed=embed, **flags.words(cli))
    show_mutation(done, cli)


def _read(text: str, path: str, cli: Invocation) -> Iterator[tuple[str | None, str]]:
    """The queries of a text that has no mistakes of its own."""
    from omnigraph.lang.diagnostics import render_all
    from omnigraph.lang.gq import parse_queries
    from omnigraph.lang.gq.stored import split_queries

    wrong = parse_queries(text).diagnostics
    if wrong:
        shown = render_all(wrong, text, path, columns=cli.out.source_columns())
        raise InvalidQuery(
            f"The file has {count_text(len(wrong), 'mistake')}.\n{shown}", diagnostics=wrong
        )
    found = list(split_queries(text))
    if not found:
        raise QueryNotFound(f"{path} holds no query.")
    yield from found


def _told(done: QueriesStored, cli: Invocation) -> None:
    commit = None if done.commit is None else done.commit.id
    row = {
        "branch": done.branch,
        "set": list(done.set),
        "removed": list(done.removed),
        "commit": commit,
        "repeated": done.repeated,
    }

    def view(paint: Paint) -> Iterator[str]:
        if commit is None:
            yield "They are stored already; no commit was made."
            return
        verb = "It was done before" if done.repeated else f"Changed {done.branch}"
        yield from (f"{paint('green', '+')} {name}" for name in done.set)
        yield from (f"{paint('red', '-')} {name}" for name in done.removed)
        yield f"{verb} in commit {paint('cyan', commit)}."

    cli.out.value(row, view)


def _row(one: StoredQuery) -> dict[str, Any]:
    """A query for programs."""
    row: dict[str, Any] = plain(one)
    return row


def _listed(found: dict[str, StoredQuery], paint: Paint) -> Iterator[str]:
    for one in found.values():
        if one.problem:
            yield f"{paint('wrong', one.name)}  does not run under this schema"
            continue
        taken = ", ".join(f"${p.name}: {p.kind}{'?' if p.nullable else ''}" for p in one.parameters)
        given = (
            f"changes {', '.join(one.writes)}"
            if one.mutation
            else ", ".join(f"{c.name}: {c.kind}{'?' if c.nullable else ''}" for c in one.columns)
        )
        yield f"{paint('yellow', one.name)}({taken})  {paint('dim', '→')} {given}"
        if one.description:
            yield f"    {paint('dim', one_line(one.description))}"
