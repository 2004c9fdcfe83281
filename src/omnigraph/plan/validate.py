"""Owns the checks of typed rows that need no other rows of the graph.

Uniqueness, endpoints and cardinality are decided where the graph can be read; the texts by which
values are compared there come from here.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TypeAlias

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model.catalog import GraphType, NodeType, Property, system_columns
from omnigraph.model.identity import derive_ids
from omnigraph.model.types import Base, ScalarType
from omnigraph.model.violation import Violation
from omnigraph.plan.constraints import sentence, value_rules
from omnigraph.plan.rows.row_type import ENDS
from omnigraph.plan.rows.scalars import SCALAR_ARROW
from omnigraph.plan.rules.book import OneRow, describe
from omnigraph.plan.violation_list import Indices, ViolationList

Column: TypeAlias = pa.Array | pa.ChunkedArray
_FEW = 16
_BASES = {arrow: base for base, arrow in SCALAR_ARROW.items()}


def check_rows(
    kind: GraphType,
    table: pa.Table,
    *,
    positions: Indices | None = None,
    limit: int = 100,
) -> list[Violation]:
    """The violations in rows of this type, in the columns that the table has.

    The columns have the names and types of `row_schema`. `positions` are the places of the rows in
    the input; without it, `row` is the index in the table.
    """
    findings = ViolationList(kind.name, limit)
    columns = dict(zip(table.column_names, table.columns, strict=True))
    for name, source in _required(kind):
        column = columns.get(name)
        if column is not None and column.null_count:
            shown = ENDS.get(name, name) if name in system_columns(kind) else name
            message = _null_sentence(kind, shown)
            for index in _unexcused(column, columns.get(source or ""))[: findings.room].tolist():
                _add(findings, "required", message, name, index, columns, positions)
    for rule in value_rules(kind):
        column = columns.get(rule.column)
        if column is None:
            continue
        for index in rule.broken(column)[: findings.room].tolist():
            message = sentence(kind.name, rule, column[index].as_py())
            _add(findings, rule.rule, message, rule.column, index, columns, positions)
    return sorted(findings.violations, key=lambda v: v.row or 0)


def check_nulls(kind: GraphType, names: Iterable[str]) -> list[Violation]:
    """What is wrong with setting these properties to null, whichever rows there are."""
    never_null = {name for name, source in _required(kind) if source is None}
    return [
        Violation(
            type=kind.name, rule="required", property=name, message=_null_sentence(kind, name)
        )
        for name in names
        if name in never_null
    ]


def _null_sentence(kind: GraphType, name: str) -> str:
    return f"`{name}` of {kind.name} is required, but it is null."


@lru_cache(maxsize=1024)
def _required(kind: GraphType) -> tuple[tuple[str, str | None], ...]:
    """The columns that may not be null, each with the one whose value excuses it: a vector is
    null until its source is embedded."""
    system = [(name, None) for name in system_columns(kind)]
    own = [(p.name, p.embed.source if p.embed else None) for p in kind.properties if not p.nullable]
    return (*system, *own)


def _unexcused(column: Column, source: Column | None) -> Indices:
    nulls = column.is_null()
    return np.flatnonzero(nulls if source is None else pc.and_(nulls, source.is_null()))


def _add(
    findings: ViolationList,
    rule: str,
    message: str,
    name: str,
    index: int,
    columns: dict[str, pa.ChunkedArray],
    positions: Indices | None,
) -> None:
    findings.add(
        rule,
        message,
        property=name,
        value=columns[name][index].as_py(),
        row=index if positions is None else int(positions[index]),
        id=columns["id"][index].as_py() if "id" in columns else None,
    )


def check_duplicates(
    kind: GraphType,
    table: pa.Table,
    *,
    positions: Indices | None = None,
    limit: int = 100,
) -> list[Violation]:
    """Ids that appear more than once in the column `id` of the input, with one violation for each
    id. `row` is the second row with the id."""
    ids = table.column("id")
    repeated = _repeated(ids)
    if not repeated:
        return []
    rule = OneRow(kind)
    return [
        msgspec.structs.replace(
            describe(rule, {"id": text}),
            row=rows[1] if positions is None else int(positions[rows[1]]),
        )
        for text, rows in list(repeated.items())[:limit]
    ]


def _repeated(ids: Column) -> dict[str, list[int]]:
    """The rows of each id that appears more than once, by first appearance."""
    few = len(ids) <= _FEW
    distinct = len(set(ids.to_pylist())) if few else pc.count_distinct(ids, mode="all").as_py()
    if distinct == len(ids):
        return {}
    counts = pc.value_counts(ids)
    many = counts.field("values").filter(pc.greater(counts.field("counts"), 1))
    rows = np.flatnonzero(pc.is_in(ids, value_set=many)).tolist()
    repeated: dict[str, list[int]] = {}
    for row, text in zip(rows, ids.take(pa.array(rows, pa.int64())).to_pylist(), strict=True):
        repeated.setdefault(text, []).append(row)
    return repeated


def key_texts(table: pa.Table, columns: Sequence[str]) -> list[str | None]:
    """For each row a text that is equal exactly where the values of these columns are.

    One column: its canonical text, as in an id; several: a JSON array of them. None where any
    is null, because null equals nothing. NaN equals NaN and -0.0 equals 0.0.
    """
    parts = [_column_texts(table.column(name)) for name in columns]
    if len(parts) == 1:
        return parts[0]
    return [
        None if None in row else json.dumps(row, ensure_ascii=False, separators=(",", ":"))
        for row in zip(*parts, strict=True)
    ]


def key_column(table: pa.Table, columns: Sequence[str]) -> pa.ChunkedArray:
    """`key_texts` as a column: text that needs no escapes does not have to become objects."""
    held = [table.column(name) for name in columns]
    plain = all(pa.types.is_string(column.type) for column in held)
    if plain and len(held) == 1:
        return held[0]
    if plain and not any(pc.any(pc.match_substring_regex(c, _ESCAPED)).as_py() for c in held):
        inside = pc.binary_join_element_wise(*held, '","', null_handling="emit_null")
        return pc.binary_join_element_wise('["', inside, '"]', "")
    return pa.chunked_array([pa.array(key_texts(table, columns), pa.string())])


_ESCAPED = r'["\\\x00-\x1f]'
"""Characters that JSON must escape."""


def _column_texts(column: pa.ChunkedArray) -> list[str | None]:
    base = _BASES.get(column.type)
    if base is Base.STRING:
        return list(column.to_pylist())
    if base is None or base is Base.BLOB:
        return [None if v is None else _nested_text(v) for v in column.to_pylist()]
    kind, usable = _keyed_by(base), column.is_valid().to_numpy()
    if pa.types.is_floating(column.type):
        usable &= np.isfinite(column.fill_null(0).to_numpy())
    if usable.all():
        return list(derive_ids(kind, pa.table({"x": column})).to_pylist())
    derived = derive_ids(kind, pa.table({"x": column.filter(pa.array(usable))})).to_pylist()
    texts: list[str | None] = [None] * len(column)
    for row, text in zip(np.flatnonzero(usable).tolist(), derived, strict=True):
        texts[row] = text
    for row in np.flatnonzero(~usable).tolist():
        number = column[row].as_py()
        texts[row] = None if number is None else _unusual_text(number)
    return texts


@lru_cache(maxsize=len(Base))
def _keyed_by(base: Base) -> NodeType:
    """A type whose id is the canonical text of its one property: the texts have one maker."""
    only = Property(id="x", column="x", name="x", type=ScalarType(base))
    return NodeType(id="x", name="X", key=("x",), properties=(only,))


def _unusual_text(number: float) -> str:
    return "NaN" if math.isnan(number) else f"{'-' if number < 0 else ''}Infinity"


def _nested_text(value: object) -> str:
    """Lists, vectors and blobs have no canonical text; their Python text distinguishes them."""
    if isinstance(value, list):
        return f"[{','.join(map(_nested_text, value))}]"
    return repr(value + 0.0 if isinstance(value, float) else value)
