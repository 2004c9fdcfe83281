"""Owns constraints as values that can be compared, renamed and put back; reads no data."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeVar, assert_never

import msgspec

from omnigraph.model.schema import Check, Range, TypeDecl

T = TypeVar("T", bound=TypeDecl)


class Unique(msgspec.Struct, frozen=True, tag="unique", tag_field="is"):
    properties: tuple[str, ...]


class IndexConstraint(msgspec.Struct, frozen=True, tag="index", tag_field="is"):
    properties: tuple[str, ...]


class Within(msgspec.Struct, frozen=True, tag="range", tag_field="is"):
    property: str
    low: int | float | None
    high: int | float | None


class Matches(msgspec.Struct, frozen=True, tag="check", tag_field="is"):
    property: str
    pattern: str


Constraint = Unique | IndexConstraint | Within | Matches


def constraints_of(kind: TypeDecl, names: Mapping[str, str]) -> dict[bytes, Constraint]:
    """The type's constraints with its properties renamed by `names`, by their exact form.

    The form tells 1 from 1.0, so that what a plan reaches is the text that was asked for.
    """
    found: list[Constraint] = [
        *(Unique(_renamed(group, names)) for group in kind.uniques),
        *(IndexConstraint(_renamed(group, names)) for group in kind.indexes),
        *(Within(names.get(r.property, r.property), r.low, r.high) for r in kind.ranges),
        *(Matches(names.get(c.property, c.property), c.pattern) for c in kind.checks),
    ]
    return {msgspec.json.encode(constraint): constraint for constraint in found}


def with_constraints(kind: T, constraints: Iterable[Constraint]) -> T:
    """The type with exactly these constraints, in canonical order."""
    ordered = sorted(constraints, key=msgspec.json.encode)
    return msgspec.structs.replace(
        kind,
        uniques=tuple(sorted(c.properties for c in ordered if isinstance(c, Unique))),
        indexes=tuple(sorted(c.properties for c in ordered if isinstance(c, IndexConstraint))),
        ranges=tuple(Range(c.property, c.low, c.high) for c in ordered if isinstance(c, Within)),
        checks=tuple(Check(c.property, c.pattern) for c in ordered if isinstance(c, Matches)),
    )


def constrained(constraint: Constraint) -> tuple[str, ...]:
    """The properties that the constraint is about."""
    match constraint:
        case Unique(properties=names) | IndexConstraint(properties=names):
            return names
        case Within(property=name) | Matches(property=name):
            return (name,)
        case _:
            assert_never(constraint)


def follows(constraint: Constraint, accepted: Iterable[Constraint]) -> bool:
    """Whether data that meets the accepted constraints is known to meet this one, unread."""
    match constraint:
        case IndexConstraint():
            return True
        case Within():
            return any(_contains(constraint, c) for c in accepted if isinstance(c, Within))
        case Unique() | Matches():
            return False
        case _:
            assert_never(constraint)


def constraint_text(constraint: Constraint) -> str:
    """The constraint as a schema spells it."""
    match constraint:
        case Unique(properties=names):
            return f"@unique({', '.join(names)})"
        case IndexConstraint(properties=names):
            return f"@index({', '.join(names)})"
        case Within(property=name, low=low, high=high):
            sides = ("" if side is None else str(side) for side in (low, high))
            return f"@range({name}, {'..'.join(sides)})"
        case Matches(property=name, pattern=pattern):
            return f"@check({name}, {msgspec.json.encode(pattern).decode()})"
        case _:
            assert_never(constraint)


def _contains(outer: Within, inner: Within) -> bool:
    low = outer.low is None or (inner.low is not None and outer.low <= inner.low)
    high = outer.high is None or (inner.high is not None and inner.high <= outer.high)
    return outer.property == inner.property and low and high


def _renamed(group: tuple[str, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(names.get(name, name) for name in group)
