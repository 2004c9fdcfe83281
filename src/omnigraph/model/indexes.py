"""Owns what an index of a column is called, and what it is told when it is built."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final, Literal

from omnigraph.model.analysis import STANDARD

IndexKind = Literal["BTREE", "BITMAP", "LABEL_LIST", "INVERTED", "IVF_FLAT"]
"""What an index of a column may be, in the words of the store."""

EXACT_FLOATS: Final = 1 << 27
"""So many numbers of a column of vectors are searched in full; of more, the nearest are found
approximately."""
_PARTITION: Final = 4096
"""Vectors in a partition, where all partitions are looked at anyway."""


def index_name(column: str, kind: IndexKind, analysis: str = STANDARD.name) -> str:
    """Segments of one name must agree in how they cut texts, so the analysis is part of it."""
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
        """Of vectors: as many partitions as are read fastest."""
        if self.kind != "IVF_FLAT":
            return None
        if rows * self.dimension > EXACT_FLOATS:
            return max(1, int(rows**0.5))
        return max(1, -(-rows // _PARTITION))
