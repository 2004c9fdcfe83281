"""Owns how a plan is shown to people: the question, what the rules made of it, and the steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from omnigraph.lang.gq.checked import UNBOUNDED, Direction, Traversal, Variable
from omnigraph.plan.query.logical import Candidate, Pattern, inner_patterns, outputs
from omnigraph.plan.query.steps import (
    Check,
    Degrees,
    Expand,
    Keep,
    Optional,
    PatternPlan,
    Plan,
    Scan,
    ScanEdges,
    Seek,
    Step,
    Test,
)
from omnigraph.plan.query.text import expression_text


def render_plan(
    plan: Plan, *, observations: Mapping[int, Any] | None = None, summary: str | None = None
) -> str:
    lines = ["asked", *_indented(_logical(plan))]
    lines += ["steps", *_indented(_steps(plan, plan.pattern, observations))]
    inner = list(_inner(plan))
    for number, (text, block) in enumerate(inner, 1):
        lines.append(f"pattern {number} in {text}")
        lines += _indented(_steps(plan, block, observations))
    lines += ["then", *_indented(_after(plan))]
    if summary is not None:
        lines.append(summary)
    return "\n".join(lines)


def _indented(lines: Iterator[str]) -> list[str]:
    return [f"  {line}" for line in lines]


# What is asked


def _logical(plan: Plan) -> Iterator[str]:
    yield from _pattern(plan, plan.query.pattern)


def _pattern(plan: Plan, pattern: Pattern) -> Iterator[str]:
    for candidate in pattern.candidates:
        yield _candidate(plan, candidate)
    for traversal in pattern.traversals:
        yield _traversal(plan, traversal)
    for condition in pattern.filters:
        yield f"where {expression_text(condition, plan.variables)}"
    for optional in pattern.optionals:
        yield "optional"
        yield from _indented(_pattern(plan, optional))
    for condition in pattern.late_filters:
        yield f"where {expression_text(condition, plan.variables)}"
    if pattern.counted:
        kept = ", ".join(_name(plan, key) for key in sorted(pattern.needed) if key >= 0)
        yield f"counted by {kept or 'nothing: one number'}"


def _candidate(plan: Plan, candidate: Candidate) -> str:
    kinds = "|".join(kind.name for kind in candidate.variable.kind.types)
    tests = " and ".join(expression_text(test, plan.variables) for test in candidate.tests)
    found = " by key" if candidate.key is not None else ""
    where = f" where {tests}" if tests else ""
    return f"{_name(plan, candidate.variable.id)}: {kinds}{found}{where}"


def _name(plan: Plan, key: int) -> str:
    variable: Variable | None = plan.variables.get(key)
    if variable is None:
        return "$row"
    return f"${variable.name}" if variable.name is not None else f"$_{key}"


def _traversal(plan: Plan, traversal: Traversal, *, backward: bool = False) -> str:
    names = "|".join(dict.fromkeys(step.edge.name for step in traversal.steps)) or "nothing"
    either = any(step.direction is Direction.EITHER for step in traversal.steps)
    along = any(step.direction is Direction.FORWARD for step in traversal.steps)
    bounds = ""
    if (traversal.low, traversal.high) != (1, 1):
        high = "" if traversal.high == UNBOUNDED else traversal.high
        bounds = f"{{{traversal.low},{high}}}"
    edge = f"{_name(plan, traversal.edge)}:" if traversal.edge is not None else ""
    source, target = _name(plan, traversal.source), _name(plan, traversal.target)
    forward = along != backward
    if backward:
        source, target = target, source
    if either:
        return f"{source} -[{edge}{names}{bounds}]- {target}"
    left, right = ("-", "->") if forward else ("<-", "-")
    return f"{source} {left}[{edge}{names}{bounds}]{right} {target}"


# Steps


def _steps(plan: Plan, block: PatternPlan, observations: Mapping[int, Any] | None) -> Iterator[str]:
    before = 0.0
    for step in block.steps:
        text = _step(plan, step)
        seen = observations.get(id(step)) if observations is not None else None
        if seen is not None:
            own = max(0.0, seen.seconds - before)
            before = seen.seconds
            note = f"{counted(seen.rows, 'row')}, {own * 1000:.2f} ms"
            if seen.reads:
                asked = counted(seen.reads, "request")
                note += f", {asked}, {counted(seen.read_bytes, 'byte')} so far"
        elif observations is not None:
            note = "not reached"
        else:
            note = f"about {counted(max(1, round(step.estimate)), 'row')}"
        yield f"{text}  ({note})"
        if isinstance(step, Optional):
            yield from _indented(_steps(plan, step.block, observations))


def counted(count: int, noun: str) -> str:
    """One row, two rows."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


def _step(plan: Plan, step: Step) -> str:
    match step:
        case Seek(variable=variable):
            return f"find {_name(plan, variable.id)} by id{_tests(plan, step.tests)}"
        case Scan(variable=variable):
            kinds = "|".join(kind.name for kind in variable.kind.types)
            return f"scan {kinds} as {_name(plan, variable.id)}{_tests(plan, step.tests)}"
        case ScanEdges(expand=Expand(traversal=traversal, backward=backward)):
            shown = _traversal(plan, traversal, backward=backward)
            return f"scan edges {shown}{_tests(plan, step.expand.tests)}"
        case Expand(traversal=traversal, backward=backward):
            shown = _traversal(plan, traversal, backward=backward)
            return f"expand {shown}{_tests(plan, step.tests)}"
        case Degrees(traversal=traversal, backward=backward):
            return f"count neighbours {_traversal(plan, traversal, backward=backward)}"
        case Check(traversal=traversal):
            return f"check {_traversal(plan, traversal)}{_tests(plan, step.tests)}"
        case Test(conditions=conditions):
            return f"filter{_tests(plan, conditions)}"
        case Keep(variables=variables):
            kept = ", ".join(_name(plan, key) for key in sorted(variables))
            return f"count rows by {kept}" if kept else "count rows"
        case Optional():
            return "optional"


def _tests(plan: Plan, tests: tuple[Any, ...]) -> str:
    if not tests:
        return ""
    return " where " + " and ".join(expression_text(test, plan.variables) for test in tests)


def _inner(plan: Plan) -> Iterator[tuple[str, PatternPlan]]:
    seen: set[int] = set()
    waiting = [plan.query.pattern]
    values = list(outputs(plan.query))
    while waiting:
        pattern = waiting.pop()
        values += [*pattern.filters, *pattern.late_filters]
        waiting += pattern.optionals
    for value in values:
        for part in inner_patterns(value):
            key = id(part.match)
            if key in plan.inner and key not in seen:
                seen.add(key)
                yield expression_text(value, plan.variables), plan.inner[key]


# After the match


def _after(plan: Plan) -> Iterator[str]:
    query = plan.query
    if query.group is not None:
        keys = ", ".join(expression_text(key, plan.variables) for key in query.group.keys)
        yield f"group by {keys}" if keys else "one group"
        for one in query.group.aggregates:
            yield f"  {expression_text(one, plan.variables)}"
    names = ", ".join(column.name for column in query.columns)
    yield f"return {'distinct ' if query.distinct else ''}{names}"
    for key in query.order:
        direction = " descending" if key.descending else ""
        shown = expression_text(key.value, plan.variables, [c.name for c in query.columns])
        yield f"order by {shown}{direction}"
    for word, value in (("offset", query.offset), ("limit", query.limit)):
        if value is not None:
            yield f"{word} {value if isinstance(value, int) else '$' + value.name}"
