"""Merging two catalogs against their base, for branch merges. Pure; no data is touched here."""

from omnigraph.plan.schema_merge.merge import merge_schemas
from omnigraph.plan.schema_merge.twins import align
from omnigraph.plan.schema_merge.values import (
    ColumnMap,
    SchemaConflict,
    SchemaConflictKind,
    SchemaMerge,
)

__all__ = [
    "ColumnMap",
    "SchemaConflict",
    "SchemaConflictKind",
    "SchemaMerge",
    "align",
    "merge_schemas",
]
