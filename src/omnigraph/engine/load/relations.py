"""Owns the relations that rules are checked over: what a load brings, and what the graph holds.
What follows from the state of the load is written here once; each engine brings the relations."""

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
    """Everything that `plan.rules.joins` asks of relations, and what a load adds to it."""

    def __init__(self, state: LoadState[H]) -> None:
        self.state = state

    @property
    def snapshot(self) -> GraphView:
        return self.state.snapshot

    @property
    def every(self) -> bool:
        """Whether every wrong row is set aside, and the others are loaded."""
        return self.state.every

    @property
    def kinds(self) -> Sequence[GraphType]:
        """The types of which rows arrive."""
        return [rows.kind for rows in self.state.types.values()]

    def generated(self, kind: GraphType) -> bool:
        """Whether all ids were made for the load, so that no other row has them."""
        return self.state.types[kind.table_key].generated

    def left(self, kind: GraphType) -> int:
        """How many arriving rows of a type are not refused."""
        return self.state.left(kind)

    def replaced(self, kind: GraphType) -> bool:
        """Whether nothing of the type's table is left."""
        return self.state.replaced(kind)

    def replacing(self, kind: GraphType) -> bool:
        """Whether arriving rows have an `origin`."""
        return self.state.types[kind.table_key].replacing

    def keeps(self, kind: GraphType) -> bool:
        """Whether there are rows of the table that the load leaves there."""
        return self.state.keeps(kind)

    # What an engine brings

    @abstractmethod
    def ask(self, sql: str, **named: R) -> R:
        """Answers a question of the rule book: `{name}` stands for a relation."""

    @abstractmethod
    def sized(self, relation: R, rows: int) -> R:
        """The relation, for an engine that has to know how many rows it has."""

    @abstractmethod
    def complete(self) -> None:
        """Makes the rows of a merge whole, each with the row that it replaces."""

    @abstractmethod
    def many(self, kind: GraphType) -> bool:
        """More rows are left than a join likes; look at digests first."""

    @abstractmethod
    def may_exceed(
        self, kind: GraphType, columns: tuple[str, ...], most: int = 1, *, stored: bool = False
    ) -> bool:
        """False: no values come more than so many times in what arrives, together with the table
        if `stored`. True: look at the rows."""

    @abstractmethod
    def keys(self, kind: GraphType, columns: tuple[str, ...]) -> list[str]:
        """The names that unique values have in relations."""

    @abstractmethod
    def arriving(
        self, kind: GraphType, names: tuple[str, ...] = (), unique: tuple[str, ...] = ()
    ) -> R:
        """`place`, the columns named, `k0`, … for unique values, and `origin` if replacing."""

    @abstractmethod
    def stored(
        self, kind: GraphType, names: tuple[str, ...] = (), unique: tuple[str, ...] = ()
    ) -> R:
        """`address` and columns of stored rows: at least of those that share a value with a row
        that arrives."""

    @abstractmethod
    def origins(self, kind: GraphType) -> R:
        """The addresses that arriving rows replace, as `origin`."""

    @abstractmethod
    def before(self, kind: GraphType, names: tuple[str, ...], end: End | None = None) -> R:
        """All rows of the table, whether or not the load replaces them. The end is `node`."""

    @abstractmethod
    def nodes(self, node: NodeType) -> R | None:
        """Nodes that arrive or stay, by `id`; None if there are none."""

    @abstractmethod
    def missing(self, rule: Ends) -> R:
        """Arriving edges, by `place`, whose end is no node, with the end as `node`."""

    @abstractmethod
    def alive(self, sources: R, node: NodeType) -> R:
        """Those of the sources that are nodes."""

    @abstractmethod
    def is_empty(self, relation: R) -> bool: ...

    @abstractmethod
    def refuse(self, rule: Rule, found: R) -> int:
        """Refuses arriving rows by place, and says how many there are."""

    @abstractmethod
    def report(self, rule: Rule, found: R) -> None:
        """Refuses the load for what no single row is to blame for."""
