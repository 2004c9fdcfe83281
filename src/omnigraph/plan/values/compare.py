"""Owns comparison: NaN equals NaN and is above all numbers, integers compare exactly whatever their
width, and null gives null."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.plan.values.kinds import BOOL, F64, I64, NULL_BOOL, U64, Value, cast, is_array

_MANY = 8


def compare(operator: str, left: Value, right: Value) -> Value:
    """`left operator right`, null where either is."""
    if pa.types.is_null(left.type) or pa.types.is_null(right.type):
        return NULL_BOOL
    match operator:
        case "=":
            return _equal(left, right)
        case "!=":
            return pc.invert(_equal(left, right))
        case "<":
            return _less(left, right)
        case ">":
            return _less(right, left)
        case "<=":
            return pc.invert(_less(right, left))
        case _:
            return pc.invert(_less(left, right))


def _equal(left: Value, right: Value) -> Value:
    signed, unsigned = _mixed_signs(left, right)
    if signed is not None:
        inside = pc.greater_equal(signed, pa.scalar(0, I64))
        return pc.and_kleene(inside, pc.equal(_magnitude(signed), unsigned))
    left, right = _common(left, right)
    equal = pc.equal(left, right)
    if pa.types.is_floating(left.type):
        return pc.or_(equal, pc.and_(pc.is_nan(left), pc.is_nan(right)))
    return equal


def _less(left: Value, right: Value) -> Value:
    signed, unsigned = _mixed_signs(left, right)
    if signed is not None:
        below = pc.less(signed, pa.scalar(0, I64))
        if left.type != U64:
            return _either(below, pc.less(_magnitude(signed), unsigned))
        return _both(pc.invert(below), pc.less(unsigned, _magnitude(signed)))
    left, right = _common(left, right)
    less = pc.less(left, right)
    if pa.types.is_floating(left.type):
        return pc.or_(less, pc.and_(pc.invert(pc.is_nan(left)), pc.is_nan(right)))
    return less


def _either(decided: Value, otherwise: Value) -> Value:
    """True where decided, and null where one side of the comparison is null."""
    return pc.if_else(pc.is_null(otherwise), NULL_BOOL, pc.or_kleene(decided, otherwise))


def _both(decided: Value, otherwise: Value) -> Value:
    return pc.if_else(pc.is_null(otherwise), NULL_BOOL, pc.and_kleene(decided, otherwise))


def _mixed_signs(left: Value, right: Value) -> tuple[Value, Value]:
    """The signed and the unsigned side, if one is U64 and the other a signed integer."""
    if pa.types.is_signed_integer(left.type) and right.type == U64:
        return cast(left, I64), right
    if pa.types.is_signed_integer(right.type) and left.type == U64:
        return cast(right, I64), left
    return None, None


def _magnitude(signed: Value) -> Value:
    """The value as U64, 0 for a negative one."""
    zero = pa.scalar(0, I64)
    return cast(pc.if_else(pc.less(signed, zero), zero, signed), U64)


def _common(left: Value, right: Value) -> tuple[Value, Value]:
    if left.type == right.type:
        return left, right
    if pa.types.is_floating(left.type) or pa.types.is_floating(right.type):
        return cast(left, F64), cast(right, F64)
    if pa.types.is_integer(left.type):
        return (
            (cast(left, U64), cast(right, U64))
            if U64 in (left.type, right.type)
            else (
                cast(left, I64),
                cast(right, I64),
            )
        )
    return left, right


def member(item: Value, held: Value) -> Value:
    """`item in held`: true if one is equal; otherwise null if the item, or one in the list, is
    null."""
    if pa.types.is_null(held.type):
        return NULL_BOOL
    if not is_array(held):
        return _in_constant(item, held)
    return _in_lists(item, held)


def _in_constant(item: Value, held: pa.Scalar) -> Value:
    if not held.is_valid:
        return NULL_BOOL
    items = held.values
    if not len(items):
        return pa.scalar(False)
    if (
        len(items) > _MANY
        and is_array(item)
        and items.type == item.type
        and not (pa.types.is_floating(item.type))
    ):
        found = pc.is_in(item, value_set=items.drop_null())
        unknown = pc.is_null(item) if not items.null_count else pc.invert(found)
        return pc.if_else(unknown, NULL_BOOL, found)
    result: Value = pa.scalar(False)
    for one in items:
        result = pc.or_kleene(result, compare("=", item, one))
    return result


def _in_lists(item: Value, held: pa.Array) -> Value:
    if pa.types.is_null(item.type):
        item = pa.scalar(None, held.type.value_type)
    parents = pc.list_parent_indices(held)
    flat = pc.list_flatten(held)
    wanted = item.take(parents) if is_array(item) else item
    equal = pc.fill_null(compare("=", wanted, flat), False)
    if not is_array(equal):
        equal = pa.repeat(equal, len(flat))
    hits = pc.unique(pc.filter(parents, equal))
    rows = pa.array(range(len(held)), parents.type)
    found = pc.is_in(rows, value_set=hits)
    # An empty list contains nothing, whatever the item is.
    not_empty = pc.greater(pc.list_value_length(held), 0)
    nulls = pc.is_null(item) if is_array(item) else pa.scalar(not item.is_valid)
    unknown = pc.or_kleene(pc.is_null(held), pc.and_kleene(nulls, not_empty))
    return pc.if_else(unknown, pa.scalar(None, BOOL), found)
