"""Owns the rules of a type for the values of one column, each as a vectorised test."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.model import types
from omnigraph.model.catalog import GraphType
from omnigraph.model.schema import Check, Range
from omnigraph.model.violation import show_text, show_value
from omnigraph.plan.rows.convert import expected_text
from omnigraph.plan.rows.scalars import SCALAR_ARROW
from omnigraph.plan.violation_list import Indices

Column: TypeAlias = pa.Array | pa.ChunkedArray
Broken: TypeAlias = Callable[[Column], Indices]
_LISTED_VALUES = 10
_NO_ROWS = np.empty(0, dtype=np.int64)
_SHORTEST, _LONGEST = 1e-15, 1e15
"""The range of vector lengths whose squares fit in single precision: distances of other vectors are
wrong."""


@dataclass(frozen=True)
class Rule:
    """`broken` finds the rows that break the rule; null never does. `needs` completes the sentence
    "`p` of T must …, but it is …"."""

    column: str
    rule: str
    needs: str
    broken: Broken


@lru_cache(maxsize=1024)
def value_rules(kind: GraphType) -> tuple[Rule, ...]:
    """The rules for values of this type, apart from being required."""
    types = {p.name: p.type for p in kind.properties}
    rules = [rule for name, held in types.items() for rule in _type_rules(name, held)]
    rules += [_range_rule(r, types[r.property]) for r in kind.ranges]
    rules += [_check_rule(c) for c in kind.checks]
    return tuple(rules)


def _type_rules(name: str, held: types.PropertyType) -> Iterator[Rule]:
    match held:
        case types.EnumType(values=values):
            shown = ", ".join(f"`{v}`" for v in values[:_LISTED_VALUES])
            more = len(values) - _LISTED_VALUES
            needs = f"be one of {shown}" + (f" or {more} others" if more > 0 else "")
            yield Rule(name, "enum", needs, _outside(pa.array(values, pa.string())))
        case types.ListType():
            yield Rule(name, "type", "be a list without null items", _with_null_items)
        case types.VectorType(dimension=dimension):
            yield Rule(name, "vector", f"be {expected_text(held)}", _of_another_length(dimension))
            needs = f"be finite and of a length between {_SHORTEST:g} and {_LONGEST:g}, or zero"
            yield Rule(name, "vector", needs, _beyond_distances(dimension))
        case types.ScalarType():
            pass


def _rows(broken: Column) -> Indices:
    return np.flatnonzero(broken.fill_null(False))


def _outside(allowed: pa.Array) -> Broken:
    def broken(column: Column) -> Indices:
        return _rows(pc.and_(pc.invert(pc.is_in(column, value_set=allowed)), column.is_valid()))

    return broken


def _with_null_items(column: Column) -> Indices:
    if column.null_count == len(column) or not any(
        chunk.flatten().null_count for chunk in _chunks(column)
    ):
        return _NO_ROWS
    parents = pc.list_parent_indices(column).filter(pc.list_flatten(column).is_null())
    return np.unique(np.asarray(parents, dtype=np.int64))


def _chunks(column: Column) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def _beyond_distances(dimension: int) -> Broken:
    """Vectors that are not zero and still have no distance."""

    def broken(column: Column) -> Indices:
        found = [_NO_ROWS]
        if not (pa.types.is_fixed_size_list(column.type) and column.type.list_size == dimension):
            return _NO_ROWS  # the rule before reports it
        start = 0
        for chunk in column.chunks if isinstance(column, pa.ChunkedArray) else [column]:
            flat = chunk.values.to_numpy(zero_copy_only=False)
            held = flat.reshape(-1, dimension)[chunk.offset : chunk.offset + len(chunk)]
            with np.errstate(all="ignore"):
                lengths = np.sqrt(np.einsum("ij,ij->i", held, held, dtype=np.float64))
            fine = ((lengths >= _SHORTEST) & (lengths <= _LONGEST)) | (lengths == 0)
            if chunk.null_count:
                fine |= chunk.is_null().to_numpy(zero_copy_only=False)
            found.append(np.flatnonzero(~fine) + start)
            start += len(chunk)
        return np.setdiff1d(np.concatenate(found), _with_null_items(column))

    return broken


def _of_another_length(dimension: int) -> Broken:
    def broken(column: Column) -> Indices:
        wrong = _NO_ROWS
        if not (pa.types.is_fixed_size_list(column.type) and column.type.list_size == dimension):
            wrong = _rows(pc.not_equal(pc.list_value_length(column), dimension))
        empty = _with_null_items(column)
        return np.union1d(wrong, empty) if len(empty) else wrong

    return broken


# @range


def _range_rule(declared: Range, held: types.PropertyType) -> Rule:
    low, high = declared.low, declared.high
    if low is not None and high is not None:
        needs = f"be between {low} and {high}"
    else:
        needs = f"be at least {low}" if high is None else f"be at most {high}"
    base = held.base if isinstance(held, types.ScalarType) else types.Base.F64
    bounds = _float_bounds if base in types.FLOATS else _integer_bounds
    return Rule(declared.property, "range", needs, _beyond(*bounds(low, high, base)))


def _beyond(low: pa.Scalar, high: pa.Scalar) -> Broken:
    """Outside the bounds, tested so that NaN counts as outside."""

    def broken(column: Column) -> Indices:
        within = pc.and_(pc.greater_equal(column, low), pc.less_equal(column, high))
        return _rows(pc.invert(within))

    return broken


_Bound: TypeAlias = int | float | None


def _integer_bounds(low: _Bound, high: _Bound, base: types.Base) -> tuple[pa.Scalar, pa.Scalar]:
    """The smallest and largest allowed integer of the type. A pair in the wrong order allows
    nothing."""
    least, greatest = types.INTEGER_RANGES[base]
    first = least if low is None else math.ceil(low)
    last = greatest if high is None else math.floor(high)
    if first > greatest or last < least:
        first, last = greatest, least
    arrow = SCALAR_ARROW[base]
    return pa.scalar(max(first, least), arrow), pa.scalar(min(last, greatest), arrow)


def _float_bounds(low: _Bound, high: _Bound, base: types.Base) -> tuple[pa.Scalar, pa.Scalar]:
    """The bounds at the width of the property, so that the bound as it was written is allowed."""
    first = -math.inf if low is None else _as_float(low, math.inf)
    last = math.inf if high is None else _as_float(high, -math.inf)
    arrow = SCALAR_ARROW[base]
    return pa.scalar(first, arrow), pa.scalar(last, arrow)


def _as_float(bound: int | float, inwards: float) -> float:
    """The float nearest to the bound that is not outside it."""
    try:
        number = float(bound)
    except OverflowError:
        return math.inf if bound > 0 else -math.inf
    outside = number < bound if inwards > 0 else number > bound
    return math.nextafter(number, inwards) if outside else number


# @check


def _check_rule(declared: Check) -> Rule:
    """RE2, as Arrow has it, runs in time linear in the text whatever the pattern, so no schema can
    stall a load. The schema checker refuses patterns that RE2 cannot read."""

    def broken(column: Column) -> Indices:
        found = pc.match_substring_regex(column, declared.pattern)
        return _rows(pc.invert(found))

    needs = f'match the pattern "{show_text(declared.pattern)}"'
    return Rule(declared.property, "check", needs, broken)


def sentence(type_name: str, rule: Rule, value: object) -> str:
    return f"`{rule.column}` of {type_name} must {rule.needs}, but it is {show_value(value)}."
