"""Histories over several branches as plain states, with networkx for who comes from whom.

A commit is a node of a graph and holds a whole state. Written without a look at the code that it
judges; the merge of two states is in `merge_oracle`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import networkx as nx

from tests.model.merge_oracle import Outcome, State, merge_states


class Unsure:
    """A value, or a row, that several bases do not agree on: equal to nothing, itself included."""

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        return False

    def __getitem__(self, name: str) -> Unsure:
        return self


@dataclass
class Past:
    edges: Mapping[str, Any]
    dag: Any = field(default_factory=nx.DiGraph)
    states: dict[str, State] = field(default_factory=dict)

    def add(self, commit: str, parents: tuple[str, ...], state: State) -> None:
        self.dag.add_node(commit)
        self.dag.add_edges_from((parent, commit) for parent in parents)
        self.states[commit] = state

    def has(self, commit: str, other: str) -> bool:
        """Whether a commit is another or comes from it."""
        return bool(nx.has_path(self.dag, other, commit))

    def bases(self, some: set[str], other: str) -> list[str]:
        """Common ancestors of which no other is a descendant, newest (largest id) first."""
        mine: set[str] = set().union(*({one} | nx.ancestors(self.dag, one) for one in some))
        common = mine & ({other} | nx.ancestors(self.dag, other))
        older: set[str] = set().union(*(nx.ancestors(self.dag, one) for one in common))
        return sorted(common - older, reverse=True)

    def base(self, bases: list[str]) -> State:
        """The state that several bases imply: merged with each other, unsure where that fails."""
        state = self.states[bases[0]]
        for step in range(1, len(bases)):
            below = self.base(self.bases(set(bases[:step]), bases[step]))
            state = _settle(state, below, self.states[bases[step]])
        return state

    def merge(self, ours: str, theirs: str, prefer: str | None) -> Outcome:
        base = self.base(self.bases({ours}, theirs))
        return merge_states(base, self.states[ours], self.states[theirs], self.edges, prefer)


def _settle(ours: State, base: State, theirs: State) -> State:
    """A row that ours is unsure of stays so, whatever the others say."""
    unsure: State = {key: row for key, row in ours.items() if isinstance(row, Unsure)}
    was, mine, yours = (
        {key: row for key, row in state.items() if key not in unsure}
        for state in (base, ours, theirs)
    )
    merged = merge_states(was, mine, yours, {})
    result: dict[tuple[str, str], Any] = {
        key: dict(row) if isinstance(row, Mapping) else row for key, row in merged.state.items()
    }
    for _, kind, entity, name in merged.conflicts:
        if name is None or not isinstance(result.get((kind, entity)), dict):
            result[kind, entity] = Unsure()
        else:
            result[kind, entity][name] = Unsure()
    return result | unsure
