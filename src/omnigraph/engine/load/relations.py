"""Owns the relations that rules are checked over: the rows of the load, and those of the graph.

What follows from the state of the load is written here once; each engine brings the relations.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Generic, TypeVar

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.load.phases import H
from omnigraph.engine.load.state import LoadState
from omnigraph.model.catalog import GraphType, NodeType
from omnigraph.plan.rules.book import End, Ends, Rule

R = TypeVar("R")


class LoadRelations(ABC, Generic[H, R]):
    """Everything that `plan.rules.joins` needs, and what a load adds to it."""

    def __init__(self, state: LoadState[H]) -> None:
        self.state = state

    @property
    def snapshot(self) -> GraphView:
        return self.state.snapshot

    @property
    def every(self) -> bool:
        """Whether every wrong row is set aside and the others are loaded."""
        return self.state.every

    @property
    def kinds(self) -> Sequence[GraphType]:
        """The types of the arriving rows."""
        return [rows.kind for rows in self.state.types.values()]

    def generated(self, kind: GraphType) -> bool:
        """Whether all ids were made for the load, so that no other row has them."""
        return self.state.types[kind.table_key].generated

    def left(self, kind: GraphType) -> int:
        """How many arriving rows of a type are not refused."""
        return self.state.left(kind)

    def replaced(self, kind: GraphType) -> bool:
        """Whether the load leaves nothing of the type's table."""
        return self.state.replaced(kind)

    def replacing(self, kind: GraphType) -> bool:
        """Whether arriving rows have an `origin`."""
        return self.state.types[kind.table_key].replacing

    def keeps(self, kind: GraphType) -> bool:
        """Whether the load leaves some of the rows that the table has."""
        return self.state.keeps(kind)

    # What an engine brings

    @abstractmethod
    def ask(self, sql: str, **named: R) -> R:
        """Answers a question of the rule book: `{name}` stands for a relation."""

    @abstractmethod
    def sized(self, relation: R, rows: int) -> R:
        """The relation, with its number of rows for engines that need to know it."""

    @abstractmethod
    def complete(self) -> None:
        """Makes the rows of a merge whole, each with the row that it replaces."""

    @abstractmethod
    def many(self, kind: GraphType) -> bool:
        """Whether there are too many rows to join without checking digests first."""

    @abstractmethod
    def may_exceed(
        self, kind: GraphType, columns: tuple[str, ...], most: int = 1, *, stored: bool = False
    ) -> bool:
        """False means that no values appear more than this many times among the arriving rows,
        together with the table if `stored`. True means that the rows must be checked."""

    @abstractmethod
    def keys(self, kind: GraphType, columns: tuple[str, ...]) -> list[str]:
        """The names that unique values have in relations."""

    @abstractmethod
    def arriving(
        self, kind: GraphType, names: tuple[str, ...] = (), unique: tuple[str, ...] = ()
    ) -> R:
        """`place`, the named columns, `k0`, … for unique values, and `origin` if rows are
        replaced."""

    @abstractmethod
    def stored(
        self, kind: GraphType, names: tuple[str, ...] = (), unique: tuple[str, ...] = ()
    ) -> R:
        """`address` and columns of stored rows, at least of those that share a value with an
        arriving row."""

    @abstractmethod
    def origins(self, kind: GraphType) -> R:
        """The addresses that arriving rows replace, as `origin`."""

    @abstractmethod
    def before(self, kind: GraphType, names: tuple[str, ...], end: End | None = None) -> R:
        """All rows of the table, whether or not the load replaces them. The end is called
        `node`; a name may be `address`."""

    @abstractmethod
    def nodes(self, node: NodeType) -> R | None:
        """Nodes that arrive or stay, by `id`; None if there are none."""

    @abstractmethod
    def missing(self, rule: Ends) -> R:
        """Arriving edges, by `place`, with an end that is not a node; the end is called `node`."""

    @abstractmethod
    def alive(self, sources: R, node: NodeType) -> R:
        """The sources that are nodes."""

    @abstractmethod
    def is_empty(self, relation: R) -> bool: ...

    @abstractmethod
    def refuse(self, rule: Rule, found: R) -> int:
        """Refuses arriving rows by place, and returns how many there were."""

    @abstractmethod
    def report(self, rule: Rule, found: R) -> None:
        """Refuses the load for an error that no single row causes."""
