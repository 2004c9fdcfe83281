"""Owns the rewrite rules: plain functions from a logical plan to an equal one, applied in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from typing import Final

import msgspec

from omnigraph.lang.gq.checked import (
    Comparison,
    Constant,
    Expression,
    Membership,
    NodeKind,
    PropertyValue,
    SystemValue,
    Type,
    Variable,
)
from omnigraph.lang.gq.walk import used_variables
from omnigraph.model.catalog import GraphType
from omnigraph.model.types import Base, ScalarType
from omnigraph.plan.lookups import split_tests
from omnigraph.plan.query.logical import (
    Candidate,
    KeyTest,
    Pattern,
    Query,
    asks_path,
    inner_patterns,
    outputs,
    pattern_variables,
    uses,
)
from omnigraph.plan.text_equality import share_texts

Rule = Callable[[Pattern], Pattern]

_ONE: Final = Constant(1, Type(ScalarType(Base.I64)))


def split_conditions(pattern: Pattern) -> Pattern:
    """`a and b` are two conditions, so that each can be placed separately."""
    return replace(
        pattern,
        filters=split_tests(*pattern.filters),
        late_filters=split_tests(*pattern.late_filters),
    )


def place_conditions(pattern: Pattern) -> Pattern:
    """A condition on one variable of the pattern alone is tested when that variable is bound."""
    own = {candidate.variable.id for candidate in pattern.candidates}
    tests: dict[int, list[Expression]] = {}
    rest = []
    for condition in pattern.filters:
        used = used_variables(condition)
        costly = any(inner_patterns(condition)) or asks_path(condition)
        if len(used) == 1 and used <= own and not costly:
            tests.setdefault(next(iter(used)), []).append(condition)
        else:
            rest.append(condition)
    candidates = tuple(
        replace(c, tests=(*c.tests, *tests.get(c.variable.id, ()))) for c in pattern.candidates
    )
    return replace(pattern, candidates=candidates, filters=tuple(rest))


def find_keys(pattern: Pattern) -> Pattern:
    """A variable whose id or whole key is given can be looked up."""
    return replace(pattern, candidates=tuple(_with_key(c) for c in pattern.candidates))


def _with_key(candidate: Candidate) -> Candidate:
    if not isinstance(candidate.variable.kind, NodeKind):
        return candidate
    key = _key_of(candidate.variable)
    values: dict[str, tuple[Expression, Expression]] = {}
    for test in candidate.tests:
        match test:
            case Comparison(operator="=", left=left, right=right):
                for side, other in ((left, right), (right, left)):
                    if isinstance(side, SystemValue) and not used_variables(other):
                        return _found_by(candidate, KeyTest(other), test)
                    if isinstance(side, PropertyValue) and _derives(side, other):
                        values.setdefault(side.properties[0].name, (other, test))
            case Membership(item=SystemValue(), list=held) if not used_variables(held):
                return _found_by(candidate, KeyTest(held, many=True), test)
            case Membership(item=PropertyValue() as item, list=held) if _derives(item, held):
                if key == (item.properties[0].name,):
                    return _found_by(candidate, KeyTest(None, ((key[0], held),), many=True), test)
    if key and set(key) <= values.keys():
        given = tuple((name, values[name][0]) for name in key)
        return _found_by(candidate, KeyTest(None, given), *[values[name][1] for name in key])
    return candidate


def _found_by(candidate: Candidate, key: KeyTest, *decided: Expression) -> Candidate:
    return replace(candidate, key=replace(key, decides=decided))


def _key_of(variable: Variable) -> tuple[str, ...]:
    if len(variable.kind.types) != 1:
        return ()
    kind: GraphType = variable.kind.types[0]
    return tuple(kind.key)


def _derives(side: PropertyValue, other: Expression) -> bool:
    """Whether an id can be derived from a value that equals the property."""
    return not used_variables(other) and share_texts(side.type.kind, other.type.kind)


PATTERN_RULES: Final[tuple[Rule, ...]] = (split_conditions, place_conditions, find_keys)


def rewrite_pattern(pattern: Pattern) -> Pattern:
    """All rules on a pattern and on its optional blocks."""
    rewritten = reduce(lambda p, rule: rule(p), PATTERN_RULES, pattern)
    optionals = tuple(rewrite_pattern(optional) for optional in rewritten.optionals)
    return mark_optionals(replace(rewritten, optionals=optionals))


def mark_optionals(pattern: Pattern) -> Pattern:
    """The variables of an optional block are needed if anything after it asks for them."""
    wanted = pattern.needed | uses(pattern.late_filters)
    marked: list[Pattern] = []
    for optional in reversed(pattern.optionals):
        own = {v.id for v in pattern_variables(optional)}
        marked.append(mark_optionals(replace(optional, needed=frozenset(own & wanted))))
        wanted |= frozenset(optional.outer)
    return replace(pattern, optionals=tuple(reversed(marked)))


def rewrite_query(query: Query) -> Query:
    marked = mark_needed(count_rows(query))
    return replace(marked, pattern=rewrite_pattern(marked.pattern))


def count_rows(query: Query) -> Query:
    """Counting an expression that is never null is counting rows."""
    if query.group is None:
        return query
    aggregates = tuple(
        msgspec.structs.replace(one, argument=_ONE)
        if one.function == "count" and not one.distinct and not one.argument.type.nullable
        else one
        for one in query.group.aggregates
    )
    group = msgspec.structs.replace(query.group, aggregates=aggregates)
    return replace(query, group=group)


def mark_needed(query: Query) -> Query:
    """Only variables that the result needs are kept. Ordered rows also need the ids that break
    ties. With an aggregate or `distinct`, rows that agree in these are counted and not listed."""
    wanted = uses(outputs(query))
    gathered = query.group is not None or query.distinct
    if query.order and not gathered:
        named = {v.id for v in pattern_variables(query.pattern) if v.name is not None}
        wanted |= frozenset(named)
    return replace(query, pattern=replace(query.pattern, needed=wanted, counted=gathered))
