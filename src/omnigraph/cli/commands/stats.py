"""Owns the commands `stats` and `snapshot`: the contents of the graph, and of one version."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from omnigraph.cli.arguments import AtRef, Cli
from omnigraph.cli.colours import Paint
from omnigraph.cli.config import is_served
from omnigraph.cli.value_text import count_text, one_line, time_text
from omnigraph.model.types import Base, ScalarType, VectorType

if TYPE_CHECKING:
    from omnigraph.engine.snapshot import Snapshot

_BAR = 16
_HEAD = "graph_head"
_EIGHTHS = " ▏▎▍▌▋▊▉█"


_TEXT = ScalarType(Base.STRING)
_SEARCHED = {"INVERTED": "text", "IVF_FLAT": "vector"}
_WORTH = 1024
"""Fewer rows are searched just as fast without an index."""


def stats(*, ref: AtRef = "main", cli: Cli) -> None:
    """Show what is in the graph: entities by type, branches, tags, the newest commit.

    It reads no data, so it is as fast for a large graph as for a small one.

    Examples:
        omnigraph stats
        omnigraph stats --ref v1 --json
    """
    with cli.reading() as g:
        snapshot = g.at(ref)
        types = _type_rows(snapshot, served=is_served(cli.root))
        row = {
            "root": g.root,
            "ref": ref,
            "commit": snapshot.commit.id,
            "entities": sum(each["entities"] for each in types),
            "types": types,
            "branches": g.branches(),
            "tags": list(g.tags()),
            "protected": g.protected_branches(),
            "pending": _pending(snapshot),
        }
        commit = snapshot.commit

    def view(paint: Paint) -> Iterator[str]:
        yield paint("bold", one_line(str(row["root"])))
        about = ", ".join(
            one_line(part) for part in (time_text(commit.created_at), commit.actor) if part
        )
        yield f"{paint('green', ref)} at {paint('cyan', commit.id)}  {paint('dim', about)}"
        yield ""
        yield from _type_lines(types, paint, cli.out.unicode)
        yield ""
        yield ", ".join(_names(row))
        for one in row["pending"]:
            yield paint(
                "dim",
                f"{one['covered']:,} of {one['rows']:,} rows are in the {one['index']} index of "
                f"{one['type']}.{one['property']}; 'omnigraph optimize' adds the others",
            )

    cli.out.value(row, view, listed=types)


def snapshot(
    ref: Annotated[str, Parameter(help="the ref to look at")] = "main", /, *, cli: Cli
) -> None:
    """Show the graph version that a ref names: its commit, and the version of every table.

    Examples:
        omnigraph snapshot
        omnigraph snapshot main~2 --json
    """
    with cli.reading() as g:
        found = g.at(ref)
        (head,) = (one for one in found.manifest().to_pylist() if one["object_type"] == _HEAD)
        types = _type_rows(found, served=is_served(cli.root))
        commit = found.commit
        schema = _digest(g, ref)
    branch, version = head["table_branch"], json.loads(head["metadata"])["version"]
    row = {
        "ref": ref,
        "branch": branch,
        "version": version,
        "commit": commit.id,
        "schema": schema,
        "types": types,
    }

    def view(paint: Paint) -> Iterator[str]:
        names = (("branch", branch), ("version", str(version)))
        for name, value in (*names, ("commit", commit.id), ("schema", schema)):
            yield f"{paint('bold', name.ljust(8))} {one_line(value)}"
        yield f"{paint('bold', 'time'.ljust(8))} {time_text(commit.created_at)} UTC"
        yield ""
        yield from _type_lines(types, paint, cli.out.unicode)

    cli.out.value(row, view, listed=types)


def _digest(g: Any, ref: str) -> str:
    """The hash of the schema."""
    found = g.at(ref)
    return str(found.digest if is_served(g.root) else found.graph_version.schema)


def _pending(found: Snapshot) -> list[dict[str, Any]]:
    """Search indexes that do not cover all rows. Only types that have such an index are opened."""
    if not any(
        prop.type == _TEXT or isinstance(prop.type, VectorType)
        for kind in found.catalog.types
        for prop in kind.properties
        if any(prop.name in group for group in kind.indexes)
    ):
        return []
    return [
        {
            "type": one.type,
            "property": one.property,
            "index": _SEARCHED[one.kind],
            "rows": one.rows,
            "covered": one.covered,
        }
        for one in found.indexes()
        if one.kind in _SEARCHED and one.covered < one.rows and one.rows >= _WORTH
    ]


def _type_rows(found: Snapshot, *, served: bool) -> list[dict[str, Any]]:
    """Of a graph on a server from its manifest, of one here without that, which is Arrow."""
    if not served:
        from omnigraph.engine.graph_view import pin_of

        pins = [(kind, pin_of(found, kind)) for kind in found.catalog.types]
        return [
            {
                "type": kind.name,
                "kind": kind.table_key.split(":", 1)[0],
                "entities": pin.rows,
                "fragments": pin.fragments,
                "table_version": pin.table_version,
            }
            for kind, pin in pins
        ]
    told = found.manifest().to_pylist()
    tables = {one["table_key"]: one for one in told if one["object_type"] == "table_version"}
    return [
        {
            "type": kind.name,
            "kind": kind.table_key.split(":", 1)[0],
            "entities": tables[kind.table_key]["row_count"],
            "fragments": json.loads(tables[kind.table_key]["metadata"])["fragments"],
            "table_version": tables[kind.table_key]["table_version"],
        }
        for kind in found.catalog.types
    ]


def _type_lines(types: list[dict[str, Any]], paint: Paint, unicode: bool) -> Iterator[str]:
    heads = ("Type", "Kind", "Entities", "", "Fragments", "Version")
    most = max((each["entities"] for each in types), default=0)
    rows = [
        (
            each["type"],
            each["kind"],
            f"{each['entities']:,}",
            _bar(each["entities"], most, unicode),
            f"{each['fragments']:,}",
            f"{each['table_version']:,}",
        )
        for each in types
    ]
    total = sum(each["entities"] for each in types)
    fragments = sum(each["fragments"] for each in types)
    rows.append(("total", "", f"{total:,}", "", f"{fragments:,}", ""))
    widths = [max(len(row[at]) for row in (heads, *rows)) for at in range(len(heads))]
    right = (False, False, True, False, True, True)
    styles = ("bold", "dim", "bold", "cyan", "dim", "dim")
    for number, row in enumerate((heads, *rows)):
        # Every sign here takes one column, those of the bar too.
        cells = [
            row[at].rjust(widths[at]) if right[at] else row[at].ljust(widths[at])
            for at in range(len(row))
        ]
        if number == 0:
            yield paint("dim", "  ".join(cells).rstrip())
        else:
            shown = [paint(style, cell) for style, cell in zip(styles, cells, strict=True)]
            yield "  ".join(shown)


def _bar(count: int, most: int, unicode: bool) -> str:
    """The share of the largest type, never an empty bar for a type with entities."""
    if not count or not unicode:
        return "" if unicode else "#" * round(_BAR * count / most) if most else ""
    eighths = max(1, round(_BAR * 8 * count / most))
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _names(row: dict[str, Any]) -> Iterator[str]:
    yield count_text(len(row["branches"]), "branch", "branches")
    yield count_text(len(row["tags"]), "tag")
    if row["protected"]:
        yield f"protected: {', '.join(one_line(name) for name in row['protected'])}"
