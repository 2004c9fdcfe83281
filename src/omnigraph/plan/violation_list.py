"""Owns the list of violations while rows are shaped or checked. It is bounded, and counts the
rest."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa

from omnigraph.model.violation import Violation, show_value

Indices = np.ndarray[Any, np.dtype[np.int64]]
NOT_GIVEN: Any = object()


class ViolationList:
    """Violations of one type's rows: the first `limit` listed, all counted."""

    def __init__(self, type_name: str, limit: int) -> None:
        self.type = type_name
        self.limit = limit
        self.violations: list[Violation] = []
        self.more = 0

    @property
    def room(self) -> int:
        return max(self.limit - len(self.violations), 0)

    def add(
        self,
        rule: str,
        message: str,
        *,
        property: str | None = None,
        value: object = NOT_GIVEN,
        row: int | None = None,
        id: str | None = None,
    ) -> None:
        if not self.room:
            self.more += 1
            return
        shown = None if value is NOT_GIVEN else show_value(value)
        self.violations.append(
            Violation(
                type=self.type,
                rule=rule,
                message=message,
                id=id,
                property=property,
                value=shown,
                row=row,
            )
        )


class Rejects:
    """The rows of one group that have a violation, by their index within the group."""

    def __init__(self, findings: ViolationList, positions: Indices) -> None:
        self.findings = findings
        self.positions = positions
        self._first = len(findings.violations)
        self._rows: list[Indices] = []
        self._by_column: dict[str, list[Indices]] = {}

    def reject(
        self,
        rows: Indices,
        column: str,
        rule: str,
        describe: Callable[[int], tuple[str, object]],
        *,
        property: str | None = None,
    ) -> None:
        """A violation for each of these rows. `describe` gives the message and the value."""
        self.exclude(rows, column)
        described = rows[: self.findings.room].tolist()
        for index in described:
            message, value = describe(index)
            row = int(self.positions[index])
            self.findings.add(rule, message, property=property, value=value, row=row)
        self.findings.more += len(rows) - len(described)

    def reject_all(
        self, rows: Indices, column: str, rule: str, message: str, *, shown: str
    ) -> None:
        """The same violation for each of these rows, without a value to show."""
        self.reject(rows, column, rule, lambda _: (message, NOT_GIVEN), property=shown)

    def exclude(self, rows: Indices, column: str | None = None) -> None:
        """Rows that are unusable for a reason that is reported elsewhere."""
        self._rows.append(rows)
        if column is not None:
            self._by_column.setdefault(column, []).append(rows)

    def without_blamed(self, rows: Indices, column: str) -> Indices:
        """The rows for which this column has no violation yet."""
        blamed = self._by_column.get(column)
        return np.setdiff1d(rows, np.concatenate(blamed)) if blamed and len(rows) else rows

    def sound(self, length: int) -> np.ndarray[Any, np.dtype[np.bool_]] | None:
        """Which rows have no violation, or None if none has one."""
        if not self._rows:
            return None
        mask = np.ones(length, dtype=np.bool_)
        mask[np.concatenate(self._rows)] = False
        return None if mask.all() else mask

    def name_rows(self, ids: pa.Array | pa.ChunkedArray) -> None:
        """Adds to each violation of this group the entity that it is about, if that is known."""
        index_of = {int(row): index for index, row in enumerate(self.positions)}
        listed = self.findings.violations
        for at in range(self._first, len(listed)):
            row = listed[at].row
            index = None if row is None else index_of.get(row)
            if index is not None:
                listed[at] = msgspec.structs.replace(listed[at], id=ids[index].as_py())
