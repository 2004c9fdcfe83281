"""Owns walks over checked expressions: their parts, their variables, and rewriting."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final, get_args

import msgspec

from omnigraph.lang.gq.checked import (
    Aggregate,
    Exists,
    Expression,
    Match,
    PathValue,
    PatternAggregate,
    SameEntity,
)

EXPRESSIONS: Final[Any] = get_args(Expression)
_PARTS: Final[dict[type, tuple[str, ...]]] = {
    kind: tuple(name for name in kind.__struct_fields__ if name not in {"type", "match"})
    for kind in EXPRESSIONS
}


def parts(value: Expression) -> Iterator[Expression]:
    """The expressions directly below; a pattern is not entered."""
    for name in _PARTS[type(value)]:
        part: Any = getattr(value, name)
        for item in part if isinstance(part, tuple) else (part,):
            if isinstance(item, EXPRESSIONS):
                yield item


def walk(value: Expression) -> Iterator[Expression]:
    """The expression and everything below it; a pattern is not entered."""
    stack = [value]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(parts(top))


def used_variables(value: Expression) -> frozenset[int]:
    """The ids of the variables that the value depends on, including those inside patterns."""
    found: set[int] = set()
    for part in walk(value):
        if isinstance(part, SameEntity):
            found |= {part.left, part.right}
        elif isinstance(part, PathValue):
            found |= {part.traversal.source, part.traversal.target}
        elif isinstance(part, Exists | PatternAggregate):
            found.update(part.match.outer)
        elif (variable := getattr(part, "variable", None)) is not None:
            found.add(variable)
    return frozenset(found - _own(value))


def _own(value: Expression) -> set[int]:
    """Variables that inner patterns introduce. An argument over the pattern may use them."""
    patterns = [p for p in walk(value) if isinstance(p, PatternAggregate)]
    return {v.id for p in patterns for v in all_variables(p.match)}


def all_variables(match: Match) -> Iterator[Any]:
    """The variables of a pattern and of its optional blocks."""
    yield from match.variables
    for optional in match.optionals:
        yield from all_variables(optional)


def all_matches(match: Match) -> Iterator[Match]:
    """The pattern, its optional blocks and every pattern in its filters."""
    stack = [match]
    while stack:
        top = stack.pop()
        yield top
        stack.extend(top.optionals)
        for condition in (*top.filters, *top.late_filters):
            stack.extend(patterns_of(condition))


def patterns_of(value: Expression) -> Iterator[Match]:
    for part in walk(value):
        if isinstance(part, Exists | PatternAggregate):
            yield part.match


def has_aggregate(value: Expression) -> bool:
    return any(isinstance(part, Aggregate) for part in walk(value))


def rewrite(value: Expression, change: Callable[[Expression], Expression | None]) -> Expression:
    """The expression with each part replaced by the result of `change`. None keeps the part and
    goes on below it."""
    changed = change(value)
    if changed is not None:
        return changed
    new: dict[str, Any] = {}
    for name in _PARTS[type(value)]:
        part = getattr(value, name)
        if isinstance(part, EXPRESSIONS):
            new[name] = rewrite(part, change)
        elif isinstance(part, tuple) and part and isinstance(part[0], EXPRESSIONS):
            new[name] = tuple(rewrite(item, change) for item in part)
    return msgspec.structs.replace(value, **new) if new else value
