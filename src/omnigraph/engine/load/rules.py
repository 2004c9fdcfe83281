"""Owns the order of the rules between the rows of a load and the graph, for every engine: each
brings how it checks a rule, and none decides which comes first."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

from omnigraph.model.catalog import EdgeType, GraphType, NodeType
from omnigraph.plan.load.places import Reject


class Checked(Protocol):
    """What the order depends on of a load that is being checked."""

    rejects: list[Reject]
    every: bool

    def replaced(self, kind: GraphType) -> bool: ...


S = TypeVar("S", bound=Checked)


@dataclass(frozen=True)
class Rules(Generic[S]):
    """`unique` says whether it must be asked again: refusing a row gives back the value that the
    entity had, which may clash again."""

    unique: Callable[[S, GraphType, tuple[str, ...]], bool]
    ends: Callable[[S, EdgeType], None]
    card: Callable[[S, EdgeType], None]
    orphans: Callable[[S, NodeType], None]

    def check(self, state: S, kinds: Sequence[GraphType]) -> None:
        """Nodes first: an edge may hang on a node that is refused."""
        for kind in kinds:
            for columns in kind.uniques:
                while self.unique(state, kind, columns):
                    pass
        if state.rejects and not state.every:
            return  # edges of a node that is refused would only hide the reason
        for kind in kinds:
            if isinstance(kind, EdgeType):
                self.ends(state, kind)
                self.card(state, kind)
        for kind in kinds:
            if isinstance(kind, NodeType) and state.replaced(kind):
                self.orphans(state, kind)
