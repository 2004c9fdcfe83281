"""Owns the overlay: pending rows over a table version, and which rows of the table they hide."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa

from omnigraph.model.arrow import row_schema
from omnigraph.model.catalog import GraphType

NEW = np.uint64(2**64 - 1)
"""The origin of a pending row that replaces nothing."""
_NO_ADDRESSES = np.array([], dtype=np.uint64)


@dataclass(frozen=True)
class Overlay:
    """Pending rows over a table version. `rows` hide stored rows of the same id, addresses in
    `hidden` are deleted, and `replaced` hides the whole table. `origins` holds for each row the
    address that it replaces, or NEW."""

    rows: pa.Table
    origins: np.ndarray
    hidden: np.ndarray
    replaced: bool = False

    @staticmethod
    def empty(kind: GraphType) -> Overlay:
        return _nothing_pending(kind)

    def adding(self, rows: pa.Table, origins: np.ndarray) -> Overlay:
        both = rows if not self.rows.num_rows else pa.concat_tables([self.rows, rows])
        hidden = origins[origins != NEW]
        return Overlay(
            both,
            np.concatenate([self.origins, origins]),
            np.union1d(self.hidden, hidden) if len(hidden) else self.hidden,
            self.replaced,
        )

    def hiding(self, addresses: np.ndarray) -> Overlay:
        return Overlay(self.rows, self.origins, np.union1d(self.hidden, addresses), self.replaced)

    def without(self, positions: np.ndarray) -> Overlay:
        """Drops pending rows. The rows that they replaced stay hidden."""
        if not len(positions):
            return self
        kept = np.ones(len(self.origins), dtype=bool)
        kept[positions] = False
        rows = self.rows.filter(pa.array(kept))
        return Overlay(rows, self.origins[kept], self.hidden, self.replaced)

    @property
    def touched(self) -> bool:
        return bool(self.rows.num_rows or len(self.hidden) or self.replaced)


@lru_cache(maxsize=1024)
def _nothing_pending(kind: GraphType) -> Overlay:
    return Overlay(row_schema(kind).empty_table(), _NO_ADDRESSES, _NO_ADDRESSES)
