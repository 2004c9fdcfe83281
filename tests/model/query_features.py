"""Owns what a query makes use of, so that a test can tell whether drawn ones leave nothing out."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.lang.gq import checked as c
from omnigraph.lang.gq.check.functions import AGGREGATES, COALESCE, FUNCTIONS
from omnigraph.lang.gq.walk import all_variables, walk

SCALAR_FUNCTIONS = (*FUNCTIONS, COALESCE)
WANTED = frozenset(
    [f"{f}()" for f in SCALAR_FUNCTIONS]
    + [f"aggregate {f}" for f in AGGREGATES]
    + [f"pattern {f}" for f in ("count", "sum", "avg", "min", "max")]
    + [f"compare {o}" for o in ("=", "!=", "<", "<=", ">", ">=")]
    + [f"arithmetic {o}" for o in "+-*/%"]
    + [f"text {o}" for o in ("contains", "starts_with", "ends_with")]
    + [f"hop {d.value}" for d in c.Direction]
    + ["And", "Or", "Not", "Exists", "NullTest", "Membership", "SameEntity", "TypeTest", "Negative"]
    + ["Conditional", "moved by days", "moved by milliseconds"]
    + ["Concatenation", "SystemValue", "EntityValue", "PropertyValue", "ParameterValue"]
    + ["aggregate distinct", "two hops", "bounds", "from zero", "alternatives", "edge variable"]
    + ["anonymous node", "anonymous edge", "many types", "optional", "optional in a block"]
    + ["late filter", "not block", "block in a block", "both ends bound", "a loop in the pattern"]
    + ["components", "distinct", "group", "no key", "order", "descending", "order by expression"]
    + ["limit", "offset", "limit parameter", "default", "parameter is null", "outer filter"]
    + ["optional after optional", "list column", "entity column", "no upper bound"]
    + ["union", "union all"]
    + ["any", "all", "none", "ItemValue", "Quantified"]
    + ["path nodes", "path edges", "path length", "one shortest", "all shortest"]
)


def features(query: c.CheckedQuery) -> set[str]:
    assert isinstance(query.body, c.Read)
    read = query.body
    found = set(_of_match(read.match)) | set(_of_return(read))
    for part in read.parts:
        found |= {"union" if read.distinct else "union all"}
        found |= set(_of_match(part.match)) | set(_of_return(part))
    for parameter in query.parameters:
        found |= {"default"} if parameter.has_default else set()
        found |= {"parameter is null"} if parameter.nullable else set()
    return found


def _of_return(read: c.Read) -> Iterator[str]:
    for column in read.columns:
        yield from _of_expression(column.value)
        if isinstance(column.type.kind, c.NodeKind | c.EdgeKind):
            yield "entity column"
        if "List" in type(column.type.kind).__name__:
            yield "list column"
    if read.group is not None:
        yield "group" if read.group.keys else "no key"
        for aggregate in read.group.aggregates:
            yield f"aggregate {aggregate.function}"
            yield from ["aggregate distinct"] if aggregate.distinct else []
            yield from _of_expression(aggregate.argument)
        for key in read.group.keys:
            yield from _of_expression(key)
    yield from ["distinct"] if read.distinct else []
    for order in read.order:
        yield "order"
        yield from ["descending"] if order.descending else []
        yield from ["order by expression"] if not isinstance(order.value, c.OutputValue) else []
        yield from _of_expression(order.value)
    for name, amount in (("limit", read.limit), ("offset", read.offset)):
        yield from [name] if amount is not None else []
        yield from ["limit parameter"] if isinstance(amount, c.ParameterValue) else []


def _of_match(match: c.Match, depth: int = 0) -> Iterator[str]:
    for variable in match.variables:
        is_edge = isinstance(variable.kind, c.EdgeKind)
        if variable.name is None:
            yield "anonymous edge" if is_edge else "anonymous node"
        yield from ["many types"] if len(variable.kind.types) > 1 else []
    yield from _of_traversals(match)
    for condition in match.filters:
        if isinstance(condition, c.Not) and isinstance(condition.operand, c.Exists):
            yield "not block"
        yield from _of_expression(condition, depth)
    optional_ids: set[int] = set()
    for optional in match.optionals:
        yield "optional" if depth == 0 else "optional in a block"
        yield from ["optional after optional"] if optional_ids & set(optional.outer) else []
        optional_ids |= {variable.id for variable in all_variables(optional)}
        yield from _of_match(optional, depth + 1)
    for condition in match.late_filters:
        yield "late filter"
        yield from _of_expression(condition, depth)


def _of_traversals(match: c.Match) -> Iterator[str]:
    own = {variable.id for variable in match.variables}
    parts = {number: number for number in own}
    for traversal in match.traversals:
        yield from (f"hop {step.direction.value}" for step in traversal.steps)
        yield from ["alternatives"] if len(traversal.steps) > 1 else []
        yield from ["edge variable"] if traversal.edge is not None else []
        yield from ["bounds"] if traversal.high > 1 else []
        yield from ["from zero"] if traversal.low == 0 else []
        yield from ["no upper bound"] if traversal.high == c.UNBOUNDED else []
        source, target = traversal.source, traversal.target
        if {source, target} & own == set():
            yield "both ends bound"
        one, other = parts.get(source, -1), parts.get(target, -1)
        yield from ["a loop in the pattern"] if one == other else []
        ends = {one, other, parts.get(traversal.edge, -1) if traversal.edge is not None else one}
        parts = {n: min(ends) if part in ends else part for n, part in parts.items()}
    yield from ["two hops"] if len(match.traversals) > 1 else []
    yield from ["components"] if len({p for p in parts.values() if p >= 0}) > 1 else []


def _of_expression(value: c.Expression, depth: int = 0) -> Iterator[str]:
    for part in walk(value):
        yield type(part).__name__
        match part:
            case c.FunctionCall(function=name):
                yield f"{name}()"
            case c.Comparison(operator=operator):
                yield f"compare {operator}"
            case c.Arithmetic(operator=sign, right=right):
                length = right.type.kind
                if isinstance(length, c.DurationKind):
                    yield f"moved by {length.unit}s"
                else:
                    yield f"arithmetic {sign}"
            case c.Quantified(word=word):
                yield word
            case c.PathValue(part=asked, every=every):
                yield f"path {asked}"
                yield "all shortest" if every else "one shortest"
            case c.TextTest(operator=word):
                yield f"text {word}"
            case c.PatternAggregate(function=function):
                yield f"pattern {function}"
            case _:
                pass
        if isinstance(part, c.Exists | c.PatternAggregate):
            yield from ["block in a block"] if depth > 0 else []
            yield from ["outer filter"] if part.match.outer else []
            yield from _of_match(part.match, depth + 1)
