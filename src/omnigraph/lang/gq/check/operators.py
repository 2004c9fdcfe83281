"""Owns the operators: the operands that they accept and the types of their results."""

from __future__ import annotations

from typing import Any

from omnigraph.lang.diagnostics import Span
from omnigraph.lang.gq import tree
from omnigraph.lang.gq.check.checker import Checker
from omnigraph.lang.gq.check.kinds import (
    BOOL,
    DATE,
    DATETIME,
    DAYS,
    F64,
    I64,
    STRING,
    U64,
    are_comparable,
    arithmetic_kind,
    fitted,
    is_entity,
    is_float,
    is_integer,
    is_number,
    is_ordered,
    is_text,
    item_kind,
    shown,
)
from omnigraph.lang.gq.checked import (
    And,
    Arithmetic,
    Comparison,
    Concatenation,
    Constant,
    DurationKind,
    EntityValue,
    Expression,
    Kind,
    Membership,
    Negative,
    Not,
    NullKind,
    Or,
    PropertyValue,
    SameEntity,
    TextTest,
    Type,
)
from omnigraph.lang.values import MisfitError
from omnigraph.model.types import Base, EnumType, ListType, ScalarType


def check_unary(checker: Checker, node: tree.Unary, depth: int) -> Expression | None:
    operand = checker.check(node.operand, depth + 1)
    if operand is None:
        return None
    kind, nullable = operand.type.kind, operand.type.nullable
    if node.operator == "not":
        if not _is(kind, BOOL):
            checker.add(
                "T7", node.operand.span, f"`not` takes a Bool, and this is {shown(operand)}"
            )
            return None
        return Not(operand, Type(BOOL, nullable))
    if (
        isinstance(operand, Constant)
        and is_number(kind)
        and (value := _negated(operand)) is not None
    ):
        return Constant(value, Type(F64 if is_float(kind) else I64))
    if not is_number(kind) and not isinstance(kind, NullKind):
        checker.add("T7", node.operand.span, f"`-` takes a number, and this is {shown(operand)}")
        return None
    return Negative(operand, Type(F64 if is_float(kind) else I64, nullable))


def _negated(constant: Constant) -> int | float | None:
    """None if the result would not be an I64."""
    value = constant.value
    if isinstance(value, float):
        return -value
    return -value if isinstance(value, int) and -(2**63) < value <= 2**63 else None


def _is(kind: Kind, wanted: Kind) -> bool:
    return isinstance(kind, NullKind) or kind == wanted


def check_chain(checker: Checker, node: tree.Chain, depth: int) -> Expression | None:
    if node.operators[0] in ("and", "or"):
        return _junction(checker, node, depth)
    result: Expression | None = None
    span = node.operands[0].span
    below = len(node.operators)
    for index, part in enumerate(node.operands):
        # The first operands end up deepest, because a - b - c is (a - b) - c.
        operand = checker.check(part, depth + below - max(index - 1, 0))
        if operand is None:
            for rest in node.operands[index + 1 :]:
                checker.check(rest, depth + 1)
            return None
        if index == 0:
            result = operand
            continue
        assert result is not None
        span = Span(span.start, part.span.end)
        result = _calculate(checker, node.operators[index - 1], result, operand, span)
        if result is None:
            return None
    return result


def _junction(checker: Checker, node: tree.Chain, depth: int) -> Expression | None:
    operands = [checker.check(part, depth + 1) for part in node.operands]
    sound = True
    for operand, part in zip(operands, node.operands, strict=True):
        if operand is not None and not _is(operand.type.kind, BOOL):
            message = f"`{node.operators[0]}` takes Bools, and this is {shown(operand)}"
            checker.add("T7", part.span, message)
            sound = False
    held = tuple(operand for operand in operands if operand is not None)
    if not sound or len(held) < len(operands):
        return None
    nullable = any(operand.type.nullable for operand in held)
    junction = And if node.operators[0] == "and" else Or
    return junction(held, Type(BOOL, nullable))


def _calculate(
    checker: Checker, operator: Any, left: Expression, right: Expression, span: Span
) -> Expression | None:
    kinds = (left.type.kind, right.type.kind)
    nullable = left.type.nullable or right.type.nullable
    if any(isinstance(k, DurationKind) for k in kinds):
        return _moved(checker, operator, left, right, span)
    if operator == "+" and any(is_text(k) for k in kinds):
        if all(is_text(k) or isinstance(k, NullKind) for k in kinds):
            return Concatenation(left, right, Type(STRING, nullable))
    elif all(is_number(k) or isinstance(k, NullKind) for k in kinds):
        if operator in ("/", "%"):
            nullable = nullable or not (isinstance(right, Constant) and bool(right.value))
        kind = F64 if operator == "/" else _arithmetic(left, right)
        return Arithmetic(operator, left, right, Type(kind, nullable))
    what = "numbers or texts" if operator == "+" else "numbers"
    message = f"`{operator}` takes {what}, not {shown(left)} and {shown(right)}"
    help_ = "use `toString(…)`" if operator == "+" and any(is_text(k) for k in kinds) else None
    checker.add("T7", span, message, help_)
    return None


def _moved(
    checker: Checker, operator: Any, left: Expression, right: Expression, span: Span
) -> Expression | None:
    """A Date or DateTime by a duration: `now() - days(30)`."""
    moment, duration = (right, left) if operator == "+" and _is_moment(right) else (left, right)
    kind, length = moment.type.kind, duration.type.kind
    fits = operator in ("+", "-") and _is_moment(moment) and isinstance(length, DurationKind)
    if fits and (kind == DATETIME or length == DAYS):
        nullable = moment.type.nullable or duration.type.nullable
        return Arithmetic(operator, moment, duration, Type(kind, nullable))
    message = f"`{operator}` does not take {shown(left)} and {shown(right)}"
    help_ = "a duration is added to a Date or DateTime, or taken from it: `now() - days(30)`"
    if fits:
        message = "a Date has no hours, minutes and seconds to move by"
        help_ = "make it a DateTime by `datetime(…)`, or move it by `days(…)`"
    checker.add("T7", span, message, help_)
    return None


def _is_moment(value: Expression) -> bool:
    return value.type.kind in (DATE, DATETIME)


def _arithmetic(left: Expression, right: Expression) -> ScalarType:
    """A non-negative literal does not make an unsigned sum signed."""
    kinds = [left.type.kind, right.type.kind]
    for index, (side, other) in enumerate(((left, right), (right, left))):
        is_literal = isinstance(side, Constant) and is_integer(side.type.kind)
        if is_literal and other.type.kind == U64 and _negated_or_zero(side) <= 0:
            kinds[index] = U64
    return arithmetic_kind(*kinds)


def _negated_or_zero(side: Expression) -> int | float:
    value = _negated(side) if isinstance(side, Constant) else 0
    return -1 if value is None else value


def check_comparison(checker: Checker, node: tree.Comparison, depth: int) -> Expression | None:
    left = checker.check(node.left, depth + 1)
    right = checker.check(node.right, depth + 1)
    if left is None or right is None:
        return None
    if node.operator == "in":
        return member(checker, left, right, node.span, node.left.span)
    if node.operator in ("contains", "starts_with", "ends_with"):
        return _contains(checker, node, left, right)
    if is_entity(left.type.kind) or is_entity(right.type.kind):
        return _entities(checker, node, left, right)
    return compared(checker, node.operator, left, right, node.span)


def compared(
    checker: Checker, operator: Any, left: Expression, right: Expression, span: Span
) -> Expression | None:
    """A comparison of two values, after a literal has taken the type of the other side."""
    fitted_ = fit_sides(checker, left, right, span)
    if fitted_ is None:
        return None
    left, right = fitted_
    kinds = (left.type.kind, right.type.kind)
    if not are_comparable(*kinds):
        message = f"{shown(left)} and {shown(right)} do not compare"
        help_ = None
        if set(kinds) == {DATE, DATETIME}:
            help_ = "make both a Date by `date(…)` or both a DateTime by `datetime(…)`"
        checker.add("T7", span, message, help_)
        return None
    unordered = next((k for k in kinds if not is_ordered(k) and not isinstance(k, NullKind)), None)
    if operator not in ("=", "!=") and unordered is not None:
        checker.add(
            "T7", span, f"{shown(Type(unordered))} has no order, so `{operator}` says nothing"
        )
        return None
    nullable = left.type.nullable or right.type.nullable
    return Comparison(operator, left, right, Type(BOOL, nullable))


def fit_sides(
    checker: Checker, left: Expression, right: Expression, span: Span
) -> tuple[Expression, Expression] | None:
    """A text literal beside a Date, DateTime or enum is read as one. None after an error."""
    new_right = fit_literal(checker, right, left.type.kind, span)
    new_left = fit_literal(checker, left, right.type.kind, span)
    return None if new_left is None or new_right is None else (new_left, new_right)


def fit_literal(checker: Checker, value: Expression, kind: Kind, span: Span) -> Expression | None:
    if not isinstance(value, Constant) or not isinstance(value.value, str):
        return value
    if kind not in (DATE, DATETIME) and not isinstance(kind, EnumType):
        return value
    assert isinstance(kind, ScalarType | EnumType)
    try:
        return fitted(value.value, kind)
    except MisfitError as error:
        checker.add("T3", span, f'"{value.value}" does not fit {shown(Type(kind))}: {error}')
        return None


def _entities(
    checker: Checker, node: tree.Comparison, left: Expression, right: Expression
) -> Expression | None:
    if isinstance(left, EntityValue) and isinstance(right, EntityValue):
        kinds: tuple[Any, Any] = (left.type.kind, right.type.kind)
        if node.operator not in ("=", "!="):
            message = f"entities are equal or not: `{node.operator}` does not compare them"
            checker.add("T7", node.span, message)
            return None
        names = [{t.name for t in kind.types} for kind in kinds]
        if type(kinds[0]) is type(kinds[1]) and names[0] & names[1]:
            nullable = left.type.nullable or right.type.nullable
            negated = node.operator == "!="
            return SameEntity(left.variable, right.variable, negated, Type(BOOL, nullable))
        checker.add("T7", node.span, f"{shown(left)} is never the same as {shown(right)}")
        return None
    entity, variable = (left, node.left) if is_entity(left.type.kind) else (right, node.right)
    other = right if entity is left else left
    help_ = f"write `${variable.name}.@id`" if isinstance(variable, tree.Variable) else None
    checker.add("T7", node.span, f"{shown(entity)} does not compare with {shown(other)}", help_)
    return None


def _contains(
    checker: Checker, node: tree.Comparison, left: Expression, right: Expression
) -> Expression | None:
    operator: Any = node.operator
    if operator == "contains" and item_kind(left.type.kind) is not None:
        return member(checker, right, left, node.span, node.right.span)
    for side in (left, right):
        if not is_text(side.type.kind) and not isinstance(side.type.kind, NullKind):
            wanted = "a text or a list" if operator == "contains" and side is left else "a text"
            message = f"`{operator}` needs {wanted}, and this is {shown(side)}"
            checker.add("T7", (node.left if side is left else node.right).span, message)
            return None
    nullable = left.type.nullable or right.type.nullable
    return TextTest(operator, left, right, Type(BOOL, nullable))


def member(
    checker: Checker, item: Expression, held: Expression, span: Span, item_span: Span
) -> Expression | None:
    """`item in held`."""
    kind = item_kind(held.type.kind)
    if kind is None and not isinstance(held.type.kind, NullKind):
        checker.add("T7", span, f"`in` needs a list on its right, and this is {shown(held)}")
        return None
    if kind is not None and isinstance(held, Constant) and held.value:
        refit = _fit_items(checker, held, item.type.kind, span)
        if refit is None:
            return None
        held = refit
        kind = item_kind(held.type.kind)
    if kind is not None and not (isinstance(held, Constant) and not held.value):
        fitted_ = fit_literal(checker, item, kind, item_span)
        if fitted_ is None:
            return None
        item = fitted_
        if not are_comparable(item.type.kind, kind):
            checker.add("T7", span, f"{shown(item)} is never in {shown(held)}")
            return None
    nullable = item.type.nullable or held.type.nullable
    if isinstance(held, Constant) and isinstance(held.value, tuple) and None in held.value:
        nullable = True
    return Membership(item, held, Type(BOOL, nullable))


def _fit_items(checker: Checker, held: Constant, kind: Kind, span: Span) -> Constant | None:
    """The same for a list of texts beside a Date, DateTime or enum."""
    dated = kind in (DATE, DATETIME) or isinstance(kind, EnumType)
    if not dated or not isinstance(held.value, tuple) or held.type.kind != ListType(Base.STRING):
        return held
    items = [fit_literal(checker, Constant(v, Type(STRING)), kind, span) for v in held.value]
    if any(item is None for item in items):
        return None
    values: Any = tuple(item.value for item in items if isinstance(item, Constant))
    return Constant(
        values, Type(ListType(kind.base)) if isinstance(kind, ScalarType) else held.type
    )


def equal_to(
    checker: Checker, left: PropertyValue, value: Expression, entry: tree.Assignment
) -> Expression | None:
    """The filter for `{ name: value }`. A value that does not fit is T3 here."""
    kind = item_kind(left.type.kind) or left.type.kind
    fitting = fit_literal(checker, value, kind, entry.value.span)
    if fitting is None:
        return None
    if not are_comparable(kind, fitting.type.kind) or is_entity(fitting.type.kind):
        message = f"`{entry.name.text}` is {shown(Type(kind))}, and this is {shown(value)}"
        checker.add("T3", entry.value.span, message)
        return None
    nullable = left.type.nullable or fitting.type.nullable
    if item_kind(left.type.kind) is not None:
        return Membership(fitting, left, Type(BOOL, nullable))
    return Comparison("=", left, fitting, Type(BOOL, nullable))
