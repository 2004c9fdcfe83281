"""Owns what a load tells of itself: while it runs and when it is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field

import pyarrow as pa

from omnigraph.model.version import Commit
from omnigraph.plan.load.places import Reject
from omnigraph.telemetry import Ledger

_REJECTED = pa.schema(
    [
        pa.field("source", pa.string(), nullable=False),
        pa.field("line", pa.int64(), nullable=False),
        pa.field("type", pa.string(), nullable=False),
        pa.field("rule", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("row", pa.string(), nullable=False),
        pa.field("id", pa.string()),
        pa.field("property", pa.string()),
    ]
)


@dataclass(frozen=True)
class Progress:
    """`stage` is reading, checking, writing, indexing or publishing; `bytes` of `total_bytes`
    were read (None if nobody knows how many there are)."""

    stage: str
    rows: int
    bytes: int
    total_bytes: int | None


OnLoadProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class TypeCounts:
    inserted: int = 0
    updated: int = 0
    deleted: int = 0


@dataclass(frozen=True)
class LoadResult:
    """`commit` is None if there was nothing to do, and that of the first call if this one only
    `repeated` it. `engine` and `reason` say where it ran and why there; `rejected` holds the rows
    that were put aside."""

    branch: str
    mode: str
    commit: Commit | None
    counts: dict[str, TypeCounts]
    engine: str
    reason: str
    rejected: tuple[Reject, ...] = field(default=(), repr=False)
    repeated: bool = False
    io: Ledger = field(default_factory=Ledger, repr=False)

    @property
    def commit_id(self) -> str | None:
        return None if self.commit is None else self.commit.id

    @property
    def rows(self) -> int:
        return sum(c.inserted + c.updated for c in self.counts.values())

    def rejected_rows(self) -> pa.Table:
        """The rejected rows as a table: source, line, type, rule, reason, row, id, property."""
        return pa.Table.from_pylist([asdict(r) for r in self.rejected], schema=_REJECTED)
