"""Owns the physical plan: the steps that bind a pattern's variables, in order, with estimates."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from omnigraph.lang.gq.checked import RANKS, Expression, Traversal, Variable
from omnigraph.lang.gq.walk import walk
from omnigraph.plan.query.logical import KeyTest, Query, outputs


@dataclass(frozen=True)
class Seek:
    """Binds a variable to the entities with given ids; `tests` follow."""

    variable: Variable
    key: KeyTest
    tests: tuple[Expression, ...]
    estimate: float


@dataclass(frozen=True)
class Scan:
    """Binds a variable to all entities of its types that pass the tests."""

    variable: Variable
    tests: tuple[Expression, ...]
    estimate: float


@dataclass(frozen=True)
class Expand:
    """Binds the other end of a traversal (`backward`: its source), and its edge variable."""

    traversal: Traversal
    backward: bool
    target: Variable
    edge: Variable | None
    tests: tuple[Expression, ...]
    estimate: float

    @property
    def start(self) -> int:
        return self.traversal.target if self.backward else self.traversal.source


@dataclass(frozen=True)
class ScanEdges:
    """A scan and an expansion of all that it finds, at once: every edge of a type."""

    scan: Scan
    expand: Expand

    @property
    def estimate(self) -> float:
        return self.expand.estimate


@dataclass(frozen=True)
class Degrees:
    """Multiplies the count of each row by its number of neighbours, which are not needed
    themselves."""

    traversal: Traversal
    backward: bool
    estimate: float

    @property
    def start(self) -> int:
        return self.traversal.target if self.backward else self.traversal.source


@dataclass(frozen=True)
class Check:
    """Keeps rows whose two ends are joined; an edge variable gives one row for each edge."""

    traversal: Traversal
    edge: Variable | None
    tests: tuple[Expression, ...]
    estimate: float


@dataclass(frozen=True)
class Test:
    """Keeps the rows for which the conditions are true."""

    __test__ = False  # not one of pytest's

    conditions: tuple[Expression, ...]
    estimate: float


@dataclass(frozen=True)
class Keep:
    """Forgets all other variables. Rows that have become equal become one with a count."""

    variables: frozenset[int]
    estimate: float


@dataclass(frozen=True)
class Optional:
    """Extends each row by the solutions of a block, or by nulls."""

    block: PatternPlan
    estimate: float


Step = Seek | Scan | ScanEdges | Expand | Degrees | Check | Test | Keep | Optional


@dataclass(frozen=True)
class PatternPlan:
    """`brings` are the variables that are bound at the end and were not before."""

    steps: tuple[Step, ...]
    outer: tuple[int, ...]
    brings: tuple[Variable, ...]
    estimate: float


@dataclass
class Derived:
    """A value computed from a plan once, by the module that runs it."""

    schema: Any = None
    asks_time: bool | None = None


@dataclass(frozen=True)
class Plan:
    """`inner` holds the plans of patterns inside expressions, by the `id()` of their match, which
    the query keeps alive. `variables` are all variables of the query, by id."""

    query: Query
    pattern: PatternPlan
    inner: dict[int, PatternPlan]
    variables: dict[int, Variable] = field(repr=False)
    sizes: dict[str, int] = field(repr=False)
    derived: Derived = field(default_factory=Derived, repr=False, compare=False)

    @cached_property
    def has_ranks(self) -> bool:
        """Whether the result names a rank or is ordered by one."""
        return any(isinstance(part, RANKS) for value in outputs(self.query) for part in walk(value))
