"""Owns the results of a schema merge: a catalog with its column maps, or conflicts."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from omnigraph.model.catalog import Catalog


class SchemaConflictKind(StrEnum):
    CHANGED_BOTH = "changed_both"
    DROPPED_AND_CHANGED = "dropped_and_changed"
    NAME_TAKEN = "name_taken"
    DANGLING = "dangling"
    INVALID = "invalid"


class SchemaConflict(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """`base`, `ours` and `theirs` show the contradicting values; None is absent."""

    kind: SchemaConflictKind
    type: str
    property: str | None = None
    base: str | None = None
    ours: str | None = None
    theirs: str | None = None
    message: str


class ColumnMap(msgspec.Struct, frozen=True, kw_only=True):
    """For one table of the result: each side's columns and the columns they become.

    Only columns that live on are listed. A column that keeps its name may still have to be
    cast: the type of the result is in the catalog.
    """

    ours: dict[str, str] = {}
    theirs: dict[str, str] = {}


class SchemaMerge(msgspec.Struct, frozen=True, kw_only=True):
    """`catalog` is None when there are conflicts; `columns` is by table key of the result."""

    catalog: Catalog | None = None
    conflicts: tuple[SchemaConflict, ...] = ()
    columns: dict[str, ColumnMap] = {}
