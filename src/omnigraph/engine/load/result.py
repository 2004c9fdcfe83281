"""Owns the result of a load."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from omnigraph.engine.load.rejected import RejectedRows, rejects_table
from omnigraph.model.changes import TypeCounts
from omnigraph.model.version import Commit
from omnigraph.plan.load.places import Reject
from omnigraph.telemetry import Ledger


@dataclass(frozen=True)
class LoadResult:
    """`commit` is None if there was nothing to do. If this call only `repeated` an earlier one, it
    is the commit of the first call. `engine` and `reason` say where the load ran and why.
    `rejected` holds the rows that were set aside. `embedded` is how many vectors were embedded
    afterwards, if that was asked for. `advice` says where another schema would have done what was
    probably meant."""

    branch: str
    mode: str
    commit: Commit | None
    counts: dict[str, TypeCounts]
    engine: str
    reason: str
    rejected: Sequence[Reject] = field(default=(), repr=False)
    repeated: bool = False
    embedded: int = 0
    advice: tuple[str, ...] = ()
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
