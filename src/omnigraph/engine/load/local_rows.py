"""Owns the rows of one type in a load in this process, as Arrow tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.load.completing import Part, system_rows
from omnigraph.engine.load.state import ORIGIN
from omnigraph.model.catalog import GraphType
from omnigraph.plan.load.places import AT

_NONE = pa.schema([("id", pa.string()), (AT, pa.int64())])


@dataclass(frozen=True)
class LocalRows:
    """`given` holds the rows as they came, to show those that are refused. `table` holds the rows
    that are not refused, with their places. In a merge it has only system columns until the rows
    are whole; then it also has the address that each row replaces."""

    kind: GraphType
    given: tuple[Part, ...]
    generated: bool
    table: pa.Table

    @staticmethod
    def read(kind: GraphType, parts: Sequence[Part], *, generated: bool) -> LocalRows:
        """`parts` give different properties only in a merge, which has to complete them."""
        table = _NONE.empty_table()
        if len(parts) == 1 and not parts[0].given:
            table = parts[0].table
        elif parts:
            table = system_rows(kind, parts)
        return LocalRows(kind, tuple(parts), generated, table)

    @property
    def left(self) -> int:
        return int(self.table.num_rows)

    @property
    def replacing(self) -> bool:
        return ORIGIN in self.table.column_names

    def without(self, places: np.ndarray) -> LocalRows:
        keep = pc.invert(pc.is_in(self.table[AT], value_set=pa.array(places)))
        return replace(self, table=self.table.filter(keep))

    def parts_left(self) -> list[Part]:
        """The parts without the rows that are refused."""
        left = self.table[AT]
        if len(left) == sum(part.table.num_rows for part in self.given):
            return list(self.given)
        return [
            Part(part.given, part.table.filter(pc.is_in(part.table[AT], value_set=left)))
            for part in self.given
        ]
