"""Owns row rules: which rows of a type somebody may see, as a condition over single rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Value: TypeAlias = str | int | bool


@dataclass(frozen=True)
class EveryRow:
    """Nothing is hidden."""


@dataclass(frozen=True)
class NoRow:
    """The type is not there for who asks."""


@dataclass(frozen=True)
class AllOf:
    parts: tuple[RowRule, ...]


@dataclass(frozen=True)
class AnyOf:
    parts: tuple[RowRule, ...]


@dataclass(frozen=True)
class Negated:
    part: RowRule


@dataclass(frozen=True)
class ColumnOf:
    """A property, or a system column."""

    name: str


Operand: TypeAlias = ColumnOf | Value


@dataclass(frozen=True)
class Compares:
    op: Literal["==", "<", "<="]
    left: Operand
    right: Operand


@dataclass(frozen=True)
class IsTrue:
    """A property that is a truth value."""

    column: ColumnOf


@dataclass(frozen=True)
class IsThere:
    """The property has a value."""

    column: ColumnOf


@dataclass(frozen=True)
class Resembles:
    """None stands for any text, a text for itself."""

    column: ColumnOf
    pattern: tuple[str | None, ...]


@dataclass(frozen=True)
class IsOneOf:
    column: ColumnOf
    values: tuple[Value, ...]


@dataclass(frozen=True)
class Holds:
    """A list has this value among its items."""

    column: ColumnOf
    value: Operand


RowTest: TypeAlias = Compares | IsTrue | IsThere | Resembles | IsOneOf | Holds
RowRule: TypeAlias = EveryRow | NoRow | AllOf | AnyOf | Negated | RowTest
EVERY_ROW = EveryRow()
NO_ROW = NoRow()


def all_of(parts: tuple[RowRule, ...]) -> RowRule:
    if any(isinstance(part, NoRow) for part in parts):
        return NO_ROW
    left = tuple(dict.fromkeys(part for part in parts if not isinstance(part, EveryRow)))
    return EVERY_ROW if not left else left[0] if len(left) == 1 else AllOf(left)


def any_of(parts: tuple[RowRule, ...]) -> RowRule:
    if any(isinstance(part, EveryRow) for part in parts):
        return EVERY_ROW
    left = tuple(dict.fromkeys(part for part in parts if not isinstance(part, NoRow)))
    return NO_ROW if not left else left[0] if len(left) == 1 else AnyOf(left)


def negated(part: RowRule) -> RowRule:
    match part:
        case EveryRow():
            return NO_ROW
        case NoRow():
            return EVERY_ROW
        case Negated(part=inner):
            return inner
    return Negated(part)


def columns_of(rule: RowRule) -> frozenset[str]:
    """The columns that a rule looks at."""
    match rule:
        case EveryRow() | NoRow():
            return frozenset()
        case AllOf(parts=parts) | AnyOf(parts=parts):
            return frozenset[str]().union(*map(columns_of, parts))
        case Negated(part=part):
            return columns_of(part)
        case Compares(left=left, right=right):
            return _named(left) | _named(right)
        case IsTrue(column=column) | IsThere(column=column):
            return _named(column)
        case Resembles(column=column) | IsOneOf(column=column):
            return _named(column)
        case Holds(column=column, value=value):
            return _named(column) | _named(value)


def _named(operand: Operand) -> frozenset[str]:
    return frozenset({operand.name}) if isinstance(operand, ColumnOf) else frozenset()
