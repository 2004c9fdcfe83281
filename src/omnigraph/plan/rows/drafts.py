"""Owns the first look at rows: which columns they have, under which names, in which groups.

Names are checked here, once for each set of names in the input; values are not.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from omnigraph.plan.rows import wording
from omnigraph.plan.rows.intake import ColumnFrame, RawColumn, Records
from omnigraph.plan.rows.row_type import ENDS, Reading, RowType
from omnigraph.plan.violation_list import Indices, Rejects, ViolationList

_Part = tuple[Reading, list[int]]  # rows that use the same names


@dataclass(frozen=True)
class Draft:
    """The columns of one group as they came, before any value is examined."""

    columns: dict[str, RawColumn]
    given: frozenset[str]
    rejects: Rejects
    whole_floats: bool = False

    @property
    def length(self) -> int:
        return len(self.rejects.positions)


def draft_frame(
    facts: RowType, frame: ColumnFrame, complete: bool, findings: ViolationList
) -> Draft:
    """A frame gives all its columns in every row, so an error in them is reported once."""
    reading = facts.read(frame.names, complete=complete)
    rejects = Rejects(findings, np.arange(frame.length, dtype=np.int64))
    for name in reading.unknown:
        wording.tell_unknown(facts, name, None, findings)
    for column in reading.twice:
        rule = wording.rule_of(facts, column)
        findings.add(rule, wording.twice(facts, column), property=wording.shown(facts, column))
    for column in reading.missing:
        rule, message = (
            wording.rule_of(facts, column),
            wording.missing(facts, column, "no column gives it"),
        )
        findings.add(rule, message, property=wording.shown(facts, column))
    if reading.unknown or reading.twice or reading.missing:
        rejects.exclude(np.arange(frame.length, dtype=np.int64))
    raw = dict(zip(frame.names, frame.columns, strict=True))
    columns = {column: raw[name] for column, name in reading.sources.items()}
    return Draft(columns, reading.given, rejects, frame.whole_floats)


def draft_records(
    facts: RowType, records: Records, complete: bool, findings: ViolationList
) -> list[Draft]:
    """Records are grouped by the names they use: most inputs have one set of names, or a few."""
    for position, row in records.refused:
        findings.add("row", wording.not_a_row(facts.kind.name, row), value=row, row=position)
    by_names: dict[tuple[Hashable, ...], list[int]] = {}
    for index, row in enumerate(records.rows):
        by_names.setdefault(tuple(row), []).append(index)
    readings = [(facts.read(names, complete=complete), rows) for names, rows in by_names.items()]
    unknown = {name: rows[0] for reading, rows in reversed(readings) for name in reading.unknown}
    for name, row in unknown.items():
        wording.tell_unknown(facts, name, int(records.positions[row]), findings)
    groups: dict[frozenset[str], list[_Part]] = {}
    if complete:
        groups[frozenset().union(*(r.given for r, _ in readings))] = readings
    else:
        for reading, rows in readings:
            groups.setdefault(reading.given, []).append((reading, rows))
    return [
        _draft_group(facts, records, given, parts, complete, findings)
        for given, parts in groups.items()
    ]


def _draft_group(
    facts: RowType,
    records: Records,
    given: frozenset[str],
    parts: list[_Part],
    complete: bool,
    findings: ViolationList,
) -> Draft:
    if len(parts) == 1 and len(parts[0][1]) == len(records.rows):
        rows, positions = records.rows, records.positions
    else:
        order = np.sort(np.array([i for _, part in parts for i in part], dtype=np.int64))
        rows, positions = [records.rows[i] for i in order.tolist()], records.positions[order]
    rejects = Rejects(findings, positions)
    for reading, part in parts:
        if reading.unknown or reading.twice or reading.missing:
            places = np.searchsorted(positions, records.positions[np.array(part)])
            _reject_names(facts, reading, places, rejects)
    if len(parts) == 1:
        sources = parts[0][0].sources
        columns: dict[str, RawColumn] = {c: [row[s] for row in rows] for c, s in sources.items()}
    else:
        columns = _pluck_mixed(facts, rows, [r for r, _ in parts], complete)
    return Draft(columns, given, rejects)


def _pluck_mixed(
    facts: RowType, rows: list[Mapping[Any, object]], readings: list[Reading], complete: bool
) -> dict[str, RawColumn]:
    """Columns of rows that use different names. A property that a row lacks has its default."""
    columns: dict[str, RawColumn] = {}
    for column in dict.fromkeys(c for reading in readings for c in reading.sources):
        if column in ENDS and column in facts.system:
            other = ENDS[column]
            columns[column] = [row.get(other, row.get(column)) for row in rows]
        else:
            absent = facts.default_value(column) if complete and column != "id" else None
            columns[column] = [row.get(column, absent) for row in rows]
    return columns


def _reject_names(facts: RowType, reading: Reading, rows: Indices, rejects: Rejects) -> None:
    rejects.exclude(rows)
    for column in reading.twice:
        rule, message = wording.rule_of(facts, column), wording.twice(facts, column)
        rejects.reject_all(rows, column, rule, message, shown=wording.shown(facts, column))
    for column in reading.missing:
        rule = wording.rule_of(facts, column)
        message = wording.missing(facts, column, "this row does not give it")
        rejects.reject_all(rows, column, rule, message, shown=wording.shown(facts, column))
