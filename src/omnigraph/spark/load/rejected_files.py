"""Owns rows that executors put aside: in the answer of a task while they are few, in a file beside
the pieces when they are many, so that no process holds all of them."""

from __future__ import annotations

from collections.abc import Iterable
from uuid import uuid4

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.load.rejected import rejects_table
from omnigraph.plan.load.places import Reject
from omnigraph.spark.load.pieces import Spool

FEW = 1000


class RejectedFile(msgspec.Struct, frozen=True, kw_only=True):
    """A file of rejected rows; `shift` is what has to be added to their lines."""

    key: str
    rows: int
    shift: int = 0


class RejectedShelf:
    """Gathers rejected rows, and writes them down whenever there are many."""

    def __init__(self, spool: Spool) -> None:
        self._spool = spool
        self.few: list[Reject] = []
        self.files: list[RejectedFile] = []

    def add(self, rejects: Iterable[Reject]) -> None:
        for reject in rejects:
            self.few.append(reject)
            if len(self.few) >= FEW:
                self._write()

    def close(self) -> None:
        """Of what was partly written down, the rest is too: the order stays."""
        if self.files and self.few:
            self._write()

    def _write(self) -> None:
        self.files.append(write_rejected_file(self._spool, self.few))
        self.few = []


def write_rejected_file(spool: Spool, rejects: list[Reject]) -> RejectedFile:
    name = f"aside-{uuid4().hex}.arrow"
    return RejectedFile(key=spool.write(name, rejects_table(rejects)), rows=len(rejects))


def read_rejected_file(spool: Spool, aside: RejectedFile) -> pa.Table:
    rows = spool.table(aside.key)
    if not aside.shift:
        return rows
    lines = pc.add(rows["line"], aside.shift)
    return rows.set_column(rows.column_names.index("line"), rows.schema.field("line"), lines)
