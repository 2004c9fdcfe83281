"""Owns what an algorithm returns."""

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
    """Where values are to be written: a property of these types, at the head of a branch. The head
    must still show the version that the values were computed on."""

    property: str
    kinds: Sequence[NodeType]
    commit: CommitOptions


class Computed(Protocol):
    """The values of an algorithm, here or on Spark."""

    @property
    def rounds(self) -> int: ...

    @property
    def frame(self) -> Any:
        """A DataFrame of Spark, or None if the values are in this process."""

    def read(self) -> pa.Table:
        """`type`, `id` and `value` of every node, by type and id."""

    def write(self, target: Target) -> Commit | None:
        """Stores the values as a property, in one commit."""


@dataclass(frozen=True)
class AlgorithmResult:
    """A row for each node: `type`, `id` and `value`. `rounds` is how many times all edges were
    visited. `commit` is set if the values were written. `engine` says where they were computed; if
    that was Spark, `frame` holds them as a DataFrame."""

    name: str
    engine: str
    rounds: int
    commit: Commit | None = None
    frame: Any = field(default=None, repr=False)
    _computed: Computed | None = field(default=None, repr=False, compare=False)
    _held: list[pa.Table] = field(default_factory=list, repr=False, compare=False)

    @property
    def table(self) -> pa.Table:
        """Read when it is first used."""
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
        """The values by id, or by (type, id) if there are several types."""
        rows = self.to_pylist()
        if len({row["type"] for row in rows}) < 2:
            return {row["id"]: row["value"] for row in rows}
        return {(row["type"], row["id"]): row["value"] for row in rows}

    def _repr_html_(self) -> str:
        from omnigraph.show.rows import rows_view

        return rows_view(self.table)

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)

    def __len__(self) -> int:
        return int(self.table.num_rows)
