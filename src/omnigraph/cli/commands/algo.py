"""Owns the command `algo`: a value for each node, shown or written as a property."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from omnigraph.cli.arguments import NO_FLAGS, AtRef, Cli, CommitFlags, Limit
from omnigraph.cli.colours import Paint
from omnigraph.cli.engines import Conf, Engine, Master, started
from omnigraph.cli.value_text import count_text
from omnigraph.errors import InvalidArgument

if TYPE_CHECKING:
    import pyarrow as pa

    from omnigraph.cli.invocation import Invocation
    from omnigraph.engine.algorithms.result import AlgorithmResult
    from omnigraph.engine.graph import Graph

_OF_TYPE = re.compile(r"\s*([A-Za-z_]\w*)\s*:(.*)", re.DOTALL)


def algo(
    name: Annotated[
        str,
        Parameter(
            help="pagerank, connected_components, label_propagation, triangle_count, "
            "shortest_paths, core_numbers or degrees"
        ),
    ],
    /,
    *,
    edges: Annotated[
        tuple[str, ...],
        Parameter(
            negative=(),
            help="an edge type, or Type:in, Type:out, Type:both; repeat; else all",
        ),
    ] = (),
    direction: Annotated[
        Literal["out", "in", "both"] | None, Parameter(help="how edges are followed")
    ] = None,
    where: Annotated[
        tuple[str, ...],
        Parameter(
            name=["--where", "-w"],
            negative=(),
            help="'Type: condition'; nodes and edges of the type that do not fulfil it take no "
            "part; repeat",
        ),
    ] = (),
    source: Annotated[
        tuple[str, ...],
        Parameter(
            name=["--source", "-s"],
            negative=(),
            help="where paths, or the walkers of pagerank, begin: id or Type:id; repeat",
        ),
    ] = (),
    damping: Annotated[float | None, Parameter(help="pagerank: the share of steps along edges")] = (
        None
    ),
    tolerance: Annotated[
        float | None, Parameter(help="pagerank: stop when a round changes no more than this")
    ] = None,
    rounds: Annotated[int | None, Parameter(help="the largest number of rounds")] = None,
    write_to: Annotated[
        str | None, Parameter(help="make the values this property of the nodes, as one commit")
    ] = None,
    ref: AtRef = "main",
    limit: Limit = None,
    engine: Engine = "auto",
    master: Master = None,
    conf: Conf = (),
    flags: CommitFlags = NO_FLAGS,
    cli: Cli,
) -> None:
    """Rank, group and measure the nodes: a value for each, the most telling ones first.

    pagerank is how important a node is, or with --source how near to these nodes; degrees how many
    edges it has, triangle_count how closely knit its neighbours are, core_numbers how dense the
    part is that it is in, shortest_paths how far the nearest source is; connected_components and
    label_propagation say which nodes belong together. With --write-to the values become a property
    that the schema has, on the branch, instead of being printed.

    Examples:
        omnigraph algo pagerank --edges Cites -n 10
        omnigraph algo shortest_paths --source ada --edges Knows:both
        omnigraph algo degrees --edges Knows --where 'Knows: since >= 2000' --format csv
        omnigraph algo connected_components --write-to circle --branch try --as ada
        omnigraph algo pagerank --engine spark --master spark://host:7077
    """
    given: dict[str, Any] = {"damping": damping, "tolerance": tolerance, "rounds": rounds}
    options = {option: value for option, value in given.items() if value is not None}
    opened = cli.reading() if write_to is None else cli.writing(ref)
    with opened as g, started(cli.out, engine, master, conf) as chosen:
        if source:
            options["sources"] = _sources(source, g, ref)
        began = time.monotonic()
        asked: dict[str, Any] = {
            "edges": _edges(edges, direction),
            "direction": direction,
            "where": _where(where),
            "engine": chosen,
            **options,
        }
        algorithm = name.replace("-", "_")
        if write_to is None:
            done = g.at(ref).algorithm(algorithm, **asked)
        else:
            commit = flags.words(cli)
            done = g.branch(ref).algorithm(algorithm, write_to=write_to, **asked, **commit)
        if write_to is not None:
            _tell_written(done, write_to, ref, cli)
            return
        table = _ordered(done)
        took = time.monotonic() - began
    _show(table if limit is None else table.slice(0, limit), cli)
    if cli.out.is_table:
        cli.out.note(cli.out.note_paint("dim", f"{_summary(table)} in {took:.3f} s"))


def _edges(given: tuple[str, ...], direction: str | None) -> Any:
    """Names, or names with directions as soon as one has its own."""
    pairs = [text.partition(":") for text in given]
    if not any(way for _, _, way in pairs):
        return list(given) or None
    if direction is None and not all(way for _, _, way in pairs):
        bare = next(name for name, _, way in pairs if not way)
        raise InvalidArgument(
            f"--edges {bare} has no direction, and others have one.",
            help=f"Write --edges {bare}:both, or say --direction for those without.",
        )
    return {name: way or direction for name, _, way in pairs}


def _where(given: tuple[str, ...]) -> Any:
    if not given:
        return None
    found: dict[str, str] = {}
    for text in given:
        match = _OF_TYPE.fullmatch(text)
        if match is None and len(given) == 1:
            return text
        if match is None:
            raise InvalidArgument(
                f"--where {text!r} does not say of which type.",
                help="Write --where 'Knows: since >= 2000'.",
            )
        name, condition = match[1], match[2].strip()
        found[name] = f"({found[name]}) and ({condition})" if name in found else condition
    return found


def _sources(given: tuple[str, ...], g: Graph, ref: str) -> list[str | tuple[str, str]]:
    known = g.at(ref).catalog.node_names
    found: list[str | tuple[str, str]] = []
    for text in given:
        kind, _, rest = text.partition(":")
        found.append((kind, rest) if kind in known and rest else text)
    return found


def _ordered(done: AlgorithmResult) -> pa.Table:
    """Labels are ordered by group, distances from near to far, and everything else from high to
    low."""
    import pyarrow as pa

    values = done.table["value"].type
    near_first = pa.types.is_string(values) or done.name == "shortest_paths"
    order = "ascending" if near_first else "descending"
    keys = [("value", order), ("type", "ascending"), ("id", "ascending")]
    return done.table.sort_by(keys)


def _show(table: pa.Table, cli: Invocation) -> None:
    if cli.out.shape == "arrow":
        import pyarrow as pa

        cli.out.arrow(pa.RecordBatchReader.from_batches(table.schema, table.to_batches()))
        return
    rows = (row for batch in table.to_batches(max_chunksize=4096) for row in batch.to_pylist())
    cli.out.rows(rows, columns=table.column_names)


def _summary(table: pa.Table) -> str:
    import pyarrow as pa

    nodes = count_text(table.num_rows, "node")
    values = table["value"]
    if not pa.types.is_string(values.type):
        return nodes
    groups = Counter(values.to_pylist())
    if not groups:
        return nodes
    return f"{nodes} in {count_text(len(groups), 'group')}, {max(groups.values()):,} in the largest"


def _tell_written(done: AlgorithmResult, property: str, branch: str, cli: Invocation) -> None:
    row = {
        "algorithm": done.name,
        "property": property,
        "branch": branch,
        "nodes": len(done),
        "rounds": done.rounds,
        "engine": done.engine,
        "commit": None if done.commit is None else done.commit.id,
    }

    def view(paint: Paint) -> Iterator[str]:
        if done.commit is None:
            yield "There are no nodes to write to; no commit was made."
            return
        nodes = count_text(len(done), "node")
        yield (
            f"Wrote {done.name} of {nodes} to {paint('bold', property)} on {branch} in commit "
            f"{paint('cyan', done.commit.id)}."
        )

    cli.out.value(row, view)
