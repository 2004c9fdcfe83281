"""Owns the step from a checked mutation to the statements of a write.

Inserts read nothing, so consecutive inserts become one statement for each type. The result is the
same as one after the other, and as fast as rows that are given together.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import Any

import msgspec
import numpy as np

from omnigraph.engine.write.assignments import inserted_row
from omnigraph.engine.write.statements import (
    AppendRows,
    DeleteWhere,
    Statement,
    UpdateWhere,
    UpsertRows,
)
from omnigraph.errors import InvalidData, ValueOutOfRange
from omnigraph.lang.gq.checked import Delete, InsertEdge, InsertNode, Mutation, Update
from omnigraph.model.catalog import GraphType
from omnigraph.model.violation import Violation
from omnigraph.plan.rows.typed import Shaped, shape_rows
from omnigraph.plan.validate import check_rows
from omnigraph.plan.values.rows import Bindings

NewIds = Callable[[int], list[str]]


def lower_mutation(
    body: Sequence[Mutation], bindings: Bindings, new_ids: NewIds
) -> list[Statement]:
    """Statements in an order that has the same effect as the order of the mutation. Raises an error
    for wrong values of inserts. Those of updates are known only once there are rows."""
    statements: list[Statement] = []
    for insert, group in groupby(
        enumerate(body), key=lambda pair: isinstance(pair[1], InsertNode | InsertEdge)
    ):
        if insert:
            statements += _inserts(list(group), bindings, new_ids, alone=len(body) == 1)
        else:
            statements += _changes([mutation for _, mutation in group], bindings)
    return statements


def _inserts(
    body: Sequence[tuple[int, Mutation]], bindings: Bindings, new_ids: NewIds, *, alone: bool
) -> list[Statement]:
    by_type: dict[str, _Inserts] = {}
    for number, mutation in body:
        assert isinstance(mutation, InsertNode | InsertEdge)
        row = _row(mutation, bindings, None if alone else number)
        into = by_type.setdefault(mutation.type.table_key, _Inserts(mutation.type, alone))
        into.rows.append(row)
        into.numbers.append(number)
    return [gathered.statement(new_ids) for gathered in by_type.values()]


def _changes(body: Sequence[Mutation], bindings: Bindings) -> list[Statement]:
    """Consecutive updates of one type are one statement, which reads its rows at once."""
    statements: list[Statement] = []
    for (key, _), group in groupby(body, key=lambda m: (m.type.table_key, type(m))):
        same = list(group)
        updates = tuple(one for one in same if isinstance(one, Update))
        if updates:
            statements.append(UpdateWhere(key, updates, bindings))
        statements += [
            DeleteWhere(key, one.where, bindings) for one in same if isinstance(one, Delete)
        ]
    return statements


def is_blind(statement: Statement) -> bool:
    """Whether all statements insert new entities with their own ids. These can clash with nothing,
    so the head need not be known."""
    return isinstance(statement, AppendRows) and statement.generated_ids


def _row(
    mutation: InsertNode | InsertEdge, bindings: Bindings, number: int | None
) -> dict[str, Any]:
    try:
        return inserted_row(mutation, bindings)
    except ValueOutOfRange as error:
        if number is None:
            raise
        told = f"Statement {number + 1}, insert {mutation.type.name}: {error.message}"
        raise ValueOutOfRange(told, help=error.hint) from None


@dataclass
class _Inserts:
    """Consecutive inserts of one type. `numbers` are the places of the statements in the text."""

    kind: GraphType
    alone: bool
    rows: list[dict[str, Any]] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def statement(self, new_ids: NewIds) -> Statement:
        key = self.kind.table_key
        if not self.kind.key:
            return AppendRows(key, None, self._shape(new_ids, complete=True), generated_ids=True)
        shaped = self._shape(new_ids, complete=False)
        ids = [text for group in shaped.groups for text in group.table["id"].to_pylist()]
        merged = len(ids) - len(set(ids))
        if merged:
            shaped = self._merged(shaped, new_ids)
        return UpsertRows(key, None, shaped, merged=merged)

    def _shape(self, new_ids: NewIds, *, complete: bool) -> Shaped:
        shaped = shape_rows(self.kind, self.rows, complete=complete, new_ids=new_ids)
        self._refuse(shaped.violations, shaped.more)
        for group in shaped.groups:
            self._refuse(check_rows(self.kind, group.table, positions=group.positions), 0)
        numbers = np.array(self.numbers, dtype=np.int64)
        groups = [replace(g, positions=numbers[g.positions]) for g in shaped.groups]
        return replace(shaped, groups=tuple(groups))

    def _merged(self, shaped: Shaped, new_ids: NewIds) -> Shaped:
        """One row for each entity. A property that a later insert leaves out comes from an earlier
        one."""
        places = {number: place for place, number in enumerate(self.numbers)}
        ids: dict[int, str] = {
            places[int(position)]: text
            for group in shaped.groups
            for position, text in zip(group.positions, group.table["id"].to_pylist(), strict=True)
        }
        by_id: dict[str, int] = {}
        rows: list[dict[str, Any]] = []
        numbers: list[int] = []
        for place, row in enumerate(self.rows):
            known = by_id.setdefault(ids[place], len(rows))
            if known == len(rows):
                rows.append(dict(row))
                numbers.append(self.numbers[place])
            else:
                rows[known].update(row)
        merged = _Inserts(self.kind, self.alone, rows, numbers)
        return merged._shape(new_ids, complete=False)

    def _refuse(self, violations: Sequence[Violation], more: int) -> None:
        """If there are several statements, each message begins with the place of its statement."""
        if not violations:
            return
        told = [self._placed(violation) for violation in violations]
        rest = len(told) - 1 + more
        message = told[0].message + (f" (and {rest} more)" if rest else "")
        raise InvalidData(message, violations=told, more=more)

    def _placed(self, violation: Violation) -> Violation:
        if violation.row is None:
            return violation
        number = self.numbers[violation.row]
        message = violation.message
        if not self.alone:
            message = f"Statement {number + 1}, insert {self.kind.name}: {message}"
        return msgspec.structs.replace(violation, row=number, message=message)
