"""Owns the expressions of a plan: every one that is evaluated when the plan runs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain

from omnigraph.lang.gq.checked import (
    Bm25,
    Expression,
    FunctionCall,
    Highlight,
    Nearest,
    TextSearch,
)
from omnigraph.lang.gq.walk import walk
from omnigraph.plan.query.logical import outputs
from omnigraph.plan.query.steps import (
    Check,
    Expand,
    Optional,
    PatternPlan,
    Plan,
    Scan,
    ScanEdges,
    Seek,
    Test,
)


def all_values(plan: Plan) -> Iterator[Expression]:
    """Every expression that is evaluated on rows, except for the tests of single variables."""
    yield from outputs(plan.query)
    for block in (plan.pattern, *plan.inner.values()):
        yield from _conditions(block)


def all_tests(plan: Plan) -> Iterator[Expression]:
    """The tests of single variables."""
    waiting = [plan.pattern, *plan.inner.values()]
    while waiting:
        for step in waiting.pop().steps:
            if isinstance(step, Optional):
                waiting.append(step.block)
            held = step.expand if isinstance(step, ScanEdges) else step
            if isinstance(held, Seek | Scan | Expand | Check):
                yield from held.tests


def _conditions(block: PatternPlan) -> Iterator[Expression]:
    for step in block.steps:
        if isinstance(step, Test):
            yield from step.conditions
        elif isinstance(step, Optional):
            yield from _conditions(step.block)


def all_searches(plan: Plan) -> Iterator[Nearest | Bm25 | TextSearch | Highlight]:
    """Every search of a property; an `rrf` consists of these."""
    for value in chain(all_values(plan), all_tests(plan)):
        for part in walk(value):
            if isinstance(part, Nearest | Bm25 | TextSearch | Highlight):
                yield part


def asks_time(plan: Plan) -> bool:
    """Whether the answer depends on when it is asked, and not only on the graph."""
    if plan.derived.asks_time is None:
        plan.derived.asks_time = any(
            isinstance(part, FunctionCall) and part.function == "now"
            for value in chain(all_values(plan), all_tests(plan))
            for part in walk(value)
        )
    return plan.derived.asks_time
