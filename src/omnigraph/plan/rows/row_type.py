"""Owns what shaping needs to know about one type. It is computed once for each type and kept."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import pyarrow as pa

from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import EdgeType, GraphType, Property, system_columns
from omnigraph.model.schema import Default
from omnigraph.model.types import Base, PropertyType, ScalarType
from omnigraph.plan.rows.convert import convert_values

STRING = ScalarType(Base.STRING)
ENDS = {"src": "from", "dst": "to"}  # column of the system: its other spelling, shown to users
_KEPT = 512


@dataclass(frozen=True)
class Reading:
    """How the names that an input uses map to columns of the type, and what is wrong with them.

    `sources` maps a column to the name that holds it in the input. `missing` are the columns that
    the input should have given, `twice` those that it gives under two names or more than once.
    """

    sources: dict[str, Hashable]
    given: frozenset[str]
    unknown: tuple[Hashable, ...] = ()
    twice: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class RowType:
    """The facts of one type. `spellings` maps every name that a row may use to its column."""

    kind: GraphType
    types: dict[str, PropertyType]
    schema: pa.Schema
    spellings: dict[str, str]
    system: tuple[str, ...]
    properties: dict[str, Property]
    _readings: dict[tuple[tuple[Hashable, ...], bool], Reading] = field(default_factory=dict)
    _schemas: dict[tuple[str, ...], pa.Schema] = field(default_factory=dict)

    def read(self, names: tuple[Hashable, ...], *, complete: bool) -> Reading:
        """The meaning of these names; remembered, because most rows use the same ones."""
        known = self._readings.get((names, complete))
        if known is None:
            known = self._read(names, complete)
            if len(self._readings) < _KEPT and not known.unknown:
                self._readings[names, complete] = known
        return known

    def _read(self, names: tuple[Hashable, ...], complete: bool) -> Reading:
        sources: dict[str, Hashable] = {}
        unknown: list[Hashable] = []
        twice: list[str] = []
        for name in names:
            column = self.spellings.get(name) if type(name) is str else None
            if column is None:
                unknown.append(name)
            elif column in sources:
                twice.append(column)
            else:
                sources[column] = name
        return Reading(
            sources,
            frozenset(sources).intersection(self.properties),
            tuple(unknown),
            tuple(dict.fromkeys(twice)),
            tuple(self._missing(sources, complete)),
        )

    def _missing(self, sources: dict[str, Hashable], complete: bool) -> Sequence[str]:
        needed = dict.fromkeys((*self.system[1:], *self.kind.key))
        if complete:
            needed |= dict.fromkeys(required_columns(self.kind, frozenset(sources)))
        return [column for column in needed if column not in sources]

    def schema_of(self, columns: tuple[str, ...]) -> pa.Schema:
        """The part of the row schema with these columns."""
        known = self._schemas.get(columns)
        if known is None:
            known = pa.schema([self.schema.field(name) for name in columns])
            if len(self._schemas) < _KEPT:
                self._schemas[columns] = known
        return known

    def default_value(self, name: str) -> object:
        """The value of a property that is left out. None is null."""
        return _value_of(self.properties[name].default)

    def filled_value(self, name: str) -> object:
        """The value of entities that existed before the property. None is null."""
        prop = self.properties[name]
        return _value_of(prop.filled[0] if prop.filled else prop.default)

    def filled_array(self, name: str, length: int) -> pa.Array:
        """The column of a property in rows that are older than the property."""
        return self._repeated(name, self.filled_value(name), length)

    def default_array(self, name: str, length: int) -> pa.Array:
        """The column of a property that no row gives."""
        if length == 1:  # most commits write one row
            return self._ones[name]
        return self._default_array(name, length)

    @cached_property
    def _ones(self) -> dict[str, pa.Array]:
        return {name: self._default_array(name, 1) for name in self.properties}

    def _default_array(self, name: str, length: int) -> pa.Array:
        return self._repeated(name, self.default_value(name), length)

    def _repeated(self, name: str, value: object, length: int) -> pa.Array:
        if value is None:
            return pa.nulls(length, self.schema.field(name).type)
        one = convert_values([value], self.types[name]).array
        return one.take(pa.array(np.zeros(length, dtype=np.int64)))


def _value_of(default: Default | None) -> object:
    if default is None:
        return None
    return list(default.value) if isinstance(default.value, tuple) else default.value


def required_columns(kind: GraphType, given: frozenset[str]) -> list[str]:
    """The properties that a new entity needs. A required vector with `@embed` may be left out if
    its source is given: it is null until it is embedded."""
    return [
        p.name
        for p in kind.properties
        if not p.nullable
        and p.default is None
        and not (p.embed is not None and p.embed.source in given)
    ]


@lru_cache(maxsize=1024)
def row_type(kind: GraphType) -> RowType:
    system = system_columns(kind)
    types: dict[str, PropertyType] = dict.fromkeys(system, STRING)
    types |= {p.name: p.type for p in kind.properties}
    spellings = {name: name for name in types}
    if isinstance(kind, EdgeType):
        spellings |= {spelling: column for column, spelling in ENDS.items()}
    properties = {p.name: p for p in kind.properties}
    return RowType(kind, types, row_schema(kind), spellings, system, properties)
