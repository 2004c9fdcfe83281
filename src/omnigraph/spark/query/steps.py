"""Owns the steps of a pattern as operations on frames: scans, joins along edges, filters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pyspark.sql import functions as sql

from omnigraph.lang.gq.checked import Exists, Expression, Not, Variable
from omnigraph.lang.gq.walk import used_variables
from omnigraph.plan.query import PatternPlan, Step
from omnigraph.plan.query.steps import (
    Check,
    Degrees,
    Expand,
    Keep,
    Optional,
    Scan,
    ScanEdges,
    Seek,
    Test,
)
from omnigraph.spark.query.arrow_types import null_columns
from omnigraph.spark.query.blocks import attach, extend_optionally, keep_if
from omnigraph.spark.query.context import Compiling
from omnigraph.spark.query.distances import pairs_within
from omnigraph.spark.query.edges import (
    FAR,
    FAR_TYPE,
    NEAR,
    NEAR_TYPE,
    EdgeHop,
    edges_of,
    few_edges,
    hop_of,
    pairs_of,
)
from omnigraph.spark.query.frame import COUNT, BoundVariable, SparkFrame, same, schema_of
from omnigraph.spark.query.values import condition_of


def run_steps(c: Compiling, plan: PatternPlan, frame: SparkFrame) -> SparkFrame:
    """The rows of a pattern. It starts from rows that bind the variables it uses from outside."""
    steps = list(plan.steps)
    if (begun := _begin_at_edges(c, steps, frame)) is not None:
        frame, steps = begun
    for place, step in enumerate(steps):
        frame = _apply(c, step, frame, last=place == len(steps) - 1)
    return frame


def _apply(c: Compiling, step: Step, frame: SparkFrame, *, last: bool) -> SparkFrame:
    match step:
        case Seek(variable=variable, key=key, tests=tests):
            return _bind(c, frame, variable, c.entities(variable, tests, key))
        case Scan(variable=variable, tests=tests):
            return _bind(c, frame, variable, c.entities(variable, tests))
        case ScanEdges(scan=scan, expand=expand):
            return _apply(c, expand, _apply(c, scan, frame, last=False), last=last)
        case Expand():
            return _expand(c, step, frame)
        case Degrees():
            return _degrees(c, step, frame)
        case Check():
            return _check(c, step, frame)
        case Test(conditions=conditions):
            return _test(c, conditions, frame)
        case Keep(variables=variables):
            kept = frame.keeping(variables)
            # The last rows are grouped by the caller.
            return kept if last else kept.merged()
        case Optional(block=block):
            return extend_optionally(c, block, frame, run_steps)


# Beginning


def _bind(c: Compiling, frame: SparkFrame, variable: Variable, data: Any) -> SparkFrame:
    bound = c.bound(variable)
    if frame.is_unit:
        return SparkFrame(data.select(*bound.columns), {variable.id: bound}, read=True)
    return frame.over(frame.data.crossJoin(c.small(data, variable.kind.types)), bound)


def _begin_at_edges(
    c: Compiling, steps: list[Step], frame: SparkFrame
) -> tuple[SparkFrame, list[Step]] | None:
    """Following the edges of all nodes, without other conditions, is the same as reading all
    edges."""
    if not frame.is_unit or not steps:
        return None
    if isinstance(steps[0], ScanEdges):
        steps = [steps[0].scan, steps[0].expand, *steps[1:]]
    if len(steps) < 2 or not isinstance(steps[0], Scan) or not isinstance(steps[1], Expand):
        return None
    scan, expand = steps[0], steps[1]
    near = c.bound(scan.variable)
    hop = hop_of(expand.traversal, expand.backward, expand.edge, expand.tests)
    if scan.tests or near.held or not hop.is_single or hop.start != scan.variable.id:
        return None
    edges = edges_of(c, hop) if hop.edge is not None else pairs_of(c, hop)
    if edges is None:
        return None
    edges = edges.withColumnRenamed(NEAR, near.id)
    if near.type is not None:
        edges = edges.withColumnRenamed(NEAR_TYPE, near.type)
    start = SparkFrame(edges, {near.variable.id: near}, read=True)
    return _arrive(c, start, expand.target, hop, expand.tests), steps[2:]


# Along edges


def _nothing(frame: SparkFrame, *brings: BoundVariable) -> SparkFrame:
    """No rows, with all columns."""
    columns = [column for bound in brings for column in null_columns(schema_of(bound))]
    return frame.over(frame.data.select("*", *columns).where(sql.lit(False)), *brings)


def _expand(c: Compiling, step: Expand, frame: SparkFrame) -> SparkFrame:
    hop = hop_of(step.traversal, step.backward, step.edge, step.tests)
    start = frame.bound[hop.start]
    if hop.is_single:
        edges = edges_of(c, hop) if hop.edge is not None else pairs_of(c, hop)
        edges = None if edges is None else few_edges(c, hop, edges)
    else:
        frame = c.shared(frame)
        edges = pairs_within(c, hop, frame)
    if edges is None:
        brings = [c.bound(v) for v in (step.target, step.edge) if v is not None]
        return _nothing(frame, *brings)
    data = frame.data.join(edges, same(_ends(start, NEAR, NEAR_TYPE)))
    return _arrive(c, replace(frame, data=data, read=False), step.target, hop, step.tests)


def _ends(bound: BoundVariable, id_: str, type_: str) -> list[tuple[str, str]]:
    pairs = [(bound.id, id_)]
    return pairs if bound.type is None else [*pairs, (bound.type, type_)]


def _arrive(
    c: Compiling, frame: SparkFrame, target: Variable, hop: EdgeHop, tests: tuple[Expression, ...]
) -> SparkFrame:
    """Binds the far end of edges that were joined, and the edge variable."""
    bound = c.bound(target)
    brings = [bound] if hop.edge is None else [bound, c.bound(hop.edge)]
    own = tuple(test for test in tests if target.id in used_variables(test))
    if not own and not bound.held:  # edges end at nodes that exist
        data = frame.data.withColumnRenamed(FAR, bound.id)
        if bound.type is not None:
            data = data.withColumnRenamed(FAR_TYPE, bound.type)
        return frame.over(data, *brings)
    entities = c.small(c.entities(target, own), target.kind.types)
    on = same([(ours, theirs) for theirs, ours in _ends(bound, FAR, FAR_TYPE)])
    return frame.over(frame.data.join(entities, on), *brings)


def _degrees(c: Compiling, step: Degrees, frame: SparkFrame) -> SparkFrame:
    hop = hop_of(step.traversal, step.backward)
    listed = edges_of(c, hop) if step.traversal.edge is not None else pairs_of(c, hop)
    if listed is None:
        return _nothing(frame)
    degrees = listed.groupBy(NEAR, NEAR_TYPE).agg(sql.count(sql.lit(1)).alias("degree"))
    start = frame.bound[hop.start]
    data = frame.data.join(few_edges(c, hop, degrees), same(_ends(start, NEAR, NEAR_TYPE)))
    kept = [name for name in frame.columns if name != COUNT]
    data = data.select(*kept, frame.times(sql.col("degree")))
    return replace(frame, data=data, counted=True, read=False)


def _check(c: Compiling, step: Check, frame: SparkFrame) -> SparkFrame:
    hop = hop_of(step.traversal, False, step.edge, step.tests)
    if hop.is_single:
        edges = edges_of(c, hop)
        edges = None if edges is None else few_edges(c, hop, edges)
    else:
        frame = c.shared(frame)
        edges = pairs_within(c, hop, frame)
    if edges is None:
        return _nothing(frame, *([c.bound(step.edge)] if step.edge is not None else []))
    ends = [
        *_ends(frame.bound[hop.start], NEAR, NEAR_TYPE),
        *_ends(frame.bound[hop.end], FAR, FAR_TYPE),
    ]
    if step.edge is None:
        return frame.over(frame.data.join(edges, same(ends), "left_semi"))
    return frame.over(frame.data.join(edges, same(ends)), c.bound(step.edge))


# Conditions


def _test(c: Compiling, conditions: tuple[Expression, ...], frame: SparkFrame) -> SparkFrame:
    for condition in conditions:
        match condition:
            case Exists():
                frame = keep_if(c, condition, frame, run_steps, found=True)
            case Not(operand=Exists() as inner):
                frame = keep_if(c, inner, frame, run_steps, found=False)
            case _:
                attached_frame, attached = attach(c, [condition], frame, run_steps)
                scope = c.scope(attached_frame, attached)
                kept = attached_frame.data.where(condition_of(condition, scope, c.given))
                frame = frame.over(kept)
    return frame
