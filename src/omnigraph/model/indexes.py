"""Owns the names of indexes, and the options with which they are built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from omnigraph.model.analysis import STANDARD

IndexKind = Literal["BTREE", "BITMAP", "LABEL_LIST", "INVERTED", "IVF_FLAT"]
"""The kinds of indexes, as the store names them."""

EXACT_FLOATS: Final = 1 << 27
"""Up to this many numbers in a vector column all rows are searched; above it, an index finds the
nearest approximately."""
_PARTITION: Final = 4096
"""Vectors in a partition; all partitions are searched anyway."""


def index_name(column: str, kind: IndexKind, analysis: str = STANDARD.name) -> str:
    """Segments of one name must split texts in the same way, so the analysis is part of the
    name."""
    name = f"{column}_{kind.lower()}"
    return f"{name}_{analysis}" if kind == "INVERTED" else name


@dataclass(frozen=True)
class IndexSpec:
    """`analysis` is for texts, `dimension` for vectors."""

    column: str
    kind: IndexKind
    analysis: str = STANDARD.name
    dimension: int = field(default=1, compare=False)

    @property
    def name(self) -> str:
        return index_name(self.column, self.kind, self.analysis)

    def partitions(self, rows: int) -> int | None:
        """For vectors: the number of partitions that is read fastest."""
        if self.kind != "IVF_FLAT":
            return None
        if rows * self.dimension > EXACT_FLOATS:
            return max(1, int(rows**0.5))
        return max(1, -(-rows // _PARTITION))
