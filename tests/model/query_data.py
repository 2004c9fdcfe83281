"""Owns data for tests of reads: a schema and rows as plain Python values, for oracle and engine."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from omnigraph.lang.diagnostics import render_all
from omnigraph.lang.pg import compile_schema
from omnigraph.model.catalog import Catalog, GraphType
from omnigraph.model.identity import derive_id
from omnigraph.model.types import FLOATS, Base, ListType, PropertyType, ScalarType, VectorType
from omnigraph.plan.migrate import apply_steps, plan_migration
from tests.model.query_paths import World
from tests.model.query_values import as_date, as_datetime, narrowed

Row = dict[str, Any]


def catalog_of(schema: str) -> Catalog:
    result = compile_schema(schema)
    assert result.schema is not None, render_all(result.diagnostics, schema)
    return apply_steps(None, plan_migration(None, result.schema).steps)


@dataclass(frozen=True)
class Dataset:
    """Rows of each type by its name: all properties, `id`, and `src` and `dst` of edges."""

    schema: str
    nodes: dict[str, list[Row]] = field(default_factory=dict)
    edges: dict[str, list[Row]] = field(default_factory=dict)

    @cached_property
    def catalog(self) -> Catalog:
        return catalog_of(self.schema)

    def world(self) -> World:
        nodes = {
            kind: {row["id"]: {n: x for n, x in row.items() if n != "id"} for row in rows}
            for kind, rows in self.nodes.items()
        }
        return World(nodes, self.edges)


def typed(value: Any, kind: PropertyType) -> Any:
    """A JSON value as one of the type."""
    if value is None:
        return None
    match kind:
        case ListType(item=item):
            return tuple(typed(part, ScalarType(item)) for part in value)
        case VectorType():
            return tuple(narrowed(float(part)) for part in value)
        case ScalarType(base=Base.DATE):
            return as_date(value)
        case ScalarType(base=Base.DATETIME):
            return as_datetime(value)
        case ScalarType(base=Base.F32):
            return narrowed(float(value))
        case ScalarType(base=base) if base in FLOATS:
            return float(value)
        case ScalarType(base=Base.BLOB):
            return str(value).encode()
        case _:
            return value


def completed(kind: GraphType, given: Mapping[str, Any], number: int) -> Row:
    """A row with every property, and its id: of the key, as given, or made of the number."""
    row = {p.name: typed(given.get(p.name), p.type) for p in kind.properties}
    ends = {name: given[name] for name in ("src", "dst") if name in given}
    id_ = derive_id(kind, row | ends) if kind.key else given.get("id", f"{kind.name}-{number}")
    return {"id": id_, **ends, **row}


def read_dataset(schema: str, lines: Iterable[str]) -> Dataset:
    """From JSON lines as load files have them (section 11), and NaN and infinities beside."""
    data = Dataset(schema)
    for number, line in enumerate(line for line in lines if line.strip()):
        entry = json.loads(line)
        given = entry.get("data", {})
        if "id" in entry:
            given["id"] = entry["id"]
        if "edge" in entry:
            kind: GraphType = data.catalog.edge_names[entry["edge"]]
            ends = {"src": entry["from"], "dst": entry["to"]}
            data.edges.setdefault(kind.name, []).append(completed(kind, given | ends, number))
        else:
            kind = data.catalog.node_names[entry["type"]]
            data.nodes.setdefault(kind.name, []).append(completed(kind, given, number))
    return data
