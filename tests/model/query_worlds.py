"""Owns drawn schemas and data for tests of reads: few entities, small pools of awkward values, so
that comparisons, joins and groups often meet."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from random import Random
from typing import Any, Final

from omnigraph.model.catalog import EdgeType, GraphType
from omnigraph.model.types import (
    INTEGER_RANGES,
    Base,
    EnumType,
    ListType,
    PropertyType,
    ScalarType,
    VectorType,
)
from tests.model.query_data import Dataset, Row, completed
from tests.model.query_values import narrowed

NODES: Final = ("Person", "Order", "Select", "City")
EDGES: Final = ("Knows", "Likes", "Contains", "Table", "ownedBy", "OWNS")
PROPERTIES: Final = (
    "select", "groupBy", "type", "count", "camelCase", "date", "where", "x", "limit", "from_",
    "desc", "value", "x1", "rowid", "order",
)  # fmt: skip
TYPES: Final = (
    "String", "String", "I32", "I64", "I64", "U32", "U64", "F32", "F64", "F64", "Bool",
    "Date", "Date", "DateTime", "DateTime", "enum(open, closed, in-progress)",
    "[I64]", "[String]", "[F64]", "[Date]", "Vector(2)", "Blob",
)  # fmt: skip
TEXTS: Final = (
    "", "a", "A", "ab", "b", "\u00e9", "e\u0301", "\U0001f600", "\ufff0", "it's", "%", "_", "a_b",
    "50%", 'say "x"', "back\\slash", " a ", "open", "null", "a\nb",
    "\u00df\ufb01", "\u00a0A\u3000", "\u03a3\u0391\u03a3",
)  # fmt: skip
FLOATS: Final = (0.0, -0.0, 0.5, 1.0, 1.5, -2.25, 3.0, 100.0, math.nan, math.inf, -math.inf)
DATES: Final = (date(2024, 2, 29), date(1969, 12, 31), date(1, 1, 1), date(9999, 12, 31))
INSTANTS: Final = (
    datetime(2024, 2, 29, 23, 30, 0, 250_000, tzinfo=UTC),
    datetime(1969, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC),
    datetime(2024, 2, 29, tzinfo=UTC),
    datetime(9999, 12, 31, tzinfo=UTC),
)
IDS: Final = ("1", "2", "x'y", 'q"', "\u00e9", "A", "a", "7", "8")
ENUM: Final = ("closed", "in-progress", "open")


def draw_schema(chance: Random) -> str:
    """Nodes with and without keys, an interface, edges between equal and different types, several
    between the same."""
    names = chance.sample(NODES, chance.randint(1, 3))
    lines = ["interface Named { title: String? rank: I32? tags: [String]? }"]
    for name in names:
        key = chance.choice(["", "", "key: String @key ", "key: I64 @key "])
        implements = chance.choice(["", " implements Named"])
        lines.append(f"node {name}{implements} {{ {key}{_properties(chance, 5)} }}")
    for name in chance.sample(EDGES, chance.randint(1, 4)):
        source = chance.choice(names)
        target = chance.choice([source, chance.choice(names)])
        written = name[0].upper() + name[1:]
        lines.append(f"edge {written}: {source} -> {target} {{ {_properties(chance, 3)} }}")
    return "\n".join(lines) + "\n"


def _properties(chance: Random, most: int) -> str:
    names = chance.sample(PROPERTIES, chance.randint(0, most))
    return " ".join(_property(chance, name) for name in names)


def _property(chance: Random, name: str) -> str:
    kind = chance.choice(TYPES)
    index = " @index" if kind[0] not in "[VB" and chance.random() < 0.3 else ""
    return f"{name}: {kind}{chance.choice(['?', '?', ''])}{index}"


def draw_value(chance: Random, kind: PropertyType) -> Any:
    match kind:
        case EnumType(values=values):
            return chance.choice(values)
        case ListType(item=item):
            return tuple(draw_value(chance, ScalarType(item)) for _ in range(chance.randint(0, 3)))
        case VectorType(dimension=dimension):
            return tuple(chance.choice([0.5, 1.0, -2.0]) for _ in range(dimension))
        case ScalarType(base=base):
            return _scalar(chance, base)


def _scalar(chance: Random, base: Base) -> Any:
    if base in INTEGER_RANGES:
        low, high = INTEGER_RANGES[base]
        if chance.random() < 0.06:
            return chance.choice([low, high, low + 1, high - 1, high // 2 + 1])
        return max(low, chance.randint(-2, 4))
    match base:
        case Base.F32 | Base.F64:
            value = chance.choice(FLOATS)
            return narrowed(0.1) if base is Base.F32 and chance.random() < 0.1 else value
        case Base.STRING:
            return chance.choice(TEXTS)
        case Base.BOOL:
            return chance.random() < 0.5
        case Base.DATE:
            return chance.choice(DATES)
        case Base.DATETIME:
            return chance.choice(INSTANTS)
        case _:
            return chance.choice([b"", b"\x00\xff"])


def draw_row(chance: Random, kind: GraphType) -> Row:
    """Every property, a quarter of them null where they may be."""
    row = {}
    for prop in kind.properties:
        is_null = prop.nullable and chance.random() < 0.25
        row[prop.name] = None if is_null else draw_value(chance, prop.type)
    return row


def draw_nodes(chance: Random, data: Dataset, most: int = 6) -> None:
    for kind in data.catalog.nodes:
        count = 0 if chance.random() < 0.07 else chance.randint(1, most)
        rows: dict[str, Row] = {}
        for id_ in chance.sample(IDS, count):
            row = {"id": id_, **draw_row(chance, kind)}
            if "key" in kind.key:
                is_text = kind.properties[[p.name for p in kind.properties].index("key")].type
                text = is_text == ScalarType(Base.STRING)
                row["key"] = id_ if text else IDS.index(id_) * 10**5 - 3
                row = completed(kind, row, 0)
            rows[row["id"]] = row
        data.nodes[kind.name] = list(rows.values())


def draw_edge(chance: Random, data: Dataset, kind: EdgeType, number: int) -> Row | None:
    sources, targets = data.nodes.get(kind.source), data.nodes.get(kind.target)
    if not sources or not targets:
        return None
    source = chance.choice(sources)
    target = source if kind.source == kind.target and chance.random() < 0.15 else None
    target = target or chance.choice(targets)
    ends = {"src": source["id"], "dst": target["id"]}
    return {"id": f"e{number}", **ends, **draw_row(chance, kind)}


def draw_edges(chance: Random, data: Dataset, most: int = 10) -> None:
    for kind in data.catalog.edges:
        count = 0 if chance.random() < 0.07 else chance.randint(1, most)
        drawn = [draw_edge(chance, data, kind, number) for number in range(count)]
        data.edges[kind.name] = [row for row in drawn if row is not None]


def draw_dataset(chance: Random) -> Dataset:
    data = Dataset(draw_schema(chance))
    draw_nodes(chance, data)
    draw_edges(chance, data)
    return data
