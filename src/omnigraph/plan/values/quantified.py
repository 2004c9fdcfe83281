"""Owns conditions on the items of lists: `any`, `all` and `none`.

All items of all rows are one column, over which the condition is evaluated once. Whatever else it
names is repeated for each item of its row.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.lang.gq.checked import Expression, ItemValue, Quantified
from omnigraph.plan.values.kinds import BOOL, Value, arrow_kind, cast, is_array


class OuterRows(Protocol):
    """The rows that a list belongs to."""

    @property
    def rows(self) -> int: ...

    def leaf(self, expression: Expression) -> Value: ...


class ItemLeaves:
    """The rows of items: each is a row, and knows to which row its list belongs."""

    def __init__(
        self, outer: OuterRows, item: ItemValue, values: pa.Array, parents: pa.Array
    ) -> None:
        self._outer = outer
        self._item = item.item
        self._values = values
        self._parents = parents

    @property
    def rows(self) -> int:
        return len(self._values)

    def leaf(self, expression: Expression) -> Value:
        if isinstance(expression, ItemValue) and expression.item == self._item:
            return self._values
        value = self._outer.leaf(expression)
        return value.take(self._parents) if is_array(value) else value


Truth = Callable[[Expression, ItemLeaves], pa.Array]


def quantify(value: Quantified, lists: pa.Array, outer: OuterRows, holds: Truth) -> pa.Array:
    """`holds` gives the truth of the condition for each item; it may be null."""
    rows = len(lists)
    if pa.types.is_null(lists.type):
        return pa.nulls(rows, BOOL)
    parents = pc.list_parent_indices(lists)
    items = cast(pc.list_flatten(lists), arrow_kind(value.item.type.kind))
    truth = holds(value.condition, ItemLeaves(outer, value.item, items, parents))
    of_row = parents.to_numpy(zero_copy_only=False)
    unknown = truth.is_null().to_numpy(zero_copy_only=False)
    true = pc.fill_null(truth, False).to_numpy(zero_copy_only=False)

    def some(which: np.ndarray) -> np.ndarray:
        return np.bincount(of_row[which], minlength=rows) > 0

    decided = some(~true & ~unknown) if value.word == "all" else some(true)
    found = decided if value.word == "any" else ~decided
    missing = some(unknown) & ~decided | lists.is_null().to_numpy(zero_copy_only=False)
    return pa.array(found, mask=missing) if missing.any() else pa.array(found)
