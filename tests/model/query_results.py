"""Owns the comparison of results: rows as plain JSON-like values, equal as a bag or in order.

NaN equals NaN, -0 equals 0, an integer never equals a float. A list that `collect` made has no
order. Entities are dicts; of several possible types one may lack what another has.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from typing import Any

from omnigraph.lang.gq import checked as c
from omnigraph.lang.gq.walk import walk
from omnigraph.model.catalog import Property
from omnigraph.model.types import Base, ListType, ScalarType, VectorType
from tests.model.query_oracle import Answer
from tests.model.query_values import Entity, as_text

_EXTRA = ("@type", "@src", "@dst")


def shown_entity(entity: Entity, kind: c.NodeKind | c.EdgeKind) -> dict[str, Any]:
    """`$x` as a result shows it."""
    (owner,) = (t for t in kind.types if t.name == entity.type)
    hidden = {
        p.name
        for p in owner.properties
        if p.type == ScalarType(Base.BLOB) or isinstance(p.type, VectorType)
    }
    shown = {p.name: _shown_property(entity, p, kind) for p in owner.properties}
    return {"@id": entity.id} | {n: value for n, value in shown.items() if n not in hidden}


def _shown_property(entity: Entity, prop: Property, kind: c.NodeKind | c.EdgeKind) -> Any:
    """A text where the types of the variable do not agree on one type."""
    value = entity.properties.get(prop.name)
    shown = [p.type for owner in kind.types for p in owner.properties if p.name == prop.name]
    types = {t for t in shown if t != ScalarType(Base.BLOB) and not isinstance(t, VectorType)}
    if len(types) <= 1 or value is None:
        return value
    if isinstance(prop.type, ListType):
        item = ScalarType(prop.type.item)
        return "[" + ",".join(_json_text(part, item) for part in value) + "]"
    return as_text(value, prop.type)


def _json_text(value: Any, kind: ScalarType) -> str:
    text = as_text(value, kind)
    is_bare = isinstance(value, int) or (isinstance(value, float) and math.isfinite(value))
    return text if is_bare else json.dumps(text, ensure_ascii=False)


def shown_value(value: Any, kind: c.Kind) -> Any:
    """As `to_pylist()` gives it."""
    if isinstance(value, Entity):
        item = kind.item if isinstance(kind, c.EntityListKind) else kind
        assert isinstance(item, c.NodeKind | c.EdgeKind)
        return shown_entity(value, item)
    if isinstance(value, tuple):
        return [shown_value(part, kind) for part in value]
    return value


def shown_rows(answer: Answer, rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    names = [(column.name, column.type.kind) for column in answer.columns]
    return [
        {name: shown_value(value, kind) for (name, kind), value in zip(names, row, strict=True)}
        for row in rows
    ]


def plain(value: Any) -> Any:
    """A value that is equal to, and sorts with, whatever means the same."""
    match value:
        case None:
            return ("null",)
        case bool():
            return ("bool", value)
        case int():
            return ("int", value)
        case float() if math.isnan(value):
            return ("nan",)
        case float():
            return ("float", value + 0.0)
        case datetime():
            assert value.tzinfo is not None, "a DateTime comes with its zone"
            return ("datetime", value.astimezone(UTC).isoformat())
        case date():
            return ("date", value.isoformat())
        case Mapping():
            held = {n: x for n, x in value.items() if x is not None and n not in _EXTRA}
            return ("entity", tuple(sorted((n, plain(x)) for n, x in held.items())))
        case list() | tuple():
            return ("list", tuple(plain(part) for part in value))
        case _:
            return ("text", value)


def collected_columns(query: c.CheckedQuery) -> frozenset[str]:
    """Columns whose lists have no order of their own."""
    assert isinstance(query.body, c.Read)
    group = query.body.group
    if group is None:
        return frozenset()
    lists = {i for i, a in enumerate(group.aggregates) if a.function == "collect"}
    return frozenset(
        column.name
        for column in query.columns
        if any(isinstance(p, c.AggregateValue) and p.index in lists for p in walk(column.value))
    )


def comparable(rows: Iterable[Mapping[str, Any]], unordered: frozenset[str]) -> list[Any]:
    def column(name: str, value: Any) -> Any:
        kind, *parts = plain(value)
        return (kind, tuple(sorted(parts[0]))) if name in unordered and parts else (kind, *parts)

    return [tuple((name, column(name, value)) for name, value in row.items()) for row in rows]


def difference(
    query: c.CheckedQuery, answer: Answer, got: Sequence[Mapping[str, Any]]
) -> str | None:
    """What is wrong with the rows that somebody else gives; None if nothing is."""
    unordered = collected_columns(query)
    expected = comparable(shown_rows(answer, answer.final()), unordered)
    found = comparable(got, unordered)
    if answer.is_ordered:
        return None if found == expected else f"expected, in order: {expected}\ngot: {found}"
    if len(found) != len(expected):
        return f"expected {len(expected)} rows: {expected}\ngot {len(found)}: {found}"
    every = Counter(comparable(shown_rows(answer, answer.rows), unordered))
    extra = Counter(found) - every
    if extra:
        return f"expected, in any order: {expected}\ngot: {found}\ntoo many: {list(extra)}"
    return None
