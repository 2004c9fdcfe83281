"""Owns what the steps of a query know of the query that they are of. A `Run` is what they get."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from omnigraph.engine.query.entities import Entities
from omnigraph.engine.query.expand import Expander
from omnigraph.engine.query.frame import Frame
from omnigraph.engine.query.guard import Guard
from omnigraph.lang.gq.checked import EdgeKind, Exists, NodeKind, PatternAggregate
from omnigraph.model.catalog import GraphType
from omnigraph.plan.query import Plan, Step


class QueryContext(Protocol):
    """The plan and its parameters, where rows are read and edges followed, and the bounds."""

    plan: Plan
    entities: Entities
    expander: Expander
    parameters: Mapping[str, Any]
    guard: Guard
    now: int
    rows_in_memory: int
    is_lazy: bool

    def observed(self, step: Step, frames: Iterator[Frame]) -> Iterator[Frame]:
        """The same frames, looked at on their way if `explain analyze` asks for it."""

    def kinds(self, variable: int) -> Sequence[GraphType]:
        """The types that a variable may be of."""

    def ids(self, kinds: Sequence[GraphType], numbers: np.ndarray) -> pa.Array:
        """The ids of entities by their numbers."""

    def objects(self, kind: NodeKind | EdgeKind, numbers: np.ndarray) -> pa.Array:
        """Whole entities by their numbers."""

    def exists(self, value: Exists, frame: Frame) -> np.ndarray:
        """For which rows a pattern inside an expression has a match."""

    def aggregate_pattern(self, value: PatternAggregate, frame: Frame) -> pa.Array:
        """What an aggregate over a pattern inside an expression is worth for each row."""
