"""Owns the way from the rows that a user passes to typed Arrow rows of one type.

Pure: it neither reads the graph nor asks for the time, and new ids come from the caller. It finds
wrong types, names and ids; rules for values are in `validate`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.catalog import GraphType
from omnigraph.model.violation import Violation
from omnigraph.plan.arrow_checks import Unsound
from omnigraph.plan.ids import check_ends, resolve_ids
from omnigraph.plan.rows import wording
from omnigraph.plan.rows.cast import cast_column
from omnigraph.plan.rows.convert import convert_values
from omnigraph.plan.rows.drafts import Draft, draft_frame, draft_records
from omnigraph.plan.rows.intake import ColumnFrame, Records, read_input
from omnigraph.plan.rows.row_type import RowType, row_type
from omnigraph.plan.violation_list import Indices, ViolationList


@dataclass(frozen=True)
class RowGroup:
    """Rows that gave the same properties: `id` (and `src`, `dst`), then those properties.

    Names and Arrow types are those of `row_schema`, in its order. `positions` are the places of
    the rows in the input.
    """

    table: pa.Table
    given: frozenset[str]
    positions: Indices


@dataclass(frozen=True)
class Shaped:
    """The rows that are well-formed, and the violations of the others. `more` counts the violations
    that are not listed."""

    groups: tuple[RowGroup, ...]
    violations: tuple[Violation, ...]
    more: int = 0


def shape_rows(
    kind: GraphType,
    rows: object,
    *,
    complete: bool,
    new_ids: Callable[[int], list[str]],
    limit: int = 100,
) -> Shaped:
    """Rows of one type from a dict, dicts, Arrow, pandas or polars.

    `complete` rows are whole entities: one group with every property, where those left out have
    their default or null. Otherwise rows that give different properties fall into different
    groups, and only what was given is there; None gives null, while an absent key gives nothing.
    In a pandas frame NaN, NaT and None all mean null, also in columns of floats, and floats
    without a fraction may stand for integers; NaN from anywhere else stays NaN.
    """
    facts = row_type(kind)
    findings = ViolationList(kind.name, limit)
    drafts: list[Draft] = []
    try:
        match read_input(rows):
            case Records() as records:
                drafts = draft_records(facts, records, complete, findings)
            case ColumnFrame() as frame:
                drafts = [draft_frame(facts, frame, complete, findings)]
            case None:
                findings.add("row", wording.not_rows(kind.name, rows))
    except Unsound as error:
        findings.add("source", wording.unsound(kind.name, error))
    groups = [_build_group(facts, draft, complete, new_ids) for draft in drafts]
    found = sorted(findings.violations, key=lambda v: -1 if v.row is None else v.row)
    return Shaped(tuple(g for g in groups if g is not None), tuple(found), findings.more)


NewIds = Callable[[int], list[str]]
_Columns = dict[str, pa.Array | pa.ChunkedArray]


def _build_group(facts: RowType, draft: Draft, complete: bool, new_ids: NewIds) -> RowGroup | None:
    columns = _type_columns(facts, draft)
    check_ends(facts, columns, draft.rejects)
    columns["id"] = resolve_ids(facts, columns, draft.length, draft.rejects)
    if complete:
        for name in facts.properties:
            if name not in columns:
                columns[name] = facts.default_array(name, draft.length)
    names = tuple(name for name in facts.types if name in columns)
    positions = draft.rejects.positions
    sound = draft.rejects.sound(draft.length)
    if sound is not None:
        draft.rejects.name_rows(columns["id"])
        keep = pa.array(sound)
        columns = {name: column.filter(keep) for name, column in columns.items()}
        positions = positions[sound]
        if names[: len(facts.system)] != facts.system:
            return None  # every row lacks an end, so there is nothing to keep
    columns["id"] = _fill_ids(columns["id"], new_ids)
    table = pa.Table.from_arrays([columns[n] for n in names], schema=facts.schema_of(names))
    return RowGroup(table, draft.given, positions)


def _type_columns(facts: RowType, draft: Draft) -> _Columns:
    """Each column in its Arrow type. Values that do not fit become null and are reported."""
    columns: _Columns = {}
    for name, raw in draft.columns.items():
        kind = facts.types[name]
        if isinstance(raw, list):
            done = convert_values(raw, kind)
        else:
            if name in facts.system and pa.types.is_integer(raw.type):
                raw = raw.cast(pa.string())  # the id of an entity with a number as its key
            done = cast_column(raw, kind, whole_floats=draft.whole_floats)
        columns[name] = done.array
        if len(done.bad):
            wording.tell_misfits(facts, name, done, draft.rejects)
    return columns


def _fill_ids(ids: pa.Array | pa.ChunkedArray, new_ids: NewIds) -> pa.Array | pa.ChunkedArray:
    if not ids.null_count:
        return ids
    fresh = pa.array(new_ids(ids.null_count), pa.string())
    if len(fresh) == len(ids):
        return fresh
    return pc.replace_with_mask(ids, pa.array(np.asarray(ids.is_null())), fresh)
