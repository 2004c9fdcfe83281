"""Owns row rules: which rows of a type somebody may see."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True)
class EveryRow:
    """Nothing is hidden."""


@dataclass(frozen=True)
class NoRow:
    """The type is not there for who asks."""


RowRule: TypeAlias = EveryRow | NoRow
EVERY_ROW = EveryRow()
NO_ROW = NoRow()
