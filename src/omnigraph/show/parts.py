"""Owns the parts of a subgraph: nodes and edges as values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

End = tuple[str, str]
"""A node by its type and its id."""


@dataclass(frozen=True)
class SubgraphNode:
    type: str
    id: str
    data: Mapping[str, Any] = field(default_factory=dict)

    @property
    def end(self) -> End:
        return self.type, self.id


@dataclass(frozen=True)
class SubgraphEdge:
    type: str
    id: str
    source: End
    target: End
    data: Mapping[str, Any] = field(default_factory=dict)
