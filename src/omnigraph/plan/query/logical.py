"""Owns the logical plan: what a read asks for, as a tree of patterns that rules rewrite.

A `Pattern` starts as the checked match. Rules split its conditions, assign each to its variable,
find keys, and mark which variables are needed afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from omnigraph.lang.gq.checked import (
    Column,
    Exists,
    Expression,
    Group,
    Match,
    OrderKey,
    ParameterValue,
    PathValue,
    PatternAggregate,
    Read,
    Traversal,
    Variable,
)
from omnigraph.lang.gq.walk import used_variables, walk


@dataclass(frozen=True)
class KeyTest:
    """The variable is found by its id: one of `ids`, or what a key with `values` derives."""

    ids: Expression | None
    values: tuple[tuple[str, Expression], ...] = ()
    many: bool = False
    """Whether `ids`, or the single value, is a list of alternatives."""
    decides: tuple[Expression, ...] = ()
    """The tests that entities found in this way need not pass again."""


@dataclass(frozen=True)
class Candidate:
    """A variable with the conditions on it alone."""

    variable: Variable
    tests: tuple[Expression, ...] = ()
    key: KeyTest | None = None


@dataclass(frozen=True)
class Pattern:
    """`needed` are the variables whose entities matter afterwards. Rows that agree in `counted` may
    become one row with a count."""

    candidates: tuple[Candidate, ...]
    outer: tuple[int, ...]
    traversals: tuple[Traversal, ...]
    filters: tuple[Expression, ...]
    optionals: tuple[Pattern, ...]
    late_filters: tuple[Expression, ...]
    needed: frozenset[int] = frozenset()
    counted: bool = False


@dataclass(frozen=True)
class Query:
    pattern: Pattern
    group: Group | None
    columns: tuple[Column, ...]
    distinct: bool
    order: tuple[OrderKey, ...]
    limit: int | ParameterValue | None
    offset: int | ParameterValue | None


def pattern_of(
    match: Match, *, needed: frozenset[int] = frozenset(), counted: bool = False
) -> Pattern:
    return Pattern(
        candidates=tuple(Candidate(variable) for variable in match.variables),
        outer=match.outer,
        traversals=match.traversals,
        filters=match.filters,
        optionals=tuple(pattern_of(optional) for optional in match.optionals),
        late_filters=match.late_filters,
        needed=needed,
        counted=counted,
    )


def query_of(read: Read) -> Query:
    return Query(
        pattern=pattern_of(read.match),
        group=read.group,
        columns=read.columns,
        distinct=read.distinct,
        order=read.order,
        limit=read.limit,
        offset=read.offset,
    )


def pattern_variables(pattern: Pattern) -> Iterator[Variable]:
    """The variables that a pattern brings, those of its optional blocks too."""
    for candidate in pattern.candidates:
        yield candidate.variable
    for optional in pattern.optionals:
        yield from pattern_variables(optional)


def outputs(query: Query) -> Iterator[Expression]:
    """Every expression that is evaluated on rows of the pattern."""
    if query.group is not None:
        yield from query.group.keys
        for aggregate in query.group.aggregates:
            yield aggregate.argument
        return
    for column in query.columns:
        yield column.value
    for key in query.order:
        yield key.value


def inner_patterns(value: Expression) -> Iterator[Exists | PatternAggregate]:
    """The patterns inside an expression, outermost only."""
    for part in walk(value):
        if isinstance(part, Exists | PatternAggregate):
            yield part


def asks_path(value: Expression) -> bool:
    """Whether the value is about a way, which is searched for each pair of ends."""
    return any(isinstance(part, PathValue) for part in walk(value))


def uses(values: Iterator[Expression] | tuple[Expression, ...]) -> frozenset[int]:
    found: set[int] = set()
    for value in values:
        found |= used_variables(value)
    return frozenset(found)
