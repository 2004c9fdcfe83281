"""Owns what a load knows while it checks: its rows by type, which of them are refused, and the
tables that a decision depends on. Every engine has the same state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Generic

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.graph_view import GraphView
from omnigraph.engine.load.phases import H, Mode, Resolved
from omnigraph.engine.load.rejected import RejectedFile
from omnigraph.engine.view import TableView
from omnigraph.errors import InvalidData
from omnigraph.model.catalog import GraphType
from omnigraph.model.violation import Violation
from omnigraph.plan.load.places import AT, Reject, SourceName, to_violation
from omnigraph.plan.load.shaping import show_row
from omnigraph.plan.publish import TableAction
from omnigraph.telemetry import Ledger

ORIGIN = "_origin"
"""The column with the address that a row replaces; null for a new entity."""

TOLD = 100
"""An error names at most this many rows."""


@dataclass(kw_only=True)
class LoadState(Generic[H]):
    """`every` is True if every wrong row is set aside and the others are loaded. `checks` collects
    the tables that a decision depends on. `unblamed` holds errors that no single row causes. `more`
    counts the errors that are not listed."""

    snapshot: GraphView
    types: dict[str, H]
    mode: Mode
    names: Sequence[SourceName]
    every: bool
    ledger: Ledger
    checks: set[str] = field(default_factory=set)
    rejects: list[Reject] = field(default_factory=list)
    files: list[RejectedFile] = field(default_factory=list)
    unblamed: list[Violation] = field(default_factory=list)
    more: int = 0

    def view(self, kind: GraphType) -> TableView:
        self.checks.add(kind.table_key)
        return self.snapshot.view(kind)

    def replaced(self, kind: GraphType) -> bool:
        """Whether the load leaves nothing of the type's table."""
        return self.mode == "overwrite" and kind.table_key in self.types

    def keeps(self, kind: GraphType) -> bool:
        """Whether the load leaves some of the rows that the table has."""
        return not self.replaced(kind) and self.view(kind).table.rows > 0

    def left(self, kind: GraphType) -> int:
        """How many arriving rows of a type are not refused."""
        rows = self.types.get(kind.table_key)
        return 0 if rows is None else rows.left

    def named(self, count: int) -> int:
        """How many of this many more rejected rows are listed one by one."""
        return count if self.every else min(count, max(TOLD - len(self.rejects), 0))

    def drop(self, kind: GraphType, places: np.ndarray) -> None:
        """Takes these rows out of the load."""
        self.types[kind.table_key] = self.types[kind.table_key].without(places)

    def halt(self) -> None:
        """Ends the load at the first stage that refuses anything, unless rows are set aside."""
        refuse_load([] if self.every else self.rejects, self.unblamed, self.more, self.names)

    def resolved(self, actions: Sequence[TableAction]) -> Resolved:
        return Resolved(
            actions=tuple(actions),
            checks=tuple(sorted(self.checks)),
            rejects=tuple(self.rejects),
            files=tuple(self.files),
        )


def shown_rows(table: pa.Table, at: Any) -> dict[int, tuple[str, str]]:
    """The id and text of the rows at some places."""
    if not len(at):
        return {}
    rows = table.filter(pc.is_in(table[AT], value_set=pa.array(at)))
    shown = [name for name in rows.column_names if name not in (AT, ORIGIN)]
    found = {}
    for row, place in zip(rows.select(shown).to_pylist(), rows[AT].to_pylist(), strict=True):
        found[place] = (row["id"], show_row({k: v for k, v in row.items() if v is not None}))
    return found


def refuse_load(
    rejects: Sequence[Reject],
    unblamed: Sequence[Violation],
    more: int,
    names: Sequence[SourceName],
) -> None:
    """Ends a load that must refuse rows, or that fails for a reason that no single row causes. The
    error lists what it can."""
    violations = [to_violation(reject, names) for reject in rejects[:TOLD]] + list(unblamed)
    if not violations:
        return
    more += max(len(rejects) - TOLD, 0)
    rest = len(violations) - 1 + more
    at = {"source": rejects[0].source, "line": rejects[0].line} if rejects else {}
    raise InvalidData(
        violations[0].message + (f" (and {rest} more)" if rest else ""),
        violations=violations,
        more=more,
        **at,
    )
