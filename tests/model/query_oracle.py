"""Owns the oracle for reads: a naive evaluation of a checked query over plain dicts, clear before
fast, from sections 4, 5, 9 and 12 of the language page. It never looks at the engine.

A pattern is the set of all assignments of its variables that satisfy its traversals: every
variable is tried with every entity. Whatever the language leaves open is free here too: `Answer`
says whether rows are ordered, and holds them all beside the limit.

An error in an expression counts only for a row that everything else would keep, so that an engine
which filters in another order may differ only by failing more often.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, assert_never

import msgspec

from omnigraph.lang.gq import checked as c
from omnigraph.model.types import Base, ListType, ScalarType
from tests.model import query_values as v
from tests.model.query_paths import Paths, Variables, World
from tests.model.query_values import EvaluationError

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True)
class Frame:
    """What an expression may look at: the row, or the group, or the result row."""

    variables: Variables = field(default_factory=dict)
    keys: tuple[Any, ...] = ()
    aggregates: tuple[Any, ...] = ()
    outputs: tuple[Any, ...] = ()
    items: Mapping[int, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Answer:
    """`rows` are all rows, in order if `is_ordered`, before offset and limit."""

    columns: tuple[c.Column, ...]
    rows: list[tuple[Any, ...]]
    is_ordered: bool
    offset: int
    limit: int | None

    def final(self) -> list[tuple[Any, ...]]:
        end = None if self.limit is None else self.offset + self.limit
        return self.rows[self.offset : end]


def evaluate(
    query: c.CheckedQuery, world: World, parameters: Mapping[str, Any], now: datetime = NOW
) -> Answer:
    """The answer to a read. `parameters` as `bind_parameters` gives them."""
    assert isinstance(query.body, c.Read)
    return Oracle(world, parameters, now).read(query.body)


class Oracle:
    def __init__(self, world: World, parameters: Mapping[str, Any], now: datetime) -> None:
        self.world = world
        self.parameters = parameters
        self.now = now
        self.paths = Paths(world)

    # Reads.

    def read(self, read: c.Read) -> Answer:
        if read.parts:
            return self._union(read)
        rows, error = self.solve(read.match, {})
        if error is not None:
            raise error
        frames = [Frame(row) for row in rows]
        if read.group is not None:
            frames = self._grouped(read.group, frames)
        frames = [self._with_outputs(frame, read.columns) for frame in frames]
        if read.distinct:
            frames = v.distinct_by(frames, lambda f: tuple(map(v.order_key, f.outputs)))
        if read.order:
            frames = self._sorted(read, frames)
        offset = self._amount(read.offset)
        return Answer(
            read.columns,
            [frame.outputs for frame in frames],
            bool(read.order),
            0 if offset is None else offset,
            self._amount(read.limit),
        )

    def _union(self, read: c.Read) -> Answer:
        kinds = [column.type.kind for column in read.columns]
        frames = [
            Frame(outputs=tuple(map(v.converted, row, kinds)))
            for part in read.parts
            for row in self.read(part).rows
        ]
        if read.distinct:
            frames = v.distinct_by(frames, lambda f: tuple(map(v.order_key, f.outputs)))
        if read.order:
            frames = self._sorted(msgspec.structs.replace(read, distinct=True), frames)
        rows = [frame.outputs for frame in frames]
        offset = self._amount(read.offset) or 0
        return Answer(read.columns, rows, bool(read.order), offset, self._amount(read.limit))

    def _with_outputs(self, frame: Frame, columns: tuple[c.Column, ...]) -> Frame:
        outputs = tuple(self.value(column.value, frame) for column in columns)
        return Frame(frame.variables, frame.keys, frame.aggregates, outputs)

    def _grouped(self, group: c.Group, frames: list[Frame]) -> list[Frame]:
        members: dict[tuple[Any, ...], list[Frame]] = {}
        keys: dict[tuple[Any, ...], tuple[Any, ...]] = {}
        for frame in frames:
            values = tuple(self.value(key, frame) for key in group.keys)
            same = tuple(map(v.order_key, values))
            keys.setdefault(same, values)
            members.setdefault(same, []).append(frame)
        if not group.keys and not members:
            keys[()], members[()] = (), []
        return [
            Frame(
                keys=keys[same],
                aggregates=tuple(self._aggregate(a, rows) for a in group.aggregates),
            )
            for same, rows in members.items()
        ]

    def _aggregate(self, aggregate: c.Aggregate, frames: list[Frame]) -> Any:
        values = [self.value(aggregate.argument, frame) for frame in frames]
        if aggregate.distinct:
            values = v.distinct_by(values, v.order_key)
        return v.aggregate(aggregate.function, values, aggregate.type.kind)

    def _sorted(self, read: c.Read, frames: list[Frame]) -> list[Frame]:
        """Sorting is stable, so the last key goes first and ties before all keys."""
        if read.group is not None or read.distinct:
            frames = sorted(frames, key=lambda f: tuple(map(v.order_key, f.outputs)))
        else:
            named = sorted((x.name, x.id) for x in _bound(read.match) if x.name is not None)
            frames = sorted(
                frames,
                key=lambda f: tuple(v.order_key(f.variables[number]) for _, number in named),
            )
        for key in reversed(read.order):
            decorated = [(v.order_key(self.value(key.value, f)), f) for f in frames]
            decorated.sort(key=lambda pair: pair[0], reverse=key.descending)
            frames = [frame for _, frame in decorated]
        return frames

    def _amount(self, amount: int | c.ParameterValue | None) -> int | None:
        value = self.parameters[amount.name] if isinstance(amount, c.ParameterValue) else amount
        if value is not None and value < 0:
            raise EvaluationError(f"{value} rows cannot be taken")
        return value

    # Patterns.

    def solve(
        self, match: c.Match, outer: Variables
    ) -> tuple[list[Variables], EvaluationError | None]:
        """Every solution, and the first error of a row that nothing else drops."""
        rows, error = self._kept(self._assignments(match, outer), match.filters)
        for optional in match.optionals:
            extended: list[Variables] = []
            for row in rows:
                found, wrong = self.solve(optional, row)
                error = error or wrong
                extended += found or [row | {x.id: None for x in _bound(optional)}]
            rows = extended
        rows, late = self._kept(rows, match.late_filters)
        return rows, error or late

    def _assignments(self, match: c.Match, outer: Variables) -> list[Variables]:
        if not all(self.paths.holds(t, outer) for t in match.traversals):
            return []
        rows = [outer]
        for variable in match.variables:
            tried = [
                row | {variable.id: entity}
                for row in rows
                for entity in self.world.entities(variable.kind)
            ]
            touching = [t for t in match.traversals if variable.id in (t.source, t.target, t.edge)]
            rows = [row for row in tried if all(self.paths.holds(t, row) for t in touching)]
        return rows

    def _kept(
        self, rows: list[Variables], filters: tuple[c.Expression, ...]
    ) -> tuple[list[Variables], EvaluationError | None]:
        kept: list[Variables] = []
        error: EvaluationError | None = None
        conditions = tuple(_conjuncts(filters))
        for row in rows:
            verdicts, wrong = self._verdicts(conditions, Frame(row))
            if all(verdict is True for verdict in verdicts):
                error = error or wrong
                if wrong is None:
                    kept.append(row)
        return kept, error

    # Expressions.

    def _all(self, operands: tuple[c.Expression, ...], frame: Frame) -> bool | None:
        """False wins over an error, which wins over null."""
        verdicts, error = self._verdicts(operands, frame)
        if False in verdicts:
            return False
        if error is not None:
            raise error
        return None if None in verdicts else True

    def _any(self, operands: tuple[c.Expression, ...], frame: Frame) -> bool | None:
        verdicts, error = self._verdicts(operands, frame)
        if True in verdicts:
            return True
        if error is not None:
            raise error
        return None if None in verdicts else False

    def _verdicts(
        self, operands: tuple[c.Expression, ...], frame: Frame
    ) -> tuple[list[bool | None], EvaluationError | None]:
        verdicts: list[bool | None] = []
        error: EvaluationError | None = None
        for operand in operands:
            try:
                verdicts.append(self.value(operand, frame))
            except EvaluationError as wrong:
                error = error or wrong
        return verdicts, error

    def value(self, node: c.Expression, frame: Frame) -> Any:
        match node:
            case c.Constant():
                return node.value
            case c.ParameterValue():
                return _at_width(self.parameters[node.name], node.type.kind)
            case c.ListValue():
                return tuple(self.value(item, frame) for item in node.items)
            case c.PropertyValue() | c.SystemValue() | c.EntityValue() | c.PathValue():
                return self._reference(node, frame)
            case c.KeyValue() | c.AggregateValue() | c.OutputValue() | c.ItemValue():
                return _result(node, frame)
            case c.FunctionCall() | c.Negative() | c.Arithmetic() | c.Concatenation():
                return self._computed(node, frame)
            case c.PatternAggregate():
                return self._pattern(node, frame)
            case c.Conditional():
                return self._case(node, frame)
            case (
                c.And() | c.Or() | c.Not() | c.Comparison() | c.SameEntity() | c.TypeTest()
                | c.Membership() | c.TextTest() | c.NullTest() | c.Exists() | c.Quantified()
            ):  # fmt: skip
                return self._condition(node, frame)
            case c.Aggregate() | c.RowProperty() | c.RowSystem():
                raise AssertionError(f"{node} stands in no checked read")
            case c.Nearest() | c.Bm25() | c.Rrf() | c.TextSearch() | c.Highlight():
                raise AssertionError("searches have an oracle of their own: tests/search")
            case _:
                assert_never(node)

    def _reference(
        self, node: c.PropertyValue | c.SystemValue | c.EntityValue | c.PathValue, frame: Frame
    ) -> Any:
        if isinstance(node, c.PathValue):
            source, target = node.traversal.source, node.traversal.target
            return self.paths.part(node, frame.variables[source], frame.variables[target])
        entity = frame.variables[node.variable]
        if entity is None or isinstance(node, c.EntityValue):
            return entity
        if isinstance(node, c.SystemValue):
            return getattr(entity, node.column)
        return entity.properties.get(node.properties[0].name)

    def _computed(
        self, node: c.FunctionCall | c.Negative | c.Arithmetic | c.Concatenation, frame: Frame
    ) -> Any:
        kind: Any = node.type.kind
        match node:
            case c.Negative():
                return v.negative(self.value(node.operand, frame), kind)
            case c.Arithmetic(right=right) if isinstance(right.type.kind, c.DurationKind):
                moment, length = self.value(node.left, frame), self.value(right, frame)
                return v.moved(node.operator, moment, length, right.type.kind.unit)
            case c.Arithmetic():
                left, right = self.value(node.left, frame), self.value(node.right, frame)
                return v.arithmetic(node.operator, left, right, kind)
            case c.Concatenation():
                left, right = self.value(node.left, frame), self.value(node.right, frame)
                return None if left is None or right is None else left + right
            case c.FunctionCall(function="now"):
                return self.now
            case c.FunctionCall(function="coalesce"):
                for argument in node.arguments:
                    value = self.value(argument, frame)
                    if value is not None:
                        return v.converted(value, kind)
                return None
            case c.FunctionCall():
                values = [self.value(argument, frame) for argument in node.arguments]
                return v.function(node.function, values, node.arguments[0].type.kind, kind)
            case _:
                assert_never(node)

    def _case(self, node: c.Conditional, frame: Frame) -> Any:
        """What stands in a branch that is not taken is not looked at."""
        for condition, result in zip(node.conditions, node.results, strict=True):
            if self.value(condition, frame) is True:
                return v.converted(self.value(result, frame), node.type.kind)
        return v.converted(self.value(node.otherwise, frame), node.type.kind)

    def _quantified(self, node: c.Quantified, frame: Frame) -> bool | None:
        held = self.value(node.items, frame)
        if held is None:
            return None
        told = [
            self.value(node.condition, replace(frame, items={**frame.items, node.item.item: one}))
            for one in held
        ]
        if node.word == "all":
            return False if False in told else None if None in told else True
        found = True if True in told else None if None in told else False
        return v.negation(found) if node.word == "none" else found

    def _pattern(self, node: c.PatternAggregate, frame: Frame) -> Any:
        rows, error = self.solve(node.match, frame.variables)
        if error is not None:
            raise error
        if node.argument is None:
            return len(rows)
        values = [self.value(node.argument, Frame(row)) for row in rows]
        return v.aggregate(node.function, values, node.type.kind)

    def _condition(
        self,
        node: c.And | c.Or | c.Not | c.Comparison | c.SameEntity | c.TypeTest | c.Membership
        | c.TextTest | c.NullTest | c.Exists | c.Quantified,
        frame: Frame,
    ) -> bool | None:  # fmt: skip
        match node:
            case c.And():
                return self._all(node.operands, frame)
            case c.Or():
                return self._any(node.operands, frame)
            case c.Not():
                return v.negation(self.value(node.operand, frame))
            case c.Comparison():
                left, right = self.value(node.left, frame), self.value(node.right, frame)
                return v.comparison(node.operator, left, right)
            case c.SameEntity() | c.TypeTest():
                return _of_entities(node, frame)
            case c.Membership():
                return v.membership(self.value(node.item, frame), self.value(node.list, frame))
            case c.TextTest():
                text, part = self.value(node.text, frame), self.value(node.part, frame)
                return v.text_test(node.operator, text, part)
            case c.Quantified():
                return self._quantified(node, frame)
            case c.NullTest():
                return (self.value(node.operand, frame) is None) != node.negated
            case c.Exists():
                rows, error = self.solve(node.match, frame.variables)
                if error is not None and not rows:
                    raise error
                return bool(rows)
            case _:
                assert_never(node)


def _of_entities(node: c.SameEntity | c.TypeTest, frame: Frame) -> bool | None:
    if isinstance(node, c.SameEntity):
        one, other = frame.variables[node.left], frame.variables[node.right]
        return None if one is None or other is None else (one == other) != node.negated
    entity = frame.variables[node.variable]
    return None if entity is None else entity.type in {t.name for t in node.types}


def _result(node: c.KeyValue | c.AggregateValue | c.OutputValue | c.ItemValue, frame: Frame) -> Any:
    match node:
        case c.ItemValue():
            return frame.items[node.item]
        case c.KeyValue():
            return frame.keys[node.index]
        case c.AggregateValue():
            return frame.aggregates[node.index]
        case c.OutputValue():
            return frame.outputs[node.index]


def _conjuncts(filters: Iterable[c.Expression]) -> Iterator[c.Expression]:
    """The conditions that must each be true, also where they are written with `and`."""
    for condition in filters:
        if isinstance(condition, c.And):
            yield from _conjuncts(condition.operands)
        else:
            yield condition


def _bound(match: c.Match) -> Iterator[c.Variable]:
    """The variables of a pattern and of its optional blocks."""
    yield from match.variables
    for optional in match.optionals:
        yield from _bound(optional)


def _at_width(value: Any, kind: Any) -> Any:
    """A parameter of type F32 is a number of that width."""
    if kind == ScalarType(Base.F32) and value is not None:
        return v.narrowed(value)
    if kind == ListType(Base.F32) and value is not None:
        return tuple(v.narrowed(item) for item in value)
    return value
