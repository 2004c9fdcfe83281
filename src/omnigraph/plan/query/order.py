"""Owns the order of steps: greedily, the next step is the one that leaves the fewest rows, judged
by the sizes of tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from omnigraph.lang.gq.checked import (
    Comparison,
    Direction,
    Exists,
    Expression,
    Membership,
    NullTest,
    PathValue,
    PatternAggregate,
    Read,
    Traversal,
    Variable,
)
from omnigraph.lang.gq.walk import all_variables, used_variables, walk
from omnigraph.plan.query.logical import (
    Candidate,
    Pattern,
    asks_path,
    inner_patterns,
    outputs,
    pattern_of,
    pattern_variables,
    query_of,
    uses,
)
from omnigraph.plan.query.rules import mark_optionals, rewrite_pattern, rewrite_query
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

ROW = -1
"""The id of a variable that numbers the rows from which an inner pattern starts."""

_EQUAL, _RANGE, _OTHER = 0.05, 0.3, 0.5


def plan_read(read: Read, sizes: Mapping[str, int]) -> Plan:
    """`sizes` holds rows by table key."""
    query = rewrite_query(query_of(read))
    planner = _Planner(sizes)
    pattern = planner.pattern(query.pattern, frozenset(), 1.0)
    for value in outputs(query):
        planner.inside(value)
    return Plan(query, pattern, planner.inner, planner.variables, dict(sizes))


def plan_listing(plan: Plan) -> Plan:
    """The same pattern with every variable kept and no rows merged."""
    everything = frozenset(v.id for v in pattern_variables(plan.query.pattern))
    pattern = mark_optionals(replace(plan.query.pattern, needed=everything, counted=False))
    query = replace(plan.query, pattern=pattern)
    planner = _Planner(plan.sizes)
    ordered = planner.pattern(pattern, frozenset(), 1.0)
    for value in outputs(query):
        planner.inside(value)
    return Plan(query, ordered, planner.inner, planner.variables, plan.sizes)


@dataclass
class _Choice:
    rows: float
    step: Step


class _Planner:
    def __init__(self, sizes: Mapping[str, int]) -> None:
        self.sizes = sizes
        self.inner: dict[int, PatternPlan] = {}
        self.variables: dict[int, Variable] = {}

    # Patterns

    def pattern(self, pattern: Pattern, bound: frozenset[int], rows: float) -> PatternPlan:
        self.variables.update({v.id: v for v in pattern_variables(pattern)})
        for condition in (*pattern.filters, *pattern.late_filters):
            self.inside(condition)
        for candidate in pattern.candidates:
            for test in candidate.tests:
                self.inside(test)
        steps = _Steps(self, pattern, bound | frozenset(pattern.outer), rows).order()
        brought = tuple(v for v in pattern_variables(pattern) if v.id in pattern.needed)
        estimate = steps[-1].estimate if steps else rows
        return PatternPlan(tuple(steps), pattern.outer, brought, estimate)

    def inside(self, value: Expression) -> None:
        """Plans the patterns inside an expression. Each starts from numbered rows."""
        for part in inner_patterns(value):
            needed = frozenset({ROW}) | argument_variables(part)
            own = {v.id for v in all_variables(part.match)}
            pattern = rewrite_pattern(pattern_of(part.match, needed=needed, counted=True))
            self.inner[id(part.match)] = self.pattern(pattern, needed - own, 1.0)

    # Estimates

    def size(self, variable: Variable) -> float:
        return float(sum(self.sizes.get(t.table_key, 0) for t in variable.kind.types))

    def candidates(self, candidate: Candidate) -> float:
        if candidate.key is not None:
            return 1.0
        return self.size(candidate.variable) * selectivity(candidate.tests)

    def fan_out(self, traversal: Traversal, backward: bool) -> float:
        """Edges for each entity of the type from which they lead."""
        total = 0.0
        for step in traversal.steps:
            edges = float(self.sizes.get(step.edge.table_key, 0))
            leaves_source = (step.direction is Direction.FORWARD) != backward
            side = step.edge.source if leaves_source else step.edge.target
            entities = max(1.0, float(self.sizes.get(f"node:{side}", 0)))
            total += edges / entities * (2 if step.direction is Direction.EITHER else 1)
        if traversal.high == 1:
            return total
        most = self.farthest(traversal)
        return min(most, sum(total**n for n in range(traversal.low, min(traversal.high, 8) + 1)))

    def farthest(self, traversal: Traversal) -> float:
        target = self.variables.get(traversal.target)
        return self.size(target) if target is not None else 1.0


def selectivity(tests: tuple[Expression, ...]) -> float:
    result = 1.0
    for test in tests:
        match test:
            case Comparison(operator="=") | Membership():
                result *= _EQUAL
            case Comparison(operator="<" | "<=" | ">" | ">="):
                result *= _RANGE
            case NullTest(negated=True) | Comparison():
                result *= 0.9
            case _:
                result *= _OTHER
    return result


def argument_variables(part: Exists | PatternAggregate) -> frozenset[int]:
    """The variables that the argument of `sum($y.p) { … }` uses, inside the pattern and outside."""
    if isinstance(part, PatternAggregate) and part.argument is not None:
        return used_variables(part.argument)
    return frozenset()


class _Steps:
    """Orders the steps of one pattern."""

    def __init__(
        self, planner: _Planner, pattern: Pattern, bound: frozenset[int], rows: float
    ) -> None:
        self.planner = planner
        self.pattern = pattern
        self.bound = set(bound)
        self.rows = rows
        self.steps: list[Step] = []
        self.traversals = list(pattern.traversals)
        self.filters = list(pattern.filters)
        self.waiting = {c.variable.id: c for c in pattern.candidates}
        self.edges = {t.edge for t in pattern.traversals if t.edge is not None}

    def order(self) -> list[Step]:
        self._settle()
        while self.traversals or self._unbound():
            choice = min(self._choices(), key=lambda c: c.rows)
            self._take(choice.step)
            self._settle()
        for optional in self.pattern.optionals:
            block = self.planner.pattern(optional, frozenset(self.bound), self.rows)
            self.rows = max(self.rows, block.estimate)
            self.steps.append(Optional(block, self.rows))
            self.bound |= {v.id for v in block.brings}
        if self.pattern.late_filters:
            self._test(list(self.pattern.late_filters))
        self._forget(final=True)
        return _with_edge_scans(self.steps)

    def _unbound(self) -> list[Candidate]:
        return [c for key, c in self.waiting.items() if key not in self.edges]

    # Choosing

    def _choices(self) -> list[_Choice]:
        choices = [
            self._expansion(traversal)
            for traversal in self.traversals
            if (traversal.source in self.bound) != (traversal.target in self.bound)
        ]
        seeks = [c for c in self._unbound() if c.key is not None]
        started = bool(self.bound - {ROW})
        for candidate in seeks if choices else self._unbound():
            rows = self.rows * self.planner.candidates(candidate)
            # A product is worth it only with something that is there once. Of equals, the one
            # with the most traversals: from the middle of a chain, both ends may only be counted.
            weight = (2.0 if started else 1.0) / (1 + self._joins(candidate) / 64)
            choices.append(_Choice(rows * weight, self._start(candidate, rows)))
        return choices

    def _joins(self, candidate: Candidate) -> int:
        key = candidate.variable.id
        return sum(key in (t.source, t.target) for t in self.traversals)

    def _start(self, candidate: Candidate, rows: float) -> Step:
        if candidate.key is not None:
            decided = candidate.key.decides
            rest = tuple(t for t in candidate.tests if not any(t is d for d in decided))
            return Seek(candidate.variable, candidate.key, rest, rows)
        return Scan(candidate.variable, candidate.tests, rows)

    def _expansion(self, traversal: Traversal) -> _Choice:
        backward = traversal.target in self.bound
        target = self.waiting[traversal.source if backward else traversal.target]
        edge = self.waiting.get(traversal.edge) if traversal.edge is not None else None
        tests = (*target.tests, *(edge.tests if edge else ()))
        fan_out = self.planner.fan_out(traversal, backward)
        kept = 1 / max(1.0, self.planner.size(target.variable)) if target.key else None
        rows = self.rows * fan_out * (kept if kept is not None else selectivity(tests))
        if self._only_counted(traversal, target, tests):
            return _Choice(self.rows, Degrees(traversal, backward, self.rows))
        variable = edge.variable if edge else None
        return _Choice(rows, Expand(traversal, backward, target.variable, variable, tests, rows))

    def _only_counted(
        self, traversal: Traversal, target: Candidate, tests: tuple[Expression, ...]
    ) -> bool:
        """Whether the neighbours themselves are never needed, only their number."""
        if not self.pattern.counted or tests or len(traversal.steps) > 1:
            return False
        if (traversal.low, traversal.high) != (1, 1) or traversal.source == traversal.target:
            return False
        later = self._wanted_later(without=traversal)
        brought = {target.variable.id, traversal.edge} - {None}
        return not brought & later

    # Taking

    def _take(self, step: Step) -> None:
        match step:
            case Seek(variable=variable) | Scan(variable=variable):
                self.waiting.pop(variable.id)
                self.bound.add(variable.id)
            case Expand(traversal=traversal, target=target):
                self.waiting.pop(target.id)
                self.bound.add(target.id)
                self._use(traversal)
            case Degrees(traversal=traversal, backward=backward):
                self.waiting.pop(traversal.source if backward else traversal.target)
                self._use(traversal)
        self.rows = step.estimate
        self.steps.append(step)

    def _use(self, traversal: Traversal) -> None:
        self.traversals.remove(traversal)
        if traversal.edge is not None:
            self.waiting.pop(traversal.edge, None)
            self.bound.add(traversal.edge)

    def _settle(self) -> None:
        """Everything that needs nothing more: filters, traversals with both ends bound, forgetting
        variables."""
        self._filter()
        for traversal in list(self.traversals):
            if {traversal.source, traversal.target} <= self.bound:
                edge = self.waiting.get(traversal.edge) if traversal.edge is not None else None
                tests = edge.tests if edge else ()
                self._use(traversal)
                self.rows *= 0.1
                variable = edge.variable if edge else None
                self.steps.append(Check(traversal, variable, tests, self.rows))
                self._filter()
        self._forget()

    def _filter(self) -> None:
        ready = [f for f in self.filters if used_variables(f) <= self.bound and self._walked(f)]
        if ready:
            self.filters = [f for f in self.filters if f not in ready]
            self._test(ready)

    def _walked(self, condition: Expression) -> bool:
        """Whether the ways that a condition is about are known to be there."""
        paths = (part.traversal for part in walk(condition) if isinstance(part, PathValue))
        return not any(path in self.traversals for path in paths)

    def _test(self, conditions: list[Expression]) -> None:
        # Cheap conditions come first: patterns inside conditions cost the most.
        cheap = tuple(c for c in conditions if not (any(inner_patterns(c)) or asks_path(c)))
        costly = tuple(c for c in conditions if c not in cheap)
        for group in (cheap, costly):
            if group:
                self.rows *= selectivity(group)
                self.steps.append(Test(group, self.rows))

    def _forget(self, *, final: bool = False) -> None:
        if not self.pattern.counted or not self.steps:
            return
        wanted = self.bound & self._wanted_later()
        last = self.steps[-1]
        if wanted != self.bound or (final and not isinstance(last, Keep)):
            self.bound = set(wanted)
            self.steps.append(Keep(frozenset(wanted), self.rows))

    def _wanted_later(self, without: Traversal | None = None) -> set[int]:
        wanted = set(self.pattern.needed) | set(uses(tuple(self.filters)))
        wanted |= uses(self.pattern.late_filters)
        for optional in self.pattern.optionals:
            wanted |= set(optional.outer)
        for traversal in self.traversals:
            if traversal is not without:
                wanted |= {traversal.source, traversal.target}
        return wanted


def _with_edge_scans(steps: list[Step]) -> list[Step]:
    """Following the edges of every node is the same as reading all edges."""
    if len(steps) < 2:
        return steps
    scan, expand, *rest = steps
    if not isinstance(scan, Scan) or not isinstance(expand, Expand) or scan.tests:
        return steps
    traversal = expand.traversal
    single = (traversal.low, traversal.high) == (1, 1) and len(traversal.steps) == 1
    if not single or expand.edge is None or traversal.steps[0].direction is Direction.EITHER:
        return steps
    if expand.start != scan.variable.id or expand.target.id == expand.start:
        return steps
    return [ScanEdges(scan, expand), *rest]
