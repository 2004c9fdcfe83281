"""Owns changes: what happened to one entity between two versions, as a value."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Op(StrEnum):
    INSERT = "insert"
    UPDATE = "update"
    DELETE = "delete"


@dataclass(frozen=True)
class Change:
    """`before` is None for an insert, `after` for a delete; `changed` names what an update
    changed. `kind` is "node" or "edge"."""

    op: Op
    kind: str
    type: str
    id: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    changed: tuple[str, ...] = ()


@dataclass(frozen=True)
class TypeCounts:
    """What happened to the entities of one type."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0
