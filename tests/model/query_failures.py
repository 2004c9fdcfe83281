"""Owns whether an engine may fail on a query that the oracle answers: an expression has no value
for some entity, although every such row is dropped by something else.

In which order conditions are tried is the engine's own business, so it may come upon such a value;
where no entity at all has one, it may not fail.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any

from omnigraph.lang.gq import checked as c
from omnigraph.lang.gq.walk import all_matches, all_variables, patterns_of, used_variables, walk
from omnigraph.model.types import INTEGER_RANGES
from tests.model.query_oracle import NOW, Frame, Oracle
from tests.model.query_paths import World
from tests.model.query_values import EvaluationError, base_of, fitting


def may_fail(query: c.CheckedQuery, world: World, parameters: Mapping[str, Any]) -> bool:
    assert isinstance(query.body, c.Read)
    oracle = Oracle(world, parameters, NOW)
    variables = {v.id: v for m in _matches(query.body) for v in all_variables(m)}
    return any(
        _fails(oracle, part, variables)
        for expression in _expressions(query.body)
        for part in walk(expression)
        if isinstance(part, c.Arithmetic | c.Negative | c.FunctionCall)
    )


def _outside(read: c.Read) -> Iterator[c.Expression]:
    yield from (column.value for column in read.columns)
    yield from (key.value for key in read.order)
    if read.group is not None:
        yield from read.group.keys
        yield from (aggregate.argument for aggregate in read.group.aggregates)


def _matches(read: c.Read) -> Iterator[c.Match]:
    """Every pattern, also those in results."""
    yield from all_matches(read.match)
    for value in _outside(read):
        for match in patterns_of(value):
            yield from all_matches(match)


def _expressions(read: c.Read) -> Iterator[c.Expression]:
    yield from _outside(read)
    for match in _matches(read):
        yield from (*match.filters, *match.late_filters)


def _fails(oracle: Oracle, part: c.Expression, variables: Mapping[int, c.Variable]) -> bool:
    parts = list(walk(part))
    results = (c.KeyValue, c.AggregateValue, c.OutputValue)
    if any(isinstance(p, results) for p in parts):
        return False
    used = sorted(used_variables(part) & variables.keys())
    pools = [[None, *oracle.world.entities(variables[number].kind)] for number in used]
    for values in product(*pools):
        try:
            _value(oracle, part, Frame(dict(zip(used, values, strict=True))))
        except EvaluationError:
            return True
    return False


def _value(oracle: Oracle, part: c.Expression, frame: Frame) -> None:
    oracle.value(part, frame)
    base = base_of(part.type.kind)
    if isinstance(part, c.Arithmetic) and base is not None and base in INTEGER_RANGES:
        # It may convert both sides to the type of the result before it calculates.
        for side in (part.left, part.right):
            value = oracle.value(side, frame)
            if value is not None:
                fitting(value, base)
