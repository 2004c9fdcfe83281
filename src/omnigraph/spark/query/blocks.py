"""Owns patterns inside patterns: optional blocks, `exists`, and aggregates over a pattern.

Each is computed once for the distinct entities that it depends on, and joined back to the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from pyspark.sql import functions as sql

from omnigraph.lang.gq.check.functions import AGGREGATES
from omnigraph.lang.gq.checked import Exists, Expression, PathValue, PatternAggregate
from omnigraph.lang.gq.walk import parts, used_variables
from omnigraph.plan.query import PatternPlan, argument_variables
from omnigraph.plan.query.logical import inner_patterns
from omnigraph.plan.query.steps import Check, Degrees, Expand, Optional, ScanEdges, Test
from omnigraph.spark.query.aggregates import AggregateArgument, fold
from omnigraph.spark.query.arrow_types import spark_type
from omnigraph.spark.query.context import Compiling
from omnigraph.spark.query.edges import FAR, FAR_TYPE, NEAR, NEAR_TYPE
from omnigraph.spark.query.frame import COUNT, SparkFrame, same
from omnigraph.spark.query.scope import Leaf, attached_key, named
from omnigraph.spark.query.values import leaf_of
from omnigraph.spark.query.ways import EDGES, LENGTH, NODES, ways_of

_IDS = pa.list_(pa.string())
Run = Callable[[Compiling, PatternPlan, SparkFrame], SparkFrame]


@dataclass(frozen=True)
class _Start:
    """Where a block begins: the frame of distinct rows, and which columns of the outer rows are its
    keys."""

    frame: SparkFrame
    pairs: tuple[tuple[str, str], ...]
    null_safe: bool

    @property
    def on(self) -> Any:
        return same(self.pairs, null_safe=self.null_safe)


def _start(c: Compiling, frame: SparkFrame, outer: Sequence[int]) -> _Start:
    if not outer:
        return _Start(c.unit(), (), False)
    number = c.number()
    bound = {key: frame.bound[key] for key in outer}
    names = [name for one in bound.values() for name in one.identity]
    keys = tuple(f"k{number}_{place}" for place in range(len(names)))
    held = [name for one in bound.values() for name in one.columns]
    distinct = frame.data.select(*held).distinct()
    copies = [sql.col(name).alias(key) for name, key in zip(names, keys, strict=True)]
    data = distinct.select(*copies, *held)
    optional = any(one.variable.optional for one in bound.values())
    start = SparkFrame(data, bound, keys, read=frame.read)
    return _Start(start, tuple(zip(names, keys, strict=True)), optional)


def _depends(c: Compiling, block: PatternPlan) -> set[int]:
    """The variables that a block names anywhere."""
    found = set(block.outer)
    for step in block.steps:
        match step:
            case ScanEdges(expand=Expand(traversal=traversal)) | Expand(traversal=traversal):
                found |= {traversal.source, traversal.target}
            case Degrees(traversal=traversal) | Check(traversal=traversal):
                found |= {traversal.source, traversal.target}
            case Test(conditions=conditions):
                for condition in conditions:
                    found |= used_variables(condition)
                    for part in inner_patterns(condition):
                        found |= _depends(c, c.plan.inner[id(part.match)])
                        found |= argument_variables(part)
            case Optional(block=inner):
                found |= _depends(c, inner)
            case _:
                pass
    return found


# Optional blocks


def extend_optionally(c: Compiling, block: PatternPlan, frame: SparkFrame, run: Run) -> SparkFrame:
    """Each row with every solution of the block, or with nulls."""
    outer = sorted(_depends(c, block) & frame.bound.keys())
    frame = c.shared(frame)
    start = _start(c, frame, outer)
    found = run(c, block, start.frame)
    brings = [c.bound(variable) for variable in block.brings]
    names = [name for one in brings for name in one.columns]
    columns = [*found.keys, *names]
    often = f"m{c.number()}"
    if found.counted:
        columns.append(sql.col(COUNT).alias(often))
    # A block that brings nothing still multiplies rows.
    mark = f"x{c.number()}"
    solutions = found.data.select(*columns, sql.lit(True).alias(mark))
    data = frame.data.join(solutions, start.on, "left")
    if found.counted:
        kept = [name for name in frame.columns if name != COUNT]
        data = data.select(*kept, *names, frame.times(sql.coalesce(often, sql.lit(1))))
        frame = replace(frame, counted=True)
    return frame.over(data, *brings)


# Patterns in conditions and values


def keep_if(c: Compiling, value: Exists, frame: SparkFrame, run: Run, *, found: bool) -> SparkFrame:
    """The rows that have a solution of a pattern, or those that have none."""
    frame = c.shared(frame)
    start, solutions = _solutions(c, value, frame, run)
    data = solutions.data.select(*solutions.keys)
    if not solutions.keys:
        data = data.limit(1)
    return frame.over(frame.data.join(data, start.on, "left_semi" if found else "left_anti"))


def _solutions(
    c: Compiling, value: Exists | PatternAggregate, frame: SparkFrame, run: Run
) -> tuple[_Start, SparkFrame]:
    plan = c.plan.inner[id(value.match)]
    wanted = _depends(c, plan) | set(value.match.outer) | argument_variables(value)
    start = _start(c, frame, sorted(wanted & frame.bound.keys()))
    return start, run(c, plan, start.frame)


def attach(
    c: Compiling, values: Sequence[Expression], frame: SparkFrame, run: Run
) -> tuple[SparkFrame, dict[tuple[int, str, bool], Leaf]]:
    """The frame with a column for each pattern and path in the values, and which columns these
    are. The frame does not list these columns, so they disappear with the next step."""
    wanted = {attached_key(part): part for value in values for part in _outermost(value)}
    if not wanted:
        return frame, {}
    frame = c.shared(frame)
    data = frame.data
    found: dict[tuple[int, str, bool], Leaf] = {}
    for path in [one for one in wanted.values() if isinstance(one, PathValue)]:
        if attached_key(path) not in found:
            data, ways = _with_ways(c, path, frame, data)
            found |= ways
    for key, part in wanted.items():
        if isinstance(part, PathValue):
            continue
        name = f"p{c.number()}"
        data, kind = _attached(c, part, frame, run, data, name)
        found[key] = named(name, kind)
    return replace(frame, data=data, read=False), found


def _with_ways(
    c: Compiling, value: PathValue, frame: SparkFrame, data: Any
) -> tuple[Any, dict[tuple[int, str, bool], Leaf]]:
    """Rows of the frame, joined with all that may be asked of a path."""
    traversal, number = value.traversal, c.number()
    ways = ways_of(c, value, frame)
    ends = [(frame.bound[traversal.source], NEAR, NEAR_TYPE)]
    ends.append((frame.bound[traversal.target], FAR, FAR_TYPE))
    pairs = []
    for place, (bound, id_, type_) in enumerate(ends):
        names = [f"p{number}_{place}", f"p{number}_{place}_t"]
        ways = ways.withColumnRenamed(id_, names[0]).withColumnRenamed(type_, names[1])
        pairs += list(zip(bound.identity, names, strict=False))
    kinds = {NODES: _IDS, EDGES: _IDS, LENGTH: pa.int64()}
    found = {}
    for part, kind in kinds.items():
        name = f"p{number}_{part}"
        ways = ways.withColumnRenamed(part, name)
        found[id(traversal), part, value.every] = named(name, kind)
    return data.join(ways, same(pairs), "left"), found


def _outermost(value: Expression) -> Iterator[Exists | PatternAggregate | PathValue]:
    """The patterns and paths in an expression, but not those in their arguments."""
    waiting = [value]
    while waiting:
        top = waiting.pop()
        if isinstance(top, Exists | PatternAggregate | PathValue):
            yield top
        else:
            waiting.extend(parts(top))


def _attached(
    c: Compiling,
    value: Exists | PatternAggregate,
    frame: SparkFrame,
    run: Run,
    data: Any,
    name: str,
) -> tuple[Any, pa.DataType]:
    """Rows of the frame, joined with the value of the pattern for each."""
    start, solutions = _solutions(c, value, frame, run)
    if isinstance(value, PatternAggregate):
        found, default, kind = _folded(c, value, solutions, run, name)
    else:
        held = solutions.data.select(*solutions.keys)
        held = held.distinct() if solutions.keys else held.limit(1)
        found = held.select(*solutions.keys, sql.lit(True).alias(name))
        default, kind = sql.lit(False), pa.bool_()
    data = data.join(found, start.on, "left")
    if default is not None:
        data = data.withColumn(name, sql.coalesce(sql.col(name), default))
    return data.drop(*solutions.keys), kind


def _folded(
    c: Compiling, value: PatternAggregate, solutions: SparkFrame, run: Run, name: str
) -> tuple[Any, Any, pa.DataType]:
    """The aggregate by the keys of the solutions, and its value for no solutions."""
    data, argument = solutions.data, AggregateArgument(None)
    if value.argument is not None:
        wide, attached = attach(c, [value.argument], solutions, run)
        leaf = leaf_of(value.argument, c.scope(wide, attached), c.given)
        argument = AggregateArgument(f"a{c.number()}", leaf.type)
        data = wide.data.withColumn(argument.name, leaf.column)
    folded = fold(
        value.function, argument, counted=solutions.counted, distinct=False, number=c.number
    )
    grouped = data.groupBy(*solutions.keys).agg(*folded.parts)
    found = grouped.select(*solutions.keys, folded.column.alias(name))
    return found, _of_nothing(value.function, folded.type), folded.type


def _of_nothing(function: str, kind: pa.DataType) -> Any:
    match AGGREGATES[function].of_nothing:
        case None:
            return None
        case 0:
            return sql.lit(0).cast("bigint")
        case _:
            return sql.array().cast(spark_type(kind))
