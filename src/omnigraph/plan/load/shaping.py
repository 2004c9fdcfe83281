"""Owns the step from a batch of raw rows to complete typed rows. Each row is shaped, checked and
has its place, and each rejected row has a reason."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.model.catalog import GraphType
from omnigraph.model.violation import Violation, show_value
from omnigraph.plan.arrow_checks import UNSPEAKABLE, value_at
from omnigraph.plan.load.places import AT, Places, Reject, SourceName, split_place
from omnigraph.plan.rows.typed import RowGroup, Shaped, shape_rows
from omnigraph.plan.validate import check_rows

_DESCRIBED = 100  # violations of one column that shaping tells in words
NewIds = Callable[[int], Any]


@dataclass(frozen=True)
class Portion:
    """Raw rows of one type, as a list of dicts, an Arrow table or a pandas frame, with the place
    of each and, if there are any, the lines that they were read from."""

    kind: GraphType
    rows: Any
    at: Places
    texts: Sequence[bytes] | None = None


@dataclass(frozen=True)
class TypedRows:
    """Rows of a type that gave the same properties, with the column of places. `generated`: all
    their ids were made here, so they can clash with nothing."""

    kind: GraphType
    table: pa.Table
    given: frozenset[str]
    generated: bool


@dataclass(frozen=True)
class ShapedPortion:
    groups: list[TypedRows]
    rejects: list[Reject]
    more: int = 0


class WholeSourceError(Exception):
    """An error of the source and not of a single row: a column that the type does not have, or one
    that is missing."""

    def __init__(self, violation: Violation) -> None:
        super().__init__(violation.message)
        self.violation = violation


def shape_portion(
    portion: Portion,
    names: Sequence[SourceName],
    *,
    complete: bool,
    new_ids: NewIds,
    every: bool,
) -> ShapedPortion:
    """With `every`, each rejected row is reported with its reason, otherwise only the first."""
    made = 0

    def fresh(count: int) -> Any:
        nonlocal made
        made += count
        return new_ids(count)

    kind = portion.kind
    # With a bound on violations, rows that break a later rule would pass.
    limit = sys.maxsize if every else _DESCRIBED
    shaped = shape_rows(kind, portion.rows, complete=complete, new_ids=fresh, limit=limit)
    for violation in shaped.violations:
        if violation.row is None:
            raise WholeSourceError(violation)
    kept = sum(group.table.num_rows for group in shaped.groups)
    generated = made == kept
    rejects = _rejects(portion, shaped.violations, names)
    if every and shaped.more:
        rejects = _tell_all(portion, shaped, names, complete=complete)
    groups = []
    more = shaped.more if not every else 0
    for group in shaped.groups:
        violations = check_rows(kind, group.table, positions=group.positions, limit=limit)
        rejects += _rejects(portion, violations, names)
        table, positions = _without(group, violations)
        if table.num_rows:
            at = pa.array(portion.at[positions])
            groups.append(TypedRows(kind, table.append_column(AT, at), group.given, generated))
    return ShapedPortion(groups, rejects, more)


def _without(group: RowGroup, violations: list[Violation]) -> tuple[pa.Table, Any]:
    if not violations:
        return group.table, group.positions
    bad = np.array([v.row for v in violations], dtype=np.int64)
    keep = ~np.isin(group.positions, bad)
    return group.table.filter(pa.array(keep)), group.positions[keep]


def _tell_all(
    portion: Portion, shaped: Shaped, names: Sequence[SourceName], *, complete: bool
) -> list[Reject]:
    """Shaping describes only the first misfits of a column. So the rows that it refused are shaped
    again, in pieces small enough that every misfit is described."""
    good = [group.positions for group in shaped.groups]
    refused = np.setdiff1d(np.arange(len(portion.at)), np.concatenate([*good, _NONE]))
    rejects: list[Reject] = []
    for start in range(0, len(refused), _DESCRIBED):
        piece = refused[start : start + _DESCRIBED]
        again = shape_rows(
            portion.kind,
            _take(portion.rows, piece),
            complete=complete,
            new_ids=lambda count: [""] * count,
            limit=sys.maxsize,
        )
        part = Portion(
            portion.kind,
            _take(portion.rows, piece),
            portion.at[piece],
            None if portion.texts is None else [portion.texts[i] for i in piece.tolist()],
        )
        rejects += _rejects(part, again.violations, names)
    return rejects


_NONE = np.empty(0, dtype=np.int64)


def _take(rows: Any, positions: Any) -> Any:
    if isinstance(rows, list):
        return [rows[i] for i in positions.tolist()]
    if isinstance(rows, pa.Table):
        return rows.take(pa.array(positions))
    return rows.iloc[positions]


def _rejects(
    portion: Portion, violations: Sequence[Violation], names: Sequence[SourceName]
) -> list[Reject]:
    """One reject for each row, with its first violation."""
    rejects: dict[int, Reject] = {}
    for violation in violations:
        row = violation.row
        if row is None or row in rejects:
            continue
        source, line = split_place(int(portion.at[row]))
        rejects[row] = Reject(
            source=names[source].name,
            line=line,
            type=violation.type,
            rule=violation.rule,
            reason=violation.message,
            row=row_text(portion, row),
            id=violation.id,
            property=violation.property,
        )
    return list(rejects.values())


def row_text(portion: Portion, index: int) -> str:
    """The row as it was given: its line, or its values as JSON."""
    if portion.texts is not None:
        return portion.texts[index].decode(errors="replace").rstrip("\r\n")
    if isinstance(portion.rows, list):
        return show_row(portion.rows[index])
    if isinstance(portion.rows, pa.Table):
        row = portion.rows.slice(index, 1).combine_chunks()
        columns = [column.chunk(0) for column in row.columns]
        held = zip(row.column_names, columns, strict=True)
        return show_row({name: value_at(column, 0) for name, column in held})
    frame = portion.rows
    series = [(str(frame.columns[i]), frame.iloc[:, i].array) for i in range(frame.shape[1])]
    return show_row({name: _pandas_value(column, index) for name, column in series})


def _pandas_value(column: Any, index: int) -> Any:
    try:
        return column[index]
    except UNSPEAKABLE:
        return value_at(pa.array(column[index : index + 1]), 0)


def show_row(row: Any) -> str:
    return json.dumps(row, ensure_ascii=False, default=show_value)
