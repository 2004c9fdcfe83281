"""Owns what a load reports: its progress and its result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.engine.load.rejected import RejectedRows, rejects_table
from omnigraph.model.changes import TypeCounts
from omnigraph.model.version import Commit
from omnigraph.plan.load.places import Reject
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class LoadProgress:
    """`stage` is reading, checking, writing, indexing or publishing; `bytes` of `total_bytes`
    were read (None if nobody knows how many there are). On Spark also of how many rows a stage is,
    how many of the `tasks` that run now are done, and how many seconds the stage has taken, for the
    `rate`."""

    stage: str
    rows: int
    bytes: int
    total_bytes: int | None
    tasks_done: int = 0
    tasks: int = 0
    elapsed: float = 0.0
    total_rows: int | None = None

    @property
    def rate(self) -> float | None:
        """Rows a second in this stage, if that can be told."""
        return self.rows / self.elapsed if self.rows and self.elapsed > 0 else None


OnLoadProgress = Callable[[LoadProgress], None]


@dataclass(frozen=True)
class LoadResult:
    """`commit` is None if there was nothing to do, and that of the first call if this one only
    `repeated` it. `engine` and `reason` say where it ran and why there; `rejected` holds the rows
    that were put aside. `embedded` is how many vectors were embedded after it, if that was asked
    for."""

    branch: str
    mode: str
    commit: Commit | None
    counts: dict[str, TypeCounts]
    engine: str
    reason: str
    rejected: Sequence[Reject] = field(default=(), repr=False)
    repeated: bool = False
    embedded: int = 0
    io: Ledger = field(default_factory=Ledger, repr=False)

    @property
    def commit_id(self) -> str | None:
        return None if self.commit is None else self.commit.id

    @property
    def rows(self) -> int:
        return sum(c.inserted + c.updated for c in self.counts.values())

    def rejected_rows(self) -> pa.Table:
        """The rejected rows as a table: source, line, type, rule, reason, row, id, property."""
        if isinstance(self.rejected, RejectedRows):
            return self.rejected.to_arrow()
        return rejects_table(self.rejected)
