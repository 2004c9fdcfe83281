"""Owns the frame: a DataFrame whose rows are rows of a match, and what its columns stand for.

A variable `$x` with the number 3 is `v3` (its id), `v3_t` (the number of its type, where it may
have several) and `v3_0`, `v3_1`, … (what is carried of it). All are null where an optional block
found nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sql

from omnigraph.errors import ValueOutOfRange
from omnigraph.lang.gq.checked import Variable
from omnigraph.spark.query.failures import error_word
from omnigraph.spark.query.projection import Held

COUNT = "n"
"""How often a row occurs. A frame that lists its rows has no such column."""


@dataclass(frozen=True)
class BoundVariable:
    """A variable that has a value in each row."""

    variable: Variable
    held: tuple[Held, ...]

    @property
    def id(self) -> str:
        return f"v{self.variable.id}"

    @property
    def type(self) -> str | None:
        """None means that all are of one type."""
        return f"v{self.variable.id}_t" if len(self.variable.kind.types) > 1 else None

    def column(self, held: Held) -> str:
        return f"v{self.variable.id}_{self.held.index(held)}"

    @property
    def identity(self) -> list[str]:
        return [self.id] if self.type is None else [self.id, self.type]

    @property
    def columns(self) -> list[str]:
        return [*self.identity, *(self.column(held) for held in self.held)]


@dataclass(frozen=True)
class SparkFrame:
    """`keys` are the columns that say to which row of the outer pattern a row belongs. `read` means
    that the rows come unchanged from a table, so reading them twice costs little. `is_unit` means
    one row without variables, where every match begins; a filtered frame is no longer that."""

    data: Any
    bound: dict[int, BoundVariable] = field(default_factory=dict)
    keys: tuple[str, ...] = ()
    counted: bool = False
    read: bool = False
    is_unit: bool = False

    @property
    def columns(self) -> list[str]:
        """In the order of the variables, whatever was joined when."""
        held = [name for key in sorted(self.bound) for name in self.bound[key].columns]
        return [*self.keys, *held, *([COUNT] if self.counted else [])]

    def over(self, data: Any, *brings: BoundVariable) -> SparkFrame:
        """The same rows after an operation, with the variables that it added."""
        bound = self.bound | {one.variable.id: one for one in brings}
        made = replace(self, data=data, bound=bound, read=False, is_unit=False)
        return replace(made, data=data.select(*made.columns))

    def keeping(self, variables: Iterable[int]) -> SparkFrame:
        """Without all other variables."""
        kept = frozenset(variables)
        bound = {key: one for key, one in self.bound.items() if key in kept}
        made = replace(self, bound=bound)
        return replace(made, data=self.data.select(*made.columns))

    def merged(self) -> SparkFrame:
        """Equal rows become one, with the sum of their counts."""
        names = [name for name in self.columns if name != COUNT]
        often = sql.try_sum(COUNT) if self.counted else sql.count(sql.lit(1))
        data = self.data.groupBy(*names).agg(often.alias(COUNT), sql.count(sql.lit(1)).alias("m"))
        data = data.where("m > 0").select(*names, checked(sql.col(COUNT)).alias(COUNT))
        return replace(self, data=data, counted=True, read=False, is_unit=False)

    def times(self, factor: Any) -> Any:
        """The count of a row that is there `factor` times for each time it was."""
        if not self.counted:
            return factor.alias(COUNT)
        return checked(sql.try_multiply(sql.col(COUNT), factor)).alias(COUNT)


def checked(number: Any) -> Any:
    """A number of rows. Null means that it did not fit."""
    return sql.coalesce(number, sql.raise_error(error_word(_TOO_MANY)).cast("bigint"))


_TOO_MANY = ValueOutOfRange(
    "The number of rows of this pattern does not fit 64 bits.",
    help="Count fewer hops, or filter on the way.",
)


def same(pairs: Sequence[tuple[str, str]], *, null_safe: bool = False) -> Any:
    """Compares columns of two sides; their names are all different."""
    if not pairs:
        return sql.lit(True)
    operator = "<=>" if null_safe else "="
    return sql.expr(" and ".join(f"`{left}` {operator} `{right}`" for left, right in pairs))


def schema_of(bound: BoundVariable) -> pa.Schema:
    """The columns of a variable as Spark holds them."""
    from omnigraph.spark.query.arrow_types import carried

    fields = [pa.field(bound.id, pa.string())]
    if bound.type is not None:
        fields.append(pa.field(bound.type, pa.int32()))
    fields += [pa.field(bound.column(held), carried(held.type)) for held in bound.held]
    return pa.schema(fields)
