"""Owns the ids of shaped rows: derived from the key, given, or left open for new ids from the
caller."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.identity import LONGEST_EDGE_ID, LONGEST_ID, derive_id, derive_ids
from omnigraph.model.violation import show_value
from omnigraph.plan.rows.row_type import ENDS, RowType
from omnigraph.plan.violation_list import Indices, Rejects

Column: TypeAlias = pa.Array | pa.ChunkedArray
Arrays = Mapping[str, Column]
_NO_ROWS = np.empty(0, dtype=np.int64)
_FEW = 16  # up to here Python is faster than starting Arrow's kernels
_EMPTY = pa.scalar("", pa.string())


def resolve_ids(facts: RowType, arrays: Arrays, length: int, rejects: Rejects) -> Column:
    """The id of each row, null if it must still be generated or cannot be determined."""
    given = arrays.get("id")
    if not facts.kind.key:
        if given is None:
            return pa.nulls(length, pa.string())
        _reject_empty_ids(facts, given, rejects)
        _reject_long_ids(facts, given, LONGEST_ID, "id", rejects)
        return given
    derived = _derive(facts, arrays, length, rejects)
    longest = LONGEST_EDGE_ID if len(facts.system) > 1 else LONGEST_ID
    _reject_long_ids(facts, derived, longest, facts.kind.key[-1], rejects)
    if given is not None:
        _reject_other_ids(facts, given, derived, rejects)
    return derived


def check_ends(facts: RowType, arrays: Arrays, rejects: Rejects) -> None:
    """Both ends of an edge must be given and not be empty."""
    for column in facts.system[1:]:
        array = arrays.get(column)
        if array is None:
            continue
        for problem, rows, value in (
            ("null", null_rows(array), None),
            ("empty", _empty_rows(array), ""),
        ):
            _reject_end(facts, column, problem, rows, value, rejects)


def _reject_end(
    facts: RowType, column: str, problem: str, rows: Indices, value: object, rejects: Rejects
) -> None:
    rows = rejects.without_blamed(rows, column)
    if len(rows):
        name = ENDS[column]
        message = f"`{name}` of {facts.kind.name} must be the id of a node, but it is {problem}."
        rejects.reject(rows, column, "endpoint", lambda _: (message, value), property=name)


def null_rows(array: Column) -> Indices:
    if not array.null_count:
        return _NO_ROWS
    return np.flatnonzero(array.is_null())


def _empty_rows(array: Column) -> Indices:
    few = len(array) <= _FEW
    if ("" not in array.to_pylist()) if few else pc.index(array, _EMPTY).as_py() < 0:
        return _NO_ROWS
    return np.flatnonzero(pc.equal(array, _EMPTY).fill_null(False))


def _derive(facts: RowType, arrays: Arrays, length: int, rejects: Rejects) -> Column:
    key = facts.kind.key
    if any(name not in arrays for name in key):
        return pa.nulls(length, pa.string())
    unusable = [_NO_ROWS]
    for name in key:
        for problem, rows in (("not be null", null_rows(arrays[name])), _not_finite(arrays[name])):
            if len(rows):
                unusable.append(rows)
                _reject_key(facts, name, problem, rows, arrays[name], rejects)
    parts = {name: arrays[name] for name in key}
    if len(unusable) == 1:
        ids = _derive_all(facts, parts, length)
    else:
        usable = np.ones(length, dtype=np.bool_)
        usable[np.concatenate(unusable)] = False
        parts = {name: part.filter(pa.array(usable)) for name, part in parts.items()}
        some = _derive_all(facts, parts, int(usable.sum()))
        ids = pc.replace_with_mask(pa.nulls(length, pa.string()), pa.array(usable), some)
    if len(key) == 1:  # a composite id is never empty
        _reject_key(facts, key[0], "not be empty", _empty_rows(ids), ids, rejects)
    return ids


def _derive_all(facts: RowType, parts: dict[str, Column], length: int) -> pa.Array:
    if length <= _FEW:
        values = zip(*(part.to_pylist() for part in parts.values()), strict=True)
        rows = (dict(zip(parts, row, strict=True)) for row in values)
        return pa.array([derive_id(facts.kind, row) for row in rows], pa.string())
    ids = derive_ids(facts.kind, pa.table(parts))
    return ids.chunk(0) if ids.num_chunks == 1 else ids.combine_chunks()


def _not_finite(array: Column) -> tuple[str, Indices]:
    problem = "be a finite number"
    if not pa.types.is_floating(array.type):
        return problem, _NO_ROWS
    return problem, np.flatnonzero(pc.invert(pc.is_finite(array)).fill_null(False))


def _reject_key(
    facts: RowType,
    name: str,
    problem: str,
    rows: Indices,
    array: Column,
    rejects: Rejects,
) -> None:
    rows = rejects.without_blamed(rows, name)
    if len(rows):
        message = (
            f"`{name}` is part of the key of {facts.kind.name} and must {problem}: "
            "the id is made from it."
        )
        rejects.reject(rows, name, "key", lambda i: (message, array[i].as_py()), property=name)


def _reject_empty_ids(facts: RowType, given: Column, rejects: Rejects) -> None:
    rows = _empty_rows(given)
    if len(rows):
        message = f"`id` of {facts.kind.name} must not be empty; leave it out to get a new one."
        rejects.reject(rows, "id", "id", lambda _: (message, ""), property="id")


def _reject_long_ids(
    facts: RowType, ids: Column, longest: int, name: str, rejects: Rejects
) -> None:
    if ids.nbytes <= longest or pc.max(pc.binary_length(ids)).as_py() <= longest:
        return

    def describe(index: int) -> tuple[str, object]:
        text = ids[index].as_py()
        return (
            f"The id of this {facts.kind.name} would be {len(text.encode()):,} bytes long, and "
            f"{longest:,} are allowed: ids stand in every edge and every index. Keep long texts "
            "in a property that is no key."
        ), text

    rows = np.flatnonzero(pc.greater(pc.binary_length(ids), longest).fill_null(False))
    rejects.reject(rows, name, "key", describe, property=name)


def _reject_other_ids(facts: RowType, given: Column, ids: Column, rejects: Rejects) -> None:
    def describe(index: int) -> tuple[str, object]:
        right, wrong = ids[index].as_py(), given[index].as_py()
        return (
            f"`id` of {facts.kind.name} must be {show_value(right)}, as its key says, "
            f"but it is {show_value(wrong)}."
        ), wrong

    rows = np.flatnonzero(pc.not_equal(given, ids).fill_null(False))
    if len(rows):
        rejects.reject(rows, "id", "id", describe, property="id")
