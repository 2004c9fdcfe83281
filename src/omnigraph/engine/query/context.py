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
from omnigraph.engine.query.rows import TypeRows
from omnigraph.lang.gq.checked import (
    Bm25,
    EdgeKind,
    Exists,
    Expression,
    Highlight,
    Nearest,
    NodeKind,
    PatternAggregate,
    Rrf,
    TextSearch,
)
from omnigraph.model.catalog import GraphType
from omnigraph.plan.query import Plan, Step
from omnigraph.plan.values.kinds import Value


class FrameValues(Protocol):
    """What expressions are worth on the rows of a frame."""

    frame: Frame

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def leaf(self, expression: Expression) -> Value:
        """The value of what is no operator."""


class SearchValues(Protocol):
    """What search functions are worth."""

    def matches(self, value: TextSearch, leaves: FrameValues) -> Value:
        """Whether the text of each row answers; null where there is no text or no question."""

    def passing(self, value: TextSearch, leaves: FrameValues) -> np.ndarray:
        """The same where null is as good as false."""

    def positions(
        self, value: TextSearch, words: str | None, edits: int | None, rows: TypeRows, place: int
    ) -> np.ndarray:
        """Of one type, at this place among those of the variable, the rows that answer."""

    def scores(self, value: Bm25, leaves: FrameValues) -> Value:
        """How well the text of each row answers."""

    def distances(self, value: Nearest, leaves: FrameValues) -> Value:
        """How far the vector of each row is away."""

    def fused(self, value: Rrf, leaves: FrameValues) -> Value:
        """What several ranks say together."""

    def passages(self, value: Highlight, leaves: FrameValues) -> Value:
        """The part of each text that words were found in."""


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

    @property
    def searches(self) -> SearchValues:
        """What search functions are worth."""

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
