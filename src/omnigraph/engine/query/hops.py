"""Owns the values that expansion works with: an edge type in one direction, its arrays, and the
entities reached."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from omnigraph.engine.query.adjacency.arrays import Way
from omnigraph.engine.query.adjacency.neighbours import Neighbours
from omnigraph.engine.query.rows import TypeRows


@dataclass(frozen=True)
class TypedHop:
    """One edge type in one direction, between the rows of two types. `only` means that all given
    entities are of the one type."""

    edge: TypeRows
    here: TypeRows
    there: TypeRows
    way: Way
    only: bool

    @property
    def key(self) -> tuple[str, str]:
        return self.edge.kind.table_key, self.way


@dataclass(frozen=True)
class Arrays:
    """Adjacency as one run uses it: entries by vertex, and the maps between positions and vertices
    (None: they are the same)."""

    entries: Neighbours
    vertex_of: np.ndarray | None
    position_of: np.ndarray | None

    def vertices(self, positions: np.ndarray) -> np.ndarray:
        return positions if self.vertex_of is None else self.vertex_of[positions]

    def positions(self, vertices: np.ndarray) -> np.ndarray:
        found: np.ndarray = (
            vertices.astype(np.int64) if self.position_of is None else self.position_of[vertices]
        )
        return found


@dataclass(frozen=True)
class Reached:
    """For each neighbour: the index of the entity it was reached from, its number, and the number
    of its edge."""

    places: np.ndarray
    targets: np.ndarray
    edges: np.ndarray | None
