"""Owns the progress of a load, as it is reported to the caller."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class LoadProgress:
    """`stage` is reading, checking, writing, indexing or publishing. `bytes` of `total_bytes` were
    read; the total is None if it is not known. On Spark a stage also reports its number of rows,
    how many of its `tasks` are done, and how many seconds it has taken, for the `rate`."""

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
        """Rows per second in this stage, if known."""
        return self.rows / self.elapsed if self.rows and self.elapsed > 0 else None


OnLoadProgress = Callable[[LoadProgress], None]
