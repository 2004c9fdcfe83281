"""Owns the value of an expression over many rows at once.

Pure: the values of variables, parameters and patterns come from the caller's `Leaves`. Queries,
mutations and Spark all evaluate here, so they give the same values.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, Final, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.gq.checked import (
    And,
    Arithmetic,
    Comparison,
    Concatenation,
    Conditional,
    Constant,
    DurationKind,
    Expression,
    FunctionCall,
    ListValue,
    Membership,
    Negative,
    Not,
    NullKind,
    NullTest,
    Or,
    Quantified,
    TextTest,
)
from omnigraph.model.arrow import arrow_type
from omnigraph.model.types import Base, ListType, ScalarType
from omnigraph.plan.values.arithmetic import calculate, negate
from omnigraph.plan.values.compare import compare, member
from omnigraph.plan.values.functions import call as call_function
from omnigraph.plan.values.kinds import (
    BOOL,
    I64,
    TEXT,
    Value,
    arrow_kind,
    broadcast,
    cast,
    constant,
    is_array,
)
from omnigraph.plan.values.quantified import quantify
from omnigraph.plan.values.texts import test_text
from omnigraph.plan.values.times import move


class Leaves(Protocol):
    """The rows that an expression is evaluated over."""

    @property
    def rows(self) -> int: ...

    def leaf(self, expression: Expression) -> Value:
        """The value of a leaf, which is no operator: a parameter, a property, a pattern."""


def evaluate(expression: Expression, leaves: Leaves) -> Value:
    operator = _OPERATORS.get(type(expression))
    return leaves.leaf(expression) if operator is None else operator(expression, leaves)


def evaluate_array(expression: Expression, leaves: Leaves) -> pa.Array:
    """The value as one array with an entry for each row."""
    return broadcast(evaluate(expression, leaves), leaves.rows)


def holds(condition: Expression, leaves: Leaves) -> pa.Array:
    """Where a condition is true. Null counts as false."""
    value = broadcast(_truth(condition, leaves), leaves.rows)
    return pc.fill_null(value, False) if value.null_count else value


def _truth(operand: Expression, leaves: Leaves) -> Value:
    value = evaluate(operand, leaves)
    return cast(value, BOOL) if pa.types.is_null(value.type) else value


def _constant(value: Constant, _: Leaves) -> Value:
    return constant(value.value, value.type.kind)


def _and(value: And, leaves: Leaves) -> Value:
    return reduce(pc.and_kleene, [_truth(operand, leaves) for operand in value.operands])


def _or(value: Or, leaves: Leaves) -> Value:
    return reduce(pc.or_kleene, [_truth(operand, leaves) for operand in value.operands])


def _not(value: Not, leaves: Leaves) -> Value:
    return pc.invert(_truth(value.operand, leaves))


def _comparison(value: Comparison, leaves: Leaves) -> Value:
    left, right = evaluate(value.left, leaves), evaluate(value.right, leaves)
    return compare(value.operator, left, right)


def _text_test(value: TextTest, leaves: Leaves) -> Value:
    return test_text(value.operator, evaluate(value.text, leaves), evaluate(value.part, leaves))


def _null_test(value: NullTest, leaves: Leaves) -> Value:
    operand = evaluate(value.operand, leaves)
    return pc.is_valid(operand) if value.negated else pc.is_null(operand)


def _negative(value: Negative, leaves: Leaves) -> Value:
    return negate(_number(value.operand, leaves), arrow_kind(value.type.kind))


def _arithmetic(value: Arithmetic, leaves: Leaves) -> Value:
    if isinstance(value.right.type.kind, DurationKind):
        return _moved(value, value.right.type.kind, leaves)
    left, right = _number(value.left, leaves), _number(value.right, leaves)
    return calculate(value.operator, left, right, arrow_kind(value.type.kind))


def _moved(value: Arithmetic, length: DurationKind, leaves: Leaves) -> Value:
    moment, by = evaluate(value.left, leaves), evaluate(value.right, leaves)
    if value.operator == "-":
        by = negate(by, I64)
    return move(moment, by, length.unit)


def _number(operand: Expression, leaves: Leaves) -> Value:
    """A `null` on its own has no type to compute with."""
    value = evaluate(operand, leaves)
    return cast(value, I64) if isinstance(operand.type.kind, NullKind) else value


def _concatenation(value: Concatenation, leaves: Leaves) -> Value:
    sides = [cast(evaluate(side, leaves), TEXT) for side in (value.left, value.right)]
    return pc.binary_join_element_wise(*sides, "")


def _membership(value: Membership, leaves: Leaves) -> Value:
    held = value.list
    wanted = evaluate(value.item, leaves)
    if isinstance(held, ListValue):
        items = [evaluate(one, leaves) for one in held.items]
    elif (mixed := _beyond_one_type(held)) is not None:
        items = mixed
    else:
        return member(wanted, evaluate(held, leaves))
    result: Value = pa.scalar(False)
    for one in items:
        result = pc.or_kleene(result, compare("=", wanted, one))
    return result


def _beyond_one_type(held: Expression) -> list[Value] | None:
    """The items of a literal list whose integers fit no single type."""
    if not isinstance(held, Constant) or not isinstance(held.value, tuple):
        return None
    if held.type.kind != ListType(Base.I64) or all(
        v is None or (isinstance(v, int) and v < 2**63) for v in held.value
    ):
        return None
    return [
        pa.scalar(v, pa.uint64() if isinstance(v, int) and v >= 2**63 else I64) for v in held.value
    ]


def _listed(expression: ListValue, leaves: Leaves) -> Value:
    kind = expression.type.kind
    if not isinstance(kind, ListType):
        return pa.scalar([], pa.list_(pa.null()))
    item = arrow_type(ScalarType(kind.item))
    columns = [
        broadcast(cast(evaluate(one, leaves), item), leaves.rows).to_pylist()
        for one in expression.items
    ]
    rows = [list(row) for row in zip(*columns, strict=True)]
    return pa.array(rows or [[]] * leaves.rows, pa.list_(item))


def _call(call: FunctionCall, leaves: Leaves) -> Value:
    name, kind = call.function, arrow_kind(call.type.kind)
    if name == "now":
        return leaves.leaf(call)
    if name == "coalesce":
        parts = [cast(evaluate(a, leaves), kind) for a in call.arguments]
        return pc.coalesce(*parts)
    return call_function(name, [evaluate(a, leaves) for a in call.arguments], kind)


class _SomeRows:
    """Some of the rows of other leaves."""

    def __init__(self, leaves: Leaves, wanted: pa.Array) -> None:
        self._leaves = leaves
        self._wanted = wanted
        self.rows = int(pc.sum(wanted).as_py() or 0)

    def leaf(self, expression: Expression) -> Value:
        value = self._leaves.leaf(expression)
        return value.filter(self._wanted) if is_array(value) else value


def _conditional(choice: Conditional, leaves: Leaves) -> Value:
    """Each row is worked out by the branch that it takes, and by no other."""
    kind, rows = arrow_kind(choice.type.kind), leaves.rows
    left = np.arange(rows)
    places: list[np.ndarray] = []
    parts: list[pa.Array] = []
    everything = leaves
    for condition, result in zip(
        (*choice.conditions, None), (*choice.results, choice.otherwise), strict=True
    ):
        if not len(left) and rows:
            break
        wanted = np.zeros(rows, bool)
        wanted[left] = True
        here = everything if len(left) == rows else _SomeRows(leaves, pa.array(wanted))
        taken = left
        if condition is not None:
            true = holds(condition, here).to_numpy(zero_copy_only=False)
            taken, left = left[true], left[~true]
            wanted = np.zeros(rows, bool)
            wanted[taken] = True
            here = everything if len(taken) == rows else _SomeRows(leaves, pa.array(wanted))
        if len(taken):
            places.append(taken)
            parts.append(broadcast(cast(evaluate(result, here), kind), len(taken)))
    if not places:
        return pa.array([], kind)
    order = np.empty(rows, np.int64)
    order[np.concatenate(places)] = np.arange(rows)
    return pa.concat_arrays(parts).take(pa.array(order))


def _quantified(value: Quantified, leaves: Leaves) -> Value:
    def truth(condition: Expression, items: Leaves) -> pa.Array:
        return broadcast(_truth(condition, items), items.rows)

    return quantify(value, evaluate_array(value.items, leaves), leaves, truth)


_OPERATORS: Final[dict[type, Callable[[Any, Leaves], Value]]] = {
    Constant: _constant,
    And: _and,
    Or: _or,
    Not: _not,
    Comparison: _comparison,
    Membership: _membership,
    TextTest: _text_test,
    NullTest: _null_test,
    Negative: _negative,
    Arithmetic: _arithmetic,
    Concatenation: _concatenation,
    ListValue: _listed,
    FunctionCall: _call,
    Conditional: _conditional,
    Quantified: _quantified,
}
