"""Owns one chunk of a load file, from bytes to typed rows: fast where the lines are sound, exact
where they are not."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.plan.load.fast_jsonl import Indices, line_offsets, read_chunk
from omnigraph.plan.load.lines import Entry, Fault, parse_json, parse_line, read_row
from omnigraph.plan.load.places import Reject, SourceName, places, split_place
from omnigraph.plan.load.shaping import (
    NewIds,
    Portion,
    ShapedPortion,
    TypedRows,
    WholeSourceError,
    shape_portion,
)

_BLANK = b" \t\r\n"


def shape_jsonl(
    catalog: Catalog,
    chunk: bytes,
    first_place: int,
    names: Sequence[SourceName],
    *,
    kind: GraphType | None = None,
    complete: bool,
    new_ids: NewIds,
    every: bool,
) -> tuple[ShapedPortion, int]:
    """The rows of whole lines, the first of which stands at `first_place`, and how many lines
    there were. With `kind` each line is a row of that type, not an entry that names its own."""
    offsets = line_offsets(chunk)
    count = len(offsets) - 1
    source, line = split_place(first_place)
    at = places(source, line, count)
    groups: list[TypedRows] = []
    rejects: list[Reject] = []
    more = 0
    rest: list[Indices] = []
    if kind is None:
        read = read_chunk(catalog, chunk, offsets, complete=complete)
        rest.append(read.rest)
        for part in read.sound:
            portion = Portion(part.kind, part.table, at[part.lines])
            try:
                done = shape_portion(
                    portion, names, complete=complete, new_ids=new_ids, every=False
                )
            except WholeSourceError:
                rest.append(part.lines)
                continue
            if done.rejects or done.more:
                rest.append(part.lines)
                continue
            groups += done.groups
    else:
        rest.append(at - at[0] if count else at)
    for lines in rest:
        exact, faults = _read_exactly(catalog, chunk, offsets, lines, at, names, kind)
        rejects += faults
        for portion in exact:
            done = shape_portion(portion, names, complete=complete, new_ids=new_ids, every=every)
            groups += done.groups
            rejects += done.rejects
            more += done.more
    return ShapedPortion(groups, rejects, more), count


def _read_exactly(
    catalog: Catalog,
    chunk: bytes,
    offsets: Indices,
    lines: Indices,
    at: Any,
    names: Sequence[SourceName],
    kind: GraphType | None,
) -> tuple[list[Portion], list[Reject]]:
    by_type: dict[str, tuple[GraphType, list[dict[str, Any]], list[int]]] = {}
    rejects = []
    for index in lines.tolist():
        text = chunk[int(offsets[index]) : int(offsets[index + 1])]
        if not text.strip(_BLANK):
            continue
        entry = parse_line(catalog, text) if kind is None else _read_row(kind, text)
        if isinstance(entry, Fault):
            rejects.append(_rejected(entry, int(at[index]), text, names))
            continue
        _, rows, places_of = by_type.setdefault(entry.kind.table_key, (entry.kind, [], []))
        rows.append(entry.row)
        places_of.append(index)
    portions = []
    for held, rows, indexes in by_type.values():
        texts = [chunk[int(offsets[i]) : int(offsets[i + 1])] for i in indexes]
        portions.append(Portion(held, rows, at[indexes], texts))
    return portions, rejects


def _read_row(kind: GraphType, text: bytes) -> Entry | Fault:
    value = parse_json(text)
    return value if isinstance(value, Fault) else read_row(kind, value)


def _rejected(fault: Fault, place: int, text: bytes, names: Sequence[SourceName]) -> Reject:
    source, line = split_place(place)
    return Reject(
        source=names[source].name,
        line=line,
        type=fault.type,
        rule=fault.rule,
        reason=fault.message,
        row=text.decode(errors="replace").rstrip("\r\n"),
    )
