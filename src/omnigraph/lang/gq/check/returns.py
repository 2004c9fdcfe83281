"""Owns the result of a read: columns, groups, order, limit and offset."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import msgspec

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.findings import Meant
from omnigraph.lang.gq import tree
from omnigraph.lang.gq.check.expressions import Expressions
from omnigraph.lang.gq.check.functions import AGGREGATES
from omnigraph.lang.gq.check.kinds import is_integer, is_scalar, shown
from omnigraph.lang.gq.check.match import Patterns
from omnigraph.lang.gq.check.scope import Context, Scope
from omnigraph.lang.gq.checked import (
    RANKS,
    Aggregate,
    AggregateValue,
    Bm25,
    Column,
    DurationKind,
    EntityValue,
    Exists,
    Expression,
    Group,
    KeyValue,
    Match,
    Nearest,
    NullKind,
    OrderKey,
    OutputValue,
    ParameterValue,
    PathValue,
    PatternAggregate,
    PropertyValue,
    Read,
    Rrf,
    SameEntity,
    SystemValue,
    Type,
)
from omnigraph.lang.gq.walk import has_aggregate, rewrite, walk

_ROWS = (
    PropertyValue,
    SystemValue,
    EntityValue,
    PathValue,
    SameEntity,
    Exists,
    PatternAggregate,
)
"""Expressions that have a value in each row, but not in each group."""


def check_part(node: tree.Read, context: Context) -> Read | None:
    """A read, or a part of a union; None after an error."""
    patterns = Patterns(context)
    match, scope = patterns.check(node.clauses, None)
    return _Return(node, match, scope, patterns, context).check()


class OrderExpressions(Expressions):
    """In `order`, a name on its own is a result column, except inside a pattern."""

    columns: list[tuple[str, Expression | None]]

    def inside(self, scope: Scope) -> Expressions:
        return Expressions(self.context, scope, self.patterns)

    def bare(self, node: tree.Bare) -> Expression | None:
        for index, (name, value) in enumerate(self.columns):
            if name == node.name.text:
                return OutputValue(index, value.type) if value is not None else None
        message = f"there is no result column `{node.name.text}`"
        meant = Meant(node.name.text, [name for name, _ in self.columns])
        self.add("T6", node.span, message, meant)
        return None


def _in_rows(value: Expression, columns: list[tuple[str, Expression | None]]) -> Expression:
    """An expression over result columns, rewritten in terms of what the columns are."""
    return rewrite(
        value, lambda part: columns[part.index][1] if isinstance(part, OutputValue) else None
    )


def amounts_of(node: tree.Read, context: Context) -> tuple[Any, Any]:
    """Limit and offset of a union, which knows no variables."""
    patterns = Patterns(context)
    match, scope = Match((), (), (), (), (), ()), Scope()
    returned = _Return(node, match, scope, patterns, context)
    return returned.amount("limit"), returned.amount("offset")


class _Return:
    def __init__(
        self, node: tree.Read, match: Match, scope: Scope, patterns: Patterns, context: Context
    ) -> None:
        self.node = node
        self.match = match
        self.scope = scope
        self.patterns = patterns
        self.context = context
        self.add = context.findings.add

    def check(self) -> Read | None:
        before = len(self.context.findings.diagnostics)
        columns = self._columns()
        limits = {kind: self.amount(kind) for kind in ("limit", "offset")}
        order = list(self._order(columns))
        self._check_nearest(columns, order)
        if any(value is None for _, value in columns):
            return None
        held = [(name, value) for name, value in columns if value is not None]
        group, final = self._group(held)
        keys = self._output_keys(order, held, final, group is not None)
        if len(self.context.findings.diagnostics) > before:
            return None
        return Read(
            match=self.match,
            group=group,
            columns=tuple(Column(name, value) for name, value in final),
            distinct=self.node.is_distinct,
            order=keys,
            limit=limits["limit"],
            offset=limits["offset"],
        )

    # Columns.

    def _columns(self) -> list[tuple[str, Expression | None]]:
        expressions = Expressions(
            self.context, self.scope, self.patterns, aggregates=True, ranks=True
        )
        columns: list[tuple[str, Expression | None]] = []
        names: set[str] = set()
        for projection in self.node.projections:
            value = expressions.check(projection.value)
            if value is not None and isinstance(value.type.kind, DurationKind):
                message = "a duration is no value of its own"
                help_ = "add it to a Date or DateTime: `now() + days(30)`"
                self.add("T7", projection.span, message, help_)
            name = self._name(projection)
            if name in names:
                span = projection.alias.span if projection.alias else projection.span
                message = f"there is already a result column `{name}`"
                self.add("T25", span, message, "give one of them another name by `as`")
            names.add(name)
            columns.append((name, value))
        return columns

    def _name(self, projection: tree.Projection) -> str:
        if projection.alias is not None:
            return projection.alias.text
        match projection.value:
            case tree.Variable(name=name):
                return name
            case tree.PropertyRef(variable=variable, property=prop):
                return f"{variable.name}.{prop.text}"
            case tree.SystemRef(variable=tree.Variable(name=name), column=column):
                return f"{name}.@{column.text}"
            case tree.Call(function=function) if function.text in AGGREGATES:
                return function.text
            case tree.Pattern(kind="count"):
                return "count"
            case _:
                message = "this result needs a name"
                self.add("Q011", projection.span, message, "add `as name`")
                return f"#{projection.span.start}"

    # Groups.

    def _group(
        self, columns: list[tuple[str, Expression]]
    ) -> tuple[Group | None, list[tuple[str, Expression]]]:
        """If there is an aggregate anywhere, the other columns are the key."""
        if not any(has_aggregate(value) for _, value in columns):
            return None, columns
        keys = [value for _, value in columns if not has_aggregate(value)]
        aggregates: list[Aggregate] = []

        def change(part: Expression) -> Expression | None:
            if isinstance(part, Aggregate):
                aggregate = _with_nullability(part, grouped=bool(keys))
                if aggregate not in aggregates:
                    aggregates.append(aggregate)
                return AggregateValue(aggregates.index(aggregate), aggregate.type)
            if part in keys:
                return KeyValue(keys.index(part), part.type)
            return None

        final = []
        for (name, value), projection in zip(columns, self.node.projections, strict=True):
            changed = rewrite(value, change)
            if any(isinstance(part, _ROWS) for part in walk(changed)):
                message = "beside an aggregate only the other columns can be used"
                help_ = "return what is used here as a column of its own"
                self.add("T9", projection.span, message, help_)
            final.append((name, changed))
        return Group(tuple(keys), tuple(aggregates)), final

    # Order.

    def _order(
        self, columns: list[tuple[str, Expression | None]]
    ) -> Iterator[tuple[tree.Key, Expression]]:
        expressions = OrderExpressions(
            self.context, self.scope, self.patterns, aggregates=True, ranks=True
        )
        expressions.columns = columns
        for index, key in enumerate(self.node.order):
            value = expressions.check(key.value)
            if value is not None and not isinstance(value, OutputValue):
                value = _in_rows(value, columns)
            if value is None:
                continue
            if not is_scalar(value.type.kind) and not isinstance(value.type.kind, NullKind):
                self.add("T7", key.span, f"{shown(value)} has no order")
                continue
            if index and any(isinstance(part, RANKS) for part in walk(value)):
                self.add("T21", key.span, "a rank is the first order key")
                continue
            yield key, value

    def _output_keys(
        self,
        order: list[tuple[tree.Key, Expression]],
        columns: list[tuple[str, Expression]],
        final: list[tuple[str, Expression]],
        grouped: bool,
    ) -> tuple[OrderKey, ...]:
        """With a group or `distinct`, order keys are result columns."""
        values = [value for _, value in columns]
        keys = []
        for key, given in order:
            value = given
            if isinstance(given, OutputValue):
                value = values[given.index]
            used = value
            if value in values:
                used = OutputValue(values.index(value), final[values.index(value)][1].type)
            if (grouped or self.node.is_distinct) and not isinstance(used, OutputValue):
                message = "with `distinct` or an aggregate, rows are ordered by result columns"
                self.add("T9", key.span, message, "return it as a column")
            elif has_aggregate(used):
                self.add("T8", key.span, "an aggregate is an order key only as a result column")
            keys.append(OrderKey(used, _is_descending(key, value)))
        return tuple(keys)

    # Limit and offset.

    def amount(self, kind: str) -> Any:
        amounts = [amount for amount in self.node.amounts if amount.kind == kind]
        for repeated in amounts[1:]:
            self.add("Q012", repeated.span, f"`{kind}` is given twice")
        if not amounts:
            return None
        amount = amounts[0]
        if isinstance(amount.value, int):
            return amount.value
        return self._parameter(amount.value, kind)

    def _parameter(self, variable: tree.Variable, kind: str) -> ParameterValue | None:
        expressions = Expressions(self.context, self.scope, self.patterns)
        parameter = expressions.parameter(variable)
        if parameter is None:
            message = f"`{kind}` takes a number or a parameter, and `${variable.name}` is neither"
            self.add("T6", variable.span, message)
        elif not is_integer(parameter.type.kind):
            self.add("T7", variable.span, f"`{kind}` takes an integer, not {shown(parameter)}")
        return parameter

    def _check_nearest(
        self,
        columns: list[tuple[str, Expression | None]],
        order: list[tuple[tree.Key, Expression]],
    ) -> None:
        if any(amount.kind == "limit" for amount in self.node.amounts):
            return
        spans: list[tuple[Span, Expression | None]] = [(key.span, v) for key, v in order]
        pairs = zip(self.node.projections, columns, strict=True)
        spans += [(projection.span, value) for projection, (_, value) in pairs]
        for span, value in spans:
            if value is not None and any(isinstance(part, Nearest) for part in walk(value)):
                self.add("T17", span, "`nearest` needs a `limit`", "add `limit 10`")


def _is_descending(key: tree.Key, value: Expression) -> bool:
    """Without a direction, ascending; a rank starts with the best."""
    if key.is_descending is None:
        return isinstance(value, Bm25 | Rrf)
    return key.is_descending


def _with_nullability(aggregate: Aggregate, *, grouped: bool) -> Aggregate:
    """A group has at least one row, so an aggregate over values that are never null is never
    null."""
    if not grouped or not AGGREGATES[aggregate.function].nullable:
        return aggregate
    kind = Type(aggregate.type.kind, aggregate.argument.type.nullable)
    return msgspec.structs.replace(aggregate, type=kind)
