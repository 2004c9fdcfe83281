"""Owns the conflicts of a merge: what both sides did to one entity, and what it was before."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class ConflictKind(StrEnum):
    DIVERGENT_INSERT = "DivergentInsert"
    DIVERGENT_UPDATE = "DivergentUpdate"
    DELETE_VS_UPDATE = "DeleteVsUpdate"
    ORPHAN_EDGE = "OrphanEdge"
    UNIQUE_VIOLATION = "UniqueViolation"
    CARDINALITY_VIOLATION = "CardinalityViolation"
    VALUE_CONSTRAINT_VIOLATION = "ValueConstraintViolation"
    SCHEMA = "Schema"
    QUERY = "Query"


@dataclass(frozen=True)
class MergeConflict:
    """`base`, `ours` and `theirs` are rows, or values if `property` is given. None means absent (or
    null). `ours` is the branch that is merged into."""

    kind: ConflictKind
    type: str
    id: str | None
    message: str
    property: str | None = None
    base: Any = None
    ours: Any = None
    theirs: Any = None
