"""Owns what an algorithm gives back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa

from omnigraph.model.catalog import NodeType
from omnigraph.model.options import CommitOptions
from omnigraph.model.version import Commit


@dataclass(frozen=True)
class Target:
    """Where values are to be written: a property of these types, on the head of a branch, which
    must still show what they were computed on."""

    property: str
    kinds: Sequence[NodeType]
    commit: CommitOptions


class Computed(Protocol):
    """The values of an algorithm, wherever they are."""

    @property
    def rounds(self) -> int: ...

    @property
    def frame(self) -> Any:
        """A DataFrame of Spark, None if the values are here."""

    def read(self) -> pa.Table:
        """`type`, `id` and `value` of every node, by type and id."""

    def write(self, target: Target) -> Commit | None:
        """Makes the values a property, as one commit."""


@dataclass(frozen=True)
class AlgorithmResult:
    """A row for each node: `type`, `id` and `value`. `rounds` is how often all edges were looked
    at; `commit` is there if the values were written; `engine` is where they were computed, and
    `frame` the values as a DataFrame if that was Spark."""

    name: str
    engine: str
    rounds: int
    commit: Commit | None = None
    frame: Any = field(default=None, repr=False)
    _computed: Computed | None = field(default=None, repr=False, compare=False)
    _held: list[pa.Table] = field(default_factory=list, repr=False, compare=False)

    @property
    def table(self) -> pa.Table:
        """Read when it is first asked for."""
        if not self._held:
            assert self._computed is not None
            self._held.append(self._computed.read())
        return self._held[0]

    def to_arrow(self) -> pa.Table:
        return self.table

    def to_pandas(self) -> Any:
        return self.table.to_pandas()

    def to_pylist(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.table.to_pylist()
        return found

    def to_dict(self) -> dict[Any, Any]:
        """Values by id, or by (type, id) if there are several types."""
        rows = self.to_pylist()
        if len({row["type"] for row in rows}) < 2:
            return {row["id"]: row["value"] for row in rows}
        return {(row["type"], row["id"]): row["value"] for row in rows}

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self.table.num_rows)
