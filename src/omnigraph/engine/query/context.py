"""Owns what the steps of a query may know about it. A `Run` implements this."""

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
    """The values of expressions on the rows of a frame."""

    frame: Frame

    @property
    def rows(self) -> int:
        """How many rows there are."""

    def leaf(self, expression: Expression) -> Value:
        """The value of a leaf expression, which is not an operator."""


class SearchValues(Protocol):
    """The values of search functions."""

    def matches(self, value: TextSearch, leaves: FrameValues) -> Value:
        """Whether the text of each row matches; null if there is no text or no question."""

    def passing(self, value: TextSearch, leaves: FrameValues) -> np.ndarray:
        """The same, with null taken as false."""

    def positions(
        self, value: TextSearch, words: str | None, edits: int | None, rows: TypeRows, place: int
    ) -> np.ndarray:
        """The rows of one type that match. The argument is the index of the type among those of the
        variable."""

    def scores(self, value: Bm25, leaves: FrameValues) -> Value:
        """How well the text of each row matches."""

    def distances(self, value: Nearest, leaves: FrameValues) -> Value:
        """The distance of each row's vector."""

    def fused(self, value: Rrf, leaves: FrameValues) -> Value:
        """The combined value of several ranks."""

    def passages(self, value: Highlight, leaves: FrameValues) -> Value:
        """The part of each text in which words were found."""


class QueryContext(Protocol):
    """The plan and its parameters, the access to rows and edges, and the limits of the query."""

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
        """The values of search functions."""

    def observed(self, step: Step, frames: Iterator[Frame]) -> Iterator[Frame]:
        """The same frames. With `explain analyze` they are observed on their way."""

    def kinds(self, variable: int) -> Sequence[GraphType]:
        """The types that a variable may have."""

    def ids(self, kinds: Sequence[GraphType], numbers: np.ndarray) -> pa.Array:
        """The ids of entities, given their numbers."""

    def objects(self, kind: NodeKind | EdgeKind, numbers: np.ndarray) -> pa.Array:
        """Whole entities, given their numbers."""

    def exists(self, value: Exists, frame: Frame) -> np.ndarray:
        """For which rows a pattern inside an expression has a match."""

    def aggregate_pattern(self, value: PatternAggregate, frame: Frame) -> pa.Array:
        """The value of an aggregate over a pattern inside an expression, for each row."""
